import type { RuleSection } from './rule.js';

/** Promises of every reachable state and every step: packages/agent/src/machine/invariants/ checks them. */
export const alwaysRules = {
  'every-call-answered': {
    text: 'Whenever a request is sent, and whenever the machine rests in WaitingForUserInput or ShuttingDown, each tool call has exactly one result: in the next message, in call order, before any text. No result stands without its call.',
    states: 'every',
    events: 'every',
    tests: {
      'test/agent/state-invariants.test.ts': [
        'a result is missing',
        'results in another order',
        'calls that are not answered after the end',
      ],
      'test/agent/cases-random.test.ts': [
        'random, late, duplicate, stale and misplaced events break no invariant',
      ],
    },
  },
  'roles-alternate': {
    text: 'Messages of the user and of the model alternate, and the first one is the user’s. No message is empty. A request is the whole conversation and ends with a message of the user.',
    states: 'every',
    events: 'every',
    tests: {
      'test/agent/state-invariants.test.ts': [
        'two users in a row',
        'an empty message',
        'a request that ends with the model',
      ],
      'test/agent/conversation.test.ts': ['texts join the message that waits'],
    },
  },
  'never-stuck': {
    text: 'Each state that rests has something that wakes it: a request, a call that runs or waits for approval, a timer, a hook, a compaction, or the user. Transient states never rest.',
    states: 'every',
    events: 'every',
    tests: {
      'test/agent/state-invariants.test.ts': [
        'a batch whose calls only wait',
        'a hook that was never started',
        'a state that is only passed',
      ],
    },
  },
  'one-request': {
    text: 'At most one request is current. A step sends at most one, under the id that the state names.',
    states: ['CallingLlm'],
    events: 'every',
    tests: {
      'test/agent/state-invariants.test.ts': ['two requests in one step', 'a request of an old id'],
    },
  },
  'bounded-work': {
    text: 'Attempts, rounds, cut replies and parallel calls stay within their settings. A bound that is lowered under way holds from the next decision: a promised retry is kept.',
    states: ['CallingLlm', 'Error', 'ExecutingTools'],
    events: 'every',
    tests: {
      'test/agent/invariants-bounds.test.ts': [
        'one attempt too many',
        'an attempt that was promised before the bound was lowered',
      ],
      'test/agent/cases-tools.test.ts': ['no more calls run at once than allowed'],
    },
  },
  'nothing-typed-is-lost': {
    text: 'Each text that the user sends and that is not blank ends up in the conversation, in the queue, removed by an edit of the queue, or back in the editor.',
    states: 'every',
    events: 'every',
    tests: {
      'test/agent/property.test.ts': ['nothing that was typed is lost, and nothing is there twice'],
    },
  },
  deterministic: {
    text: 'The same start and the same journaled events give the same states, actions and ids. Display actions are left out of the comparison, because pieces of text are merged before they are journaled.',
    states: 'every',
    events: 'every',
    tests: {
      'test/agent/property.test.ts': ['the journal of a live run gives the same states, actions and ids'],
      'test/agent/cases-random.test.ts': [
        'a log of events replayed twice gives the same states, actions and ids',
      ],
    },
  },
  'no-silent-event': {
    text: 'An event that changes neither state nor actions leaves a diagnostic that says why. Display-only events are the exception.',
    states: 'every',
    events: 'every',
    tests: {
      'test/agent/invariants-bounds.test.ts': ['an event that is named in a diagnostic is not silent'],
    },
  },
  'append-only': {
    text: 'A message that was followed by a stored reply never changes. Only a compaction replaces history. A trailing message of the user may still grow until it is answered.',
    states: 'every',
    events: 'every',
    tests: {
      'test/agent/conversation.test.ts': ['a reply closes the message it answers, if one waits'],
    },
  },
  'in-flight-is-named': {
    text: 'The state names everything that runs in the world: the request, the calls, the timers with their deadlines, the hook, the compaction. What has to be started again after a crash follows from the state alone.',
    states: 'every',
    events: 'every',
    tests: {
      'test/agent/in-flight-invariants.test.ts': [
        'has to be started where it is named, and named where it is started',
      ],
    },
  },
  'stale-events': {
    text: 'An event that answers something that is over changes nothing but usage, and leaves a diagnostic. Ids decide: request, batch and call, timer, hook, compaction, epoch.',
    states: 'every',
    events: 'every',
    tests: {
      'test/agent/rules-input.test.ts': [
        'the failure of an old request changes nothing but usage',
        'another timer does not end the wait for a retry',
        'an event for a call of another batch is stale',
      ],
    },
  },
  'usage-counts-once': {
    text: 'Each request, compaction, phase of a hook and call that spends has an id that is open until its usage comes. Usage counts once per id, also when it comes late or with a stale event. What is reported for an unknown id does not count.',
    states: 'every',
    events: [
      'LlmCompleted',
      'LlmFailed',
      'CompactionCompleted',
      'CompactionFailed',
      'HookCompleted',
      'ToolCompleted',
      'UsageReported',
    ],
    tests: {
      'test/agent/property.test.ts': ['usage counts once per id, whatever comes late or twice'],
      'test/agent/rules-input.test.ts': ['usage of an id that was never asked for does not count'],
    },
  },
  'malformed-events': {
    text: 'An event that does not have the shape of its type changes nothing. The diagnostic names the field, what it is and what it must be. `step` never throws.',
    states: 'every',
    events: 'every',
    tests: {
      'test/agent/malformed.test.ts': [
        'a diagnostic says which field is wrong, what it is, and what it must be',
        'step is total: whatever comes, it returns, and what it refuses changes nothing',
      ],
    },
  },
  'settings-change': {
    text: 'Settings are frozen when the session starts. Only SettingsChanged and ApproveBudget change them, and a change holds from the next decision: nothing that runs is broken off by it.',
    states: 'every',
    events: ['SettingsChanged', 'ApproveBudget'],
    tests: {
      'test/agent/rules-budget.test.ts': [
        'a changed setting holds from the next decision',
        'settings that are tightened under way break nothing that runs',
      ],
      'test/agent/rules-policy.test.ts': ['a revoked permission asks again'],
    },
  },
} as const satisfies RuleSection;
