import { ok, strictEqual } from 'node:assert';
import { deepStrictEqual } from 'node:assert/strict';
import { test } from 'node:test';
import {
  calling,
  asked as question,
  reply,
  result,
  text,
  user,
  waiting,
} from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import { bring, type Step } from '../../../../test/kit/agent/walker.js';
import {
  addReply,
  addTexts,
  emptyConversation,
  messagesOf,
} from '../../src/machine/conversation.js';
import type { ChangeSummary, On } from '../../src/machine/event.js';
import { modelReply, toolCall, userInput } from '../../src/machine/event.js';
import { initialState, settledConversation, step } from '../../src/machine/machine.js';
import type { Message } from '../../src/machine/message.js';
import { noStreaks } from '../../src/machine/moves/budget.js';
import {
  replaceConversation,
  rewindConversation,
  rewoundConversation,
} from '../../src/machine/moves/rewind.js';
import { defaultSettings } from '../../src/machine/settings.js';

const asked = addTexts(emptyConversation, 'user', ['hello']);
const answered = addReply(asked, {
  role: 'assistant',
  model: 'p/m',
  cut: false,
  parts: [{ type: 'text', text: 'Hello.' }],
});

test('a rewind keeps the longest common beginning', () => {
  const present = addTexts(answered, 'user', ['more']);
  deepStrictEqual(rewindConversation(present, answered), { kept: 2, messages: [] });
  const copy = addTexts(emptyConversation, 'user', ['hello']);
  deepStrictEqual(rewindConversation(answered, copy), { kept: 1, messages: [] });
  deepStrictEqual(rewindConversation(answered, answered), { kept: 2, messages: [] });
  deepStrictEqual(rewindConversation(asked, addTexts(emptyConversation, 'user', ['other'])), {
    kept: 0,
    messages: [{ role: 'user', parts: [{ type: 'text', origin: 'user', text: 'other' }] }],
  });
});

test('in a settled conversation each call of a running batch has a result', () => {
  const settings = { ...defaultSettings, model: 'p/m', workspace: '/w' };
  let state = step(initialState(settings), { type: 'Start', at: 1 }).state;
  state = step(state, userInput('hello', 2)).state;
  const call = toolCall({ callId: 'a', tool: 'bash' });
  state = step(state, modelReply({ requestId: 'req-1', at: 3, model: 'p/m', calls: [call] })).state;
  strictEqual(state.name, 'ExecutingTools');
  const messages = messagesOf(settledConversation(state));
  strictEqual(messages.length, 3);
  ok(messages[2]?.parts.some((part) => part.type === 'result' && part.callId === 'a'));
});

test('a rewind that leads to no whole conversation, or names nothing, changes nothing', () => {
  const walker = bring('W long');
  const before = walker.state();
  const kept = (count: number) => ({ kept: count, messages: [], contextTokens: 0 });
  const { conversation: _, ...nothing } = g.rewind();
  const twice = { ...kept(1), messages: messagesOf(before.session.conversation).slice(0, 1) };
  for (const request of [
    { ...g.rewind('plan-1'), conversation: kept(7) },
    { ...g.rewind('plan-1'), conversation: twice },
    nothing,
  ]) {
    const { state, actions, diagnostics } = walker.send(request);
    strictEqual(state, before);
    deepStrictEqual([actions, diagnostics[0]?.kind], [[], 'fault']);
  }
});

test('the state names the plan before a file changes, and a resumed session goes on with it', () => {
  const restore = { type: 'RestoreFiles', rewindId: 'rewind-1', plan: 'plan-1' };
  const walker = bring('W long');
  const first = walker.send({ ...g.rewind('plan-1') });
  ok(first.state.name === 'Rewinding' && first.state.plan === 'plan-1');
  deepStrictEqual(first.actions, [restore]);
  deepStrictEqual(walker.send(g.resumed).actions, [restore]);
  strictEqual(walker.send(g.rewound()).state.name, 'WaitingForUserInput');
});

test('what is typed meanwhile is queued; usage, settings and grants stay', () => {
  const walker = bring('W long');
  const { usage, settings, grants } = walker.state().session;
  walker.send(g.rewind('plan-1'), g.input('meanwhile'));
  const { session } = walker.send(g.rewound()).state;
  strictEqual(messagesOf(session.conversation).length, 0);
  deepStrictEqual(
    session.queue.map(({ text }) => text),
    ['meanwhile'],
  );
  deepStrictEqual([session.usage, session.settings, session.grants], [usage, settings, grants]);
  deepStrictEqual(session.notes, ['a.ts is as it was']);
});

test('a conversation to go to has calls with their results, turn by turn, and says something', () => {
  const leadsTo = (...messages: readonly Message[]): boolean =>
    rewoundConversation(emptyConversation, { kept: 0, messages, contextTokens: 0 }) !== null;
  const answers = user(result('1'), result('2'), text('user', 'and this'));
  ok(leadsTo(question(), calling('1', '2'), answers, reply()));
  ok(leadsTo(question(), calling('1', '2'), answers));
  ok(leadsTo());
  const [call] = calling('1').parts;
  const spaced = { ...calling('1'), parts: [{ type: 'text', text: '\n' }, call] } as Message;
  ok(leadsTo(question(), spaced, user(result('1'))));
  const wrong: readonly (readonly Message[])[] = [
    [question(), calling('1', '2'), user(result('1')), reply()],
    [question(), calling('1', '2'), user(result('2'), result('1')), reply()],
    [question(), calling('1'), user(text('user', 'first'), result('1')), reply()],
    [question(), calling('1')],
    [question(), reply(), user(result('1'))],
    [reply()],
    [question(), question()],
    [question(), user()],
    [user()],
    [question(' ')],
    [user(text('user', 'hi'), text('note', ' '))],
  ];
  for (const messages of wrong) ok(!leadsTo(...messages), JSON.stringify(messages));
});

const changes = (deleted: number): ChangeSummary => ({
  created: 0,
  changed: 1,
  deleted,
  files: [
    { path: 'kept.ts', change: 'changed' },
    ...Array.from({ length: deleted }, (_, index) => ({
      path: `${index}.ts`,
      change: 'deleted' as const,
    })),
  ],
});

const noticesOf = ({ actions }: Step): readonly string[] =>
  actions.flatMap((action) => (action.type === 'DisplayNotice' ? [action.text] : []));

const checkpointTexts = (part: Partial<On<'CheckpointTaken'>>): readonly string[] =>
  noticesOf(bring('W').send({ ...g.checkpoint, leftOut: [], ...part }));

test('the user hears which files the agent deleted, the first ten by name, and what is not kept', () => {
  deepStrictEqual(checkpointTexts({ changes: changes(1) }), [
    '1 file deleted (0.ts): a rewind takes it back',
  ]);
  deepStrictEqual(checkpointTexts({ changes: changes(12), leftOut: ['b.iso has 30 MB'] }), [
    '12 files deleted (0.ts, 1.ts, 2.ts, 3.ts, 4.ts, 5.ts, 6.ts, 7.ts, 8.ts, 9.ts and 2 more): ' +
      'a rewind takes it back',
    'b.iso has 30 MB',
  ]);
  deepStrictEqual(checkpointTexts({ changes: changes(0) }), []);
  deepStrictEqual(checkpointTexts({ by: 'user', changes: changes(1) }), []);
});

test('a rewind says how many files went back, which it left, and why if there is none of both', () => {
  const said = (
    part: Partial<On<'Rewound'>>,
    plan: g.Given = g.rewind('plan-1'),
  ): readonly string[] => {
    const walker = bring('W long');
    walker.send(plan);
    return noticesOf(walker.send({ ...g.rewound(), ...part }));
  };
  const there = 'the conversation is as it was at 0; ';
  deepStrictEqual(said({ changes: { ...changes(2), created: 3 } }), [
    `${there}6 files changed back`,
  ]);
  const left = [{ path: 'a.ts', why: 'somebody else changed it' }];
  deepStrictEqual(said({ changes: changes(0), left }), [
    `${there}1 file changed back; left as they are: a.ts (somebody else changed it)`,
  ]);
  deepStrictEqual(said({ left }), [
    `${there}0 files changed back; left as they are: a.ts (somebody else changed it)`,
  ]);
  const refs = ['HEAD is at main', 'branch x is removed'];
  deepStrictEqual(said({ changes: { ...changes(1), created: 1 }, left, refs }), [
    `${there}3 files changed back; in git, HEAD is at main, branch x is removed; ` +
      'left as they are: a.ts (somebody else changed it)',
  ]);
  deepStrictEqual(said({ note: 'for the model', refs: ['HEAD is at main'] }), [
    `${there}0 files changed back; in git, HEAD is at main`,
  ]);
  deepStrictEqual(said({ note: 'nothing is known of them' }), [`${there}nothing is known of them`]);
  deepStrictEqual(said({ note: null }), [`${there}no file had to be changed`]);
  const { conversation: _, ...filesOnly } = g.rewind('plan-1');
  deepStrictEqual(said({ note: null }, filesOnly), ['no file had to be changed']);
});

test('a rewind of the conversation begins like batches anew, and adds no blank note', () => {
  const { session } = bring('W long').state();
  const streaks = { ...session.turn.streaks, errors: 2 };
  const before = waiting({ ...session, turn: { ...session.turn, streaks } });
  const rewindTo = (part: Partial<On<'RewindRequested'>>) =>
    replaceConversation(before, { ...g.rewind(), ...part }).state;
  deepStrictEqual(rewindTo({}).session.turn.streaks.errors, noStreaks.errors);
  deepStrictEqual(rewindTo({ note: ' ' }).session.notes, []);
  deepStrictEqual(rewindTo({ note: 'see a.ts' }).session.notes, ['see a.ts']);
  const { conversation: _, ...nothing } = g.rewind();
  const stays = replaceConversation(before, nothing).state;
  deepStrictEqual([stays.reason, stays.session], [{ kind: 'rewound' }, before.session]);
});
