import type { RuleSection } from './rule.js';

/** What a turn and a session may spend. */
export const limits = {
  'limit-after-round': {
    text: 'After each round the limits are looked at in this order: dollars, tokens, rounds, cut replies, repeated calls, errors, repeated results. The first one that is reached ends the turn, with a notice of what was spent. Dollars and tokens count per session, the others per turn; 0 is no limit.',
    states: ['CheckingBudget', 'BudgetExceeded'],
    events: ['ToolCompleted', 'HookCompleted'],
    tests: {
      'test/agent/rules-budget.test.ts': [
        'money is named when money and rounds are both used up',
        'tokens are named when tokens and rounds are both used up',
      ],
      'test/agent/cases-tools.test.ts': ['the turn ends at its limit of rounds, results stored'],
      'test/agent/cases-budget.test.ts': ['a limit of 0 is no limit'],
    },
  },
  'limit-before-request': {
    text: 'No request and no compaction starts at a reached session limit, whatever leads to it: a retry, a request after a compaction, cut results, a reopened session. “Nothing left” and “no limit” are different values.',
    states: ['CallingLlm', 'Compacting', 'BudgetExceeded'],
    events: 'every',
    tests: {
      'test/agent/rules-spent.test.ts': [
        'a retry at the limit',
        'a request after a summary that was dear',
        'cut results',
        'a request that would be sent again after a crash',
      ],
      'test/agent/spending.test.ts': [
        'no request and no call at a limit; never more than the limit and one reply',
      ],
      'test/agent/limit.test.ts': ['nothing left is reached at once, no limit never'],
    },
  },
  'limit-before-call': {
    text: 'No call starts at a reached session limit; it is skipped. Under a limit only one call that spends runs at a time, and none starts while a call that was given up has not yet said what it spent.',
    states: ['ExecutingTools'],
    events: ['LlmCompleted', 'ToolCompleted', 'ApprovalAnswered', 'Resumed'],
    tests: {
      'test/agent/rules-spent.test.ts': [
        'the limit is looked at when a call starts, not only when it enters the batch',
        'under a limit one call spends at a time',
        'nothing is handed out while a call that was given up has not said what it spent',
      ],
      'test/agent/cases-budget.test.ts': ['calls of a reply that reaches the limit are skipped and answered'],
    },
  },
  'limit-warning': {
    text: 'When a limit is used up to its warning share, the user is warned once. Raising that limit allows a new warning; a new turn warns again of what counts per turn.',
    states: ['CheckingBudget'],
    events: ['ToolCompleted', 'ApproveBudget'],
    tests: {
      'test/agent/rules-budget.test.ts': ['near a limit the user is warned once'],
      'test/agent/rules-warnings.test.ts': [
        'the warning comes at the share itself',
        'the user is warned again about a limit that was raised',
      ],
    },
  },
  'limit-at-end-of-turn': {
    text: 'If an answer reaches a session limit, the turn ends as any other, with a notice. Queued texts are held for that limit.',
    states: ['EndOfTurn', 'WaitingForUserInput'],
    events: ['LlmCompleted'],
    tests: {
      'test/agent/rules-budget.test.ts': [
        'at a session limit the turn ends as it should, but the queue is held',
        'at a session limit without a queue the turn just ends, with a notice',
      ],
    },
  },
  'raised-limit': {
    text: 'ApproveBudget raises or lifts a limit in any state, with a notice; a negative one is refused. If it raises the limit that stopped the session and no other one is reached, a held queue is sent; an unanswered message waits for RetryLast.',
    states: ['WaitingForUserInput', 'BudgetExceeded'],
    events: ['ApproveBudget'],
    tests: {
      'test/agent/rules-limits.test.ts': [
        'a limit can be raised at any time',
        'raising the limit sends nothing by itself',
        'raising the limit by too little holds the queue',
      ],
      'test/agent/rules-corners.test.ts': [
        'another limit that is raised releases nothing',
        'the right one does',
      ],
    },
  },
  'limit-raises-itself': {
    text: 'A limit holds until the user raises it. With `autoRearm` a limit in dollars or tokens grows by the amount it was set to, with a notice, when it stops the turn; the queue still waits for the user.',
    states: ['BudgetExceeded', 'EndOfTurn', 'WaitingForUserInput'],
    events: 'every',
    tests: {
      'test/agent/rules-rearm.test.ts': [
        'not by itself where it is off',
        'by what was set, not by what the user raised it to',
        'at the end of a turn, too',
      ],
    },
  },
  'answer-at-limit': {
    text: 'With `atLimit` finish, a turn that reaches a limit of rounds, repeats, errors or same results asks the model once for its answer. Calls in place of the answer do not run, and no answer is bought with money that is not there.',
    states: ['CheckingBudget', 'GatheringAdditionalMessages'],
    events: ['ToolCompleted', 'LlmCompleted'],
    tests: {
      'test/agent/rules-finish.test.ts': [
        'at the limit of rounds the model is asked for its answer',
        'calls in place of the answer are not run, and the turn ends at its limit',
        'no answer is bought with money that is not there',
      ],
    },
  },
  'circles-end': {
    text: 'A turn can be limited in batches with the same calls, with the same results, or without any success, in a row. Nothing is counted where no such limit is set.',
    states: ['ExecutingTools', 'CheckingBudget'],
    events: ['ToolCompleted'],
    tests: {
      'test/agent/streaks.test.ts': [' alone makes them count', 'without any limit nothing is counted'],
    },
  },
  'time-limit': {
    text: 'The time limit of a turn is one timer that begins and ends with the turn; it stops the turn as a cancel would, and ends at BudgetExceeded. A turn that is being stopped already keeps its cause.',
    states: ['CallingLlm', 'Error', 'ExecutingTools', 'PostToolsHook', 'Compacting', 'BudgetExceeded'],
    events: ['TimerFired'],
    tests: {
      'test/agent/rules-limits.test.ts': [
        'the time limit aborts a request and keeps its text',
        'the time limit stops tools',
        'the time limit changes nothing about a cancel that waits for tools',
        ' starts no timer: no turn runs',
      ],
    },
  },
  'stopping-policy': {
    text: 'With `userPolicy` ask, the stopping policy of the user is asked before every request. If it says stop, the request is not sent, the turn ends as cancelled, and its words are told once.',
    states: ['CallingLlm', 'Cancelled'],
    events: ['PolicyStopped'],
    tests: { 'test/agent/rules-corners.test.ts': ['a stop by the policy is told once, in its words'] },
  },
} as const satisfies RuleSection;
