import type {
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
  SharedV3ProviderMetadata,
} from '@ai-sdk/provider';
import type { StopReason } from '../machine/event.js';
import type { AssistantText, JsonObject, ProviderMetadata, ReasoningPart } from '../machine/message.js';
import type { ModelPiece, RawCall, TokenUsage } from '../ports/model.js';
import { brokenOff, type FromEvent, type Wire } from './providers/provider-adapter.js';
import { joinDetails } from './providers/reasoning-details.js';
import { isObject } from './untyped-json.js';

/**
 * Gathers the parts of a stream into one reply.
 *
 * 1. Parts stand in the order in which they began. A call that was never closed is kept as far as it came.
 * 2. The text of a call's input is handed on as the model wrote it. A call that the provider ran itself is no part of the
 *    reply: nobody here can answer it.
 * 3. A reply is whole only with the provider's own reason for stopping; without it `finish` throws. `[DONE]` is one if
 *    every call of the reply is whole.
 */

type Draft = {
  readonly type: 'text' | 'reasoning' | 'call';
  readonly id: string;
  readonly tool: string;
  text: string;
  metadata: ProviderMetadata | undefined;
};

export type StreamedPiece = Extract<ModelPiece, { readonly type: 'text' | 'reasoning' | 'toolCall' }>;
type Completed = Extract<ModelPiece, { readonly type: 'completed' }>;

export type Gathering = {
  /** Takes one part of the stream; returns the piece that can be shown. */
  add(part: LanguageModelV3StreamPart): StreamedPiece | null;
  /** The stream said `[DONE]`. */
  sawDone(): void;
  /** The whole reply; throws if it broke off, or ended with a failure. */
  finish(): Completed;
  /** Tokens counted so far; null before the provider named any. */
  usage(): TokenUsage | null;
};

/** Input tokens that no cache served. Packages subtract cached tokens even from a total that leaves them out. */
const uncached = ({ noCache = 0, total = 0 }: LanguageModelV3Usage['inputTokens']): number =>
  noCache < 0 ? total : noCache;

/** `atLeast`: output tokens that the provider charges for by another count. */
const countTokens = ({ inputTokens, outputTokens }: LanguageModelV3Usage, atLeast: number): TokenUsage => ({
  inputTokens: uncached(inputTokens),
  outputTokens: Math.max(outputTokens.total ?? 0, atLeast),
  cacheReadTokens: inputTokens.cacheRead ?? 0,
  cacheWriteTokens: inputTokens.cacheWrite ?? 0,
});

/** Joins the metadata of one block's parts: a signature comes after the text that it signs. */
const merge = (
  old: ProviderMetadata | undefined,
  added: SharedV3ProviderMetadata | ProviderMetadata,
): ProviderMetadata => {
  const merged: { [provider: string]: JsonObject } = {};
  for (const provider of new Set([...Object.keys(old ?? {}), ...Object.keys(added)])) {
    const [known, more] = [old?.[provider], added[provider]];
    // It is JSON by provider; the SDK's type differs from ours only in being writable.
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
  /** Ids of calls that the provider ran itself. */
  readonly ranElsewhere: Set<string>;
  usage: TokenUsage | null;
  stopped: StopReason | Error | null;
  refused: boolean;
  /** Goes back to the provider with the thoughts of this reply. */
  thoughtMetadata: ProviderMetadata | undefined;
  /** OpenRouter's `reasoning_details`, which go back in one piece. */
  details: readonly JsonObject[];
  done: boolean;
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

/** Takes what the package leaves out of an event. A refusal becomes a text part of its own. */
const addEvent = (gathered: Gathered, event: FromEvent): StreamedPiece | null => {
  gathered.usage = event.usage ?? gathered.usage;
  gathered.thoughtMetadata = event.thoughtMetadata ?? gathered.thoughtMetadata;
  if (event.details !== undefined) gathered.details = joinDetails(gathered.details, event.details);
  if (event.thought !== undefined) {
    find(gathered, 'reasoning', 'raw').text += event.thought;
    return { type: 'reasoning', text: event.thought };
  }
  if (event.refusal !== undefined) {
    gathered.refused = true;
    find(gathered, 'text', 'refusal').text += event.refusal;
    return { type: 'text', text: event.refusal };
  }
  return event.isAlive === true ? { type: 'reasoning', text: '' } : null;
};

const addPart = (gathered: Gathered, part: LanguageModelV3StreamPart): StreamedPiece | null => {
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
      if (part.providerExecuted === true) {
        gathered.ranElsewhere.add(part.id);
        return null;
      }
      open(gathered, 'call', part.id, part.toolName);
      return { type: 'toolCall', tool: part.toolName, text: '' };
    case 'tool-input-delta': {
      if (gathered.ranElsewhere.has(part.id)) return null;
      const draft = find(gathered, 'call', part.id);
      draft.text += part.delta;
      return { type: 'toolCall', tool: draft.tool, text: part.delta };
    }
    case 'tool-call': {
      if (part.providerExecuted === true) return null;
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
      if (part.usage.inputTokens.total !== undefined) {
        gathered.usage = countTokens(part.usage, gathered.wire.outputTokens?.(part.usage) ?? 0);
      }
      return null;
    default:
      return null; // warnings, sources, results of the provider's own tools: no part of a reply here
  }
};

const NO_TOKENS: TokenUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

const isWhole = ({ type, text }: Draft): boolean => {
  if (type !== 'call') return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false; // half of its arguments
  }
};

/** The provider's reason for the end (rule 3). */
const reasonFor = ({ stopped, done, drafts }: Gathered): StopReason => {
  if (stopped instanceof Error) throw stopped;
  if (stopped !== null) return stopped;
  if (!done || drafts.length === 0 || !drafts.every(isWhole)) throw brokenOff();
  return 'end';
};

/** The parts of the reply. Reasoning details go back with the thoughts, even if there are no words of thought. */
const partsOf = ({ drafts, details }: Gathered): Completed['parts'] => {
  const parts = drafts.flatMap(closeDraft);
  if (details.length === 0) return parts;
  const metadata = { openaiCompatible: { reasoning_details: [...details] } };
  const text = parts.map((part) => (part.type === 'reasoning' ? part.text : '')).join('');
  return [{ type: 'reasoning', text, metadata }, ...parts.filter(({ type }) => type !== 'reasoning')];
};

const finishReply = (gathered: Gathered): Completed => {
  const stopped = reasonFor(gathered);
  const parts = partsOf(gathered);
  // Some servers report a plain end for a reply with calls.
  const isCalling = stopped === 'end' && parts.some(({ type }) => type === 'call');
  const stopReason = gathered.refused ? 'refusal' : isCalling ? 'toolUse' : stopped;
  return { type: 'completed', parts, stopReason, usage: gathered.usage ?? NO_TOKENS };
};

export const gather = (wire: Wire): Gathering => {
  const gathered: Gathered = {
    wire,
    drafts: [],
    ranElsewhere: new Set(),
    usage: null,
    stopped: null,
    refused: false,
    thoughtMetadata: undefined,
    details: [],
    done: false,
  };
  return {
    add: (part) => addPart(gathered, part),
    sawDone: () => {
      gathered.done = true;
    },
    finish: () => finishReply(gathered),
    usage: () => gathered.usage,
  };
};
