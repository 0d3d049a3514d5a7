import type { RuleSection } from './rule.js';

/** Hooks after a batch, and the next round. */
export const hooks = {
  'hooks-look-after-changes': {
    text: 'Hooks run after a batch in which a call that changes something ran, however it ended. The setting `hooks` can narrow this to calls that ended ok, or say always or never.',
    states: ['PostToolsHook', 'CheckingBudget'],
    events: ['ToolCompleted'],
    tests: {
      'test/agent/rules-hooks.test.ts': [
        ' is looked at as one that ended ok',
        'the setting always runs the hook after reads',
        'a change that was refused is none',
      ],
      'test/agent/cases-hooks.test.ts': [
        'after reads alone the hook is passed',
        'the setting never runs no hook',
      ],
    },
  },
  'format-changes': {
    text: 'If files changed or commits came, and a formatter is set, formatters run next. New commits are shown.',
    states: ['PostToolsHook'],
    events: ['HookCompleted'],
    tests: {
      'test/agent/rules-hooks.test.ts': [
        'changed files are formatted',
        'new commits are shown and formatted',
      ],
      'test/agent/cases-hooks.test.ts': ['one commit is formatted under the rule of exactly one'],
    },
  },
  'auto-commit': {
    text: 'With auto-commit on, a dirty tree is committed after formatting, once.',
    states: ['PostToolsHook'],
    events: ['HookCompleted', 'HookFailed'],
    tests: {
      'test/agent/rules-hooks.test.ts': [
        'without a formatter a dirty tree is committed',
        'a tree that is dirty after the commit is not committed again',
      ],
    },
  },
  'hook-effects': {
    text: 'Before a phase changes a file or moves a branch, the change is in the journal. A resumed phase starts again with what it was about to do, and looks first whether it was done.',
    states: ['PostToolsHook'],
    events: ['HookPrepared', 'Resumed'],
    tests: {
      'test/agent/rules-hooks.test.ts': [
        'a phase that prepared an effect is given it again after a crash',
        'a commit that was cut off is looked for, not made blindly',
        'the next phase begins without the effects of the one before',
      ],
    },
  },
  'hook-notes': {
    text: 'The note of each phase is appended at once, as text after the results. A blank note is none.',
    states: ['PostToolsHook'],
    events: ['HookCompleted'],
    tests: {
      'test/agent/rules-hooks.test.ts': [
        'the note of each phase is appended at once, after the results',
        'a blank note is none',
      ],
    },
  },
  'hooks-fail-open': {
    text: 'A phase that fails or is too slow is a warning, and the turn goes on. A formatter that failed does not keep a dirty tree from its commit.',
    states: ['PostToolsHook'],
    events: ['HookFailed'],
    tests: {
      'test/agent/rules-hooks.test.ts': [
        'a commit check that fails is a warning',
        'a formatter that fails does not keep a dirty tree from its commit',
      ],
    },
  },
  'hook-veto': {
    text: 'A hook may stop the turn. Results and notes stay.',
    states: ['PostToolsHook', 'Cancelled'],
    events: ['HookCompleted'],
    tests: {
      'test/agent/cases-hooks.test.ts': ['a hook can stop the turn, and the results stay'],
      'test/agent/rules-hooks.test.ts': ['a formatter can stop the turn, too, and its note stays'],
    },
  },
  'user-hooks-tighten': {
    text: 'What a user’s hook says about a call is a fact of the judged call. It can deny the call or have it asked about, each time anew; it allows nothing that rules, preset or sandbox forbid. Its notes follow the result.',
    states: ['ExecutingTools'],
    events: ['LlmCompleted', 'ToolCompleted'],
    tests: {
      'test/runtime/user-hooks.test.ts': [
        'what a hook says before a tool decides in the policy, and allows nothing',
        'a hook cannot allow what the rules deny',
        'a hook that asks makes the user decide, each time anew',
        'after a tool, after a batch and before a request, remarks reach the next request',
      ],
    },
  },
  'user-hooks-report': {
    text: 'At moments without an event of their own, what hooks say is journaled as UserHooksRan. Notes join the request that waits for them, or else the next one. A request that a hook denies is not sent, and the turn ends.',
    states: 'every',
    events: ['UserHooksRan', 'PolicyStopped'],
    tests: {
      'test/traces/hooks-of-the-user.trace': ['Hooks of the user: notes for the request that waits'],
      'test/runtime/user-hooks.test.ts': ['a hook holds a request back, and the turn ends with its reason'],
    },
  },
  'hook-objects-to-end': {
    text: 'A hook may object to the end of a turn: another turn begins with its reason, at most three in a row without input of the user. A turn that ends at a limit ends in spite of it.',
    states: ['EndOfTurn', 'WaitingForUserInput'],
    events: ['LlmCompleted'],
    tests: {
      'test/runtime/user-hooks.test.ts': [
        'an objection to the end of a turn begins another, three times at most',
      ],
    },
  },
  'next-round': {
    text: 'After results, hooks and limits the next request is sent, with the results and what joined them.',
    states: ['CheckingBudget', 'GatheringAdditionalMessages', 'CallingLlm'],
    events: ['ToolCompleted', 'HookCompleted', 'HookFailed'],
    tests: {
      'test/agent/cases-hooks.test.ts': [
        'a clean tree without commits goes on',
        'input during a hook goes into the next message, after the results and the notes',
      ],
    },
  },
} as const satisfies RuleSection;
