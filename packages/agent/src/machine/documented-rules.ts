import type { Event } from './event.js';
import type { State } from './state.js';

/** How a session opens, how a turn begins, and what the user types meanwhile. */
const turns = {
  'open-session': {
    text: 'A new session is Ready. Start, or the first input, opens it.',
    states: ['Ready'],
    events: ['Start', 'UserInput'],
    tests: {
      'test/agent/cases-turns.test.ts': [
        'Start waits for the user and prompts',
        'input in Ready begins a turn by way of W',
      ],
    },
  },
  'input-starts-turn': {
    text: 'While the machine waits, an input starts a turn. Held texts go first, then the new one, all in one message; an unanswered message of the user is extended.',
    states: ['Ready', 'WaitingForUserInput'],
    events: ['UserInput'],
    tests: {
      'test/agent/cases-turns.test.ts': ['input in W is sent', 'blank input is not sent'],
      'test/agent/rules-input.test.ts': ['the held queue goes first, then the text, in one message'],
    },
  },
  'begin-turn': {
    text: 'A turn begins in this order: a reached session limit holds the queue; a window above its threshold is compacted first; else the queue moves into the conversation and the request is sent. A new turn has a new id, no rounds and no cut replies, and starts its time limit.',
    states: ['WaitingForUserInput', 'CallingLlm', 'Compacting'],
    events: ['UserInput', 'RetryLast', 'ApproveBudget'],
    tests: {
      'test/agent/rules-input.test.ts': [
        'a turn with a time limit schedules it',
        'input over the limit of tokens is held',
      ],
      'test/agent/cases-budget.test.ts': ['a turn over a full window begins with a compaction'],
    },
  },
  'nothing-to-wait-for': {
    text: 'A resting state with nothing to wait for is passed within the same step. A held queue is released only by an act of the user, by the end of a turn or by a compaction: a stale event or Resumed never sends it.',
    states: ['WaitingForUserInput', 'ExecutingTools', 'PostToolsHook', 'CallingLlm', 'Compacting'],
    events: 'every',
    tests: {
      'test/agent/rules-input.test.ts': [
        'a held queue is not sent by a stale event',
        'a held queue is not sent by Resumed',
      ],
    },
  },
  'back-to-the-user': {
    text: 'On the way back to the user the machine asks for input exactly once and cancels the time limit of the turn. The reason names its cause: start, end of turn, cancel, limit, error, compaction, reopening. Cancelled, BudgetExceeded and Failed always tell the user why.',
    states: ['WaitingForUserInput', 'EndOfTurn', 'Cancelled', 'BudgetExceeded', 'Failed'],
    events: 'every',
    tests: {
      'test/agent/rules-input.test.ts': ['the end of a turn cancels its time limit'],
      'test/agent/step-rules-reasons.test.ts': ['the stopping policy', 'nobody was there to ask'],
    },
  },
  'retry-last': {
    text: 'RetryLast sends the conversation as it stands, as a new turn; the queue stays held. If the last message is the answer, a notice says that there is nothing to send.',
    states: ['WaitingForUserInput'],
    events: ['RetryLast'],
    tests: {
      'test/agent/rules-input.test.ts': [
        'RetryLast sends the conversation as it stands and holds the queue',
        'RetryLast after an answer has nothing to send',
      ],
    },
  },
  'input-failed': {
    text: 'Input that cannot be read is an error that the user sees; then the machine waits again.',
    states: ['WaitingForUserInput', 'Failed'],
    events: ['InputFailed'],
    tests: { 'test/agent/cases-turns.test.ts': ['failing input is shown and waited for again'] },
  },
  'queue-input': {
    text: 'Input in a busy state is queued under an id, with a notice. Blank input leaves a diagnostic.',
    states: ['CallingLlm', 'Error', 'ExecutingTools', 'PostToolsHook', 'Compacting'],
    events: ['UserInput'],
    tests: {
      'test/agent/cases-tools.test.ts': ['input while tools run is queued'],
      'test/agent/rules-budget.test.ts': ['blank input while busy is not queued'],
    },
  },
  'edit-queue': {
    text: 'EditQueue changes, moves and removes queued items by id. It cannot add items or blank texts, and an id that it names twice is kept once.',
    states: 'every',
    events: ['EditQueue'],
    tests: {
      'test/agent/rules-budget.test.ts': [
        'the queue is sent in the order the user gave it',
        'an edit cannot add items or blank texts',
        'an item that an edit names twice is there once',
      ],
    },
  },
  'steering-joins-results': {
    text: 'Between rounds, queued texts in the mode steer join the message with the results, as text after them, in order. Follow-ups wait for the end of the turn.',
    states: ['GatheringAdditionalMessages'],
    events: [],
    tests: {
      'test/agent/rules-budget.test.ts': [
        'steering texts join the results in order, a follow-up between them waits',
      ],
    },
  },
  'queued-turn': {
    text: 'If texts are queued at the end of a turn, they open the next one at once, in one message.',
    states: ['EndOfTurn', 'WaitingForUserInput'],
    events: ['LlmCompleted'],
    tests: {
      'test/agent/cases-budget.test.ts': [
        'two queued texts open the next turn in one message, in order',
        'a follow-up opens the next turn',
      ],
    },
  },
  pictures: {
    text: 'Pictures travel with the text or the result that they belong to: into the message, through the queue, and back to the editor.',
    states: 'every',
    events: ['UserInput', 'EditQueue', 'ToolCompleted'],
    tests: {
      'test/agent/pictures.test.ts': [
        'a tool’s pictures are in its result; a result without pictures has none',
      ],
      'test/agent/rules-corners.test.ts': ['pictures go back to the editor with their text'],
    },
  },
} as const satisfies RuleSection;

/** From the pieces of a reply to the end of the turn or to its tool calls. */
const replies = {
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

/** A batch of tool calls, from the reply that asks for them to the message with their results. */
const toolCalls = {
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

/** Hooks after a batch, and the next round. */
const hooks = {
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

/** What a turn and a session may spend. */
const limits = {
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

/** Older messages become a summary. */
const compactions = {
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

/** Model calls that fail: retries, overflows, giving up. */
const failures = {
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

/** The user stops a turn or a call. */
const cancels = {
  'nothing-to-cancel': {
    text: 'Where no turn runs, CancelTurn changes nothing.',
    states: ['Ready', 'WaitingForUserInput', 'ShuttingDown'],
    events: ['CancelTurn'],
    tests: {
      'test/agent/cases-cancel.test.ts': ['there is nothing to cancel in W'],
      'test/agent/rules-cancel.test.ts': [
        'there is nothing to cancel in Ready',
        'there is nothing to cancel in Z',
      ],
    },
  },
  'cancel-request': {
    text: 'Cancelling a request aborts it. Streamed text that is not blank is kept as the model’s message, half calls are dropped, and the next message tells the model once that it was interrupted.',
    states: ['CallingLlm', 'Cancelled'],
    events: ['CancelTurn'],
    tests: {
      'test/agent/rules-cancel.test.ts': [
        'text streamed before a cancel is kept',
        'the model learns with the next message that it was interrupted',
        'blank text that was streamed before a cancel is taken back',
      ],
    },
  },
  'cancel-retry': {
    text: 'Cancelling the wait for a retry ends the turn. The message of the user stays.',
    states: ['Error', 'Cancelled'],
    events: ['CancelTurn'],
    tests: { 'test/agent/cases-errors.test.ts': ['cancelling the wait for a retry keeps the user text'] },
  },
  'cancel-batch': {
    text: 'Cancelling a batch ends the calls that wait, withdraws open approvals and asks the running ones to stop; nothing starts any more. If nothing runs, the turn ends at once.',
    states: ['ExecutingTools', 'Cancelled'],
    events: ['CancelTurn'],
    tests: {
      'test/agent/cases-cancel.test.ts': [
        'cancelling a batch stops what runs and what waits',
        'cancelling a batch that waits for approval needs no grace',
      ],
    },
  },
  'grace-period': {
    text: 'Running calls get a grace period. When it is over, or at a second cancel, they are killed: no process outlives the turn. A call that did finish keeps its real result; of the others the effects are unknown. No hook and no request follow.',
    states: ['ExecutingTools', 'Cancelled'],
    events: ['ToolCompleted', 'TimerFired', 'CancelTurn'],
    tests: {
      'test/agent/cases-cancel.test.ts': [
        'when the grace is over the call is killed and its effects are unknown',
        'a second cancel does not wait for the grace',
      ],
      'test/agent/rules-cancel.test.ts': ['a call that did finish before its cancel keeps its real result'],
    },
  },
  'cancel-one-call': {
    text: 'CancelTool ends one call: at once if it waits, with a grace period of its own if it runs; a second CancelTool kills it. The turn goes on with the other calls.',
    states: ['ExecutingTools'],
    events: ['CancelTool', 'TimerFired'],
    tests: {
      'test/agent/cases-cancel.test.ts': [
        'one running call can be cancelled alone',
        'the turn goes on after one call was cancelled',
      ],
      'test/agent/rules-tools.test.ts': [
        'each call has a grace of its own',
        'a second CancelTool kills at once',
        'killing an exclusive call lets the next one start',
      ],
    },
  },
  'cancelled-reply-runs-no-call': {
    text: 'If the turn was cancelled while the reply came, every call of the reply is answered as cancelled, none runs, and no request follows.',
    states: ['CheckingForCancellation', 'Cancelled', 'BudgetExceeded'],
    events: ['LlmCompleted'],
    tests: {
      'test/agent/cases-cancel.test.ts': ['calls of a cancelled request are not executed, its usage counts'],
      'test/agent/rules-calls.test.ts': ['calls that come while draining are answered, not executed'],
    },
  },
  'cancel-hook': {
    text: 'Cancelling a hook aborts it. Results stay, with a note that files may have been changed.',
    states: ['PostToolsHook', 'Cancelled'],
    events: ['CancelTurn'],
    tests: { 'test/agent/cases-cancel.test.ts': ['cancelling a hook keeps the results'] },
  },
  'cancel-compaction': {
    text: 'Cancelling a compaction aborts it. The conversation stays as it was.',
    states: ['Compacting', 'Cancelled'],
    events: ['CancelTurn'],
    tests: {
      'test/agent/cases-cancel.test.ts': [
        'cancelling a compaction leaves the conversation and the waiting input alone',
      ],
    },
  },
  'queue-after-stop': {
    text: 'After a cancel, `queueOnCancel` decides about queued texts: hold them, send them as the next turn, or give them back to the editor. After a failure or at a limit they are held.',
    states: ['Cancelled', 'BudgetExceeded', 'Failed', 'WaitingForUserInput'],
    events: 'every',
    tests: {
      'test/agent/rules-cancel.test.ts': [
        'with the setting send a cancel begins the next turn',
        'after a failure the queue is held whatever the setting',
        'after a budget stop the queue is held whatever the setting',
      ],
    },
  },
} as const satisfies RuleSection;

/** How a session ends, and how it is opened again, after a clean end or a crash. */
const shutdownAndResume = {
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

/** Promises of every reachable state and every step: packages/agent/src/machine/invariants/ checks them. */
const alwaysRules = {
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

/** The source of docs/rules.md: all rules by subject. `npm run update` writes the page. */
export const ruleSections: Readonly<Record<string, RuleSection>> = {
  'Promises of every step': alwaysRules,
  'Turns and input': turns,
  Replies: replies,
  'Failed requests': failures,
  'Tool calls': toolCalls,
  'After the tools': hooks,
  Limits: limits,
  Cancelling: cancels,
  Compaction: compactions,
  'Shutdown and reopening': shutdownAndResume,
};

/** The anchor of a rule in docs/rules.md. */
export type RuleName =
  | keyof typeof alwaysRules
  | keyof typeof turns
  | keyof typeof replies
  | keyof typeof failures
  | keyof typeof toolCalls
  | keyof typeof hooks
  | keyof typeof limits
  | keyof typeof cancels
  | keyof typeof compactions
  | keyof typeof shutdownAndResume;

/** All rules by anchor. */
export const machineRules: ReadonlyMap<string, MachineRule> = new Map(
  Object.values(ruleSections).flatMap((section) => Object.entries(section)),
);

/** One rule of the machine: what holds, where it holds, and the tests that keep it. Its key is its anchor. */
export type MachineRule = {
  /** One to three sentences, as docs/rules.md prints them. */
  readonly text: string;
  readonly states: readonly State['name'][] | 'every';
  readonly events: readonly Event['type'][] | 'every';
  /** Titles of tests, by file. A title that is built from parts is named by its fixed part. */
  readonly tests: Readonly<Record<string, readonly string[]>>;
};

/** Rules about one subject, by anchor. */
export type RuleSection = Readonly<Record<string, MachineRule>>;
