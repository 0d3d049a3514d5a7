/**
 * Shapes of events and settings: checks that unknown JSON, such as a line of a journal, has a type.
 * Made by scripts/machine-shapes.ts (`npm run update`), so don't edit it: each shape comes from the
 * type of its name. The parts of a shape come first. In `oneOf` the keys are the allowed words.
 */

import {
  amount,
  bool,
  count,
  countFromOne,
  countTo,
  either,
  finite,
  type JsonObject,
  jsonObject,
  list,
  nullable,
  object,
  oneOf,
  optional,
  partly,
  share,
  text,
  variant,
} from '@pawl/machine/kernel/shape';
import type {
  CallEffect,
  CallFacts,
  CallTraits,
  CallVerdict,
  HookDecision,
  HookVerdict,
  JudgedCall,
  McpToolName,
  Needs,
  ParsedCommand,
  ReportedMoment,
  ShellFacts,
} from '../policy/judged-call.js';
import type { CommandPlace, Decision, PolicyRule, Preset, WrittenRule } from '../policy/presets.js';
import type { ApprovalScope, Grant } from '../policy/rules.js';
import type { CallOutcome, CallPreview, EndedStatus, SeenFile, ShownLines } from './call.js';
import type {
  ApprovalAnswer,
  CarriedCall,
  CarriedOutcome,
  CarriedSession,
  CarriedWork,
  ChangedPath,
  ChangeSummary,
  Event,
  FileLeft,
  HookEffect,
  InputMode,
  MachineUpgrade,
  ModelError,
  ModelErrorKind,
  QueuedInput,
  RewoundConversation,
  StoppedCall,
  StopReason,
} from './event.js';
import type {
  AssistantMessage,
  AssistantPart,
  Image,
  ImageType,
  Message,
  TextOrigin,
} from './message.js';
import type {
  Dimension,
  Effort,
  FallbackModel,
  Limits,
  ModelSettings,
  Prices,
  RetrySchedule,
  Settings,
  Usage,
  UsageTotals,
} from './settings.js';

const inputModeShape = oneOf<InputMode>({ steer: 1, followUp: 1 });
const imageTypeShape = oneOf<ImageType>({
  'image/png': 1,
  'image/jpeg': 1,
  'image/gif': 1,
  'image/webp': 1,
});
const imageShape = object<Image>({
  mediaType: imageTypeShape,
  sha256: text,
  base64: optional(text),
});
const queuedInputShape = object<QueuedInput>({
  inputId: text,
  text,
  mode: inputModeShape,
  images: optional(list(imageShape)),
});
const dimensionShape = oneOf<Dimension>({
  usd: 1,
  tokens: 1,
  time: 1,
  rounds: 1,
  truncation: 1,
  repeats: 1,
  errors: 1,
  sameResults: 1,
});
export const requestedLimitShape = either(finite, oneOf({ unlimited: 1 }));
const approvalAnswerShape = variant<ApprovalAnswer, 'kind'>('kind', {
  allow: {},
  deny: { reason: text },
  reply: { text },
});
const approvalScopeShape = oneOf<ApprovalScope>({ once: 1, shape: 1, prefix: 1, session: 1 });
const retryScheduleShape = variant<RetrySchedule, 'kind'>('kind', {
  linear: { stepMs: amount },
  exponential: { baseMs: amount, factor: amount, capMs: amount, jitter: optional(amount) },
  list: { delaysMs: list(amount) },
});
const limitShape = either(amount, oneOf({ unlimited: 1 }));
export const limitsShape = object<Limits>({
  usd: limitShape,
  tokens: limitShape,
  timeMs: limitShape,
  rounds: limitShape,
  truncation: limitShape,
  repeats: limitShape,
  errors: limitShape,
  sameResults: limitShape,
});
const decisionShape = oneOf<Decision>({ allow: 1, ask: 1, deny: 1 });
const commandPlaceShape = oneOf<CommandPlace>({
  sandboxed: 1,
  leaving: 1,
  unfenced: 1,
  missing: 1,
  mcpServer: 1,
});
const policyRuleShape = object<PolicyRule>({
  decision: decisionShape,
  tool: text,
  where: oneOf({ inside: 1, outside: 1, anywhere: 1 }),
  touches: oneOf({ reads: 1, mutates: 1, anything: 1 }),
  hosts: optional(list(text)),
  runs: optional(commandPlaceShape),
  unrecoverable: optional(oneOf({ yes: 1 })),
  why: text,
  unattended: optional(text),
});
const needsShape = oneOf<Needs>({ network: 1, outside: 1, repository: 1 });
const writtenRuleShape = variant<WrittenRule, 'kind'>('kind', {
  command: {
    words: list(text),
    needs: optional(needsShape),
    decision: decisionShape,
    origin: text,
    from: optional(oneOf({ project: 1, folder: 1 })),
  },
  path: {
    pattern: text,
    touches: oneOf({ reads: 1, anything: 1 }),
    decision: decisionShape,
    origin: text,
    from: optional(oneOf({ project: 1, folder: 1 })),
  },
  host: {
    pattern: text,
    decision: decisionShape,
    origin: text,
    from: optional(oneOf({ project: 1, folder: 1 })),
  },
  mcp: {
    pattern: text,
    decision: decisionShape,
    origin: text,
    from: optional(oneOf({ project: 1, folder: 1 })),
  },
});
const effortShape = oneOf<Effort>({ auto: 1, low: 1, medium: 1, high: 1, xhigh: 1, max: 1 });
const presetShape = oneOf<Preset>({ plan: 1, careful: 1, auto: 1, ci: 1, full: 1 });
export const pricesShape = object<Prices>({
  input: amount,
  output: amount,
  cacheRead: amount,
  cacheWrite: amount,
});
const fallbackModelShape = object<FallbackModel>({
  model: text,
  windowTokens: countFromOne,
  cancelMode: optional(oneOf({ abort: 1, drain: 1 })),
  prices: nullable(pricesShape),
  unpriced: optional(oneOf({ countAsNothing: 1 })),
  tools: optional(oneOf({ no: 1 })),
});
const modelSettingsShape = object<ModelSettings>({
  model: text,
  windowTokens: countFromOne,
  cancelMode: optional(oneOf({ abort: 1, drain: 1 })),
});
export const settingsShape = object<Settings>({
  model: text,
  workspace: text,
  maxRetries: count,
  retrySchedule: retryScheduleShape,
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
  limits: limitsShape,
  budgetWarnRatio: share,
  atLimit: oneOf({ stop: 1, finish: 1 }),
  userPolicy: oneOf({ none: 1, ask: 1 }),
  autoRearm: oneOf({ on: 1, off: 1 }),
  queueOnCancel: oneOf({ hold: 1, restore: 1, send: 1 }),
  cancelMode: oneOf({ abort: 1, drain: 1 }),
  onAsk: oneOf({ ask: 1, deny: 1, stop: 1 }),
  hooks: oneOf({ mutating: 1, mutatingOk: 1, always: 1, never: 1 }),
  formatter: oneOf({ off: 1, onChanges: 1, onOneCommit: 1 }),
  autoCommit: oneOf({ on: 1, off: 1 }),
  rules: list(policyRuleShape),
  writtenRules: optional(list(writtenRuleShape)),
  effort: optional(effortShape),
  preset: optional(presetShape),
  presetBefore: optional(presetShape),
  sandboxBefore: optional(
    oneOf({ workspace: 1, 'workspace+net': 1, 'read-only': 1, off: 1, missing: 1 }),
  ),
  sandbox: optional(
    oneOf({ workspace: 1, 'workspace+net': 1, 'read-only': 1, off: 1, missing: 1 }),
  ),
  tools: optional(text),
  fallback: optional(list(fallbackModelShape)),
  primary: optional(modelSettingsShape),
});
const toolGroupShape = oneOf({ fileChanges: 1 });
const grantShape = variant<Grant, 'scope'>('scope', {
  shape: { shape: text, tool: text, needs: optional(needsShape) },
  prefix: { words: list(text), tool: text, needs: optional(needsShape) },
  session: { group: optional(toolGroupShape), tool: text, needs: optional(needsShape) },
});
const tokenCountShape = countTo(1_000_000_000);
const estimatedShape = list(text);
export const usageShape = object<Usage>({
  inputTokens: tokenCountShape,
  outputTokens: tokenCountShape,
  cacheReadTokens: tokenCountShape,
  cacheWriteTokens: tokenCountShape,
  costUsd: nullable(amount),
  unpriced: optional(count),
  estimated: optional(estimatedShape),
  atLeast: optional(bool),
});
const shownLinesShape = object<ShownLines>({ by: text, first: count, last: optional(count) });
const seenFileShape = object<SeenFile>({
  path: text,
  sha256: text,
  lines: optional(list(shownLinesShape)),
});
const hookDecisionShape = oneOf<HookDecision>({ allow: 1, ask: 1, deny: 1 });
const hookVerdictShape = object<HookVerdict>({
  hook: text,
  decision: hookDecisionShape,
  reason: optional(text),
  note: optional(text),
  fault: optional(text),
});
const hookVerdictsShape = list(hookVerdictShape);
export const callOutcomeShape = object<CallOutcome>({
  status: oneOf({ ok: 1, failed: 1, timedOut: 1, cancelled: 1, lost: 1 }),
  text,
  summary: optional(text),
  images: optional(list(imageShape)),
  diff: optional(text),
  ran: optional(oneOf({ no: 1 })),
  usage: optional(usageShape),
  blob: optional(text),
  seen: optional(list(seenFileShape)),
  hooks: optional(hookVerdictsShape),
});
const stoppedCallShape = object<StoppedCall>({
  batchId: text,
  callId: text,
  outcome: callOutcomeShape,
});
export const userEventCases = {
  Start: { at: finite, clientRequestId: optional(text) },
  UserInput: {
    at: finite,
    text,
    mode: inputModeShape,
    images: optional(list(imageShape)),
    clientRequestId: optional(text),
  },
  RetryLast: { at: finite, clientRequestId: optional(text) },
  RetryNow: { at: finite, clientRequestId: optional(text) },
  CancelTurn: { at: finite, clientRequestId: optional(text) },
  CancelTool: { at: finite, batchId: text, callId: text, clientRequestId: optional(text) },
  EditQueue: { at: finite, items: list(queuedInputShape), clientRequestId: optional(text) },
  CompactRequested: { at: finite, instructions: optional(text), clientRequestId: optional(text) },
  ApproveBudget: {
    at: finite,
    dimension: dimensionShape,
    limit: requestedLimitShape,
    clientRequestId: optional(text),
  },
  ApprovalAnswered: {
    at: finite,
    batchId: text,
    callId: text,
    answer: approvalAnswerShape,
    scope: approvalScopeShape,
    clientRequestId: optional(text),
  },
  SettingsChanged: {
    at: finite,
    patch: object<Partial<Settings>>(partly(settingsShape.fields)),
    prices: optional(nullable(pricesShape)),
    grants: optional(list(grantShape)),
    stoppedAt: optional(count),
    clientRequestId: optional(text),
  },
  ShutdownRequested: {
    at: finite,
    outcomes: optional(list(stoppedCallShape)),
    clientRequestId: optional(text),
  },
  InputFailed: { at: finite, message: text, clientRequestId: optional(text) },
};
export const jsonObjectShape = jsonObject<JsonObject>();
const providerMetadataShape = jsonObjectShape;
export const assistantPartShape = variant<AssistantPart, 'type'>('type', {
  text: { text, metadata: optional(providerMetadataShape) },
  reasoning: { text, metadata: optional(providerMetadataShape) },
  call: {
    callId: text,
    tool: text,
    input: jsonObjectShape,
    rawInput: optional(text),
    metadata: optional(providerMetadataShape),
  },
});
export const assistantMessageShape = object<AssistantMessage>({
  role: oneOf({ assistant: 1 }),
  model: text,
  cut: bool,
  parts: list(assistantPartShape),
});
export const callVerdictShape = variant<CallVerdict, 'kind'>('kind', {
  ok: {},
  noSuchTool: { known: list(text) },
  invalid: { field: text, why: text },
});
const callEffectShape = oneOf<CallEffect>({ pure: 1, probeable: 1, opaque: 1 });
export const callTraitsShape = object<CallTraits>({
  effect: callEffectShape,
  parallelSafe: bool,
  mutating: bool,
  deadlineMs: finite,
  spends: optional(oneOf({ yes: 1 })),
  previews: optional(oneOf({ yes: 1 })),
  group: optional(toolGroupShape),
  shown: optional(oneOf({ list: 1 })),
  asks: optional(oneOf({ question: 1, plan: 1 })),
});
const parsedCommandShape = object<ParsedCommand>({
  words: list(nullable(text)),
  assignments: list(text),
  writes: list(nullable(text)),
  appends: optional(list(count)),
  readsFrom: optional(list(text)),
  patterns: optional(list(nullable(text))),
  program: nullable(text),
  runs: optional(count),
  mayRun: optional(count),
  readAs: optional(list(nullable(text))),
  folder: optional(text),
  undoes: optional(oneOf({ previous: 1 })),
  filters: optional(oneOf({ yes: 1 })),
  wrapped: optional(oneOf({ yes: 1 })),
});
const shellFactsShape = object<ShellFacts>({
  commands: list(parsedCommandShape),
  unclear: nullable(text),
  indirect: optional(text),
});
const mcpToolNameShape = object<McpToolName>({
  server: text,
  tool: text,
  from: optional(oneOf({ project: 1 })),
  declaration: optional(oneOf({ changed: 1 })),
});
export const callFactsShape = object<CallFacts>({
  argv: list(text),
  paths: list(text),
  hosts: list(text),
  shape: text,
  needs: optional(needsShape),
  expects: optional(object({ needs: oneOf({ network: 1, outside: 1 }), words: text })),
  shell: optional(shellFactsShape),
  protected: optional(list(text)),
  secret: optional(list(text)),
  unrecoverable: optional(list(text)),
  discarded: optional(list(text)),
  background: optional(oneOf({ yes: 1 })),
  mcp: optional(mcpToolNameShape),
});
const judgedCallShape = object<JudgedCall>({
  callId: text,
  tool: text,
  input: jsonObjectShape,
  rawInput: optional(text),
  verdict: callVerdictShape,
  traits: callTraitsShape,
  facts: callFactsShape,
  title: optional(text),
  hooks: optional(hookVerdictsShape),
  reply: optional(text),
});
export const stopReasonShape = oneOf<StopReason>({
  end: 1,
  toolUse: 1,
  maxTokens: 1,
  refusal: 1,
  contentFilter: 1,
  other: 1,
});
const modelErrorKindShape = oneOf<ModelErrorKind>({
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
});
export const modelErrorShape = object<ModelError>({
  kind: modelErrorKindShape,
  message: text,
  retryable: bool,
  retryAfterMs: nullable(finite),
  sent: optional(oneOf({ no: 1 })),
  about: optional(oneOf({ picture: 1 })),
  answered: optional(oneOf({ yes: 1 })),
});
export const callPreviewShape = variant<CallPreview, 'kind'>('kind', {
  change: { diff: text },
  refused: { text },
  none: {},
});
const hookEffectShape = variant<HookEffect, 'kind'>('kind', {
  file: { path: text, before: text, after: text },
  commit: {
    gitFolder: text,
    claim: optional(text),
    ref: text,
    before: nullable(text),
    commit: text,
  },
});
const reportedMomentShape = oneOf<ReportedMoment>({
  'session-start': 1,
  'session-end': 1,
  'after-batch': 1,
  'before-request': 1,
  'ask-user': 1,
});
const textOriginShape = oneOf<TextOrigin>({ user: 1, note: 1, summary: 1 });
export const messageShape = variant<Message, 'role'>('role', {
  user: {
    parts: list(
      variant('type', {
        text: { origin: textOriginShape, text, images: optional(list(imageShape)) },
        result: {
          callId: text,
          tool: text,
          failed: bool,
          text,
          images: optional(list(imageShape)),
        },
      }),
    ),
  },
  assistant: { model: text, cut: bool, parts: list(assistantPartShape) },
});
const usageTotalsShape = object<UsageTotals>({
  inputTokens: amount,
  outputTokens: amount,
  cacheReadTokens: amount,
  cacheWriteTokens: amount,
  costUsd: amount,
  unpriced: count,
  estimated: optional(estimatedShape),
  atLeast: optional(bool),
});
const endedStatusShape = oneOf<EndedStatus>({
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
});
const carriedOutcomeShape = object<CarriedOutcome>({
  status: endedStatusShape,
  ran: bool,
  at: finite,
  text,
  images: optional(list(imageShape)),
});
const carriedCallShape = object<CarriedCall>({
  judged: judgedCallShape,
  requestedAt: finite,
  startedAt: nullable(finite),
  ended: optional(carriedOutcomeShape),
});
const rewoundConversationShape = object<RewoundConversation>({
  kept: count,
  messages: list(messageShape),
  contextTokens: count,
  notes: optional(list(text)),
});
const carriedWorkShape = variant<CarriedWork, 'kind'>('kind', {
  nothing: {},
  closed: {},
  request: {},
  calls: { batchId: text, calls: list(carriedCallShape) },
  rewind: {
    rewindId: text,
    to: count,
    plan: text,
    conversation: optional(rewoundConversationShape),
  },
});
const carriedSessionShape = object<CarriedSession>({
  messages: list(messageShape),
  queue: list(queuedInputShape),
  usage: usageTotalsShape,
  unaccounted: optional(list(text)),
  work: carriedWorkShape,
  idsFrom: count,
  at: finite,
});
const machineUpgradeShape = object<MachineUpgrade>({
  from: count,
  to: count,
  session: optional(carriedSessionShape),
});
const changedPathShape = object<ChangedPath>({
  path: text,
  change: oneOf({ created: 1, changed: 1, deleted: 1 }),
  duringCommands: optional(oneOf({ yes: 1 })),
  added: optional(count),
  removed: optional(count),
});
const changeSummaryShape = object<ChangeSummary>({
  created: count,
  changed: count,
  deleted: count,
  duringCommands: optional(count),
  files: list(changedPathShape),
});
const fileLeftShape = object<FileLeft>({ path: text, why: text });
export const eventShape = variant<Event, 'type'>('type', {
  ...userEventCases,
  TextDelta: { at: finite, requestId: text, text },
  ReasoningDelta: { at: finite, requestId: text, text },
  ToolCallDelta: { at: finite, requestId: text, text, tool: text },
  LlmCompleted: {
    at: finite,
    requestId: text,
    message: nullable(assistantMessageShape),
    calls: list(judgedCallShape),
    stopReason: stopReasonShape,
    usage: usageShape,
    firstPieceAt: optional(finite),
    effort: optional(oneOf({ refused: 1 })),
    hooks: optional(hookVerdictsShape),
  },
  LlmFailed: {
    at: finite,
    requestId: text,
    error: modelErrorShape,
    usage: nullable(usageShape),
    coverage: optional(oneOf({ whole: 1 })),
    jitter: share,
    firstPieceAt: optional(finite),
  },
  PolicyStopped: { at: finite, requestId: text, why: text },
  RequestMeasured: {
    at: finite,
    usageId: text,
    model: text,
    bytes: count,
    images: count,
    outputTokensMax: count,
    prices: nullable(pricesShape),
    freshBytes: optional(count),
  },
  CallPreviewed: { at: finite, batchId: text, callId: text, preview: callPreviewShape },
  ToolStarted: {
    at: finite,
    batchId: text,
    callId: text,
    before: optional(text),
    after: optional(text),
  },
  ToolProgress: { at: finite, batchId: text, callId: text, text },
  ToolCompleted: { at: finite, batchId: text, callId: text, outcome: callOutcomeShape },
  ToolsFailed: { at: finite, batchId: text, message: text },
  HookPrepared: { at: finite, hookId: text, effect: hookEffectShape },
  HookCompleted: {
    at: finite,
    hookId: text,
    commits: list(object({ hash: text, subject: text })),
    changedFiles: list(text),
    dirty: bool,
    note: text,
    warning: text,
    proceed: bool,
    usage: nullable(usageShape),
    coverage: optional(oneOf({ partial: 1 })),
    seen: optional(list(seenFileShape)),
  },
  HookFailed: { at: finite, hookId: text, message: text },
  TimerFired: { at: finite, timerId: text },
  CompactionCompleted: {
    at: finite,
    compactionId: text,
    summary: text,
    usage: usageShape,
    hooks: optional(hookVerdictsShape),
  },
  CompactionFailed: {
    at: finite,
    compactionId: text,
    message: text,
    usage: nullable(usageShape),
    coverage: optional(oneOf({ whole: 1 })),
    hooks: optional(hookVerdictsShape),
  },
  UsageReported: {
    at: finite,
    usageId: text,
    usage: usageShape,
    coverage: optional(oneOf({ whole: 1 })),
    fault: optional(text),
  },
  UserHooksRan: {
    at: finite,
    moment: reportedMomentShape,
    requestId: nullable(text),
    verdicts: hookVerdictsShape,
  },
  Resumed: {
    at: finite,
    epoch: count,
    stoppedAt: optional(count),
    upgrade: optional(machineUpgradeShape),
    judged: optional(list(judgedCallShape)),
  },
  CheckpointTaken: {
    at: finite,
    checkpoint: text,
    by: oneOf({ agent: 1, user: 1 }),
    batchId: nullable(text),
    changes: changeSummaryShape,
    leftOut: list(text),
  },
  RewindRequested: {
    at: finite,
    rewindId: text,
    to: count,
    direction: oneOf({ back: 1, forward: 1 }),
    conversation: optional(rewoundConversationShape),
    files: optional(object({ plan: text })),
    note: optional(text),
  },
  Rewound: {
    at: finite,
    rewindId: text,
    checkpoint: nullable(text),
    changes: changeSummaryShape,
    left: list(fileLeftShape),
    note: nullable(text),
    refs: optional(list(text)),
  },
});
