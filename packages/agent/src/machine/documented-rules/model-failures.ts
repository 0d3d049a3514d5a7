import type { RuleSection } from './rule.js';

/** Model calls that fail: retries, overflows, giving up. */
export const failures = {
  'retry-failed-call': {
    text: 'A failure that the provider marks as retryable is retried after a wait, up to `maxRetries` times. A completed reply resets the count. Nothing below the machine retries.',
    states: ['CallingLlm', 'Error'],
    events: ['LlmFailed'],
    tests: {
      'test/agent/cases-errors.test.ts': ['a retryable failure waits 1,000 ms'],
      'test/agent/rules-calls.test.ts': ['a completed reply resets the attempts'],
    },
  },
  'retry-schedule': {
    text: 'The wait follows from the schedule, the number of the retry and the jitter of the failure. A longer retry-after of the provider wins; one beyond the cap fails the call at once and says when to come back.',
    states: ['CallingLlm', 'Error'],
    events: ['LlmFailed'],
    tests: {
      'test/agent/cases-errors.test.ts': [
        'a longer retry-after wins over the schedule',
        'a retry-after beyond the cap fails at once and names the time',
      ],
      'test/agent/patience.test.ts': ['an exponential schedule doubles up to its cap'],
      'test/agent/rules-calls.test.ts': ['a schedule given as a list repeats its last delay'],
    },
  },
  'send-again': {
    text: 'When the retry timer fires, or when the user asks for it with RetryNow, the same messages are sent under a new request id, as the next attempt. After an empty reply that is attempt 1 again.',
    states: ['Error'],
    events: ['TimerFired', 'RetryNow'],
    tests: {
      'test/agent/cases-errors.test.ts': [
        'the retry timer sends the same messages under a new id',
        'RetryNow does not wait for the timer',
        'the timer that RetryNow overtook sends nothing',
      ],
    },
  },
  'clock-jumps': {
    text: 'A timer never waits longer than its own delay, whatever the clock does, and across a reopening it waits for what is left. A jump of the clock neither ends a turn early nor holds it.',
    states: ['Error', 'CallingLlm'],
    events: ['TimerFired', 'Resumed', 'ApproveBudget'],
    tests: {
      'test/agent/rules-corners.test.ts': [
        'what is left is counted from the last time that the session was opened',
        'a limit that is raised after the clock jumped ahead leaves the turn what was added',
      ],
      'test/agent/rules-budget.test.ts': ['a clock that jumps ahead ends no turn: its timer decides'],
    },
  },
  'give-up': {
    text: 'A failure that retrying cannot mend (keys, bad request, refusal, quota), or with no attempts left, ends the turn with an error. The message of the user stays, so RetryLast can send it again.',
    states: ['CallingLlm', 'Failed'],
    events: ['LlmFailed'],
    tests: {
      'test/agent/cases-errors.test.ts': ['a bad request is not retried'],
      'test/agent/patience.test.ts': ['without retries the first failure ends the turn'],
    },
  },
  'failure-names-origin': {
    text: 'A turn that failed names the origin of its failure: llm, tool or io.',
    states: ['Failed', 'WaitingForUserInput'],
    events: ['LlmFailed', 'ToolsFailed', 'InputFailed', 'CompactionFailed'],
    tests: { 'test/agent/rules-corners.test.ts': ['a turn that failed names its origin'] },
  },
  'overflow-compacts': {
    text: 'If the conversation is too long for the model, it is compacted and the same purpose is asked again, as the same attempt. The last calls and their results stay whole.',
    states: ['CallingLlm', 'Compacting'],
    events: ['LlmFailed'],
    tests: {
      'test/agent/cases-errors.test.ts': [
        'a context overflow compacts',
        'after the compaction the same purpose is asked again',
        'compacting an overflow keeps the last calls and their results',
      ],
    },
  },
  'overflow-cuts-results': {
    text: 'If a compaction is not possible or was not enough, long results of the last message are cut once, with a note, and sent once more. The text of the user is not cut.',
    states: ['CallingLlm'],
    events: ['LlmFailed'],
    tests: {
      'test/agent/rules-calls.test.ts': ['after a second overflow results of '],
      'test/agent/rules-overflow.test.ts': [
        'after a second overflow only the results that are too long are cut',
        'the user’s text beside long results is not cut with them',
      ],
      'test/agent/rules-corners.test.ts': ['results are cut once, however small the cut is set'],
    },
  },
  'overflow-gives-input-back': {
    text: 'If nothing helps against an overflow, the turn fails. What the user typed last goes back to the editor, so the next input does not meet the same failure; results, notes and summary stay.',
    states: ['CallingLlm', 'Failed'],
    events: ['LlmFailed'],
    tests: {
      'test/agent/rules-calls.test.ts': [
        'user text that is too long for the window is handed back',
        'a third overflow ends the turn and keeps the results',
      ],
      'test/agent/rules-overflow.test.ts': ['where the user typed nothing, nothing goes back to the editor'],
    },
  },
} as const satisfies RuleSection;
