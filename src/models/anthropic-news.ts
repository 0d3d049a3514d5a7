import type { LanguageModelV3StreamPart } from '@ai-sdk/provider';

/**
 * What is new on the wire: the provider adds events, blocks and deltas, and asks clients to pass over those that they
 * do not know. The SDK makes an error of each instead, right behind the raw event, and goes on.
 *
 * 1. Passed over is only what no reply here is made of. What we do read must be whole, or the reply is malformed.
 * 2. With a block goes all that belongs to it.
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

/** Says of each part of one stream, in order, whether to pass over it. */
export const passOverNews = (): ((part: LanguageModelV3StreamPart) => boolean) => {
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
