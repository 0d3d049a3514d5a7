/**
 * Each fault changes a text in one file of a copy of the machine. `caughtBy` is what has to notice
 * it: random walks through the machine, the explorer (which visits the states of a configuration),
 * or one test by its file and title. `why` is the harm that it would do.
 */

import { byCase, explorer, type Fault, walks } from './fault.js';

/** Faults in model calls: retries, replies, costs. */
export const faultsInCalls: readonly Fault[] = [
  {
    name: 'one retry too many',
    file: 'packages/agent/src/machine/moves/retry.ts',
    edits: [
      { from: 'attempt <= settings.maxRetries &&', to: 'attempt <= settings.maxRetries + 1 &&' },
    ],
    why: 'a limit that was set is not kept',
    caughtBy: explorer('everything'),
  },
  {
    name: 'attempts are not counted',
    file: 'packages/agent/src/machine/moves/retry.ts',
    edits: [
      {
        from: "state.error.kind === 'empty' ? 1 : state.attempt + 1",
        to: "state.error.kind === 'empty' ? 1 : state.attempt",
      },
    ],
    why: 'a call that fails is tried for ever',
    caughtBy: byCase(
      'cases-errors',
      'retry-schedule: a turn that fails four times makes exactly 4 requests and sets 3 timers',
    ),
  },
  {
    name: 'an old timer starts the next attempt',
    file: 'packages/agent/src/machine/moves/retry.ts',
    edits: [{ from: '  event.timerId === state.timerId;', to: "  event.timerId !== '';" }],
    why: 'the provider is asked again before the wait is over',
    caughtBy: walks,
  },
  {
    name: 'a late reply to an old request is taken',
    file: 'packages/agent/src/machine/moves/reply.ts',
    edits: [{ from: '  event.requestId !== state.requestId;', to: "  event.requestId === '';" }],
    why: 'the answer to something else is stored, and the current one is lost',
    caughtBy: walks,
  },
  {
    name: 'the wait that the provider asked for is not kept',
    file: 'packages/agent/src/machine/moves/retry.ts',
    edits: [{ from: ', error.retryAfterMs ?? 0);', to: ', 0);' }],
    why: 'the next attempt is refused as well',
    caughtBy: byCase('cases-errors', 'retry-schedule: a longer retry-after wins over the schedule'),
  },
  {
    name: 'what the provider refuses for good is tried again',
    file: 'packages/agent/src/machine/moves/retry.ts',
    edits: [{ from: '  !neverRetried.has(call.error.kind) &&\n', to: '' }],
    why: 'a wrong key is tried three times',
    caughtBy: byCase(
      'rules-calls',
      'overflow-gives-input-back: an overflow is not retried, even where the provider says it may be',
    ),
  },
  {
    name: 'an hour is waited for a retry',
    file: 'packages/agent/src/machine/moves/retry.ts',
    edits: [
      {
        from: '  attempt <= settings.maxRetries &&\n  withinCap(settings, call);',
        to: '  attempt <= settings.maxRetries;',
      },
    ],
    why: 'the user looks at a machine that sleeps',
    caughtBy: byCase(
      'cases-errors',
      'retry-schedule: a retry-after beyond the cap fails at once and names the time',
    ),
  },
  {
    name: 'half an answer that failed stays on the screen',
    file: 'packages/agent/src/machine/moves/retry.ts',
    edits: [
      {
        from: '=> retractPartial(state.requestId, state.partial);',
        to: "=> retract(state.requestId, '');",
      },
    ],
    why: 'the user reads the beginning twice',
    caughtBy: byCase('cases-errors', 'streamed-text: text streamed before a failure is retracted'),
  },
  {
    name: 'a failed call costs nothing',
    file: 'packages/agent/src/machine/moves/retry.ts',
    edits: [
      {
        from: "nextId(countFailure(state.session, event), 'timer')",
        to: "nextId(state.session, 'timer')",
      },
    ],
    why: 'more is spent than the limit allows',
    caughtBy: walks,
  },
  {
    name: 'a bill that comes twice is paid twice',
    file: 'packages/agent/src/machine/moves/budget.ts',
    edits: [
      {
        from: 'if (usage === null || !session.unaccounted.includes(id)) return session;',
        to: 'if (usage === null) return session;',
      },
    ],
    why: 'a turn is stopped for money that was not spent',
    caughtBy: walks,
  },
  {
    name: 'a reply that names a call twice is taken',
    file: 'packages/agent/src/machine/moves/reply.ts',
    edits: [{ from: '.size !== reply.calls.length;', to: '.size > reply.calls.length;' }],
    why: 'one outcome ends two calls, and the provider refuses the conversation',
    caughtBy: walks,
  },
  {
    name: 'an empty reply is stored',
    file: 'packages/agent/src/machine/moves/reply.ts',
    edits: [
      {
        from: '(state: Processing): boolean => isEmpty(state.reply);',
        to: '(state: Processing): boolean => state.reply.message === null;',
      },
    ],
    why: 'the provider refuses every request from then on',
    caughtBy: walks,
  },
  {
    name: 'calls of a reply that was cut off are run',
    file: 'packages/agent/src/machine/moves/tool-batch.ts',
    edits: [
      {
        from: "  if (isCut) return endAtOnce(judged, at, 'truncated', truncatedText);\n",
        to: '',
      },
    ],
    why: 'a file is written with half of its text',
    caughtBy: byCase('cases-tools', 'cut-reply: no call of a reply that was cut off is executed'),
  },
  {
    name: 'calls of a reply that was cancelled are run',
    file: 'packages/agent/src/machine/moves/stop.ts',
    edits: [
      {
        from: 'return state.reply.draining;',
        to: "return state.reply.draining === 'time' ? 'time' : null;",
      },
    ],
    why: 'a turn goes on that the user has stopped',
    caughtBy: explorer('drain'),
  },
];
