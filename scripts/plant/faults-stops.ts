/**
 * Each fault changes a text in one file of a copy of the machine. `caughtBy` is what has to notice
 * it: random walks through the machine, the explorer (which visits the states of a configuration),
 * or one test by its file and title. `why` is the harm that it would do.
 */

import { byCase, explorer, type Fault, walks } from './fault.js';

/** Faults in stopping: cancels, time limits, the end of the session. */
export const faultsInStops: readonly Fault[] = [
  {
    name: 'a cancelled request goes on',
    file: 'packages/agent/src/machine/moves/stop.ts',
    edits: [
      {
        from: "actions: [{ type: 'AbortLlmRequest', requestId: state.requestId }, ...actions]",
        to: "actions: [{ type: 'CancelTimer', timerId: state.requestId }, ...actions]",
      },
    ],
    why: 'the reply is paid for and thrown away',
    caughtBy: walks,
  },
  {
    name: 'a cancel loses the queue',
    file: 'packages/agent/src/machine/moves/stop.ts',
    edits: [{ from: 'notice(state), restore(state.session.queue)', to: 'notice(state)' }],
    why: 'what was typed is gone',
    caughtBy: walks,
  },
  {
    name: 'half an answer is thrown away by a cancel',
    file: 'packages/agent/src/machine/moves/stop.ts',
    edits: [{ from: "if (partial.trim() === '') return", to: 'if (partial.length >= 0) return' }],
    why: 'the user has read what the model does not know',
    caughtBy: byCase('rules-cancel', 'cancel-request: text streamed before a cancel is kept'),
  },
  {
    name: 'a batch that was cancelled goes on to the model',
    file: 'packages/agent/src/machine/moves/batch-events.ts',
    edits: [
      {
        from: 'allEnded(state) && isStopping(state);',
        to: 'allEnded(state) && isStopping(state) && state.calls.length === 0;',
      },
    ],
    why: 'a cancel costs one more call',
    caughtBy: walks,
  },
  {
    name: 'a second cancel kills nothing',
    file: 'packages/agent/src/machine/moves/batch-events.ts',
    edits: [
      { from: '...cancelCalls(state, open, true),', to: '...cancelCalls(state, open, false),' },
    ],
    why: 'a process outlives the turn',
    caughtBy: walks,
  },
  {
    name: 'shutdown leaves tools running',
    file: 'packages/agent/src/machine/moves/batch-events.ts',
    edits: [
      {
        from: 'cancelCalls(state, state.calls.filter(isRunning), true)',
        to: 'cancelCalls(state, state.calls.filter(isRunning), false)',
      },
    ],
    why: 'a process outlives the program',
    caughtBy: walks,
  },
  {
    name: 'shutdown leaves calls unanswered',
    file: 'packages/agent/src/machine/moves/shutdown-and-resume.ts',
    edits: [
      {
        from: '      return settleForShutdown(state, event);',
        to: '      return { session: state.session, actions: settleForShutdown(state, event).actions };',
      },
    ],
    why: 'the session can never be continued',
    caughtBy: walks,
  },
  {
    name: 'shutdown leaves a hook running',
    file: 'packages/agent/src/machine/moves/shutdown-and-resume.ts',
    edits: [{ from: "actions: [{ type: 'AbortHook', hookId: state.hookId }]", to: 'actions: []' }],
    why: 'files change after the end',
    caughtBy: explorer('time'),
  },
  {
    name: 'a cancel leaves calls unanswered that had not begun',
    file: 'packages/agent/src/machine/moves/batch-events.ts',
    edits: [{ from: 'replaceCalls(state, ...ended, ...open.map(', to: 'put(state, ...open.map(' }],
    why: 'the turn never ends',
    caughtBy: explorer('everything'),
  },
  {
    name: 'calls of a cancelled reply are not answered',
    file: 'packages/agent/src/machine/moves/reply.ts',
    edits: [
      {
        from: 'state.reply.calls.map((call) => cancelledResult(call, cause)),',
        to: '[],',
      },
    ],
    why: 'the provider refuses every request from then on',
    caughtBy: explorer('drain'),
  },
  {
    name: 'an old timer kills a batch that is being cancelled',
    file: 'packages/agent/src/machine/moves/batch-events.ts',
    edits: [
      {
        from: "state.phase.mode === 'cancelling' && state.phase.graceTimerId === event.timerId;",
        to: "state.phase.mode === 'cancelling' && state.phase.graceTimerId !== null;",
      },
    ],
    why: 'a tool has no time to clean up',
    caughtBy: explorer('everything'),
  },
  {
    name: 'the timer of a cancel outlives its batch',
    file: 'packages/agent/src/machine/moves/batch-events.ts',
    edits: [
      {
        from: 'cancelTimer(call.graceTimerId)), ...ofBatch];',
        to: 'cancelTimer(call.graceTimerId))];',
      },
    ],
    why: 'a timer rings for what is long over',
    caughtBy: walks,
  },
];
