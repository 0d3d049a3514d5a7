import type { RuleSection } from './rule.js';

/** How a session opens, how a turn begins, and what the user types meanwhile. */
export const turns = {
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
