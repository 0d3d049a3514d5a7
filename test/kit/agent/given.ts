import type { CallOutcome } from '../../../packages/agent/src/machine/call.js';
import type {
  Event,
  ModelError,
  On,
  StopReason,
} from '../../../packages/agent/src/machine/event.js';
import type {
  AssistantMessage,
  AssistantPart,
  Message,
} from '../../../packages/agent/src/machine/message.js';
import type { Dimension, Settings, Usage } from '../../../packages/agent/src/machine/settings.js';
import type { State } from '../../../packages/agent/src/machine/state.js';
import type { JudgedCall } from '../../../packages/agent/src/policy/judged-call.js';
import { batchOf, compactionOf, hookOf, requestOf, timerOf } from './flight.js';

/** The clock of all tests stands still here. */
export const NOW = 1_700_000_000_000;

/** An event, or one that names what is in flight in the state it meets. */
export type Given = Event | ((state: State) => Event);

export const eventOf = (given: Given, state: State): Event =>
  typeof given === 'function' ? given(state) : given;

/** The same at another moment: `at` milliseconds after NOW. */
export const after =
  (at: number, given: Given): Given =>
  (state) => ({ ...eventOf(given, state), at: NOW + at });

// ---- Calls ----

const call = (tool: string, callId: string, mutating: boolean): JudgedCall => ({
  callId,
  tool,
  input: { path: 'a.ts' },
  verdict: { kind: 'ok' },
  traits: {
    effect: mutating ? 'probeable' : 'pure',
    parallelSafe: !mutating,
    mutating,
    deadlineMs: 1_000,
  },
  facts: { argv: [], paths: ['/project/a.ts'], hosts: [], shape: `${tool} a.ts` },
});

/** G: read-only, runs beside others. */
export const grep = (callId: string): JudgedCall => call('grep', callId, false);
/** E: mutating, runs alone. */
export const edit = (callId: string): JudgedCall => call('edit', callId, true);
export const unknownTool = (callId: string): JudgedCall => ({
  ...call('teleport', callId, false),
  verdict: { kind: 'noSuchTool', known: ['grep', 'edit'] },
});
const RAW = '{"path": "a.t';
export const notJson = (callId: string): JudgedCall => ({
  ...call('edit', callId, true),
  input: {},
  rawInput: RAW,
  verdict: { kind: 'invalid', field: '', why: 'the arguments were not valid JSON' },
});
export const wrongField = (callId: string): JudgedCall => ({
  ...call('edit', callId, true),
  verdict: { kind: 'invalid', field: 'path', why: 'must be a string' },
});

// ---- Events of the model ----

export const usage = (costUsd: number | null = 0, inputTokens = 10): Usage => ({
  inputTokens,
  outputTokens: 1,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd,
});

type Said = {
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: readonly JudgedCall[];
  readonly stopReason?: StopReason;
  readonly usage?: Usage;
  readonly requestId?: string;
  readonly message?: null;
};

const messageOf = (said: Said): AssistantMessage => {
  const parts: AssistantPart[] = [];
  if (said.reasoning !== undefined) {
    parts.push({ type: 'reasoning', text: said.reasoning, metadata: { signature: 'sealed' } });
  }
  if (said.text !== undefined) parts.push({ type: 'text', text: said.text });
  for (const { callId, tool, input, rawInput } of said.calls ?? []) {
    parts.push({
      type: 'call',
      callId,
      tool,
      input,
      ...(rawInput === undefined ? {} : { rawInput }),
    });
  }
  return { role: 'assistant', model: 'test/model', cut: said.stopReason === 'maxTokens', parts };
};

export const completed =
  (said: Said): ((state: State) => On<'LlmCompleted'>) =>
  (state) => ({
    type: 'LlmCompleted',
    at: NOW,
    requestId: said.requestId ?? requestOf(state),
    message: said.message === null ? null : messageOf(said),
    calls: said.calls ?? [],
    stopReason: said.stopReason ?? (said.calls === undefined ? 'end' : 'toolUse'),
    usage: said.usage ?? usage(),
  });

/** A reply of text alone. */
export const says = (text: string, spent: Usage = usage()): Given =>
  completed({ text, usage: spent });
/** A reply of calls alone. */
export const wants = (...calls: readonly JudgedCall[]): Given => completed({ calls });
export const empty: Given = completed({});

type Failure = Partial<ModelError> & {
  readonly requestId?: string;
  readonly usage?: Usage;
  readonly jitter?: number;
};

export const fails =
  (failure: Failure = {}): Given =>
  (state) => ({
    type: 'LlmFailed',
    at: NOW,
    requestId: failure.requestId ?? requestOf(state),
    error: {
      kind: failure.kind ?? 'overloaded',
      message: failure.message ?? 'the provider is overloaded',
      retryable: failure.retryable ?? true,
      retryAfterMs: failure.retryAfterMs ?? null,
      ...(failure.answered === undefined ? {} : { answered: failure.answered }),
    },
    usage: failure.usage ?? null,
    jitter: failure.jitter ?? 0,
  });

export const overflows: Given = fails({
  kind: 'contextOverflow',
  message: 'prompt is too long',
  retryable: false,
});
export const refusedRequest: Given = fails({
  kind: 'badRequest',
  message: 'bad field',
  retryable: false,
});

export const delta =
  (text: string, requestId?: string): Given =>
  (state) => ({ type: 'TextDelta', at: NOW, requestId: requestId ?? requestOf(state), text });
export const policyStops =
  (requestId?: string): Given =>
  (state) => ({
    type: 'PolicyStopped',
    at: NOW,
    requestId: requestId ?? requestOf(state),
    why: 'enough',
  });
export const thought: Given = (state) => ({
  type: 'ReasoningDelta',
  at: NOW,
  requestId: requestOf(state),
  text: 'hm',
});
export const halfCall: Given = (state) => ({
  type: 'ToolCallDelta',
  at: NOW,
  requestId: requestOf(state),
  tool: 'edit',
  text: RAW,
});

// ---- Events of tools, hooks, compactions, timers ----

export const started =
  (callId: string, batchId?: string): Given =>
  (state) => ({ type: 'ToolStarted', at: NOW, batchId: batchId ?? batchOf(state), callId });

export const ended =
  (
    callId: string,
    status: CallOutcome['status'] = 'ok',
    text = `output of ${callId}`,
    batchId?: string,
  ): Given =>
  (state) => ({
    type: 'ToolCompleted',
    at: NOW,
    batchId: batchId ?? batchOf(state),
    callId,
    outcome: { status, text },
  });

export const progress =
  (callId: string): Given =>
  (state) => ({ type: 'ToolProgress', at: NOW, batchId: batchOf(state), callId, text: '50 %' });

export const toolsFail: Given = (state) => ({
  type: 'ToolsFailed',
  at: NOW,
  batchId: batchOf(state),
  message: 'the runner is gone',
});

export const hookDone =
  (found: Partial<On<'HookCompleted'>> = {}): Given =>
  (state) => ({
    type: 'HookCompleted',
    at: NOW,
    hookId: hookOf(state),
    commits: [],
    changedFiles: [],
    dirty: false,
    note: '',
    warning: '',
    proceed: true,
    usage: null,
    ...found,
  });

export const commits = (count: number): On<'HookCompleted'>['commits'] =>
  Array.from({ length: count }, (_, index) => ({
    hash: `abc${index}`,
    subject: `commit ${index}`,
  }));

export const hookFails =
  (message = 'the hook broke'): Given =>
  (state) => ({ type: 'HookFailed', at: NOW, hookId: hookOf(state), message });

/** A phase is about to change `a.ts`. */
export const prepares =
  (hookId?: string): Given =>
  (state) => ({
    type: 'HookPrepared',
    at: NOW,
    hookId: hookId ?? hookOf(state),
    effect: { kind: 'file', path: 'a.ts', before: 'rough', after: 'smooth' },
  });

export const compacts =
  (spent: Usage = usage(), compactionId?: string): Given =>
  (state) => ({
    type: 'CompactionCompleted',
    at: NOW,
    compactionId: compactionId ?? compactionOf(state),
    summary: 'what was said before',
    usage: spent,
  });

export const compactionFails: Given = (state) => ({
  type: 'CompactionFailed',
  at: NOW,
  compactionId: compactionOf(state),
  message: 'no summary came',
  usage: null,
});

export const rings =
  (timerId?: string): Given =>
  (state) => ({ type: 'TimerFired', at: NOW, timerId: timerId ?? timerOf(state) });

/** The turn's time limit is over. */
export const timeIsUp: Given = (state) => ({
  type: 'TimerFired',
  at: NOW,
  timerId: state.session.turn.timeLimit?.timerId ?? 'timer-none',
});

// ---- Events of the user ----
export const begin: Event = { type: 'Start', at: NOW };
export const input = (text: string): Event => ({ type: 'UserInput', at: NOW, text, mode: 'steer' });
export const followUp = (text: string): Event => ({
  type: 'UserInput',
  at: NOW,
  text,
  mode: 'followUp',
});
export const retryLast: Event = { type: 'RetryLast', at: NOW };
export const retryNow: Event = { type: 'RetryNow', at: NOW };
export const cancel: Event = { type: 'CancelTurn', at: NOW };
export const shutdown: Event = { type: 'ShutdownRequested', at: NOW };
export const compact: Event = { type: 'CompactRequested', at: NOW };
export const inputFails: Event = { type: 'InputFailed', at: NOW, message: 'the terminal is gone' };
export const resumed: Event = { type: 'Resumed', at: NOW, epoch: 2 };
/** To the beginning, with files or without. */
export const rewind = (plan?: string): On<'RewindRequested'> => ({
  type: 'RewindRequested',
  at: NOW,
  rewindId: 'rewind-1',
  to: 0,
  direction: 'back',
  conversation: { kept: 0, messages: [], contextTokens: 0 },
  ...(plan === undefined ? {} : { files: { plan } }),
});
/** The conversation but for its last turn; files too. */
export const rewindTurn: Given = ({ session }) => {
  const { closed } = session.conversation;
  const isUsers = ({ role, parts }: Message): boolean =>
    role === 'user' && parts.every(({ type }) => type === 'text');
  const kept = Math.max(0, closed.toArray().findLastIndex(isUsers));
  return {
    ...rewind('plan-1'),
    conversation: { kept, messages: [], contextTokens: 0 },
    note: 'a.ts is as it was',
  };
};
const noChanges = { created: 0, changed: 0, deleted: 0, files: [] } as const;
export const rewound = (rewindId = 'rewind-1'): On<'Rewound'> => ({
  type: 'Rewound',
  at: NOW,
  rewindId,
  checkpoint: null,
  changes: noChanges,
  left: [],
  note: 'a.ts is as it was',
});
export const checkpoint: On<'CheckpointTaken'> = {
  type: 'CheckpointTaken',
  at: NOW,
  checkpoint: 'checkpoint-1',
  by: 'agent',
  batchId: 'batch-1',
  changes: noChanges,
  leftOut: ['b.ts has 30 MB'],
};
export const cancelTool =
  (callId: string, batchId?: string): Given =>
  (state) => ({ type: 'CancelTool', at: NOW, batchId: batchId ?? batchOf(state), callId });
export const approve = (dimension: Dimension, limit: number): Event => ({
  type: 'ApproveBudget',
  at: NOW,
  dimension,
  limit,
});
export const change = (patch: Partial<Settings>): Event => ({
  type: 'SettingsChanged',
  at: NOW,
  patch,
});
export const reports = (usageId: string, spent: Usage): Event => ({
  type: 'UsageReported',
  at: NOW,
  usageId,
  usage: spent,
});
/** Removes the items of these texts from the queue. */
type Answer = On<'ApprovalAnswered'>['answer'];
type Scope = On<'ApprovalAnswered'>['scope'];

const answers =
  (callId: string, answer: Answer, scope: Scope, batchId?: string): Given =>
  (state) => ({
    type: 'ApprovalAnswered',
    at: NOW,
    batchId: batchId ?? batchOf(state),
    callId,
    answer,
    scope,
  });

export const allows = (callId: string, scope: Scope = 'once', batchId?: string): Given =>
  answers(callId, { kind: 'allow' }, scope, batchId);
export const denies = (callId: string, reason = 'not this file'): Given =>
  answers(callId, { kind: 'deny', reason }, 'once');
