import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { bring } from '../../../../test/kit/agent/walker.js';
import { loom } from '../../src/projections/seed-loom.js';
import { check, checkTable } from './projected.js';
import { delaysOf, sentBy } from './retries.js';

const ASKS = 'WaitingForUserInput --UserInput--> CallingLlm / SendLlmRequest';
const REPLIES = 'CallingLlm --Completed--> ProcessingLlmResponse';
const RUNS = 'ProcessingLlmResponse --> ExecutingTools / ExecuteTools';
const ENDS_TURN = 'ProcessingLlmResponse --> WaitingForUserInput / WaitForInput';
const ONE_OF_SOME = 'ExecutingTools --ToolCompleted--> ExecutingTools / WaitForInput';
const READ = 'ExecutingTools --ToolCompleted--> CallingLlm / SendLlmRequest';
const CHANGED = 'ExecutingTools --ToolCompleted--> PostToolsHook / RunPostToolsHook';
const HOOKED = 'PostToolsHook --PostToolsHookCompleted--> CallingLlm / SendLlmRequest';
const FAILS = 'CallingLlm --Error--> Error / WaitForInput';
const TRIES_AGAIN = 'Error --RetryTimeoutFired--> CallingLlm / SendLlmRequest';
const GIVES_UP = 'CallingLlm --Error--> WaitingForUserInput / DisplayError';

const twoReads = g.wants(g.grep('1'), g.grep('2'));

checkTable(loom, [
  {
    edge: 'WaitingForUserInput/UserInput/CallingLlm',
    given: 'W',
    send: [g.input('hi')],
    then: [ASKS],
    does: ['SendLlmRequest'],
  },
  {
    edge: 'CallingLlm/TextDelta/CallingLlm',
    given: 'C[u]',
    send: [g.delta('y')],
    then: ['CallingLlm --TextDelta--> CallingLlm / DisplayMessage'],
    does: ['DisplayText'],
  },
  {
    edge: 'CallingLlm/ToolCallDelta/CallingLlm',
    given: 'C[u]',
    send: [g.halfCall],
    then: ['CallingLlm --ToolCallDelta--> CallingLlm / WaitForInput'],
  },
  {
    edge: 'CallingLlm/Completed/ProcessingLlmResponse',
    given: 'C[u]',
    send: [g.says('yo')],
    then: [REPLIES, ENDS_TURN],
  },
  {
    edge: 'CallingLlm/Error/Error',
    given: 'C[u]',
    send: [g.fails()],
    then: [FAILS],
    does: ['ScheduleTimer'],
  },
  {
    edge: 'CallingLlm/Error/WaitingForUserInput',
    given: 'C[u]',
    send: [g.fails(), g.rings(), g.fails(), g.rings(), g.fails()],
    then: [GIVES_UP],
    does: ['DisplayError'],
  },
  {
    edge: 'ProcessingLlmResponse//ExecutingTools',
    given: 'C[u]',
    send: [twoReads],
    then: [REPLIES, RUNS],
    does: ['ExecuteTools'],
  },
  {
    edge: 'ProcessingLlmResponse//WaitingForUserInput',
    given: 'C[u]',
    send: [g.says('yo')],
    then: [REPLIES, ENDS_TURN],
    does: ['PromptForInput'],
  },
  {
    edge: 'ExecutingTools/ToolCompleted/ExecutingTools',
    given: 'C[u]',
    send: [twoReads, g.ended('2')],
    then: [ONE_OF_SOME],
  },
  {
    edge: 'ExecutingTools/ToolCompleted/PostToolsHook',
    given: 'C[u]',
    send: [g.wants(g.grep('1'), g.edit('2')), g.ended('1'), g.ended('2')],
    then: [CHANGED],
    does: ['RunHook'],
  },
  {
    edge: 'ExecutingTools/ToolCompleted/CallingLlm',
    given: 'C[u]',
    send: [twoReads, g.ended('2'), g.ended('1')],
    then: [READ],
    does: ['SendLlmRequest'],
  },
  {
    edge: 'PostToolsHook/PostToolsHookCompleted/CallingLlm',
    given: 'H[c]',
    send: [g.hookDone({ dirty: true }), g.hookDone()],
    then: [HOOKED],
    does: ['SendLlmRequest'],
  },
  {
    edge: 'Error/RetryTimeoutFired/CallingLlm',
    given: 'Er',
    send: [g.rings()],
    then: [TRIES_AGAIN],
    does: ['SendLlmRequest'],
  },
  ...(
    [
      ['W', 'WaitingForUserInput'],
      ['C[u]', 'CallingLlm'],
      ['X', 'ExecutingTools'],
      ['H[c]', 'PostToolsHook'],
      ['Er', 'Error'],
      ['Z', 'ShuttingDown'],
    ] as const
  ).map(([given, name]) => ({
    edge: `${name}/ShutdownRequested/ShuttingDown`,
    given,
    send: [g.shutdown],
    then: [`${name} --ShutdownRequested--> ShuttingDown / Shutdown`],
    does: ['Shutdown'],
  })),
]);

/** The transition table of seed 002; 001 has the same rows but for the one of ToolCallDelta, which only its diagram has. */
const TABLE = `
WaitingForUserInput | UserInput(msg) | CallingLlm | SendLlmRequest
CallingLlm | LlmEvent::TextDelta | CallingLlm | DisplayMessage
CallingLlm | LlmEvent::ToolCallDelta | CallingLlm | WaitForInput
CallingLlm | LlmEvent::Completed | ProcessingLlmResponse | (internal)
CallingLlm | LlmEvent::Error (retries < max) | Error | WaitForInput
CallingLlm | LlmEvent::Error (retries >= max) | WaitingForUserInput | DisplayError
ProcessingLlmResponse | (has tool calls) | ExecutingTools | ExecuteTools
ProcessingLlmResponse | (no tool calls) | WaitingForUserInput | WaitForInput
ExecutingTools | ToolCompleted (some pending) | ExecutingTools | WaitForInput
ExecutingTools | ToolCompleted (all done, mutating) | PostToolsHook | RunPostToolsHook
ExecutingTools | ToolCompleted (all done, non-mutating) | CallingLlm | SendLlmRequest
PostToolsHook | PostToolsHookCompleted | CallingLlm | SendLlmRequest
Error (origin=Llm) | RetryTimeoutFired | CallingLlm | SendLlmRequest
any state | ShutdownRequested | ShuttingDown | Shutdown
`;

/** A row of the text as the view has it: the event without its prefix and payload, each condition in its place. */
const rowsOf = (line: string): readonly string[] => {
  const [current = '', happened = '', to = '', does = ''] = line.split(' | ');
  const [, state = '', origin = ''] = /^(.+?)(?: \((.*)\))?$/.exec(current) ?? [];
  const [, event = '', condition = ''] =
    /^(?:LlmEvent::)?(\w*)(?:\(msg\))? ?(?:\((.*)\))?$/.exec(happened) ?? [];
  const action = does === '(internal)' ? '' : does;
  const froms = state === 'any state' ? Object.keys(loom.states) : [state];
  return froms.map((from) =>
    [from, event, origin === '' ? condition : origin, to, action].join(' | '),
  );
};

test('seeds 001 and 002: the view is their transition table, row by row, with its actions', () => {
  const written = TABLE.trim().split('\n').flatMap(rowsOf);
  const held = loom.edges.map(({ from, event, when, to, action }) =>
    [from, event ?? '', when, to, action ?? ''].join(' | '),
  );
  assert.deepEqual(held, written);
  assert.equal(held.length, 13 + 7);
});

test('seeds 001 and 002: seven states, nine events, seven actions', () => {
  assert.deepEqual(Object.keys(loom.states), [
    'WaitingForUserInput',
    'CallingLlm',
    'ProcessingLlmResponse',
    'ExecutingTools',
    'PostToolsHook',
    'Error',
    'ShuttingDown',
  ]);
  assert.deepEqual(Object.keys(loom.events), [
    'UserInput',
    'TextDelta',
    'ToolCallDelta',
    'Completed',
    'Error',
    'ToolCompleted',
    'PostToolsHookCompleted',
    'RetryTimeoutFired',
    'ShutdownRequested',
  ]);
  assert.deepEqual(Object.keys(loom.actions), [
    'SendLlmRequest',
    'ExecuteTools',
    'RunPostToolsHook',
    'WaitForInput',
    'DisplayMessage',
    'DisplayError',
    'Shutdown',
  ]);
});

test('seeds 001 and 002: two retries, three attempts', () => {
  const walker = bring('C[u]', loom.settings);
  walker.send(g.fails(), g.rings(), g.fails(), g.rings(), g.fails());
  assert.equal(walker.state().name, 'WaitingForUserInput');
  assert.equal(delaysOf(walker).length, 2);
  assert.equal(sentBy(walker), 3);
});

check(loom, [
  {
    title: 'a piece of an old reply is none',
    given: 'C[u]',
    send: [g.delta('y', 'req-0')],
    then: [],
  },
  {
    title: 'a hook with several phases is one hook',
    given: 'H[c]',
    send: [g.hookDone({ dirty: true })],
    then: [],
  },
  {
    title: 'a hook that fails has completed',
    given: 'H[c]',
    send: [g.hookFails()],
    then: [HOOKED],
  },
  {
    title: 'a mutating batch without hooks is like one that changed nothing',
    given: 'C[u]',
    settings: { hooks: 'never' },
    send: [g.wants(g.edit('1')), g.ended('1')],
    then: [READ],
  },
  {
    title: 'a mutating call that failed changed nothing',
    given: 'C[u]',
    send: [g.wants(g.edit('1')), g.ended('1', 'failed')],
    then: [READ],
  },
  {
    title: 'a message that was queued is a UserInput when it opens a turn',
    given: 'C[u]',
    send: [g.input('and'), g.says('yo')],
    then: [REPLIES, ENDS_TURN, ASKS],
  },
  {
    title: 'cancel during a call: refused at its limit',
    given: 'C[u]',
    send: [g.cancel],
    then: [GIVES_UP],
  },
  {
    title: 'cancel before a retry: tried again, and refused',
    given: 'Er',
    send: [g.cancel],
    then: [TRIES_AGAIN, GIVES_UP],
  },
  {
    title: 'cancel of tools: all done, and refused',
    given: 'X',
    send: [g.cancel, g.cancel],
    then: [READ, GIVES_UP],
  },
  {
    title: 'the hook says stop: hooks done, and refused',
    given: 'H[c]',
    send: [g.hookDone({ proceed: false })],
    then: [HOOKED, GIVES_UP],
  },
  {
    title: 'cancel during the hook: hooks done, and refused',
    given: 'H[c]',
    send: [g.cancel],
    then: [HOOKED, GIVES_UP],
  },
  {
    title: 'a limit after the hook: hooks done, and refused',
    given: 'H[c]',
    settings: { limits: { rounds: 1 } },
    send: [g.hookDone()],
    then: [HOOKED, GIVES_UP],
  },
  {
    title: 'calls that come after the cancel: the reply ends like one without tools',
    given: 'C[u]',
    settings: { cancelMode: 'drain' },
    send: [g.cancel, twoReads],
    then: [REPLIES, ENDS_TURN],
  },
  {
    title: 'after a cancel the queue opens the next turn, if it may',
    given: 'C[u]',
    settings: { queueOnCancel: 'send' },
    send: [g.input('and'), g.cancel],
    then: [GIVES_UP, ASKS],
  },
  {
    title: 'a session that is opened again begins a new trace',
    given: 'Z',
    send: [g.resumed],
    then: [],
  },
]);

test('a turn that failed names its origin', () => {
  const originOf = (...given: readonly g.Given[]) => {
    const walker = bring('C[u]');
    walker.send(...given);
    const [from, event] = [walker.steps().at(-2)?.state, walker.events().at(-1)];
    assert.ok(from !== undefined && event !== undefined);
    const { steps } = loom.project({ state: from.name }, from, event, walker.last());
    return steps.flatMap(({ origin }) => origin ?? []);
  };
  assert.deepEqual(originOf(g.fails()), ['llm']);
  assert.deepEqual(originOf(g.refusedRequest), ['llm']);
  assert.deepEqual(originOf(g.wants(g.grep('1')), g.toolsFail), ['tool']);
  assert.deepEqual(originOf(g.cancel), []);
});
