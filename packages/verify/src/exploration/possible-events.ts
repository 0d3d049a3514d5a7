/**
 * Every event that can happen in a node of an exploration.
 *
 * From top to bottom: responses to all work in flight (model call, tools, hooks, compactions,
 * rewinds); events of the user; and adversarial ones: late, duplicate, or after a crash.
 */

import type { CallOutcome, CallPreview } from '@pawl/agent/machine/call';
import type {
  Event,
  EventType,
  InputMode,
  ModelError,
  On,
  QueuedInput,
} from '@pawl/agent/machine/event';
import { inFlight } from '@pawl/agent/machine/invariants';
import { isEnded, isRunning, isSpending } from '@pawl/agent/machine/moves/tool-batch';
import { defaultSettings, type Limit } from '@pawl/agent/machine/settings';
import type { In, State } from '@pawl/agent/machine/state';
import { chargedResponses, chargeReports, otherLimit } from './charges.js';
import {
  createReply,
  type FailureChoice,
  type HookChoice,
  type OutcomeChoice,
  raisedLimit,
  usageFor,
} from './configuration.js';
import {
  type ExplorationContext,
  type ExplorationEvent,
  type ExplorationNode,
  fate,
  user,
  world,
} from './exploration-node.js';

/** Responses to all work in flight, and the time limit of the turn. */
export const pendingResponses = (
  node: ExplorationNode,
  context: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { state, now: at } = node;
  const responses = createResponses(node, context);
  const limit = state.session.turn.timeLimit;
  if (limit === null) return responses;
  const dueAt = Math.max(at, limit.dueAt);
  const fires = world({ type: 'TimerFired', at: dueAt, timerId: limit.timerId });
  if (at >= limit.dueAt) return [...responses, fires];
  // Every response may also come after the timer is due and before it fires.
  const tardy = responses.map((label) => ({ ...label, event: { ...label.event, at: dueAt } }));
  return [...responses, ...tardy, fires];
};

const createResponses = (
  node: ExplorationNode,
  context: ExplorationContext,
): readonly ExplorationEvent[] => {
  const charged = context.configuration.charges ? chargedResponses(node, context) : null;
  if (charged !== null) return charged;
  const { state, now: at } = node;
  switch (state.name) {
    case 'CallingLlm':
      return modelResponses(state, node, context);
    case 'Error':
      return [world({ type: 'TimerFired', at, timerId: state.timerId })];
    case 'ExecutingTools':
      return toolResponses(state, node, context);
    case 'PostToolsHook':
      return [
        ...(state.prepared === undefined ? [world(createPreparation(state.hookId, at))] : []),
        ...context.configuration.hooks.map((word) =>
          world(createHookResponse(state.hookId, at, word)),
        ),
      ];
    case 'Compacting':
      return compactionResponses(state.compactionId, at);
    case 'Rewinding':
      return [world(createRewound(state.rewindId, at))];
    default:
      return [];
  }
};

// ---- The model ----

/**
 * The streamed text. It begins every reply with text, so that the reply need not be shown again.
 */
const streamed = 'y';

const modelResponses = (
  state: In<'CallingLlm'>,
  node: ExplorationNode,
  { configuration, replies }: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { requestId, partial } = state;
  const at = node.now;
  const labels = replies
    .filter(({ costly }) => !costly || node.costlyLeft > 0)
    .map(({ costly, ...reply }) =>
      world({ type: 'LlmCompleted', at, requestId, ...reply }, costly),
    );
  for (const word of configuration.failures)
    labels.push(world(createModelFailure(requestId, at, word)));
  if (!configuration.streams) return labels;
  // More streamed text would lead to the same node.
  if (partial === '') labels.push(world({ type: 'TextDelta', at, requestId, text: ' ' }));
  if (partial.trim() === '')
    labels.push(world({ type: 'TextDelta', at, requestId, text: streamed }));
  labels.push(world({ type: 'ReasoningDelta', at, requestId, text: streamed }));
  labels.push(world({ type: 'ToolCallDelta', at, requestId, tool: 'grep', text: streamed }));
  return labels;
};

const waitTooLongMs = 3_600_000;

const modelErrors: Readonly<Record<Exclude<FailureChoice, 'heldBack'>, ModelError>> = {
  passing: { kind: 'overloaded', message: 'busy', retryable: true, retryAfterMs: null },
  final: { kind: 'auth', message: 'no key', retryable: false, retryAfterMs: null },
  tooLong: { kind: 'contextOverflow', message: 'too long', retryable: false, retryAfterMs: null },
  waitTooLong: {
    kind: 'rateLimited',
    message: 'later',
    retryable: true,
    retryAfterMs: waitTooLongMs,
  },
};

const createModelFailure = (requestId: string, at: number, word: FailureChoice): Event =>
  word === 'heldBack'
    ? { type: 'PolicyStopped', at, requestId, why: 'enough' }
    : { type: 'LlmFailed', at, requestId, error: modelErrors[word], usage: null, jitter: 0 };

// ---- Tools ----

/** Longer than `resultCutBytes`, see configurations.ts. */
const longText = 'long '.repeat(100).trim();

const outcomes: Readonly<Record<Exclude<OutcomeChoice, 'spent'>, CallOutcome>> = {
  ok: { status: 'ok', text: 'done' },
  long: { status: 'ok', text: longText },
  failed: { status: 'failed', text: 'broken' },
  timedOut: { status: 'timedOut', text: '' },
  cancelled: { status: 'cancelled', text: '' },
  lost: { status: 'lost', text: '' },
};

/** The previews of a call. An empty one leads to the same question as one with a change. */
const previews: readonly CallPreview[] = [
  { kind: 'change', diff: '+y' },
  { kind: 'refused', text: 'it does not fit' },
];

const toolResponses = (
  state: In<'ExecutingTools'>,
  { now: at, costlyLeft }: ExplorationNode,
  { configuration, settings }: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { batchId } = state;
  const labels: ExplorationEvent[] = [];
  for (const call of state.calls) {
    const { callId } = call.judged;
    if (call.status === 'previewing')
      for (const preview of previews)
        labels.push(world({ type: 'CallPreviewed', at, batchId, callId, preview }));
    if (!isRunning(call)) continue;
    if (call.status === 'starting')
      labels.push(world({ type: 'ToolStarted', at, batchId, callId }));
    for (const word of configuration.outcomes) {
      const ended = { type: 'ToolCompleted', at, batchId, callId } as const;
      if (word !== 'spent') labels.push(world({ ...ended, outcome: outcomes[word] }));
      else if (isSpending(call.judged) && costlyLeft > 0)
        labels.push(
          world(
            { ...ended, outcome: { ...outcomes.ok, usage: usageFor('costly', settings.limits) } },
            true,
          ),
        );
    }
    if (call.graceTimerId !== null)
      labels.push(world({ type: 'TimerFired', at, timerId: call.graceTimerId }));
  }
  if (state.phase.mode === 'cancelling' && state.phase.graceTimerId !== null)
    labels.push(world({ type: 'TimerFired', at, timerId: state.phase.graceTimerId }));
  return labels;
};

// ---- Hooks, compactions ----

const hookResults: Readonly<Record<Exclude<HookChoice, 'failed'>, Partial<On<'HookCompleted'>>>> = {
  clean: {},
  dirty: { dirty: true },
  changed: { changedFiles: ['a.ts'], dirty: true, note: 'formatted' },
  committed: { commits: [{ hash: 'abcdef0', subject: 'work' }], warning: 'look' },
  veto: { proceed: false },
};

/** Once in a phase: further effects only make the list longer. */
const createPreparation = (hookId: string, at: number): Event => ({
  type: 'HookPrepared',
  at,
  hookId,
  effect: { kind: 'file', path: 'a.ts', before: 'rough', after: 'smooth' },
});

const createHookResponse = (hookId: string, at: number, word: HookChoice): Event =>
  word === 'failed'
    ? { type: 'HookFailed', at, hookId, message: 'broken' }
    : {
        type: 'HookCompleted',
        at,
        hookId,
        commits: [],
        changedFiles: [],
        dirty: false,
        note: '',
        warning: '',
        proceed: true,
        usage: null,
        ...hookResults[word],
      };

const compactionResponses = (compactionId: string, at: number): readonly ExplorationEvent[] => {
  const usage = {
    inputTokens: 0,
    outputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    costUsd: 0,
  };
  return [
    world({ type: 'CompactionCompleted', at, compactionId, summary: 'so far', usage }),
    world({ type: 'CompactionFailed', at, compactionId, message: 'no summary', usage: null }),
  ];
};

// ---- Rewinds ----

const noChanges = { created: 0, changed: 0, deleted: 0, files: [] } as const;
const oneChange = {
  ...noChanges,
  changed: 1,
  files: [{ path: 'src/a.ts', change: 'changed', added: 12, removed: 3 }],
} as const;

const createRewound = (rewindId: string, at: number): On<'Rewound'> => ({
  type: 'Rewound',
  at,
  rewindId,
  checkpoint: null,
  changes: oneChange,
  left: [{ path: 'b.ts', why: 'somebody else changed it' }],
  note: 'src/a.ts is as it was: read it again before you edit it.',
});

/** To the beginning, with and without files; and to more messages than there are. */
const rewinds = (at: number): readonly ExplorationEvent[] => {
  const request = { type: 'RewindRequested', at, rewindId: 'rewind-1', to: 0 } as const;
  const begin = { kept: 0, messages: [], contextTokens: 10 } as const;
  const back = { ...request, direction: 'back', conversation: begin } as const;
  return [
    user(back),
    user({ ...back, files: { plan: 'plan-1' } }),
    user({ ...back, conversation: { ...begin, kept: 1_000 } }),
  ];
};

/** Events that the user may send in a node. */

export const userEvents = (
  node: ExplorationNode,
  context: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { state, now: at } = node;
  const { bounds, configuration } = context;
  const labels = [
    ...inputs(state, at, context),
    ...edits(state, at),
    ...limits(state, at, context),
  ];
  if (bounds.cancels > 0) labels.push(user({ type: 'CancelTurn', at }));
  if (bounds.rewinds > 0) labels.push(...rewinds(at));
  if (bounds.shutdowns > 0) {
    labels.push(user({ type: 'ShutdownRequested', at }));
    if (state.name === 'ShuttingDown') labels.push(user(createResumed(state, at)));
  }
  for (const patch of configuration.changes)
    labels.push(user({ type: 'SettingsChanged', at, patch }));
  switch (state.name) {
    case 'Ready':
      return [...labels, user({ type: 'Start', at })];
    case 'WaitingForUserInput':
      labels.push(user({ type: 'RetryLast', at }));
      if (bounds.compactions > 0) labels.push(user({ type: 'CompactRequested', at }));
      return labels;
    case 'Error':
      return [...labels, user({ type: 'RetryNow', at })];
    case 'ExecutingTools':
      return [...labels, ...callEvents(state, at, context)];
    default:
      return labels;
  }
};

const createResumed = (state: State, at: number): Event => ({
  type: 'Resumed',
  at,
  epoch: state.session.epoch + 1,
});

// ---- Text ----

const queued = (state: State, mode: InputMode): number => {
  let count = 0;
  for (const item of state.session.queue) if (item.mode === mode) count += 1;
  return count;
};

/** A unique text for each input, so that inputs can't be confused. */
const chooseInputText = (state: State): string => `text ${state.session.counters.input + 1}`;

const inputs = (state: State, at: number, { bounds }: ExplorationContext): ExplorationEvent[] => {
  const text = chooseInputText(state);
  const labels = [user({ type: 'UserInput', at, text: ' ', mode: 'steer' })];
  // Only input begins a turn, so between turns one input is always possible.
  const isIdle =
    state.session.queue.length === 0 &&
    (state.name === 'Ready' || state.name === 'WaitingForUserInput');
  if (isIdle || queued(state, 'steer') < bounds.steers)
    labels.push(user({ type: 'UserInput', at, text, mode: 'steer' }));
  if (queued(state, 'followUp') < bounds.followUps)
    labels.push(user({ type: 'UserInput', at, text, mode: 'followUp' }));
  return labels;
};

/** The queue without its first item, and reversed. */
const edits = (state: State, at: number): readonly ExplorationEvent[] => {
  const { queue } = state.session;
  if (queue.length === 0) return [];
  const edited = (items: readonly QueuedInput[]): ExplorationEvent =>
    user({ type: 'EditQueue', at, items });
  return queue.length === 1 ? [edited([])] : [edited(queue.slice(1)), edited(queue.toReversed())];
};

// ---- Limits ----

/** Approvals that lift a limit, and an invalid one. */
const limits = (
  state: State,
  at: number,
  { configuration, settings }: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { usd, tokens, timeMs } = settings.limits;
  const raise = (dimension: 'usd' | 'tokens' | 'time', limit: Limit): ExplorationEvent =>
    user({ type: 'ApproveBudget', at, dimension, limit });
  const labels: ExplorationEvent[] = [];
  if (usd !== 'unlimited' && !configuration.charges) labels.push(raise('usd', raisedLimit));
  if (usd !== 'unlimited' && configuration.charges)
    labels.push(raise('usd', otherLimit(state.session.settings.limits)));
  if (tokens !== 'unlimited') labels.push(raise('tokens', 0));
  if (timeMs !== 'unlimited')
    labels.push(
      raise('time', state.session.settings.limits.timeMs === timeMs ? timeMs * 2 : timeMs),
    );
  if (state.name === 'WaitingForUserInput') labels.push(raise('usd', -1));
  return labels;
};

// ---- Calls ----

const callEvents = (
  state: In<'ExecutingTools'>,
  at: number,
  context: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { batchId, calls } = state;
  const { bounds, configuration } = context;
  const labels: ExplorationEvent[] = [];
  for (const call of calls) {
    if (isEnded(call)) continue;
    const { callId } = call.judged;
    if (bounds.cancels > 0) labels.push(user({ type: 'CancelTool', at, batchId, callId }));
    if (call.status !== 'awaitingApproval') continue;
    const answer = (
      event: Pick<Extract<Event, { type: 'ApprovalAnswered' }>, 'answer' | 'scope'>,
    ): ExplorationEvent => user({ type: 'ApprovalAnswered', at, batchId, callId, ...event });
    for (const scope of configuration.scopes)
      labels.push(answer({ answer: { kind: 'allow' }, scope }));
    labels.push(answer({ answer: { kind: 'deny', reason: 'not this' }, scope: 'once' }));
    if (call.judged.traits.asks !== undefined)
      labels.push(answer({ answer: { kind: 'reply', text: 'this' }, scope: 'once' }));
  }
  return labels;
};

/** A jump of the clock beyond every timer. A jump back goes to the start of the exploration. */
const JUMP_MS = 86_400_000;

/** Adversarial events: late and duplicate responses, runtime faults, crashes. */

export const adversarialEvents = (
  node: ExplorationNode,
  context: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { bounds, configuration } = context;
  const { state, now: at } = node;
  const labels: ExplorationEvent[] = [];
  if (bounds.crashes > 0 && state.name !== 'ShuttingDown')
    labels.push(fate(createResumed(state, at)));
  if (bounds.crashes > 0 && configuration.clockJumps && state.name !== 'ShuttingDown')
    for (const then of [0, at + JUMP_MS]) labels.push(fate(createResumed(state, then)));
  if (bounds.late > 0) labels.push(...lateResponses(node, context));
  if (bounds.late > 0)
    labels.push(...(configuration.charges ? chargeReports(node) : usageReports(node, context)));
  if (bounds.rewinds > 0) labels.push(...checkpoints(at));
  if (bounds.duplicates > 0) labels.push(...duplicates(state, at));
  if (state.name === 'WaitingForUserInput')
    labels.push(fate({ type: 'InputFailed', at, message: 'broken' }));
  if (state.name === 'ExecutingTools')
    labels.push(fate({ type: 'ToolsFailed', at, batchId: state.batchId, message: 'broken' }));
  return configuration.misplaced ? [...labels, ...misplaced(at)] : labels;
};

/** The checkpoint of a batch is taken beside what follows; and the end of an old rewind. */
const checkpoints = (at: number): readonly ExplorationEvent[] => [
  fate({
    type: 'CheckpointTaken',
    at,
    checkpoint: 'checkpoint-1',
    by: 'agent',
    batchId: 'batch-1',
    changes: noChanges,
    leftOut: ['b.ts has 30 MB'],
  }),
  fate(createRewound('rewind-0', at)),
];

// ---- Late ----

const words = {
  request: 'req',
  batch: 'batch',
  timer: 'timer',
  hook: 'hook',
  compaction: 'compaction',
} as const;

/**
 * The newest id of a kind that is not in flight and can't report usage any more; `req-0` never
 * existed.
 */
const oldId = (
  { session }: State,
  kind: keyof typeof words,
  current: readonly string[],
): string => {
  for (let count = session.counters[kind]; ; count--) {
    const id = `${words[kind]}-${count}`;
    if (!current.includes(id) && !session.unaccounted.includes(id)) return id;
  }
};

const currentIds = (state: State): readonly string[] =>
  inFlight(state).flatMap((one) => one.split(' '));

type Old = (kind: keyof typeof words) => string;
type Late = { readonly [T in EventType]?: (at: number, old: Old, state: State) => On<T> };

const noUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: 0,
};
const lateReply = { ...createReply({ text: 'yes' }, defaultSettings.limits), usage: noUsage };
const lateError = {
  kind: 'overloaded',
  message: 'busy',
  retryable: true,
  retryAfterMs: null,
} as const;
const lateCall = (at: number, old: Old) => ({ at, batchId: old('batch'), callId: 'c1' });

/** One late response for each kind of event that answers something. */
const lateEvents: Late = {
  TextDelta: (at, old) => ({ type: 'TextDelta', at, requestId: old('request'), text: 'y' }),
  LlmCompleted: (at, old) => ({
    type: 'LlmCompleted',
    at,
    requestId: old('request'),
    usage: noUsage,
    message: lateReply.message,
    calls: [],
    stopReason: 'end',
  }),
  LlmFailed: (at, old) => ({
    type: 'LlmFailed',
    at,
    requestId: old('request'),
    error: lateError,
    usage: null,
    jitter: 0,
  }),
  ReasoningDelta: (at, old) => ({
    type: 'ReasoningDelta',
    at,
    requestId: old('request'),
    text: 'y',
  }),
  ToolCallDelta: (at, old) => ({
    type: 'ToolCallDelta',
    at,
    requestId: old('request'),
    tool: 'grep',
    text: 'y',
  }),
  PolicyStopped: (at, old) => ({
    type: 'PolicyStopped',
    at,
    requestId: old('request'),
    why: 'enough',
  }),
  CallPreviewed: (at, old) => ({
    type: 'CallPreviewed',
    ...lateCall(at, old),
    preview: { kind: 'none' },
  }),
  ToolStarted: (at, old) => ({ type: 'ToolStarted', ...lateCall(at, old) }),
  ToolCompleted: (at, old) => ({
    type: 'ToolCompleted',
    ...lateCall(at, old),
    outcome: { status: 'ok', text: 'late' },
  }),
  ApprovalAnswered: (at, old) => ({
    type: 'ApprovalAnswered',
    ...lateCall(at, old),
    answer: { kind: 'allow' },
    scope: 'session',
  }),
  CancelTool: (at, old) => ({ type: 'CancelTool', ...lateCall(at, old) }),
  ToolsFailed: (at, old) => ({ type: 'ToolsFailed', at, batchId: old('batch'), message: 'broken' }),
  HookPrepared: (at, old) => ({
    type: 'HookPrepared',
    at,
    hookId: old('hook'),
    effect: { kind: 'file', path: 'a.ts', before: 'rough', after: 'smooth' },
  }),
  HookCompleted: (at, old) => ({
    type: 'HookCompleted',
    at,
    hookId: old('hook'),
    commits: [],
    changedFiles: ['a.ts'],
    dirty: true,
    note: 'late',
    warning: '',
    proceed: false,
    usage: null,
  }),
  HookFailed: (at, old) => ({ type: 'HookFailed', at, hookId: old('hook'), message: 'broken' }),
  TimerFired: (at, old) => ({ type: 'TimerFired', at, timerId: old('timer') }),
  CompactionCompleted: (at, old) => ({
    type: 'CompactionCompleted',
    at,
    compactionId: old('compaction'),
    summary: 'late',
    usage: noUsage,
  }),
  CompactionFailed: (at, old) => ({
    type: 'CompactionFailed',
    at,
    compactionId: old('compaction'),
    message: 'late',
    usage: null,
  }),
  RequestMeasured: (at, old) => ({
    type: 'RequestMeasured',
    at,
    usageId: old('request'),
    model: 'scripted/model',
    bytes: 1,
    images: 0,
    outputTokensMax: 1,
    prices: null,
  }),
  Resumed: (at, _old, { session }) => ({ type: 'Resumed', at, epoch: session.epoch }),
};

/** Skips pairs without an edge, which give only a diagnostic, unless `misplaced` is set. */
const lateResponses = (
  { state, now: at }: ExplorationNode,
  { ignored, configuration }: ExplorationContext,
): readonly ExplorationEvent[] => {
  const current = currentIds(state);
  const old: Old = (kind) => oldId(state, kind, current);
  const labels: ExplorationEvent[] = [];
  for (const [type, make] of Object.entries(lateEvents)) {
    // A call that was charged says late what it cost: see charges.ts.
    if (configuration.charges && type === 'ToolCompleted') continue;
    if (configuration.misplaced || !ignored.has(`${state.name}/${type}`))
      labels.push(fate(make(at, old, state)));
  }
  return labels;
};

/**
 * Late usage reports, also costly ones: for ended requests, alone or with a reply, and for running
 * work.
 */
const usageReports = (
  { state, now: at, costlyLeft }: ExplorationNode,
  { settings }: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { unaccounted } = state.session;
  const current = currentIds(state);
  const isCostly = costlyLeft > 0;
  const usage = isCostly ? usageFor('costly', settings.limits) : noUsage;
  const labels = [fate({ type: 'UsageReported', at, usageId: 'req-0', usage })];
  const running = unaccounted.find((id) => current.includes(id));
  if (running !== undefined)
    labels.push(fate({ type: 'UsageReported', at, usageId: running, usage }, isCostly));
  const over = unaccounted.find((id) => isRequest(id) && !current.includes(id));
  if (over === undefined) return labels;
  labels.push(fate({ type: 'UsageReported', at, usageId: over, usage }, isCostly));
  const { message } = lateReply;
  labels.push(
    fate(
      { type: 'LlmCompleted', at, requestId: over, message, calls: [], stopReason: 'end', usage },
      isCostly,
    ),
  );
  return labels;
};

export const isRequest = (id: string): boolean => id.startsWith(words.request);

// ---- Twice ----

const duplicates = (state: State, at: number): readonly ExplorationEvent[] =>
  state.name === 'ExecutingTools' ? callDuplicates(state, at) : [];

/** Duplicate and premature events about a call. */
const callDuplicates = (state: In<'ExecutingTools'>, at: number): readonly ExplorationEvent[] => {
  const { batchId, calls } = state;
  const labels: ExplorationEvent[] = [];
  for (const call of calls) {
    const about = { at, batchId, callId: call.judged.callId };
    if (call.status !== 'starting') labels.push(fate({ type: 'ToolStarted', ...about }));
    if (call.status !== 'awaitingApproval')
      labels.push(
        fate({ type: 'ApprovalAnswered', ...about, answer: { kind: 'allow' }, scope: 'once' }),
      );
    if (call.status !== 'previewing')
      labels.push(fate({ type: 'CallPreviewed', ...about, preview: { kind: 'none' } }));
    if (!isRunning(call))
      labels.push(
        fate({ type: 'ToolCompleted', ...about, outcome: { status: 'failed', text: 'again' } }),
      );
    labels.push(fate({ type: 'ToolProgress', ...about, text: '…' }));
    if (isEnded(call)) labels.push(fate({ type: 'CancelTool', ...about }));
  }
  return labels;
};

/** Events that most states ignore; the others are among the late ones. */
const misplaced = (at: number): readonly ExplorationEvent[] => [
  fate({ type: 'EditQueue', at, items: [] }),
  fate({ type: 'Start', at }),
  fate({ type: 'RetryLast', at }),
  fate({ type: 'RetryNow', at }),
  fate({ type: 'CompactRequested', at }),
  fate({ type: 'InputFailed', at, message: 'broken' }),
  fate({ type: 'UserHooksRan', at, moment: 'ask-user', requestId: null, verdicts: [] }),
];
