import { jsonObject } from '@pawl/machine/kernel/json-shape';
import {
  amount,
  bool,
  countTo,
  type Fields,
  finite,
  isRecord,
  list,
  nullable,
  object,
  oneOf,
  optional,
  type Shape,
  text,
  variant,
} from '@pawl/machine/kernel/shape';
import type { CallOutcome, CallPreview, CallTraits, Needs, SeenFile } from '../call.js';
import type { ModelError, ModelErrorKind, StopReason } from '../event.js';
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
} from '../message.js';
import type { HookDecision, HookVerdict, HookVerdicts } from '../values/hook-verdict.js';
import type { Prices, Usage } from '../values/usage.js';

/** Shapes of the values in events: those from models, tools and users. */

/** What hooks said. */
export const verdictsShape: Shape<HookVerdicts> = list(
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

export const imageShape: Shape<Image> = object<Image>({
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

export const needsShape: Shape<Needs> = oneOf<Needs>({ network: 1, outside: 1, repository: 1 });

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

export const seenShape: Shape<readonly SeenFile[]> = list(object<SeenFile>({ path: text, sha256: text }));

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
export const outcomeShape: Shape<CallOutcome> = object<CallOutcome>({
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
