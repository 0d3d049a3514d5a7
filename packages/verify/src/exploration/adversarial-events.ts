import type { EventType, On } from '@pawl/agent/machine/event';
import { inFlight } from '@pawl/agent/machine/invariants/in-flight-invariants';
import { isEnded, isRunning } from '@pawl/agent/machine/moves/tools/tool-batch';
import { defaultSettings } from '@pawl/agent/machine/settings';
import type { In, State } from '@pawl/agent/machine/state';
import { replyOf, usageFor } from './configurations/model-replies.js';
import {
  type ExplorationContext,
  type ExplorationEvent,
  type ExplorationNode,
  fate,
} from './exploration-node.js';
import { resumedAfter } from './user-events.js';

/** A jump of the clock beyond every timer. A jump back goes to the start of the exploration. */
const JUMP_MS = 86_400_000;

/** Adversarial events: late and duplicate responses, runtime faults, crashes. */

export const adversarialEvents = (
  node: ExplorationNode,
  scenery: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { bounds, configuration } = scenery;
  const { state, now: at } = node;
  const labels: ExplorationEvent[] = [];
  if (bounds.crashes > 0 && state.name !== 'ShuttingDown') labels.push(fate(resumedAfter(state, at)));
  if (bounds.crashes > 0 && configuration.clockJumps && state.name !== 'ShuttingDown')
    for (const then of [0, at + JUMP_MS]) labels.push(fate(resumedAfter(state, then)));
  if (bounds.late > 0) labels.push(...lateAnswers(node, scenery), ...bills(node, scenery));
  if (bounds.duplicates > 0) labels.push(...duplicates(state, at));
  if (state.name === 'WaitingForUserInput') labels.push(fate({ type: 'InputFailed', at, message: 'broken' }));
  if (state.name === 'ExecutingTools')
    labels.push(fate({ type: 'ToolsFailed', at, batchId: state.batchId, message: 'broken' }));
  return configuration.misplaced ? [...labels, ...misplaced(at)] : labels;
};

// ---- Late ----

const words = {
  request: 'req',
  batch: 'batch',
  timer: 'timer',
  hook: 'hook',
  compaction: 'compaction',
} as const;

/** The newest id of a kind that is not in flight and can't report usage any more; `req-0` never existed. */
const oldId = ({ session }: State, kind: keyof typeof words, current: readonly string[]): string => {
  for (let count = session.counters[kind]; ; count--) {
    const id = `${words[kind]}-${count}`;
    if (!current.includes(id) && !session.unaccounted.includes(id)) return id;
  }
};

const currentIds = (state: State): readonly string[] => inFlight(state).flatMap((one) => one.split(' '));

type Old = (kind: keyof typeof words) => string;
type Late = { readonly [T in EventType]?: (at: number, old: Old, state: State) => On<T> };

const noUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, costUsd: 0 };
const lateReply = { ...replyOf({ text: 'yes' }, defaultSettings.limits), usage: noUsage };
const lateError = { kind: 'overloaded', message: 'busy', retryable: true, retryAfterMs: null } as const;
const aboutOld = (at: number, old: Old) => ({ at, batchId: old('batch'), callId: 'c1' });

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
  ReasoningDelta: (at, old) => ({ type: 'ReasoningDelta', at, requestId: old('request'), text: 'y' }),
  ToolCallDelta: (at, old) => ({
    type: 'ToolCallDelta',
    at,
    requestId: old('request'),
    tool: 'grep',
    text: 'y',
  }),
  PolicyStopped: (at, old) => ({ type: 'PolicyStopped', at, requestId: old('request'), why: 'enough' }),
  CallPreviewed: (at, old) => ({
    type: 'CallPreviewed',
    ...aboutOld(at, old),
    preview: { kind: 'none' },
  }),
  ToolStarted: (at, old) => ({ type: 'ToolStarted', ...aboutOld(at, old) }),
  ToolCompleted: (at, old) => ({
    type: 'ToolCompleted',
    ...aboutOld(at, old),
    outcome: { status: 'ok', text: 'late' },
  }),
  ApprovalAnswered: (at, old) => ({
    type: 'ApprovalAnswered',
    ...aboutOld(at, old),
    answer: { kind: 'allow' },
    scope: 'session',
  }),
  CancelTool: (at, old) => ({ type: 'CancelTool', ...aboutOld(at, old) }),
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
  Resumed: (at, _old, { session }) => ({ type: 'Resumed', at, epoch: session.epoch }),
};

/** Leaves out pairs without an edge, which give only a diagnostic, unless misplaced events are wanted. */
const lateAnswers = (
  { state, now: at }: ExplorationNode,
  { ignored, configuration }: ExplorationContext,
): readonly ExplorationEvent[] => {
  const current = currentIds(state);
  const old: Old = (kind) => oldId(state, kind, current);
  const labels: ExplorationEvent[] = [];
  for (const [type, make] of Object.entries(lateEvents)) {
    if (configuration.misplaced || !ignored.has(`${state.name}/${type}`))
      labels.push(fate(make(at, old, state)));
  }
  return labels;
};

/** Late usage reports, also costly ones: for ended requests, alone or with a reply, and for running work. */
const bills = (
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
  state.name === 'ExecutingTools' ? duplicatesOfCalls(state, at) : [];

/** Duplicate and premature events about a call. */
const duplicatesOfCalls = (state: In<'ExecutingTools'>, at: number): readonly ExplorationEvent[] => {
  const { batchId, calls } = state;
  const labels: ExplorationEvent[] = [];
  for (const call of calls) {
    const about = { at, batchId, callId: call.judged.callId };
    if (call.status !== 'starting') labels.push(fate({ type: 'ToolStarted', ...about }));
    if (call.status !== 'awaitingApproval')
      labels.push(fate({ type: 'ApprovalAnswered', ...about, answer: { kind: 'allow' }, scope: 'once' }));
    if (call.status !== 'previewing')
      labels.push(fate({ type: 'CallPreviewed', ...about, preview: { kind: 'none' } }));
    if (!isRunning(call))
      labels.push(fate({ type: 'ToolCompleted', ...about, outcome: { status: 'failed', text: 'again' } }));
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
