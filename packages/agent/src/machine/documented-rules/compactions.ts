import type { RuleSection } from './rule.js';

/** Older messages become a summary. */
export const compactions = {
  'compact-on-request': {
    text: 'CompactRequested makes a summary if there is at least a question and its answer to summarise; otherwise a notice says so. Afterwards the machine waits, or sends what was queued meanwhile.',
    states: ['WaitingForUserInput', 'Compacting'],
    events: ['CompactRequested', 'CompactionCompleted'],
    tests: {
      'test/agent/rules-input.test.ts': ['CompactRequested starts a compaction'],
      'test/agent/cases-budget.test.ts': ['a short conversation is not compacted'],
      'test/agent/rules-compaction.test.ts': [
        'a compaction by request ends in W',
        'text that was typed during a compaction by request is sent after it',
      ],
    },
  },
  'compact-between-rounds': {
    text: 'If the window is above its second threshold between two rounds, the conversation is compacted before the results are sent.',
    states: ['GatheringAdditionalMessages', 'Compacting'],
    events: ['ToolCompleted', 'HookCompleted'],
    tests: { 'test/agent/cases-budget.test.ts': ['a turn that fills the window is compacted on its way'] },
  },
  'summary-keeps-unanswered': {
    text: 'A summary replaces what is older than the unanswered message of the user. If that message holds results, it and the message with their calls stay whole.',
    states: ['Compacting'],
    events: ['CompactionCompleted'],
    tests: {
      'test/agent/rules-compaction.test.ts': [
        'a compaction before a turn keeps results that wait, with the calls they answer',
        'after an overflow of a user turn waiting results stay with their calls',
        'a compaction by request keeps user text that was not answered',
      ],
    },
  },
  'request-after-compaction': {
    text: 'After a compaction on the way, the request that waited is sent under a new id, for the same purpose and as the same attempt.',
    states: ['Compacting', 'CallingLlm'],
    events: ['CompactionCompleted'],
    tests: {
      'test/agent/rules-compaction.test.ts': ['the attempt is the same after a compaction'],
      'test/agent/cases-budget.test.ts': [
        'after a compaction on the way the results are sent, with the calls they answer',
      ],
    },
  },
  'compaction-failed': {
    text: 'A compaction that fails is a warning where the request still fits: the turn begins, or goes on, without it. Otherwise the turn fails; results and text of the user stay.',
    states: ['Compacting', 'Failed'],
    events: ['CompactionFailed'],
    tests: {
      'test/agent/cases-budget.test.ts': ['a compaction that failed does not hold the turn up'],
      'test/agent/rules-compaction.test.ts': [
        'a compaction on the way that fails below the window goes on without it',
        'a compaction on the way that fails above the window ends the turn and keeps the results',
      ],
    },
  },
  'one-compaction-between-replies': {
    text: 'The machine starts at most one compaction by itself between two replies or inputs, whether it succeeded or not.',
    states: ['CallingLlm', 'Compacting', 'GatheringAdditionalMessages', 'WaitingForUserInput'],
    events: ['LlmFailed', 'LlmCompleted', 'UserInput'],
    tests: {
      'test/agent/rules-compaction.test.ts': [
        'an overflow right after a compaction does not compact again',
        'an overflow right after a failed compaction cuts the results instead',
        'new input allows a compaction again',
      ],
    },
  },
} as const satisfies RuleSection;
