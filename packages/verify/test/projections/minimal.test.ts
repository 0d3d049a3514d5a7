import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { bring } from '../../../../test/kit/agent/walker.js';
import { minimal } from '../../src/projections/seed-minimal.js';
import { check, play } from './projected.js';
import { delaysOf, sentBy } from './retries.js';

/** Seed 000: its names, its arrows, its retries. */

const GIVES_UP = 'CallingLlm --LlmError--> WaitingForUserInput / DisplayError';

/** Fails four times: the retries are used up. */
const FOUR_TIMES = [g.fails(), g.rings(), g.fails(), g.rings(), g.fails(), g.rings(), g.fails()];

check(minimal, [
  {
    title: 'text that was streamed was shown, a reply without calls ends the turn',
    given: 'C[u]',
    send: [g.delta('yo'), g.says('yo')],
    then: [
      'CallingLlm --LlmCompleted--> ProcessingLlmResponse',
      'ProcessingLlmResponse --> WaitingForUserInput / DisplayText',
    ],
  },
]);

test('seed 000: six states, six events, eight actions, and the arrows of its diagram', () => {
  assert.deepEqual(Object.keys(minimal.states), [
    'WaitingForUserInput',
    'CallingLlm',
    'ProcessingLlmResponse',
    'ExecutingTools',
    'Error',
    'ShuttingDown',
  ]);
  assert.deepEqual(Object.keys(minimal.events), [
    'UserInput',
    'LlmCompleted',
    'LlmError',
    'ToolCompleted',
    'RetryTimeout',
    'ShutdownRequested',
  ]);
  assert.deepEqual(Object.keys(minimal.actions), [
    'SendLlmRequest',
    'ExecuteTools',
    'DisplayText',
    'DisplayError',
    'PromptForInput',
    'ScheduleRetry',
    'WaitForEvent',
    'Shutdown',
  ]);
  // 8 of the diagram, of which "no tools" has two answers; giving up after the retries; batches of several; shutdown from any state.
  const drawn = minimal.edges.filter(({ event }) => event !== 'ShutdownRequested');
  assert.deepEqual(drawn.map(({ id }) => id).toSorted(), [
    'CallingLlm/LlmCompleted/ProcessingLlmResponse',
    'CallingLlm/LlmError/Error',
    'CallingLlm/LlmError/WaitingForUserInput',
    'Error/RetryTimeout/CallingLlm',
    'ExecutingTools/ToolCompleted/CallingLlm',
    'ExecutingTools/ToolCompleted/ExecutingTools',
    'ProcessingLlmResponse//ExecutingTools',
    'ProcessingLlmResponse//WaitingForUserInput/1',
    'ProcessingLlmResponse//WaitingForUserInput/2',
    'WaitingForUserInput/UserInput/CallingLlm',
  ]);
  const ended = minimal.edges
    .filter(({ event }) => event === 'ShutdownRequested')
    .map(({ from }) => from);
  assert.deepEqual(ended, Object.keys(minimal.states));
  assert.equal(minimal.edges.length, 16);
});

test('seed 000: three retries after 1 s, 2 s and 3 s, four attempts, then the error is shown', () => {
  const walker = bring('C[u]', minimal.settings);
  walker.send(...FOUR_TIMES);
  assert.deepEqual(delaysOf(walker), [1_000, 2_000, 3_000]);
  assert.equal(sentBy(walker), 4);
  const { steps } = play(minimal, { given: 'C[u]', send: FOUR_TIMES, then: [GIVES_UP] });
  assert.equal(steps.length, 1);
});
