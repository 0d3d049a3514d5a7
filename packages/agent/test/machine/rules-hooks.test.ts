import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as hand from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import { a, good, note, u, use } from '../../../../test/kit/agent/shown.js';

import type { Action } from '../../src/machine/action.js';
import { messagesOf } from '../../src/machine/conversation.js';
import type { On } from '../../src/machine/event.js';
import { hearHooks, showHooks } from '../../src/machine/moves/hooks.js';
import type { State } from '../../src/machine/state.js';
import type { HookVerdicts } from '../../src/policy/judged-call.js';

// Hooks after tools: corners that cases-hooks.test.ts leaves out.

const { edit } = g;
const { llm, waiting, withTalk } = hand;
const asked = [u('hi'), a(use('1'))];

check([
  ...(['failed', 'timedOut', 'cancelled', 'lost'] as const).flatMap((status) => [
    {
      rule: 'hooks-look-after-changes' as const,
      title: `a change that ended as ${status} is looked at as one that ended ok`,
      given: 'C[u]' as const,
      send: [g.wants(edit('1')), g.started('1'), g.ended('1', status)],
      state: 'H[c]' as const,
      does: ['RunHook CheckingGitCommits 1'],
    },
    {
      rule: 'hooks-look-after-changes' as const,
      title: `a change that ended as ${status} is not looked at where only ok counts`,
      given: 'C[u]' as const,
      settings: { hooks: 'mutatingOk' as const },
      send: [g.wants(edit('1')), g.started('1'), g.ended('1', status)],
      state: 'C[t]' as const,
      does: ['SendLlmRequest'],
    },
  ]),
  {
    rule: 'format-changes',
    title: 'changed files are formatted',
    given: 'H[c]',
    send: [g.hookDone({ changedFiles: ['a.ts'] })],
    state: 'H[f]',
    does: ['RunHook RunningAutoformatters 1'],
  },
  {
    rule: 'auto-commit',
    title: 'without a formatter a dirty tree is committed',
    given: 'H[c]',
    settings: { formatter: 'off' },
    send: [g.hookDone({ changedFiles: ['a.ts'], dirty: true })],
    state: 'H[a]',
    does: ['RunHook AutoCommitting 1'],
  },
  {
    rule: 'hook-notes',
    title: 'the note of each phase is appended at once, after the results',
    given: 'H[c]',
    send: [
      g.hookDone({ changedFiles: ['a.ts'], dirty: true, note: 'changed a.ts' }),
      g.hookDone({ dirty: true, note: 'formatted a.ts' }),
    ],
    state: 'H[a]',
    talk: [...asked, u(good('1'), note(/changed a\.ts/), note(/formatted a\.ts/))],
  },
  {
    rule: 'hooks-fail-open',
    title: 'a commit check that fails is a warning',
    given: 'H[c]',
    send: [g.hookFails('no git here')],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    shows: [/^DisplayWarning hook: [\s\S]*no git here/],
  },
  {
    rule: 'hooks-fail-open',
    title: 'a formatter that fails does not keep a dirty tree from its commit',
    given: 'H[f]',
    send: [g.hookFails()],
    state: 'H[a]',
    does: ['RunHook AutoCommitting 1'],
    shows: ['DisplayWarning hook'],
  },
  {
    rule: 'hook-effects',
    title: 'a commit that was cut off is looked for, not made blindly',
    given: 'H[a]',
    send: [g.prepares(), g.resumed],
    state: 'H[a]',
    does: ['RunHook AutoCommitting 1 after file'],
  },
  {
    rule: 'hook-effects',
    title: 'the next phase begins without the effects of the one before',
    given: 'H[f]',
    send: [g.prepares(), g.hookDone({ dirty: true }), g.resumed],
    state: 'H[a]',
    does: ['RunHook AutoCommitting 1 after'],
  },
  {
    rule: 'hook-veto',
    title: 'a formatter can stop the turn, too, and its note stays',
    given: 'H[f]',
    send: [g.hookDone({ proceed: false, dirty: true, note: 'formatted a.ts' })],
    state: 'W(cancelled veto)',
    does: [],
    talk: [...asked, u(good('1'), note(/formatted a\.ts/))],
  },
  {
    rule: 'hook-notes',
    title: 'a blank note is none',
    given: 'H[c]',
    send: [g.hookDone({ note: ' \n' })],
    state: 'C[t]',
    talk: [...asked, u(good('1'))],
  },
  {
    rule: 'hooks-look-after-changes',
    title: 'hooks that are switched off under way end with their phases, not in the middle',
    given: 'H[c]',
    send: [g.change({ hooks: 'never' }), g.hookDone({ changedFiles: ['a.ts'] })],
    state: 'H[f]',
    does: ['RunHook RunningAutoformatters 1'],
  },
  {
    rule: 'auto-commit',
    title: 'a tree that is dirty after the commit is not committed again',
    given: 'H[a]',
    send: [g.hookDone({ dirty: true })],
    state: 'C[t]',
    does: ['SendLlmRequest'],
  },
  {
    rule: 'format-changes',
    title: 'a commit is shown by the first eight letters of its hash',
    given: 'H[c]',
    send: [g.hookDone({ commits: [{ hash: '0123456789abcdef', subject: 'one' }] })],
    state: 'H[f]',
    shows: ['DisplayNotice commits: new commit 01234567 one'],
  },
]);

// ---- What hooks of the user said ----

type Ran = On<'UserHooksRan'>;
const notes: HookVerdicts = [{ hook: 'style', decision: 'allow', note: 'use tabs' }];
const denies: HookVerdicts = [{ hook: 'style', decision: 'deny', reason: 'spaces' }];
const fails: HookVerdicts = [{ hook: 'style', decision: 'allow', fault: 'it crashed' }];
const ran = (part: Partial<Ran> = {}): Ran => ({
  type: 'UserHooksRan',
  at: g.NOW,
  moment: 'before-request',
  requestId: null,
  verdicts: notes,
  ...part,
});
const texts = (actions: readonly Action[]): readonly string[] =>
  actions.map((action) => ('text' in action ? `${action.type} ${action.text}` : action.type));

test('user-hooks-report: a note goes with the request that waits for it, or else with the next', () => {
  const heard = (state: State, event: Ran) => {
    const { session: own } = hearHooks(state, event).state;
    const [open] = messagesOf(own.conversation).slice(-1);
    const last = open?.parts.at(-1);
    return [
      own.notes,
      last !== undefined && 'origin' in last && last.origin === 'note' ? last.text : null,
    ];
  };
  const calling = llm(withTalk([], hand.asked()));
  const [note = ''] = heard(waiting(), ran())[0] as readonly string[];
  assert.match(note, /use tabs/);
  assert.deepEqual(heard(calling, ran({ requestId: 'req-1' })), [[], note]);
  assert.deepEqual(heard(calling, ran({ requestId: 'req-2' })), [[note], null]);
  assert.deepEqual(heard(waiting(), ran({ requestId: 'req-1' })), [[note], null]);
});

test('user-hooks-report: what the model reads already is not said twice', () => {
  const once = hearHooks(waiting(), ran()).state;
  const twice = hearHooks(once, ran());
  assert.deepEqual(twice.state.session.notes, once.session.notes);
  const [note = ''] = once.session.notes;
  const calling = llm(withTalk([], hand.user(hand.text('user', 'hi'), hand.text('note', note))));
  assert.deepEqual(hearHooks(calling, ran()).state.session.notes, []);
  const typed = llm(withTalk([], hand.user(hand.text('user', note))));
  assert.deepEqual(hearHooks(typed, ran()).state.session.notes, [note]);
  const other = llm(withTalk([], hand.user(hand.text('note', 'another note'))));
  assert.deepEqual(hearHooks(other, ran()).state.session.notes, [note]);
});

test('user-hooks-report: after a batch the model reads objections, at other moments the user alone', () => {
  const heard = (moment: Ran['moment']) =>
    hearHooks(waiting(), ran({ moment, verdicts: denies })).state.session.notes.length;
  assert.deepEqual(
    [heard('after-batch'), heard('before-request'), heard('session-start')],
    [1, 0, 0],
  );
  assert.deepEqual([heard('session-end'), heard('ask-user')], [0, 0]);
});

test('user-hooks-report: the user sees failures, notes and objections; nothing said is late', () => {
  const said = (verdicts: HookVerdicts) => hearHooks(waiting(), ran({ verdicts }));
  assert.deepEqual(texts(said(notes).actions), ['DisplayNotice hook style: use tabs']);
  assert.deepEqual(texts(said(fails).actions), ['DisplayWarning hook style: it crashed']);
  assert.match(texts(said(denies).actions).at(-1) ?? '', /^DisplayWarning hook style: /);
  assert.equal(said(fails).late, undefined);
  const failsAndDenies: HookVerdicts = [{ hook: 'style', decision: 'deny', fault: 'it crashed' }];
  assert.deepEqual(texts(said(failsAndDenies).actions), ['DisplayWarning hook style: it crashed']);
  const state = waiting();
  assert.equal(hearHooks(state, ran({ verdicts: fails })).state, state);
  const nothing = hearHooks(state, ran({ verdicts: [] }));
  assert.deepEqual(
    [nothing.state, nothing.late, nothing.actions],
    [state, 'the hooks had nothing to say', []],
  );
  assert.deepEqual(
    [showHooks([]), texts(showHooks(notes))],
    [[], ['DisplayNotice hook style: use tabs']],
  );
});
