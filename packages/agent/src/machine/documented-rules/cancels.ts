import type { RuleSection } from './rule.js';

/** The user stops a turn or a call. */
export const cancels = {
  'nothing-to-cancel': {
    text: 'Where no turn runs, CancelTurn changes nothing.',
    states: ['Ready', 'WaitingForUserInput', 'ShuttingDown'],
    events: ['CancelTurn'],
    tests: {
      'test/agent/cases-cancel.test.ts': ['there is nothing to cancel in W'],
      'test/agent/rules-cancel.test.ts': [
        'there is nothing to cancel in Ready',
        'there is nothing to cancel in Z',
      ],
    },
  },
  'cancel-request': {
    text: 'Cancelling a request aborts it. Streamed text that is not blank is kept as the model’s message, half calls are dropped, and the next message tells the model once that it was interrupted.',
    states: ['CallingLlm', 'Cancelled'],
    events: ['CancelTurn'],
    tests: {
      'test/agent/rules-cancel.test.ts': [
        'text streamed before a cancel is kept',
        'the model learns with the next message that it was interrupted',
        'blank text that was streamed before a cancel is taken back',
      ],
    },
  },
  'cancel-retry': {
    text: 'Cancelling the wait for a retry ends the turn. The message of the user stays.',
    states: ['Error', 'Cancelled'],
    events: ['CancelTurn'],
    tests: { 'test/agent/cases-errors.test.ts': ['cancelling the wait for a retry keeps the user text'] },
  },
  'cancel-batch': {
    text: 'Cancelling a batch ends the calls that wait, withdraws open approvals and asks the running ones to stop; nothing starts any more. If nothing runs, the turn ends at once.',
    states: ['ExecutingTools', 'Cancelled'],
    events: ['CancelTurn'],
    tests: {
      'test/agent/cases-cancel.test.ts': [
        'cancelling a batch stops what runs and what waits',
        'cancelling a batch that waits for approval needs no grace',
      ],
    },
  },
  'grace-period': {
    text: 'Running calls get a grace period. When it is over, or at a second cancel, they are killed: no process outlives the turn. A call that did finish keeps its real result; of the others the effects are unknown. No hook and no request follow.',
    states: ['ExecutingTools', 'Cancelled'],
    events: ['ToolCompleted', 'TimerFired', 'CancelTurn'],
    tests: {
      'test/agent/cases-cancel.test.ts': [
        'when the grace is over the call is killed and its effects are unknown',
        'a second cancel does not wait for the grace',
      ],
      'test/agent/rules-cancel.test.ts': ['a call that did finish before its cancel keeps its real result'],
    },
  },
  'cancel-one-call': {
    text: 'CancelTool ends one call: at once if it waits, with a grace period of its own if it runs; a second CancelTool kills it. The turn goes on with the other calls.',
    states: ['ExecutingTools'],
    events: ['CancelTool', 'TimerFired'],
    tests: {
      'test/agent/cases-cancel.test.ts': [
        'one running call can be cancelled alone',
        'the turn goes on after one call was cancelled',
      ],
      'test/agent/rules-tools.test.ts': [
        'each call has a grace of its own',
        'a second CancelTool kills at once',
        'killing an exclusive call lets the next one start',
      ],
    },
  },
  'cancelled-reply-runs-no-call': {
    text: 'If the turn was cancelled while the reply came, every call of the reply is answered as cancelled, none runs, and no request follows.',
    states: ['CheckingForCancellation', 'Cancelled', 'BudgetExceeded'],
    events: ['LlmCompleted'],
    tests: {
      'test/agent/cases-cancel.test.ts': ['calls of a cancelled request are not executed, its usage counts'],
      'test/agent/rules-calls.test.ts': ['calls that come while draining are answered, not executed'],
    },
  },
  'cancel-hook': {
    text: 'Cancelling a hook aborts it. Results stay, with a note that files may have been changed.',
    states: ['PostToolsHook', 'Cancelled'],
    events: ['CancelTurn'],
    tests: { 'test/agent/cases-cancel.test.ts': ['cancelling a hook keeps the results'] },
  },
  'cancel-compaction': {
    text: 'Cancelling a compaction aborts it. The conversation stays as it was.',
    states: ['Compacting', 'Cancelled'],
    events: ['CancelTurn'],
    tests: {
      'test/agent/cases-cancel.test.ts': [
        'cancelling a compaction leaves the conversation and the waiting input alone',
      ],
    },
  },
  'queue-after-stop': {
    text: 'After a cancel, `queueOnCancel` decides about queued texts: hold them, send them as the next turn, or give them back to the editor. After a failure or at a limit they are held.',
    states: ['Cancelled', 'BudgetExceeded', 'Failed', 'WaitingForUserInput'],
    events: 'every',
    tests: {
      'test/agent/rules-cancel.test.ts': [
        'with the setting send a cancel begins the next turn',
        'after a failure the queue is held whatever the setting',
        'after a budget stop the queue is held whatever the setting',
      ],
    },
  },
} as const satisfies RuleSection;
