import type { RuleSection } from './rule.js';

/** From the pieces of a reply to the end of the turn or to its tool calls. */
export const replies = {
  'streamed-text': {
    text: 'Text is shown as it streams and kept as partial text. Text that is not stored in the end is taken back from the screen; at completion only what was not streamed is shown.',
    states: ['CallingLlm', 'ProcessingLlmResponse'],
    events: ['TextDelta', 'LlmCompleted', 'LlmFailed'],
    tests: {
      'test/agent/rules-calls.test.ts': ['blank text that was streamed and is not stored is taken back'],
      'test/agent/rules-replies.test.ts': ['a reply that is not what was streamed takes its place'],
    },
  },
  'merged-text': {
    text: 'Two pieces of text in a row leave the same state as their concatenation. So the runtime may merge pieces (at most 25 reach the machine a second), and the journal may hold one merged piece, or none when the reply is whole.',
    states: ['CallingLlm'],
    events: ['TextDelta'],
    tests: {
      'test/agent/property.test.ts': [
        'two pieces of text in a row leave the same state as their concatenation',
      ],
    },
  },
  'display-only': {
    text: 'Reasoning, half calls and progress of tools are for display: they change nothing and are not journaled.',
    states: ['CallingLlm', 'ExecutingTools'],
    events: ['ReasoningDelta', 'ToolCallDelta', 'ToolProgress'],
    tests: {
      'test/agent/rules-calls.test.ts': ['pieces for display alone change nothing'],
      'test/agent/rules-tools.test.ts': ['progress is for display'],
    },
  },
  'malformed-reply': {
    text: 'A reply without a message, with two calls of one id, or with other calls than those that were judged, is not stored. The turn fails.',
    states: ['ProcessingLlmResponse', 'Failed'],
    events: ['LlmCompleted'],
    tests: {
      'test/agent/rules-calls.test.ts': ['a reply without a message is malformed, its usage counts'],
      'test/agent/rules-corners.test.ts': ['a reply with calls that were not judged is malformed'],
    },
  },
  'context-size': {
    text: 'After a reply the size of the conversation is what the provider counted, cached or not. If it counted nothing, the estimate stays.',
    states: ['CallingLlm'],
    events: ['LlmCompleted'],
    tests: {
      'test/agent/rules-replies.test.ts': [
        'the size of the conversation is all that the provider counted, read from its cache or not',
        'where the provider counted nothing the estimate stays',
      ],
    },
  },
  'answer-ends-turn': {
    text: 'A reply with text and without calls is stored and ends the turn.',
    states: ['ProcessingLlmResponse', 'EndOfTurn'],
    events: ['LlmCompleted'],
    tests: { 'test/agent/cases-turns.test.ts': ['text that was not streamed is shown at completion'] },
  },
  'empty-reply': {
    text: 'A reply of white space or of reasoning alone is never stored: it ends the turn with a warning. With the setting `emptyRetries` it is asked for again first; these retries count apart from attempts, and a refusal is not asked for again.',
    states: ['CallingLlm', 'ProcessingLlmResponse', 'EndOfTurn', 'Error'],
    events: ['LlmCompleted'],
    tests: {
      'test/agent/rules-calls.test.ts': [
        'reasoning alone is an empty reply',
        'empty replies are counted apart from attempts',
      ],
      'test/agent/cases-turns.test.ts': ['an empty reply stores nothing and warns'],
    },
  },
  'calls-decide': {
    text: 'Calls decide, not the stop reason: a reply with calls is stored and goes on to its tools. A reply that announces tool use without calls is an answer and leaves a diagnostic.',
    states: ['ProcessingLlmResponse', 'ToolUseRequested', 'EndOfTurn'],
    events: ['LlmCompleted'],
    tests: {
      'test/agent/cases-turns.test.ts': ['calls win over a stop reason that says the turn ends'],
      'test/agent/rules-calls.test.ts': [
        'tool use announced with text alone is an answer and leaves a diagnostic',
      ],
    },
  },
  reasoning: {
    text: 'Reasoning is stored with its metadata and its model. It is sent back only to that model, and never from a reply that was cut.',
    states: ['CallingLlm'],
    events: ['LlmCompleted'],
    tests: {
      'test/agent/rules-calls.test.ts': ['reasoning is stored with its metadata and its model'],
      'test/agent/model-request.test.ts': [
        'the reasoning of another model stays behind, what it said does not',
        'the reasoning of a reply that was cut stays behind, though it is of the same model',
      ],
    },
  },
  'cut-reply': {
    text: 'An answer that was cut at the output limit is kept, with a warning. Of a cut reply with calls no call runs; each is answered, and too many such replies in a row end the turn. A reply that is whole starts the count again.',
    states: ['ProcessingLlmResponse', 'ExecutingTools', 'CheckingBudget'],
    events: ['LlmCompleted'],
    tests: {
      'test/agent/rules-calls.test.ts': [
        'an answer that was cut off is kept and warned about',
        'in a cut reply unknown and invalid calls are told so, whole ones that they were not run',
        'the second cut reply in a row ends the turn',
      ],
    },
  },
  'refused-reply': {
    text: 'A refusal, a content filter or an unknown end stops the turn with a warning. Its text is kept; its calls are answered and do not run.',
    states: ['ProcessingLlmResponse', 'EndOfTurn'],
    events: ['LlmCompleted'],
    tests: {
      'test/agent/rules-calls.test.ts': ['calls of a reply that ends with '],
      'test/agent/cases-turns.test.ts': ['a refusal with text is kept, shown and warned about'],
    },
  },
  draining: {
    text: 'If the provider cannot abort, the reply to a cancelled request is awaited. Its text is kept, its calls are answered and do not run, its failure is not retried. A second cancel ends the wait.',
    states: ['CallingLlm', 'CheckingForCancellation', 'Cancelled'],
    events: ['CancelTurn', 'LlmCompleted', 'LlmFailed'],
    tests: {
      'test/agent/cases-cancel.test.ts': [
        'a provider that cannot abort is waited for',
        'a reply that came in while draining is kept',
      ],
      'test/agent/rules-calls.test.ts': [
        'a second cancel does not wait for the reply',
        'calls that come while draining are answered, not executed',
      ],
    },
  },
} as const satisfies RuleSection;
