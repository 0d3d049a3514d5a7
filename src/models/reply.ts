import type {
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
  SharedV3ProviderMetadata,
} from '@ai-sdk/provider';
import type { StopReason } from '../agent/event.js';
import type { AssistantText, JsonObject, ProviderMetadata, ReasoningPart } from '../agent/message.js';
import type { ModelPiece, RawCall, TokenUsage } from '../needs.js';
import { isObject } from './loose.js';
import { brokenOff, type FromEvent, type Wire } from './wire.js';

/**
 * What streams in, gathered to a reply.
 *
 * 1. Parts stand in the order in which they began. A call that was never closed is kept as far as it came.
 * 2. The text of a call's input is handed on as the model wrote it.
 * 3. A reply is whole only with the provider's own reason for stopping; without it `finish` throws.
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
  /** The whole reply; throws if it broke off, or ended with a failure. */
  finish(): Completed;
  /** Tokens counted so far; null before the provider named any. */
  usage(): TokenUsage | null;
};

const countTokens = ({ inputTokens, outputTokens }: LanguageModelV3Usage): TokenUsage => ({
  inputTokens: inputTokens.noCache ?? 0,
  outputTokens: outputTokens.total ?? 0,
  cacheReadTokens: inputTokens.cacheRead ?? 0,
  cacheWriteTokens: inputTokens.cacheWrite ?? 0,
});

/** What the parts of one block say of it, together: a signature comes after the text that it signs. */
const merge = (
  old: ProviderMetadata | undefined,
  added: SharedV3ProviderMetadata | ProviderMetadata,
): ProviderMetadata => {
  const merged: { [provider: string]: JsonObject } = {};
  for (const provider of new Set([...Object.keys(old ?? {}), ...Object.keys(added)])) {
    const [known, more] = [old?.[provider], added[provider]];
    // What a provider sends is JSON, by provider; the SDK's type differs from ours in being writable.
    merged[provider] = { ...(isObject(known) ? known : {}), ...(isObject(more) ? more : {}) } as JsonObject;
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

type Gathered = {
  readonly wire: Wire;
  readonly drafts: Draft[];
  usage: TokenUsage | null;
  stopped: StopReason | Error | null;
  refused: boolean;
  /** Goes back with the thoughts that stream in. */
  thoughtMetadata: ProviderMetadata | undefined;
};

const open = ({ drafts }: Gathered, type: Draft['type'], id: string, tool = ''): Draft => {
  const draft: Draft = { type, id, tool, text: '', metadata: undefined };
  drafts.push(draft);
  return draft;
};

const find = (gathered: Gathered, type: Draft['type'], id: string): Draft =>
  gathered.drafts.findLast((draft) => draft.type === type && draft.id === id) ?? open(gathered, type, id);

const note = (draft: Draft, metadata: SharedV3ProviderMetadata | ProviderMetadata | undefined): void => {
  if (metadata !== undefined) draft.metadata = merge(draft.metadata, metadata);
};

const typeOf = (part: LanguageModelV3StreamPart): 'text' | 'reasoning' =>
  part.type.startsWith('text') ? 'text' : 'reasoning';

/** Words of a refusal stand in a part of their own; thoughts that have to go back are marked before they come. */
const addEvent = (gathered: Gathered, event: FromEvent): Streamed | null => {
  gathered.usage = event.usage ?? gathered.usage;
  gathered.thoughtMetadata = event.thoughtMetadata ?? gathered.thoughtMetadata;
  if (event.refusal !== undefined) {
    gathered.refused = true;
    find(gathered, 'text', 'refusal').text += event.refusal;
    return { type: 'text', text: event.refusal };
  }
  return event.isAlive === true ? { type: 'reasoning', text: '' } : null;
};

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
      if (draft.type === 'reasoning') note(draft, gathered.thoughtMetadata);
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
      return isObject(part.rawValue)
        ? addEvent(gathered, gathered.wire.fromEvent?.(part.rawValue) ?? {})
        : null;
    case 'finish':
      gathered.stopped = gathered.wire.stopReason(part.finishReason);
      if (part.usage.inputTokens.total !== undefined) gathered.usage = countTokens(part.usage);
      return null;
    default:
      return null; // warnings, sources, results of tools that the provider runs: nothing of a reply here
  }
};

const NO_TOKENS: TokenUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

const finishReply = ({ drafts, usage, stopped, refused }: Gathered): Completed => {
  if (stopped === null) throw brokenOff();
  if (stopped instanceof Error) throw stopped;
  const parts = drafts.flatMap(closeDraft);
  // Some servers say of a reply with calls that it simply ended.
  const isCalling = stopped === 'end' && parts.some(({ type }) => type === 'call');
  const stopReason = refused ? 'refusal' : isCalling ? 'toolUse' : stopped;
  return { type: 'completed', parts, stopReason, usage: usage ?? NO_TOKENS };
};

export const gather = (wire: Wire): Gathering => {
  const gathered: Gathered = {
    wire,
    drafts: [],
    usage: null,
    stopped: null,
    refused: false,
    thoughtMetadata: undefined,
  };
  return {
    add: (part) => addPart(gathered, part),
    finish: () => finishReply(gathered),
    usage: () => gathered.usage,
  };
};
