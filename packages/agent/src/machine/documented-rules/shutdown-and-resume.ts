import type { RuleSection } from './rule.js';

/** How a session ends, and how it is opened again, after a clean end or a crash. */
export const shutdownAndResume = {
  shutdown: {
    text: 'ShutdownRequested ends the session from every state in one step, with a valid conversation. Everything in flight is stopped; streamed text and real results are kept; running calls are stopped first, and what became of them is told: an edit that had not begun did not run, one that was made counts; without an outcome they are marked as interrupted. In ShuttingDown it says Shutdown again and changes nothing.',
    states: 'every',
    events: ['ShutdownRequested'],
    tests: {
      'test/agent/cases-shutdown.test.ts': [
        'every state can be left by shutdown in one step with a valid conversation',
        'shutdown keeps real results and marks interrupted ones',
        'shutdown a second time does it again and changes nothing',
      ],
      'test/agent/rules-shutdown.test.ts': [
        'shutdown keeps what was streamed',
        'shutdown withdraws approvals',
        'shutdown tells what became of calls that were stopped for it',
      ],
    },
  },
  'after-shutdown': {
    text: 'After the end, input is queued for the next opening and late usage counts. Everything else but Resumed is late.',
    states: ['ShuttingDown'],
    events: ['UserInput', 'UsageReported', 'LlmCompleted', 'ToolCompleted', 'TimerFired'],
    tests: {
      'test/agent/cases-shutdown.test.ts': [
        'input after shutdown is held, not sent',
        'a timer after shutdown is late',
      ],
      'test/agent/rules-shutdown.test.ts': ['usage that comes after the end counts'],
    },
  },
  'open-again': {
    text: 'A session is opened again by replaying its journal and then Resumed: state is never stored. After a clean end it waits for the user and holds its queue. A Resumed of an old epoch changes nothing.',
    states: ['ShuttingDown', 'WaitingForUserInput'],
    events: ['Resumed'],
    tests: {
      'test/agent/rules-shutdown.test.ts': [
        'a session that is opened again waits and holds its queue',
        'a Resumed of an older epoch does not open a session that is over',
      ],
    },
  },
  'resume-request': {
    text: 'A request that was in flight is sent again under the same id and attempt; its partial text is taken back. A cancelled request whose reply was still awaited ends its turn, and nothing is sent.',
    states: ['CallingLlm'],
    events: ['Resumed'],
    tests: {
      'test/agent/cases-shutdown.test.ts': [
        'a session cut off in the middle of a reply asks again under the same id and attempt',
      ],
      'test/agent/rules-shutdown.test.ts': [
        'a cancel that waited for a reply is over when the session is opened again',
      ],
    },
  },
  'resume-calls': {
    text: 'A call that had not started is judged by its tool and decided anew: it starts, or asks again, also if the user had allowed it. What became of a running call is found out by the effect of its tool: read again, looked up, or said to be lost. A batch that was being cancelled ends; a call that was being cancelled ends by force before anything exclusive starts.',
    states: ['ExecutingTools'],
    events: ['Resumed', 'ToolCompleted'],
    tests: {
      'test/agent/rules-shutdown.test.ts': [
        'calls that had not started are started again, approvals are asked for again',
        'a batch that was being cancelled is over when the session is opened again',
      ],
      'test/agent/rules-corners.test.ts': [
        'a call that was being cancelled ends by force before anything exclusive starts',
      ],
    },
  },
  'time-while-stopped': {
    text: 'The time in which nobody ran does not count: a resumed turn has what was left of its time limit at the last event before, and a retry what was left of its delay, wherever the clock of the computer stands now. Limits that are given with the resume count what the turn has run, and not that time either.',
    states: ['CallingLlm', 'Error', 'ExecutingTools', 'PostToolsHook', 'Compacting'],
    events: ['Resumed', 'SettingsChanged'],
    tests: {
      'test/agent/rules-shutdown.test.ts': [
        'the time in which nobody ran is not taken from the time limit',
        'the time in which nobody ran is not taken from a time limit that is given with the resume',
        'the time in which nobody ran is not taken from the wait before a retry',
      ],
    },
  },
  'resume-rest': {
    text: 'In every other state Resumed starts again what was in flight: timers for what is left of them, a compaction, a phase of a hook.',
    states: ['Ready', 'WaitingForUserInput', 'Error', 'PostToolsHook', 'Compacting'],
    events: ['Resumed'],
    tests: {
      'test/agent/rules-shutdown.test.ts': ['Resumed leaves a waiting session as it is'],
      'test/agent/cases-shutdown.test.ts': [
        'a session cut off while waiting for a retry still waits',
        'a session cut off in a compaction still compacts',
      ],
    },
  },
} as const satisfies RuleSection;
