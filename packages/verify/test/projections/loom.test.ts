import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { bring } from '../../../../test/kit/agent/walker.js';
import { loom } from '../../src/projections/seed-loom.js';
import { check } from './projected.js';
import { delaysOf, sentBy } from './retries.js';

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
    title: 'a piece of text is shown, one of an old reply is none',
    given: 'C[u]',
    send: [g.delta('y', 'req-0'), g.delta('y')],
    then: ['CallingLlm --TextDelta--> CallingLlm / DisplayMessage'],
    does: ['DisplayText'],
  },
  {
    title: 'a limit after the hook: hooks done, and refused',
    given: 'H[c]',
    settings: { limits: { rounds: 1 } },
    send: [g.hookDone()],
    then: [
      'PostToolsHook --PostToolsHookCompleted--> CallingLlm / SendLlmRequest',
      'CallingLlm --Error--> WaitingForUserInput / DisplayError',
    ],
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
