/**
 * Every event that can happen in a node of an exploration.
 *
 * An exploration walks every way through the agent's machine, in a bounded world without a model or
 * tools: this file stands for both. A node is a state of the machine with the rest of that world
 * (exploration-node.ts). A configuration says which kinds of replies, failures and outcomes come
 * (configuration.ts). Each event is tagged with who sends it: `world` (a response to work in
 * flight), `user`, or `fate` (a late, duplicate or misplaced event, a fault, a crash).
 *
 * From top to bottom: responses to all work in flight (model call, tools, hooks, compactions,
 * rewinds); events of the user; and those of `fate`. `In<N>` is the state of the name N, `On<T>`
 * the event of the type T.
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
import { isEnded, isRunning } from '@pawl/agent/machine/moves/batch-calls';
import { isSpending } from '@pawl/agent/machine/moves/tool-batch';
import { defaultSettings, type Limit, noUsage } from '@pawl/agent/machine/settings';
import type { In, State } from '@pawl/agent/machine/state';
import { inFlight } from '../invariants.js';
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
  const afterDue = responses.map((one) => ({ ...one, event: { ...one.event, at: dueAt } }));
  return [...responses, ...afterDue, fires];
};

const createResponses = (
  node: ExplorationNode,
  context: ExplorationContext,
): readonly ExplorationEvent[] => {
  // Where requests cost money, charges.ts makes the responses of most states.
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
      // `prepared`: effects that the hook has announced so far. One is enough, see below.
      return [
        ...(state.prepared === undefined ? [world(createPreparation(state.hookId, at))] : []),
        ...context.configuration.hooks.map((choice) =>
          world(createHookResponse(state.hookId, at, choice)),
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

/** Every reply with text begins with it: the machine must not show that text a second time. */
const streamedText = 'y';

const modelResponses = (
  state: In<'CallingLlm'>,
  node: ExplorationNode,
  { configuration, replies }: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { requestId, partial } = state;
  const at = node.now;
  // Costly replies come near to the limit in dollars or tokens, or cross it. Only `costlyLeft` more
  // may come, so that the sums stay finite.
  const events = replies
    .filter(({ costly }) => !costly || node.costlyLeft > 0)
    .map(({ costly, ...reply }) =>
      world({ type: 'LlmCompleted', at, requestId, ...reply }, costly),
    );
  for (const choice of configuration.failures)
    events.push(world(createModelFailure(requestId, at, choice)));
  if (!configuration.streams) return events;
  // More streamed text would lead to the same node.
  if (partial === '') events.push(world({ type: 'TextDelta', at, requestId, text: ' ' }));
  if (partial.trim() === '')
    events.push(world({ type: 'TextDelta', at, requestId, text: streamedText }));
  events.push(world({ type: 'ReasoningDelta', at, requestId, text: streamedText }));
  events.push(world({ type: 'ToolCallDelta', at, requestId, tool: 'grep', text: streamedText }));
  return events;
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
  picture: {
    kind: 'badRequest',
    message: 'no image',
    retryable: false,
    retryAfterMs: null,
    about: 'picture',
  },
};

/** `heldBack`: the user's stopping policy refused the request before it was sent. */
const createModelFailure = (requestId: string, at: number, choice: FailureChoice): Event =>
  choice === 'heldBack'
    ? { type: 'PolicyStopped', at, requestId, why: 'enough' }
    : { type: 'LlmFailed', at, requestId, error: modelErrors[choice], usage: null, jitter: 0 };

// ---- Tools ----

/** Longer than a result may be when a conversation that is too long is sent again (200 bytes). */
const longText = 'long '.repeat(100).trim();

/** How calls end. `spent` is made below: its usage depends on the limits. */
const outcomes: Readonly<Record<Exclude<OutcomeChoice, 'spent'>, CallOutcome>> = {
  ok: { status: 'ok', text: 'done' },
  long: { status: 'ok', text: longText },
  picture: {
    status: 'ok',
    text: 'shown',
    images: [{ mediaType: 'image/png', sha256: 'a'.repeat(64) }],
  },
  failed: { status: 'failed', text: 'broken' },
  timedOut: { status: 'timedOut', text: '' },
  cancelled: { status: 'cancelled', text: '' },
  lost: { status: 'lost', text: '' },
};

/** Previews of a call. One of the kind `none` leads to the same question as a change. */
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
  const events: ExplorationEvent[] = [];
  for (const call of state.calls) {
    const { callId } = call.judged;
    if (call.status === 'previewing')
      for (const preview of previews)
        events.push(world({ type: 'CallPreviewed', at, batchId, callId, preview }));
    if (!isRunning(call)) continue;
    if (call.status === 'starting')
      events.push(world({ type: 'ToolStarted', at, batchId, callId }));
    for (const choice of configuration.outcomes) {
      const ended = { type: 'ToolCompleted', at, batchId, callId } as const;
      if (choice !== 'spent') events.push(world({ ...ended, outcome: outcomes[choice] }));
      // A call that makes model calls itself reports that they crossed the limit.
      else if (isSpending(call.judged) && costlyLeft > 0)
        events.push(
          world(
            { ...ended, outcome: { ...outcomes.ok, usage: usageFor('costly', settings.limits) } },
            true,
          ),
        );
    }
    // The time in which a cancelled call may end by itself is over. Below: for a cancelled turn.
    if (call.graceTimerId !== null)
      events.push(world({ type: 'TimerFired', at, timerId: call.graceTimerId }));
  }
  if (state.phase.mode === 'cancelling' && state.phase.graceTimerId !== null)
    events.push(world({ type: 'TimerFired', at, timerId: state.phase.graceTimerId }));
  return events;
};

// ---- Hooks, compactions ----

/** `dirty`: files differ from the last commit. `proceed`: whether the turn may go on. */
const hookResults: Readonly<Record<Exclude<HookChoice, 'failed'>, Partial<On<'HookCompleted'>>>> = {
  clean: {},
  dirty: { dirty: true },
  changed: { changedFiles: ['a.ts'], dirty: true, note: 'formatted' },
  committed: { commits: [{ hash: 'abcdef0', subject: 'work' }], warning: 'look' },
  veto: { proceed: false },
};

/** Work after tools announces an effect. Once: further ones only make the list longer. */
const createPreparation = (hookId: string, at: number): Event => ({
  type: 'HookPrepared',
  at,
  hookId,
  effect: { kind: 'file', path: 'a.ts', before: 'rough', after: 'smooth' },
});

const createHookResponse = (hookId: string, at: number, choice: HookChoice): Event =>
  choice === 'failed'
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
        ...hookResults[choice],
      };

const compactionResponses = (compactionId: string, at: number): readonly ExplorationEvent[] => {
  return [
    world({ type: 'CompactionCompleted', at, compactionId, summary: 'so far', usage: noUsage }),
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

/**
 * To the beginning (`plan` names the stored changes of files), with and without files; and to more
 * messages than there are.
 */
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

// ---- Events of the user ----

/** Events that the user may send in a node. */
export const userEvents = (
  node: ExplorationNode,
  context: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { state, now: at } = node;
  const { bounds, configuration } = context;
  const events = [
    ...inputs(state, at, context),
    ...edits(state, at),
    ...limits(state, at, context),
  ];
  // A bound of 0 rules out its kind of events.
  if (bounds.cancels > 0) events.push(user({ type: 'CancelTurn', at }));
  if (bounds.rewinds > 0) events.push(...rewinds(at));
  if (bounds.shutdowns > 0) {
    events.push(user({ type: 'ShutdownRequested', at }));
    if (state.name === 'ShuttingDown') events.push(user(createResumed(state, at)));
  }
  for (const patch of configuration.changes)
    events.push(user({ type: 'SettingsChanged', at, patch }));
  switch (state.name) {
    case 'Ready':
      return [...events, user({ type: 'Start', at })];
    case 'WaitingForUserInput':
      events.push(user({ type: 'RetryLast', at }));
      if (bounds.compactions > 0) events.push(user({ type: 'CompactRequested', at }));
      return events;
    case 'Error':
      return [...events, user({ type: 'RetryNow', at })];
    case 'ExecutingTools':
      return [...events, ...callEvents(state, at, context)];
    default:
      return events;
  }
};

/** The session is opened again: `epoch` counts the openings. */
const createResumed = (state: State, at: number): Event => ({
  type: 'Resumed',
  at,
  epoch: state.session.epoch + 1,
});

// ---- Text ----

/** Queued inputs: `steer` goes with the next request, `followUp` begins the next turn. */
const queued = (state: State, mode: InputMode): number => {
  let count = 0;
  for (const item of state.session.queue) if (item.mode === mode) count += 1;
  return count;
};

/** A unique text for each input, so that inputs can't be confused. */
const chooseInputText = (state: State): string => `text ${state.session.counters.input + 1}`;

const inputs = (state: State, at: number, { bounds }: ExplorationContext): ExplorationEvent[] => {
  const text = chooseInputText(state);
  // The machine refuses a blank text.
  const events = [user({ type: 'UserInput', at, text: ' ', mode: 'steer' })];
  // Only input begins a turn, so between turns one input is always possible.
  const isIdle =
    state.session.queue.length === 0 &&
    (state.name === 'Ready' || state.name === 'WaitingForUserInput');
  if (isIdle || queued(state, 'steer') < bounds.steers)
    events.push(user({ type: 'UserInput', at, text, mode: 'steer' }));
  if (queued(state, 'followUp') < bounds.followUps)
    events.push(user({ type: 'UserInput', at, text, mode: 'followUp' }));
  return events;
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

/** New values of the limits that are set, and an invalid one. */
const limits = (
  state: State,
  at: number,
  { configuration, settings }: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { usd, tokens, timeMs } = settings.limits;
  const raise = (dimension: 'usd' | 'tokens' | 'time', limit: Limit): ExplorationEvent =>
    user({ type: 'ApproveBudget', at, dimension, limit });
  const events: ExplorationEvent[] = [];
  if (usd !== 'unlimited' && !configuration.charges) events.push(raise('usd', raisedLimit));
  // Raises the limit, or takes that back.
  if (usd !== 'unlimited' && configuration.charges)
    events.push(raise('usd', otherLimit(state.session.settings.limits)));
  // 0 lifts a limit.
  if (tokens !== 'unlimited') events.push(raise('tokens', 0));
  if (timeMs !== 'unlimited')
    events.push(
      raise('time', state.session.settings.limits.timeMs === timeMs ? timeMs * 2 : timeMs),
    );
  if (state.name === 'WaitingForUserInput') events.push(raise('usd', -1));
  return events;
};

// ---- Calls ----

const callEvents = (
  state: In<'ExecutingTools'>,
  at: number,
  context: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { batchId, calls } = state;
  const { bounds, configuration } = context;
  const events: ExplorationEvent[] = [];
  for (const call of calls) {
    if (isEnded(call)) continue;
    const { callId } = call.judged;
    if (bounds.cancels > 0) events.push(user({ type: 'CancelTool', at, batchId, callId }));
    if (call.status !== 'awaitingApproval') continue;
    const answer = (
      event: Pick<Extract<Event, { type: 'ApprovalAnswered' }>, 'answer' | 'scope'>,
    ): ExplorationEvent => user({ type: 'ApprovalAnswered', at, batchId, callId, ...event });
    for (const scope of configuration.scopes)
      events.push(answer({ answer: { kind: 'allow' }, scope }));
    events.push(answer({ answer: { kind: 'deny', reason: 'not this' }, scope: 'once' }));
    if (call.judged.traits.asks !== undefined)
      events.push(answer({ answer: { kind: 'reply', text: 'this' }, scope: 'once' }));
  }
  return events;
};

// ---- Adversarial events ----

/** A jump of the clock beyond every timer. */
const JUMP_MS = 86_400_000;

/** Late and duplicate responses, runtime faults, crashes. */
export const adversarialEvents = (
  node: ExplorationNode,
  context: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { bounds, configuration } = context;
  const { state, now: at } = node;
  const events: ExplorationEvent[] = [];
  if (bounds.crashes > 0 && state.name !== 'ShuttingDown')
    events.push(fate(createResumed(state, at)));
  if (bounds.crashes > 0 && configuration.clockJumps && state.name !== 'ShuttingDown')
    // Back to the start of the exploration, and forward.
    for (const then of [0, at + JUMP_MS]) events.push(fate(createResumed(state, then)));
  if (bounds.late > 0) events.push(...lateResponses(node, context));
  if (bounds.late > 0)
    events.push(...(configuration.charges ? chargeReports(node) : usageReports(node, context)));
  if (bounds.rewinds > 0) events.push(...checkpoints(at));
  if (bounds.duplicates > 0) events.push(...duplicates(state, at));
  if (state.name === 'WaitingForUserInput')
    events.push(fate({ type: 'InputFailed', at, message: 'broken' }));
  if (state.name === 'ExecutingTools')
    events.push(fate({ type: 'ToolsFailed', at, batchId: state.batchId, message: 'broken' }));
  return configuration.misplaced ? [...events, ...misplaced(at)] : events;
};

/**
 * The checkpoint of a batch, which may come in any state: the turn goes on while files are stored.
 * And the end of a rewind that is long over.
 */
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

// ---- Late events ----

const idPrefixes = {
  request: 'req',
  batch: 'batch',
  timer: 'timer',
  hook: 'hook',
  compaction: 'compaction',
} as const;

/**
 * The newest id of a kind that is neither among `current`, the ids in flight, nor waits for its
 * usage (`unaccounted`). The counters begin with 1, so `req-0` never existed.
 */
const oldId = (
  { session }: State,
  kind: keyof typeof idPrefixes,
  current: readonly string[],
): string => {
  for (let count = session.counters[kind]; ; count--) {
    const id = `${idPrefixes[kind]}-${count}`;
    if (!current.includes(id) && !session.unaccounted.includes(id)) return id;
  }
};

/** `inFlight` gives the kind of the work with its ids: `call batch-1 c1`. */
const currentIds = (state: State): readonly string[] =>
  inFlight(state).flatMap((one) => one.split(' '));

/** Finds an id of a kind that is over: see `oldId`. */
type FindOldId = (kind: keyof typeof idPrefixes) => string;
type LateEvents = {
  readonly [T in EventType]?: (at: number, oldIdFor: FindOldId, state: State) => On<T>;
};

const lateReply = { ...createReply({ text: 'yes' }, defaultSettings.limits), usage: noUsage };
const lateError = {
  kind: 'overloaded',
  message: 'busy',
  retryable: true,
  retryAfterMs: null,
} as const;
const lateCall = (at: number, oldIdFor: FindOldId) => ({
  at,
  batchId: oldIdFor('batch'),
  callId: 'c1',
});

/** One late response for each kind of event that answers something. */
const lateEvents: LateEvents = {
  TextDelta: (at, oldIdFor) => ({
    type: 'TextDelta',
    at,
    requestId: oldIdFor('request'),
    text: 'y',
  }),
  LlmCompleted: (at, oldIdFor) => ({
    type: 'LlmCompleted',
    at,
    requestId: oldIdFor('request'),
    usage: noUsage,
    message: lateReply.message,
    calls: [],
    stopReason: 'end',
  }),
  LlmFailed: (at, oldIdFor) => ({
    type: 'LlmFailed',
    at,
    requestId: oldIdFor('request'),
    error: lateError,
    usage: null,
    jitter: 0,
  }),
  ReasoningDelta: (at, oldIdFor) => ({
    type: 'ReasoningDelta',
    at,
    requestId: oldIdFor('request'),
    text: 'y',
  }),
  ToolCallDelta: (at, oldIdFor) => ({
    type: 'ToolCallDelta',
    at,
    requestId: oldIdFor('request'),
    tool: 'grep',
    text: 'y',
  }),
  PolicyStopped: (at, oldIdFor) => ({
    type: 'PolicyStopped',
    at,
    requestId: oldIdFor('request'),
    why: 'enough',
  }),
  CallPreviewed: (at, oldIdFor) => ({
    type: 'CallPreviewed',
    ...lateCall(at, oldIdFor),
    preview: { kind: 'none' },
  }),
  ToolStarted: (at, oldIdFor) => ({ type: 'ToolStarted', ...lateCall(at, oldIdFor) }),
  ToolCompleted: (at, oldIdFor) => ({
    type: 'ToolCompleted',
    ...lateCall(at, oldIdFor),
    outcome: { status: 'ok', text: 'late' },
  }),
  ApprovalAnswered: (at, oldIdFor) => ({
    type: 'ApprovalAnswered',
    ...lateCall(at, oldIdFor),
    answer: { kind: 'allow' },
    scope: 'session',
  }),
  CancelTool: (at, oldIdFor) => ({ type: 'CancelTool', ...lateCall(at, oldIdFor) }),
  ToolsFailed: (at, oldIdFor) => ({
    type: 'ToolsFailed',
    at,
    batchId: oldIdFor('batch'),
    message: 'broken',
  }),
  HookPrepared: (at, oldIdFor) => ({
    type: 'HookPrepared',
    at,
    hookId: oldIdFor('hook'),
    effect: { kind: 'file', path: 'a.ts', before: 'rough', after: 'smooth' },
  }),
  HookCompleted: (at, oldIdFor) => ({
    type: 'HookCompleted',
    at,
    hookId: oldIdFor('hook'),
    commits: [],
    changedFiles: ['a.ts'],
    dirty: true,
    note: 'late',
    warning: '',
    proceed: false,
    usage: null,
  }),
  HookFailed: (at, oldIdFor) => ({
    type: 'HookFailed',
    at,
    hookId: oldIdFor('hook'),
    message: 'broken',
  }),
  TimerFired: (at, oldIdFor) => ({ type: 'TimerFired', at, timerId: oldIdFor('timer') }),
  CompactionCompleted: (at, oldIdFor) => ({
    type: 'CompactionCompleted',
    at,
    compactionId: oldIdFor('compaction'),
    summary: 'late',
    usage: noUsage,
  }),
  CompactionFailed: (at, oldIdFor) => ({
    type: 'CompactionFailed',
    at,
    compactionId: oldIdFor('compaction'),
    message: 'late',
    usage: null,
  }),
  RequestMeasured: (at, oldIdFor) => ({
    type: 'RequestMeasured',
    at,
    usageId: oldIdFor('request'),
    model: 'scripted/model',
    bytes: 1,
    images: 0,
    outputTokensMax: 1,
    prices: null,
  }),
  Resumed: (at, _old, { session }) => ({ type: 'Resumed', at, epoch: session.epoch }),
};

/**
 * Skips events for which the state has no edge, unless `misplaced` is set: they give only a
 * diagnostic.
 */
const lateResponses = (
  { state, now: at }: ExplorationNode,
  { ignored, configuration }: ExplorationContext,
): readonly ExplorationEvent[] => {
  const current = currentIds(state);
  const oldIdFor: FindOldId = (kind) => oldId(state, kind, current);
  const events: ExplorationEvent[] = [];
  for (const [type, make] of Object.entries(lateEvents)) {
    // A call that was charged says late what it cost: see charges.ts.
    if (configuration.charges && type === 'ToolCompleted') continue;
    if (configuration.misplaced || !ignored.has(`${state.name}/${type}`))
      events.push(fate(make(at, oldIdFor, state)));
  }
  return events;
};

/**
 * Late usage reports, also costly ones: for ended requests, alone or with a reply, and for
 * running work.
 */
const usageReports = (
  { state, now: at, costlyLeft }: ExplorationNode,
  { settings }: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { unaccounted } = state.session;
  const current = currentIds(state);
  const isCostly = costlyLeft > 0;
  const usage = isCostly ? usageFor('costly', settings.limits) : noUsage;
  const events = [fate({ type: 'UsageReported', at, usageId: 'req-0', usage })];
  const running = unaccounted.find((id) => current.includes(id));
  if (running !== undefined)
    events.push(fate({ type: 'UsageReported', at, usageId: running, usage }, isCostly));
  const ended = unaccounted.find((id) => isRequest(id) && !current.includes(id));
  if (ended === undefined) return events;
  events.push(fate({ type: 'UsageReported', at, usageId: ended, usage }, isCostly));
  const { message } = lateReply;
  events.push(
    fate(
      { type: 'LlmCompleted', at, requestId: ended, message, calls: [], stopReason: 'end', usage },
      isCostly,
    ),
  );
  return events;
};

export const isRequest = (id: string): boolean => id.startsWith(idPrefixes.request);

// ---- Duplicates ----

const duplicates = (state: State, at: number): readonly ExplorationEvent[] =>
  state.name === 'ExecutingTools' ? callDuplicates(state, at) : [];

/** Duplicate and premature events about a call. */
const callDuplicates = (state: In<'ExecutingTools'>, at: number): readonly ExplorationEvent[] => {
  const { batchId, calls } = state;
  const events: ExplorationEvent[] = [];
  for (const call of calls) {
    const about = { at, batchId, callId: call.judged.callId };
    if (call.status !== 'starting') events.push(fate({ type: 'ToolStarted', ...about }));
    if (call.status !== 'awaitingApproval')
      events.push(
        fate({ type: 'ApprovalAnswered', ...about, answer: { kind: 'allow' }, scope: 'once' }),
      );
    if (call.status !== 'previewing')
      events.push(fate({ type: 'CallPreviewed', ...about, preview: { kind: 'none' } }));
    if (!isRunning(call))
      events.push(
        fate({ type: 'ToolCompleted', ...about, outcome: { status: 'failed', text: 'again' } }),
      );
    events.push(fate({ type: 'ToolProgress', ...about, text: '…' }));
    if (isEnded(call)) events.push(fate({ type: 'CancelTool', ...about }));
  }
  return events;
};

/** Events that most states ignore. The other such events are among the late ones. */
const misplaced = (at: number): readonly ExplorationEvent[] => [
  fate({ type: 'EditQueue', at, items: [] }),
  fate({ type: 'Start', at }),
  fate({ type: 'RetryLast', at }),
  fate({ type: 'RetryNow', at }),
  fate({ type: 'CompactRequested', at }),
  fate({ type: 'InputFailed', at, message: 'broken' }),
  fate({ type: 'UserHooksRan', at, moment: 'ask-user', requestId: null, verdicts: [] }),
];
