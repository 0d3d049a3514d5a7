import type { LanguageModelV3StreamPart } from '@ai-sdk/provider';

/**
 * Skips unknown parts of the stream. Anthropic adds events, blocks and deltas, and asks clients to ignore those that
 * they don't know. The SDK instead reports an error for each, right after the raw event, and continues.
 *
 * 1. Only parts that no reply here is made of are skipped. A broken part that we do read makes the reply malformed.
 * 2. An unknown block is skipped with everything that belongs to it.
 */

type Loose = { readonly [key: string]: unknown };
const isObject = (value: unknown): value is Loose => typeof value === 'object' && value !== null;

const EVENTS: ReadonlySet<string> = new Set([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'ping',
  'error',
]);
const BLOCKS: ReadonlySet<string> = new Set(['text', 'thinking', 'redacted_thinking', 'tool_use']);
const DELTAS: ReadonlySet<string> = new Set([
  'text_delta',
  'thinking_delta',
  'signature_delta',
  'input_json_delta',
]);

const isOther = (value: unknown, known: ReadonlySet<string>): boolean =>
  isObject(value) && typeof value.type === 'string' && !known.has(value.type);

const isNews = (event: Loose): boolean => {
  if (event.type === 'content_block_start') return isOther(event.content_block, BLOCKS);
  if (event.type === 'content_block_delta') return isOther(event.delta, DELTAS);
  return isOther(event, EVENTS);
};

/** Returns a function that takes the parts of one stream in order, and is true for those to skip. */
export const skipUnknownEvents = (): ((part: LanguageModelV3StreamPart) => boolean) => {
  let event: Loose = {};
  const newBlocks = new Set<unknown>();
  return (part) => {
    if (part.type === 'raw') {
      event = isObject(part.rawValue) ? part.rawValue : {};
      return false;
    }
    if (part.type !== 'error') return newBlocks.has(event.index);
    if (!isNews(event)) return false;
    if (event.type === 'content_block_start' && event.index !== undefined) newBlocks.add(event.index);
    return true;
  };
};
