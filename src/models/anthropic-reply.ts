import type {
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
  SharedV3ProviderMetadata,
} from '@ai-sdk/provider';
import type { StopReason } from '../agent/event.js';
import type { AssistantText, JsonObject, ProviderMetadata, ReasoningPart } from '../agent/message.js';
import type { ModelPiece, RawCall, TokenUsage } from '../needs.js';

/**
 * What streams in, gathered to a reply.
 *
 * 1. Parts stand in the order in which they began. A call that was never closed is kept as far as it came.
 * 2. The text of a call's input is handed on as the model wrote it.
 * 3. A reply is whole only with the provider's own reason for stopping; without it `finish` gives null.
 */

type Draft = {
  readonly type: 'text' | 'reasoning' | 'call';
  readonly id: string;
  readonly tool: string;
  text: string;
  metadata: ProviderMetadata | undefined;
};

export type Streamed = Extract<ModelPiece, { readonly type: 'text' | 'reasoning' | 'toolCall' }>;
type Completed = Extract<ModelPiece, { readonly type: 'completed' }>;

export type Gathering = {
  /** Takes one part of the stream; what of it can be shown. */
  add(part: LanguageModelV3StreamPart): Streamed | null;
  /** The whole reply, or null as long as the provider has not said why it stopped. */
  finish(): Completed | null;
  /** Tokens counted so far; null before the provider named any. */
  usage(): TokenUsage | null;
};

const stopReasons: Readonly<Record<string, StopReason>> = {
  end_turn: 'end',
  stop_sequence: 'end',
  tool_use: 'toolUse',
  max_tokens: 'maxTokens',
  model_context_window_exceeded: 'maxTokens',
  refusal: 'refusal',
};

type Loose = { readonly [key: string]: unknown };
const isObject = (value: unknown): value is Loose => typeof value === 'object' && value !== null;
const asCount = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** The tokens that a reply is charged for from its first event on, whatever becomes of it. */
const readStart = (raw: unknown): TokenUsage | null => {
  if (!isObject(raw) || raw.type !== 'message_start' || !isObject(raw.message)) return null;
  const { usage } = raw.message;
  if (!isObject(usage)) return null;
  return {
    inputTokens: asCount(usage.input_tokens),
    outputTokens: asCount(usage.output_tokens),
    cacheReadTokens: asCount(usage.cache_read_input_tokens),
    cacheWriteTokens: asCount(usage.cache_creation_input_tokens),
  };
};

const countTokens = ({ inputTokens, outputTokens }: LanguageModelV3Usage): TokenUsage => ({
  inputTokens: inputTokens.noCache ?? 0,
  outputTokens: outputTokens.total ?? 0,
  cacheReadTokens: inputTokens.cacheRead ?? 0,
  cacheWriteTokens: inputTokens.cacheWrite ?? 0,
});

/** What the parts of one block say of it, together: a signature comes after the text that it signs. */
const merge = (old: ProviderMetadata | undefined, added: SharedV3ProviderMetadata): ProviderMetadata => {
  const merged: { [provider: string]: JsonObject } = {};
  for (const provider of new Set([...Object.keys(old ?? {}), ...Object.keys(added)])) {
    const known = old?.[provider];
    // What a provider sends is JSON, by provider; the SDK's type differs from ours in being writable.
    merged[provider] = { ...(isObject(known) ? known : {}), ...added[provider] } as JsonObject;
  }
  return merged;
};

const closeDraft = ({
  type,
  id,
  tool,
  text,
  metadata,
}: Draft): readonly (AssistantText | ReasoningPart | RawCall)[] => {
  const kept = metadata === undefined ? {} : { metadata };
  if (type === 'call') return [{ type, callId: id, tool, rawInput: text, ...kept }];
  if (type === 'reasoning') return text === '' && metadata === undefined ? [] : [{ type, text, ...kept }];
  return text.trim() === '' ? [] : [{ type, text, ...kept }];
};

type Gathered = { readonly drafts: Draft[]; usage: TokenUsage | null; stopped: string | null };

const open = ({ drafts }: Gathered, type: Draft['type'], id: string, tool = ''): Draft => {
  const draft: Draft = { type, id, tool, text: '', metadata: undefined };
  drafts.push(draft);
  return draft;
};

const find = (gathered: Gathered, type: Draft['type'], id: string): Draft =>
  gathered.drafts.findLast((draft) => draft.type === type && draft.id === id) ?? open(gathered, type, id);

const note = (draft: Draft, metadata: SharedV3ProviderMetadata | undefined): void => {
  if (metadata !== undefined) draft.metadata = merge(draft.metadata, metadata);
};

const typeOf = (part: LanguageModelV3StreamPart): 'text' | 'reasoning' =>
  part.type.startsWith('text') ? 'text' : 'reasoning';

const addPart = (gathered: Gathered, part: LanguageModelV3StreamPart): Streamed | null => {
  switch (part.type) {
    case 'text-start':
    case 'reasoning-start':
      note(open(gathered, typeOf(part), part.id), part.providerMetadata);
      return null;
    case 'text-delta':
    case 'reasoning-delta': {
      const draft = find(gathered, typeOf(part), part.id);
      note(draft, part.providerMetadata);
      draft.text += part.delta;
      return part.delta === '' ? null : { type: typeOf(part), text: part.delta };
    }
    case 'text-end':
    case 'reasoning-end':
      note(find(gathered, typeOf(part), part.id), part.providerMetadata);
      return null;
    case 'tool-input-start':
      open(gathered, 'call', part.id, part.toolName);
      return { type: 'toolCall', tool: part.toolName, text: '' };
    case 'tool-input-delta': {
      const draft = find(gathered, 'call', part.id);
      draft.text += part.delta;
      return { type: 'toolCall', tool: draft.tool, text: part.delta };
    }
    case 'tool-call': {
      const draft = find(gathered, 'call', part.toolCallId);
      draft.text = part.input;
      note(draft, part.providerMetadata);
      return null;
    }
    case 'raw':
      gathered.usage = readStart(part.rawValue) ?? gathered.usage;
      // A sign of life without content, e.g. while the model thinks unseen: it keeps the reply from seeming silent.
      return isObject(part.rawValue) && part.rawValue.type === 'ping'
        ? { type: 'reasoning', text: '' }
        : null;
    case 'finish':
      gathered.stopped = part.finishReason.raw ?? null;
      gathered.usage = countTokens(part.usage);
      return null;
    default:
      return null; // warnings, sources, results of tools that the provider runs: nothing of a reply here
  }
};

const finishReply = ({ drafts, usage, stopped }: Gathered): Completed | null => {
  if (stopped === null || usage === null) return null;
  const stopReason = stopReasons[stopped] ?? 'other';
  return { type: 'completed', parts: drafts.flatMap(closeDraft), stopReason, usage };
};

export const gather = (): Gathering => {
  const gathered: Gathered = { drafts: [], usage: null, stopped: null };
  return {
    add: (part) => addPart(gathered, part),
    finish: () => finishReply(gathered),
    usage: () => gathered.usage,
  };
};
