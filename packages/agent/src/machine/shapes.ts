/** Shapes of events and of the values in them. An event of another shape is refused and changes nothing. */

import {
  amount,
  bool,
  count,
  countFromOne,
  countTo,
  either,
  type Fields,
  finite,
  isRecord,
  jsonObject,
  list,
  nullable,
  object,
  oneOf,
  optional,
  partly,
  type Shape,
  share,
  text,
  variant,
} from '@pawl/machine/kernel/shape';
import type { HookDecision, HookVerdict, HookVerdicts, ReportedMoment } from '../policy/hook-verdict.js';
import type { CommandPlace, Decision, PolicyRule, Preset, WrittenRule } from '../policy/presets.js';
import type {
  CallFacts,
  CallOutcome,
  CallPreview,
  CallTraits,
  CallVerdict,
  EndedStatus,
  JudgedCall,
  McpToolName,
  Needs,
  ParsedCommand,
  SeenFile,
  ShellFacts,
} from './call.js';
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
  ModelError,
  ModelErrorKind,
  On,
  QueuedInput,
  StoppedCall,
  StopReason,
  UserEvent,
} from './event.js';
import type {
  AssistantMessage,
  AssistantPart,
  AssistantText,
  CallPart,
  Image,
  JsonObject,
  Message,
  TextOrigin,
  UserMessage,
} from './message.js';
import type { Dimension, Effort, Grant, Limits, RetrySchedule, SandboxLevel, Settings } from './settings.js';
import type { Limit, Prices, Usage } from './usage.js';

/** What hooks said. */
const verdictsShape: Shape<HookVerdicts> = list(
  object<HookVerdict>({
    hook: text,
    decision: oneOf<HookDecision>({ allow: 1, ask: 1, deny: 1 }),
    reason: optional(text),
    note: optional(text),
    fault: optional(text),
  }),
);

export const jsonShape: Shape<JsonObject> = jsonObject<JsonObject>();

/** More tokens than any model call has: a larger count is a counting error. */
const tokens = countTo(1_000_000_000);
/** Token counts of a model call; the same fields in a model's report and in an event. */
export const tokenFields: Fields<Omit<Usage, 'costUsd'>> = {
  inputTokens: tokens,
  outputTokens: tokens,
  cacheReadTokens: tokens,
  cacheWriteTokens: tokens,
};
export const usageShape: Shape<Usage> = object<Usage>({ ...tokenFields, costUsd: nullable(amount) });
export const pricesShape: Shape<Prices> = object<Prices>({
  input: amount,
  output: amount,
  cacheRead: amount,
  cacheWrite: amount,
});

const imageShape: Shape<Image> = object<Image>({
  mediaType: oneOf({ 'image/png': 1, 'image/jpeg': 1, 'image/gif': 1, 'image/webp': 1 }),
  sha256: text,
  base64: optional(text),
});
const images = optional(list(imageShape));

export const textPartFields: Fields<Omit<AssistantText, 'type'>> = {
  text,
  metadata: optional(jsonShape),
};
const callPartFields: Fields<Omit<CallPart, 'type'>> = {
  callId: text,
  tool: text,
  input: jsonShape,
  rawInput: optional(text),
  metadata: optional(jsonShape),
};
export const assistantShape: Shape<AssistantMessage> = object<AssistantMessage>({
  role: oneOf({ assistant: 1 }),
  model: text,
  cut: bool,
  parts: list(
    variant<AssistantPart, 'type'>('type', {
      text: textPartFields,
      reasoning: textPartFields,
      call: callPartFields,
    }),
  ),
});

const userShape: Shape<UserMessage> = object<UserMessage>({
  role: oneOf({ user: 1 }),
  parts: list(
    variant<UserMessage['parts'][number], 'type'>('type', {
      text: { origin: oneOf<TextOrigin>({ user: 1, note: 1, summary: 1 }), text, images },
      result: { callId: text, tool: text, failed: bool, text, images },
    }),
  ),
});
export const messageShape: Shape<Message> = {
  check: (value) => (isRecord(value) && value.role === 'assistant' ? assistantShape : userShape).check(value),
};

export const stopReasonShape: Shape<StopReason> = oneOf<StopReason>({
  end: 1,
  toolUse: 1,
  maxTokens: 1,
  refusal: 1,
  contentFilter: 1,
  other: 1,
});
export const modelErrorShape: Shape<ModelError> = object<ModelError>({
  kind: oneOf<ModelErrorKind>({
    rateLimited: 1,
    overloaded: 1,
    unreachable: 1,
    timeout: 1,
    contextOverflow: 1,
    auth: 1,
    badRequest: 1,
    quotaExhausted: 1,
    refused: 1,
    malformed: 1,
  }),
  message: text,
  retryable: bool,
  retryAfterMs: nullable(finite),
});

const needsShape: Shape<Needs> = oneOf<Needs>({ network: 1, outside: 1, repository: 1 });

export const traitsShape: Shape<CallTraits> = object<CallTraits>({
  effect: oneOf({ pure: 1, probeable: 1, opaque: 1 }),
  parallelSafe: bool,
  mutating: bool,
  deadlineMs: finite,
  spends: optional(oneOf({ yes: 1 })),
  previews: optional(oneOf({ yes: 1 })),
  group: optional(oneOf({ fileChanges: 1 })),
  shown: optional(oneOf({ list: 1 })),
});

const seenShape: Shape<readonly SeenFile[]> = list(object<SeenFile>({ path: text, sha256: text }));

/** Fields of the outcome that a tool itself reports. */
export const outcomeFields: Fields<Omit<CallOutcome, 'blob' | 'seen' | 'hooks'>> = {
  status: oneOf({ ok: 1, failed: 1, timedOut: 1, cancelled: 1, lost: 1 }),
  text,
  summary: optional(text),
  images,
  diff: optional(text),
  ran: optional(oneOf({ no: 1 })),
  usage: optional(usageShape),
};
const outcomeShape: Shape<CallOutcome> = object<CallOutcome>({
  ...outcomeFields,
  blob: optional(text),
  seen: optional(seenShape),
  hooks: optional(verdictsShape),
});

export const previewShape: Shape<CallPreview> = variant<CallPreview, 'kind'>('kind', {
  change: { diff: text },
  refused: { text },
  none: {},
});

/** The shape of a judged call: the runtime's facts about a call, on which the machine decides. */

const words = list(text);

const commandShape: Shape<ParsedCommand> = object<ParsedCommand>({
  words: list(nullable(text)),
  assignments: words,
  writes: list(nullable(text)),
  appends: optional(list(count)),
  patterns: optional(list(nullable(text))),
  program: nullable(text),
  runs: optional(count),
  mayRun: optional(count),
  wrapped: optional(oneOf({ yes: 1 })),
});
const shellShape: Shape<ShellFacts> = object<ShellFacts>({
  commands: list(commandShape),
  unclear: nullable(text),
  indirect: optional(text),
});

export const factsShape: Shape<CallFacts> = object<CallFacts>({
  argv: words,
  paths: words,
  hosts: words,
  shape: text,
  needs: optional(needsShape),
  shell: optional(shellShape),
  protected: optional(words),
  secret: optional(words),
  unrecoverable: optional(words),
  background: optional(oneOf({ yes: 1 })),
  mcp: optional(
    object<McpToolName>({
      server: text,
      tool: text,
      from: optional(oneOf({ project: 1 })),
      declaration: optional(oneOf({ changed: 1 })),
    }),
  ),
});

/** Fields of the verdict on a call that can't start. */
export const invalidFields: Fields<Omit<Extract<CallVerdict, { readonly kind: 'invalid' }>, 'kind'>> = {
  field: text,
  why: text,
};

const judgedCallShape: Shape<JudgedCall> = object<JudgedCall>({
  callId: text,
  tool: text,
  input: jsonShape,
  rawInput: optional(text),
  verdict: variant<CallVerdict, 'kind'>('kind', {
    ok: {},
    noSuchTool: { known: words },
    invalid: invalidFields,
  }),
  traits: traitsShape,
  facts: factsShape,
  title: optional(text),
  hooks: optional(verdictsShape),
});

/** Shapes of settings, limits, rules and grants. They refuse only numbers that would stop a session. */

const ruleWords = list(text);
const decision = oneOf<Decision>({ allow: 1, ask: 1, deny: 1 });

const dimensionShape: Shape<Dimension> = oneOf<Dimension>({
  usd: 1,
  tokens: 1,
  time: 1,
  rounds: 1,
  truncation: 1,
  repeats: 1,
  errors: 1,
  sameResults: 1,
});

/** A number below 0 passes: the table refuses it, so that the user is told. */
export const limitShape: Shape<Limit> = either(finite, oneOf({ unlimited: 1 }));
const setLimit: Shape<Limit> = either(amount, oneOf({ unlimited: 1 }));
const limitFields: Fields<Limits> = {
  usd: setLimit,
  tokens: setLimit,
  timeMs: setLimit,
  rounds: setLimit,
  truncation: setLimit,
  repeats: setLimit,
  errors: setLimit,
  sameResults: setLimit,
};

const scheduleShape: Shape<RetrySchedule> = variant<RetrySchedule, 'kind'>('kind', {
  linear: { stepMs: amount },
  exponential: { baseMs: amount, factor: amount, capMs: amount, jitter: optional(amount) },
  list: { delaysMs: list(amount) },
});

const ruleShape: Shape<PolicyRule> = object<PolicyRule>({
  decision,
  tool: text,
  where: oneOf({ inside: 1, outside: 1, anywhere: 1 }),
  touches: oneOf({ reads: 1, mutates: 1, anything: 1 }),
  hosts: optional(ruleWords),
  runs: optional(oneOf<CommandPlace>({ sandboxed: 1, leaving: 1, unfenced: 1, missing: 1, mcpServer: 1 })),
  unrecoverable: optional(oneOf({ yes: 1 })),
  why: text,
  unattended: optional(text),
});

const writtenShape: Shape<WrittenRule> = variant<WrittenRule, 'kind'>('kind', {
  command: { words: ruleWords, needs: optional(needsShape), decision, origin: text },
  path: { pattern: text, touches: oneOf({ reads: 1, anything: 1 }), decision, origin: text },
  host: { pattern: text, decision, origin: text },
  mcp: { pattern: text, decision, origin: text },
});

const grantOwn = { tool: text, needs: optional(needsShape) };
const grantShape: Shape<Grant> = variant<Grant, 'scope'>('scope', {
  shape: { shape: text, ...grantOwn },
  prefix: { words: ruleWords, ...grantOwn },
  session: { group: optional(oneOf({ fileChanges: 1 })), ...grantOwn },
});

const onOff = oneOf({ on: 1, off: 1 });

const settingFields: Fields<Settings> = {
  model: text,
  workspace: text,
  maxRetries: count,
  retrySchedule: scheduleShape,
  retryJitterMs: amount,
  retryAfterCapMs: amount,
  emptyRetries: count,
  firstByteMs: amount,
  silenceMs: amount,
  windowTokens: countFromOne,
  compactAtRatio: amount,
  compactMidRatio: amount,
  resultCutBytes: count,
  outputCutBytes: count,
  maxParallel: countFromOne,
  graceMs: amount,
  limits: object<Limits>(limitFields),
  budgetWarnRatio: share,
  atLimit: oneOf({ stop: 1, finish: 1 }),
  userPolicy: oneOf({ none: 1, ask: 1 }),
  autoRearm: onOff,
  queueOnCancel: oneOf({ hold: 1, restore: 1, send: 1 }),
  cancelMode: oneOf({ abort: 1, drain: 1 }),
  onAsk: oneOf({ ask: 1, deny: 1, stop: 1 }),
  hooks: oneOf<Settings['hooks']>({ mutating: 1, mutatingOk: 1, always: 1, never: 1 }),
  formatter: oneOf({ off: 1, onChanges: 1, onOneCommit: 1 }),
  autoCommit: onOff,
  rules: list(ruleShape),
  writtenRules: optional(list(writtenShape)),
  effort: optional(oneOf<Effort>({ auto: 1, low: 1, medium: 1, high: 1 })),
  preset: optional(oneOf<Preset>({ plan: 1, careful: 1, auto: 1, ci: 1 })),
  sandbox: optional(
    oneOf<SandboxLevel | 'missing'>({ workspace: 1, 'workspace+net': 1, 'read-only': 1, off: 1, missing: 1 }),
  ),
};

/** Settings in the header of a journal. Those of earlier versions lack some fields. */
export const recordedSettingsShape: Shape<Partial<Settings>> = object<
  Partial<Omit<Settings, 'limits'>> &
    Pick<Settings, 'model' | 'workspace' | 'rules'> & { limits: Partial<Limits> }
>({
  ...partly<Settings>(settingFields),
  model: text,
  workspace: text,
  rules: list(ruleShape),
  limits: object<Partial<Limits>>(partly<Limits>(limitFields)),
}) as unknown as Shape<Partial<Settings>>; // the same fields, limits in part

export const settingsPatchShape: Shape<Partial<Settings>> = object<Partial<Settings>>(
  partly<Settings>(settingFields),
);

/** Shapes of the machine's events. An event of another shape is refused and changes nothing. */

const mode = oneOf<InputMode>({ steer: 1, followUp: 1 });
const imageList = optional(list(imageShape));
const queued: Shape<QueuedInput> = object<QueuedInput>({ inputId: text, text, mode, images: imageList });
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
      images: imageList,
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
  UserInput: { text, mode, images: imageList },
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
