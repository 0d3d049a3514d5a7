import type { RuleSection } from './rule.js';

/** A batch of tool calls, from the reply that asks for them to the message with their results. */
export const toolCalls = {
  'judged-calls': {
    text: 'The runtime judges each call before the reply is journaled: whether tool and input are valid, its traits, the paths, words and hosts it touches. The machine decides from these facts, the rules and the grants alone; it never calls out, and broken input is never repaired.',
    states: ['CheckingForCancellation', 'ExecutingTools'],
    events: ['LlmCompleted'],
    tests: {
      'test/runtime/judge-call.test.ts': ['arguments that are no JSON are quoted and never repaired'],
      'test/agent/policy.test.ts': ['a decision says why'],
    },
  },
  'calls-that-never-run': {
    text: 'A call to an unknown tool, with invalid input, denied by policy, or at a session limit ends at once and is answered with the reason. It does not hold up the calls beside it. In a cut reply, unknown and invalid calls are told so; the others, that they were not run.',
    states: ['ExecutingTools'],
    events: ['LlmCompleted'],
    tests: {
      'test/agent/cases-tools.test.ts': [
        'an unknown tool is answered with the names that exist, in the same step',
        'arguments with a wrong field are answered with the field',
      ],
      'test/agent/rules-policy.test.ts': [
        'a call that the policy denies is answered with the reason',
        'a call without a matching rule is denied',
        'an unknown tool does not hold up the calls beside it',
      ],
    },
  },
  'ask-before-call': {
    text: 'If the policy says ask, the call waits for an approval and holds back all calls behind it. With `onAsk` deny it is denied; with stop it is denied too, and the turn ends after the batch, without hooks and without a request.',
    states: ['ExecutingTools', 'Cancelled'],
    events: ['LlmCompleted', 'ToolCompleted'],
    tests: {
      'test/agent/rules-policy.test.ts': [
        'calls that the policy asks about wait for their approvals and hold back what comes after',
        'with nobody to ask the call is denied and the turn goes on',
        'before it stops, headless, the calls beside it end; then neither hook nor request',
      ],
    },
  },
  'preview-before-approval': {
    text: 'If the tool can show what a call would change, it is asked before the user is, as soon as no call in front of it can change what it looks at. Nobody is asked about a call that cannot be done.',
    states: ['ExecutingTools'],
    events: ['CallPreviewed'],
    tests: {
      'test/traces/previews.trace': ['Before the user is asked, the tool says what a call would change'],
    },
  },
  'answered-approval': {
    text: 'The user’s answer allows or refuses exactly the call it names. Its scope becomes a grant, which may cover other calls that wait. An answer to a call that does not wait changes nothing.',
    states: ['ExecutingTools'],
    events: ['ApprovalAnswered'],
    tests: {
      'test/agent/rules-policy.test.ts': [
        'a call that the user refuses is answered with the reason',
        'allowing once does not cover the next call',
        'allowing a shape covers awaiting calls of this shape only',
        'an answer for a call that does not wait changes nothing',
      ],
    },
  },
  'call-order': {
    text: 'Calls start in the order in which the reply lists them, up to `maxParallel` at once. A call that is not safe beside others, as all that change something, starts only when nothing runs, and nothing starts beside it. A call that may not start yet holds back all behind it.',
    states: ['ExecutingTools'],
    events: ['LlmCompleted', 'ToolCompleted', 'ApprovalAnswered'],
    tests: {
      'test/agent/cases-tools.test.ts': [
        'two reads start together',
        'the second of two edits waits',
        'an edit between reads holds back what comes after it',
      ],
      'test/agent/rules-tools.test.ts': ['a read that is not safe beside others runs alone'],
    },
  },
  'decide-again-at-start': {
    text: 'Policy and session limits are asked again at the moment a call starts. A rule that denies holds even for a call that the user allowed; a rule that asks does not ask a second time.',
    states: ['ExecutingTools'],
    events: ['SettingsChanged', 'ToolCompleted', 'Resumed'],
    tests: {
      'test/agent/rules-tools.test.ts': [
        'a rule that denies holds for a call that the user has allowed but that has not started',
        'a rule that asks does not ask again about a call that the user has allowed',
        'the policy is asked again when a queued call would start',
      ],
    },
  },
  'call-runs': {
    text: 'A call runs from ToolStarted, which is durable before the effect. A ToolStarted for a call that is not starting changes nothing.',
    states: ['ExecutingTools'],
    events: ['ToolStarted'],
    tests: {
      'test/agent/rules-tools.test.ts': [
        'ToolStarted makes a call run',
        'a second ToolStarted changes nothing',
      ],
    },
  },
  'first-outcome-wins': {
    text: 'The first outcome of a call that is starting or running counts. An outcome of a call that is unknown, still waiting or ended already changes nothing but usage.',
    states: ['ExecutingTools'],
    events: ['ToolCompleted'],
    tests: {
      'test/agent/cases-tools.test.ts': [
        'a second completion of a call is ignored',
        'the first completion of a call is the one that the model sees',
      ],
      'test/agent/rules-tools.test.ts': [
        'a queued call cannot have ended',
        'an unknown call cannot have ended',
      ],
    },
  },
  'results-in-one-message': {
    text: 'When all calls have ended, exactly one message of the user is appended: one result per call, in call order, before hooks run. Later steps of the turn only append text to it.',
    states: ['ExecutingTools'],
    events: ['ToolCompleted'],
    tests: {
      'test/agent/cases-tools.test.ts': [
        'nothing is appended before the batch ends',
        'results are appended in call order, failures marked',
        'a late completion adds no second result',
      ],
    },
  },
  'truthful-results': {
    text: 'Each way in which a call ends reads differently to the model: not run because cancelled, stopped while running with unknown effects, refused, denied, skipped, cut off, invalid, unknown tool, outcome lost.',
    states: ['ExecutingTools'],
    events: ['ToolCompleted'],
    tests: { 'test/agent/words.test.ts': ['each way in which a call ends reads differently'] },
  },
  'tools-failed': {
    text: 'If the runtime cannot go on with a batch, running calls are killed, open approvals are withdrawn, results that came before are kept, the other calls get error results, and the turn fails.',
    states: ['ExecutingTools', 'Failed'],
    events: ['ToolsFailed'],
    tests: {
      'test/agent/rules-tools.test.ts': [
        'when the tools fail as a whole every call is answered and the turn ends',
        'results that had come before the tools failed are kept',
        'approvals are withdrawn when the tools fail',
      ],
    },
  },
} as const satisfies RuleSection;
