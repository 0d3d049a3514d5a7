import { byCase, explorer, type Fault, walks } from './fault.js';

/** Calls of the model: retries, replies, what they cost. */
export const faultsInCalls: readonly Fault[] = [
  {
    name: 'one retry too many',
    file: 'src/agent/moves/retry.ts',
    edits: [{ from: 'attempt <= settings.maxRetries &&', to: 'attempt <= settings.maxRetries + 1 &&' }],
    why: 'a limit that was set is not kept',
    caughtBy: explorer('everything'),
  },
  {
    name: 'attempts are not counted',
    file: 'src/agent/moves/retry.ts',
    edits: [
      {
        from: "state.error.kind === 'empty' ? 1 : state.attempt + 1",
        to: "state.error.kind === 'empty' ? 1 : state.attempt",
      },
    ],
    why: 'a call that fails is tried for ever',
    caughtBy: byCase(
      'cases-errors',
      'case 32: a turn that fails four times makes exactly 4 requests and sets 3 timers',
    ),
  },
  {
    name: 'an old timer starts the next attempt',
    file: 'src/agent/moves/retry.ts',
    edits: [{ from: '  event.timerId === state.timerId;', to: "  event.timerId !== '';" }],
    why: 'the provider is asked again before the wait is over',
    caughtBy: walks,
  },
  {
    name: 'a late reply to an old request is taken',
    file: 'src/agent/moves/retry.ts',
    edits: [{ from: '  event.requestId !== state.requestId;', to: "  event.requestId === '';" }],
    why: 'the answer to something else is stored, and the current one is lost',
    caughtBy: walks,
  },
  {
    name: 'the wait that the provider asked for is not kept',
    file: 'src/agent/moves/retry.ts',
    edits: [{ from: 'return Math.max(own, error.retryAfterMs ?? 0);', to: 'return own;' }],
    why: 'the next attempt is refused as well',
    caughtBy: byCase('cases-errors', 'case 37a: a longer retry-after wins over the schedule'),
  },
  {
    name: 'what the provider refuses for good is tried again',
    file: 'src/agent/moves/retry.ts',
    edits: [{ from: '  !neverRetried.has(call.error.kind) &&\n', to: '' }],
    why: 'a wrong key is tried three times',
    caughtBy: byCase(
      'rules-calls',
      'R18c: an overflow is not retried, even where the provider says it may be',
    ),
  },
  {
    name: 'an hour is waited for a retry',
    file: 'src/agent/moves/retry.ts',
    edits: [
      {
        from: '  attempt <= settings.maxRetries &&\n  withinCap(settings, call);',
        to: '  attempt <= settings.maxRetries;',
      },
    ],
    why: 'the user looks at a machine that sleeps',
    caughtBy: byCase(
      'cases-errors',
      'case 38: a retry-after beyond the cap fails at once and names the time',
    ),
  },
  {
    name: 'half an answer that failed stays on the screen',
    file: 'src/agent/moves/retry.ts',
    edits: [{ from: '=> retract(state.requestId, state.partial);', to: "=> retract(state.requestId, '');" }],
    why: 'the user reads the beginning twice',
    caughtBy: byCase('cases-errors', 'case 41: what was streamed before a failure is taken back'),
  },
  {
    name: 'a failed call costs nothing',
    file: 'src/agent/moves/retry.ts',
    edits: [
      {
        from: "nextId(account(state.session, event.requestId, event.usage), 'timer')",
        to: "nextId(state.session, 'timer')",
      },
    ],
    why: 'more is spent than the limit allows',
    caughtBy: walks,
  },
  {
    name: 'a bill that comes twice is paid twice',
    file: 'src/agent/moves/account.ts',
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
    file: 'src/agent/moves/reply.ts',
    edits: [{ from: '.size !== reply.calls.length;', to: '.size > reply.calls.length;' }],
    why: 'one outcome ends two calls, and the provider refuses the conversation',
    caughtBy: walks,
  },
  {
    name: 'an empty reply is stored',
    file: 'src/agent/moves/reply.ts',
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
    file: 'src/agent/moves/batch.ts',
    edits: [{ from: "  if (isCut) return ended('truncated', truncatedText);\n", to: '' }],
    why: 'a file is written with half of its text',
    caughtBy: byCase('cases-tools', 'case 74: of a reply that was cut off no call is executed'),
  },
  {
    name: 'calls of a reply that was cancelled are run',
    file: 'src/agent/moves/reply.ts',
    edits: [
      {
        from: "boolean => state.reply.draining === 'user';",
        to: "boolean => state.reply.draining === 'time' && state.reply.calls.length === 0;",
      },
    ],
    why: 'a turn goes on that the user has stopped',
    caughtBy: explorer('drain'),
  },
];
