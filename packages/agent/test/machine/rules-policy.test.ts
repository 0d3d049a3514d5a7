import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import { a, bad, u, use } from '../../../../test/kit/agent/shown.js';
import { bring } from '../../../../test/kit/agent/walker.js';
import type { Call } from '../../src/machine/call.js';
import type { Event } from '../../src/machine/event.js';
import { callWithId, endInvalid } from '../../src/machine/moves/batch-calls.js';
import type { State } from '../../src/machine/state.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import { presetRules } from '../../src/policy/presets.js';

// Denied calls and approvals: corners that the cases leave out.

const { edit, grep } = g;
const careful: SettingsPatch = { rules: presetRules.careful };
const commandCall = (
  callId: string,
  words: readonly string[],
  unrecoverable?: readonly string[],
): JudgedCall => ({
  ...edit(callId),
  tool: 'bash',
  traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 0 },
  facts: {
    argv: [words.join(' ')],
    paths: ['/project'],
    hosts: [],
    shape: words.join(' '),
    shell: { commands: [{ words, assignments: [], writes: [], program: null }], unclear: null },
    ...(unrecoverable === undefined ? {} : { unrecoverable }),
  },
});
const fencedCareful: SettingsPatch = { ...careful, sandbox: 'workspace' };

check([
  {
    rule: 'calls-that-never-run',
    title: 'a call without a matching rule is denied',
    given: 'C[u]',
    settings: { rules: [] },
    send: [g.wants(grep('1'))],
    state: 'C[t]',
    talk: [u('hi'), a(use('1')), u(bad('1', /den|not allowed/i))],
  },
  {
    rule: 'calls-that-never-run',
    title: 'an unknown tool does not hold up the calls beside it',
    given: 'C[u]',
    send: [g.wants(g.unknownTool('1'), edit('2'))],
    state: 'X',
    calls: '1 noSuchTool, 2 starting',
    does: ['ExecuteTools 2'],
  },
  {
    rule: 'ask-before-call',
    title:
      'calls that the policy asks about wait for their approvals and hold back what comes after',
    given: 'C[u]',
    settings: careful,
    send: [g.wants(grep('1'), edit('2'), edit('3'), grep('4'))],
    state: 'X',
    calls: '1 starting, 2 awaitingApproval, 3 awaitingApproval, 4 queued',
    does: ['ExecuteTools 1', 'RequestApproval 2', 'RequestApproval 3'],
  },
  {
    rule: 'ask-before-call',
    title: 'with nobody to ask the call is denied and the turn goes on',
    given: 'C[u]',
    settings: { ...careful, onAsk: 'deny' },
    send: [g.wants(edit('1'))],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    talk: [u('hi'), a(use('1')), u(bad('1'))],
  },
  {
    rule: 'answered-approval',
    title: 'allowing once does not cover the next call',
    given: 'C[u]',
    settings: careful,
    send: [g.wants(edit('1'), edit('2')), g.allows('1')],
    state: 'X',
    calls: '1 starting, 2 awaitingApproval',
    does: ['ExecuteTools 1'],
  },
  {
    rule: 'answered-approval',
    title: 'an answer for a call that does not wait changes nothing',
    given: 'X',
    send: [g.allows('2', 'session')],
    state: 'X',
    quiet: true,
  },
]);

const callsIn = (state: State): readonly Call[] =>
  state.name === 'ExecutingTools' ? state.calls : [];

const looked = (callId: string, facts: Partial<JudgedCall['facts']>): JudgedCall => {
  const call = commandCall(callId, ['rm', 'a']);
  return { ...call, facts: { ...call.facts, ...facts } };
};

test('what was looked up before the batch is not trusted behind a call that may change it', () => {
  const trusted = (
    before: readonly JudgedCall[],
    facts: Partial<JudgedCall['facts']>,
  ): Partial<JudgedCall['facts']> => {
    const walker = bring('C[u]', fencedCareful);
    const { state } = walker.send(g.wants(...before, looked('last', facts)));
    assert.equal(state.name, 'ExecutingTools');
    const known: Partial<JudgedCall['facts']> = callsIn(state).at(-1)?.judged.facts ?? {};
    assert.ok(Object.values(known).every((value) => value !== undefined));
    const { unrecoverable, discarded, ...others } = known;
    assert.deepEqual(others, commandCall('last', ['rm', 'a']).facts);
    return {
      ...(unrecoverable === undefined ? {} : { unrecoverable }),
      ...(discarded === undefined ? {} : { discarded }),
    };
  };
  const both = { unrecoverable: ['b'], discarded: ['c'] };
  const command = commandCall('2', ['npm', 'test']);
  const appends: JudgedCall = {
    ...command,
    facts: {
      ...command.facts,
      shell: {
        commands: [
          { words: ['echo'], assignments: [], writes: ['a'], appends: [0], program: null },
        ],
        unclear: null,
      },
    },
  };
  assert.deepEqual(trusted([], both), both);
  assert.deepEqual(trusted([grep('1')], both), both);
  assert.deepEqual(trusted([grep('1'), edit('2')], both), {});
  assert.deepEqual(trusted([grep('1'), command], both), { unrecoverable: ['b'] });
  assert.deepEqual(trusted([grep('1'), command], { discarded: ['c'] }), {});
  assert.deepEqual(trusted([edit('1')], { discarded: ['c'] }), {});
  assert.deepEqual(trusted([edit('1')], { unrecoverable: ['b'] }), {});
  assert.deepEqual(trusted([appends], both), {});
  const pure: JudgedCall = { ...appends, traits: { ...appends.traits, mutating: false } };
  assert.deepEqual(trusted([pure], both), { discarded: ['c'] });
  assert.deepEqual(trusted([commandCall('1', ['rm', 'b'])], both), {});
  const popped = commandCall('1', ['git', 'stash', 'pop']);
  assert.deepEqual(trusted([popped], { unrecoverable: ['b'] }), {});
});

const twoCommands = (callId: string): JudgedCall => {
  const [first, second] = [commandCall(callId, ['npm', 'test']), commandCall(callId, ['rm', 'b'])];
  const commands = [first, second].flatMap(({ facts }) => facts.shell?.commands ?? []);
  return { ...first, facts: { ...first.facts, shell: { commands, unclear: null } } };
};

test('one command of several that may change files is enough', () => {
  const walker = bring('C[u]', fencedCareful);
  const facts = { unrecoverable: ['b'] };
  const { state } = walker.send(g.wants(twoCommands('1'), looked('2', facts)));
  assert.equal(callsIn(state)[1]?.judged.facts.unrecoverable, undefined);
});

const previewed = (callId: string, ...paths: readonly string[]): JudgedCall => {
  const call = edit(callId);
  return {
    ...call,
    traits: { ...call.traits, previews: 'yes' },
    facts: { ...call.facts, paths },
  };
};
const statuses = (state: State): string =>
  callsIn(state)
    .map(({ status }) => status)
    .join(' ');

test('a call is previewed only when no call before it may still change what it reads', () => {
  const second = (first: JudgedCall, path = '/project/a.ts'): string => {
    const walker = bring('C[u]', careful);
    return statuses(walker.send(g.wants(first, previewed('2', path))).state);
  };
  const edits = (...paths: readonly string[]): JudgedCall => {
    const call = edit('1');
    return { ...call, facts: { ...call.facts, paths } };
  };
  assert.equal(second(edits('/project/b.ts')), 'awaitingApproval previewing');
  assert.equal(second(edits('/project/a.ts')), 'awaitingApproval queued');
  assert.equal(second(edits('/project/b.ts', '/project/a.ts')), 'awaitingApproval queued');
  assert.equal(second(edits()), 'awaitingApproval queued');
  const opaque = commandCall('1', ['make']);
  assert.equal(second(opaque), 'awaitingApproval queued');
  const elsewhereOnly = { ...opaque, facts: { ...opaque.facts, paths: ['/project/b.ts'] } };
  assert.equal(second(elsewhereOnly), 'awaitingApproval queued');
  assert.equal(second(grep('1')), 'starting previewing');
});

const preview = (callId: string): Event => ({
  type: 'CallPreviewed',
  at: g.NOW,
  batchId: 'batch-1',
  callId,
  preview: { kind: 'change', diff: '+x' },
});

test('a preview of a call that the batch does not have is late', () => {
  const walker = bring('C[u]', careful);
  walker.send(g.wants(previewed('1', '/a.ts')));
  const { diagnostics, actions } = walker.send(preview('9'));
  assert.deepEqual([diagnostics.map(({ kind }) => kind), actions], [['late'], []]);
});

test('where nobody can be asked any more, a preview ends the call and the turn', () => {
  const after = (onAsk: 'deny' | 'stop') => {
    const walker = bring('C[u]', careful);
    walker.send(g.wants(previewed('1', '/a.ts')), g.change({ onAsk }));
    const { state, actions } = walker.send(preview('1'));
    return [state.name, actions.filter(({ type }) => type === 'DisplayToolResult').length];
  };
  assert.deepEqual(after('deny'), ['CallingLlm', 1]);
  assert.deepEqual(after('stop'), ['WaitingForUserInput', 1]);
});

test('a yes for all such calls starts no call that a rule denies', () => {
  const second = (rules: SettingsPatch['rules']): string | undefined => {
    const walker = bring('C[u]', careful);
    walker.send(g.wants(edit('1'), edit('2')));
    if (rules !== undefined) walker.send(g.change({ rules }));
    return callsIn(walker.send(g.allows('1', 'shape')).state)[1]?.status;
  };
  assert.equal(second(undefined), 'queued');
  assert.equal(second(presetRules.plan), 'awaitingApproval');
});

test('behind a call that is being asked about no other call is looked at', () => {
  const walker = bring('C[u]', careful);
  const make = commandCall('1', ['make']);
  const asked = walker.send(g.wants(make, previewed('2', '/a.ts'), previewed('3', '/b.ts')));
  assert.equal(statuses(asked.state), 'awaitingApproval queued queued');
  walker.send(g.allows('1'), g.started('1'));
  const { state } = walker.send(g.ended('1'));
  assert.equal(statuses(state), 'ok previewing queued');
});

test('a command that is known to need the network is asked about with it', () => {
  const written = commandCall('1', ['npm', 'install']);
  const expects = { needs: 'network', words: 'npm install' } as const;
  const call: JudgedCall = { ...written, facts: { ...written.facts, expects } };
  const walker = bring('C[u]', { sandbox: 'workspace' });
  const { state } = walker.send(g.wants(call));
  assert.equal(callsIn(state)[0]?.judged.facts.needs, 'network');
  const other = bring('C[u]', { sandbox: 'workspace' });
  const unknown = callsIn(other.send(g.wants(written)).state)[0];
  assert.equal(unknown?.judged.facts.needs, undefined);
});

test('a call that is not valid ends with the reason; a valid one goes on', () => {
  assert.equal(endInvalid(grep('1'), 1, 2), null);
  const unknown = endInvalid(g.unknownTool('1'), 1, 2);
  assert.deepEqual(
    [unknown?.status, unknown?.ran, unknown?.requestedAt, unknown?.completedAt],
    ['noSuchTool', false, 1, 2],
  );
  assert.match(unknown?.outcome.text ?? '', /teleport/);
  const wrong = endInvalid(g.wrongField('1'), 1, 2);
  assert.equal(wrong?.status, 'invalid');
  assert.match(wrong?.outcome.text ?? '', /path/);
});

test('in a large batch too a call is found by its id, and no other', () => {
  const calls = Array.from({ length: 9 }, (_, index) => grep(String(index)));
  const walker = bring('C[u]');
  const { state } = walker.send(g.wants(...calls));
  const found = (callId: string) => callWithId(callsIn(state), callId)?.judged.callId;
  assert.deepEqual([found('0'), found('8'), found('9')], ['0', '8', undefined]);
});

test('the end of a call is shown with its title and its summary, if it has them', () => {
  const shown = (judged: JudgedCall, summary?: string) => {
    const walker = bring('C[u]');
    const { actions } = walker.send(g.wants(judged), {
      type: 'ToolCompleted',
      at: g.NOW,
      batchId: 'batch-1',
      callId: '1',
      outcome: { status: 'ok', text: 'done', ...(summary === undefined ? {} : { summary }) },
    });
    return actions.find(({ type }) => type === 'DisplayToolResult');
  };
  const plain = { type: 'DisplayToolResult', batchId: 'batch-1', callId: '1', tool: 'grep' };
  const end = { status: 'ok', text: 'done', diff: null };
  assert.deepEqual(shown(grep('1')), { ...plain, ...end });
  assert.deepEqual(shown({ ...grep('1'), title: 'search' }, '3 hits'), {
    ...plain,
    title: 'search',
    summary: '3 hits',
    ...end,
  });
});
