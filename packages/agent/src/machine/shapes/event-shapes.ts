import {
  amount,
  bool,
  count,
  type Fields,
  finite,
  list,
  nullable,
  object,
  oneOf,
  optional,
  type Shape,
  share,
  text,
  variant,
} from '@pawl/machine/kernel/shape';
import type { EndedStatus } from '../call.js';
import type {
  ApprovalAnswer,
  ApprovalScope,
  CarriedCall,
  CarriedSession,
  CarriedWork,
  Event,
  EventType,
  HookEffect,
  InputMode,
  MachineUpgrade,
  On,
  QueuedInput,
  StoppedCall,
  UserEvent,
} from '../event.js';
import type { ReportedMoment } from '../values/hook-verdict.js';
import { judgedCallShape } from './call-shapes.js';
import { dimensionShape, grantShape, limitShape, settingsPatchShape } from './settings-shapes.js';
import {
  assistantShape,
  imageShape,
  messageShape,
  modelErrorShape,
  outcomeShape,
  previewShape,
  pricesShape,
  seenShape,
  stopReasonShape,
  usageShape,
  verdictsShape,
} from './value-shapes.js';

/** Shapes of the machine's events. An event of another shape is refused and changes nothing. */

const mode = oneOf<InputMode>({ steer: 1, followUp: 1 });
const images = optional(list(imageShape));
const queued: Shape<QueuedInput> = object<QueuedInput>({ inputId: text, text, mode, images });
const call = { batchId: text, callId: text };
const piece = { requestId: text, text };
const firstPieceAt = optional(finite);

const carriedCallShape: Shape<CarriedCall> = object<CarriedCall>({
  judged: judgedCallShape,
  requestedAt: finite,
  startedAt: nullable(finite),
  ended: optional(
    object<NonNullable<CarriedCall['ended']>>({
      status: oneOf<EndedStatus>({
        ok: 1,
        failed: 1,
        timedOut: 1,
        cancelled: 1,
        interrupted: 1,
        lost: 1,
        noSuchTool: 1,
        invalid: 1,
        denied: 1,
        truncated: 1,
        skipped: 1,
      }),
      ran: bool,
      at: finite,
      text,
      images,
    }),
  ),
});

const upgradeShape: Shape<MachineUpgrade> = object<MachineUpgrade>({
  from: count,
  to: count,
  session: optional(
    object<CarriedSession>({
      messages: list(messageShape),
      queue: list(queued),
      usage: object<CarriedSession['usage']>({
        inputTokens: amount,
        outputTokens: amount,
        cacheReadTokens: amount,
        cacheWriteTokens: amount,
        costUsd: amount,
        unpriced: count,
      }),
      work: variant<CarriedWork, 'kind'>('kind', {
        nothing: {},
        closed: {},
        request: {},
        calls: { batchId: text, calls: list(carriedCallShape) },
      }),
      idsFrom: count,
      at: finite,
    }),
  ),
});

type FieldsOf<T extends EventType> = { readonly [K in T]: Fields<Omit<On<K>, 'type' | 'at'>> };

/** Fields of the events that users and programs send, without type and time. */
const userFields: FieldsOf<UserEvent['type']> = {
  Start: {},
  UserInput: { text, mode, images },
  RetryLast: {},
  RetryNow: {},
  CancelTurn: {},
  CancelTool: call,
  EditQueue: { items: list(queued) },
  CompactRequested: { instructions: optional(text) },
  ApproveBudget: { dimension: dimensionShape, limit: limitShape },
  ApprovalAnswered: {
    ...call,
    answer: variant<ApprovalAnswer, 'kind'>('kind', { allow: {}, deny: { reason: text } }),
    scope: oneOf<ApprovalScope>({ once: 1, shape: 1, prefix: 1, session: 1 }),
  },
  SettingsChanged: {
    patch: settingsPatchShape,
    prices: optional(nullable(pricesShape)),
    grants: optional(list(grantShape)),
    stoppedAt: optional(count),
  },
  ShutdownRequested: { outcomes: optional(list(object<StoppedCall>({ ...call, outcome: outcomeShape }))) },
  InputFailed: { message: text },
};

/** Fields of all events, without type and time. */
export const eventFields: FieldsOf<EventType> = {
  ...userFields,
  TextDelta: piece,
  ReasoningDelta: piece,
  ToolCallDelta: { ...piece, tool: text },
  LlmCompleted: {
    requestId: text,
    message: nullable(assistantShape),
    calls: list(judgedCallShape),
    stopReason: stopReasonShape,
    usage: usageShape,
    firstPieceAt,
    hooks: optional(verdictsShape),
  },
  LlmFailed: {
    requestId: text,
    error: modelErrorShape,
    usage: nullable(usageShape),
    jitter: share,
    firstPieceAt,
  },
  PolicyStopped: { requestId: text, why: text },
  CallPreviewed: { ...call, preview: previewShape },
  ToolStarted: { ...call, before: optional(text), after: optional(text) },
  ToolProgress: { ...call, text },
  ToolCompleted: { ...call, outcome: outcomeShape },
  ToolsFailed: { batchId: text, message: text },
  HookPrepared: {
    hookId: text,
    effect: variant<HookEffect, 'kind'>('kind', {
      file: { path: text, before: text, after: text },
      commit: { gitFolder: text, claim: text, ref: text, before: nullable(text), commit: text },
    }),
  },
  HookCompleted: {
    hookId: text,
    commits: list(object<{ readonly hash: string; readonly subject: string }>({ hash: text, subject: text })),
    changedFiles: list(text),
    dirty: bool,
    note: text,
    warning: text,
    proceed: bool,
    usage: nullable(usageShape),
    seen: optional(seenShape),
  },
  HookFailed: { hookId: text, message: text },
  TimerFired: { timerId: text },
  CompactionCompleted: {
    compactionId: text,
    summary: text,
    usage: usageShape,
    hooks: optional(verdictsShape),
  },
  CompactionFailed: {
    compactionId: text,
    message: text,
    usage: nullable(usageShape),
    hooks: optional(verdictsShape),
  },
  UsageReported: { usageId: text, usage: usageShape, fault: optional(text) },
  UserHooksRan: {
    moment: oneOf<ReportedMoment>({
      'session-start': 1,
      'session-end': 1,
      'after-batch': 1,
      'before-request': 1,
      'ask-user': 1,
    }),
    requestId: nullable(text),
    verdicts: verdictsShape,
  },
  Resumed: {
    epoch: count,
    stoppedAt: optional(count),
    upgrade: optional(upgradeShape),
    judged: optional(list(judgedCallShape)),
  },
};

/** Every event, with its time. */
export const eventShape: Shape<Event> = variant<Event, 'type'>(
  'type',
  Object.fromEntries(
    Object.entries(eventFields).map(([type, fields]) => [type, { at: finite, ...fields }]),
  ) as never, // the same types, each with the field that all have
);

type Untimed = UserEvent extends infer E ? (E extends unknown ? Omit<E, 'at'> : never) : never;
/** The shape of an event that a user may send, without its time. */
export const inputShape: Shape<Untimed> = variant<Untimed, 'type'>('type', userFields as never); // of the same types
