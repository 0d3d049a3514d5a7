import type { JsonObject } from '../../machine/message.js';
import type { Loose } from '../untyped-json.js';

/**
 * OpenRouter's `reasoning_details`: a model's thoughts, signed or encrypted by its provider. They come in pieces and must
 * go back whole and in order, or the provider forgets the thoughts, or refuses the conversation.
 */

/** Fields that come in pieces; any other field of a later piece replaces the earlier one. */
const STREAMED: ReadonlySet<string> = new Set(['text', 'summary']);

const isSame = (last: Loose, piece: Loose): boolean =>
  last.type === piece.type && last.index === piece.index && (piece.id ?? last.id) === (last.id ?? piece.id);

/** The block that a piece continues, or -1. A piece without an index is a block by itself. */
const findBlock = (details: readonly JsonObject[], piece: Loose): number =>
  piece.index === undefined || piece.index === null
    ? -1
    : details.findLastIndex((last) => isSame(last, piece));

const join = (last: JsonObject, piece: Loose): JsonObject => {
  const joined: { [key: string]: unknown } = { ...last };
  for (const [key, value] of Object.entries(piece)) {
    if (value === undefined || value === null) continue;
    const known = joined[key];
    joined[key] =
      STREAMED.has(key) && typeof known === 'string' && typeof value === 'string' ? known + value : value;
  }
  return joined as JsonObject; // it came as JSON
};

/** Adds the pieces of one event. */
export const joinDetails = (
  details: readonly JsonObject[],
  pieces: readonly Loose[],
): readonly JsonObject[] => {
  const joined = [...details];
  for (const piece of pieces) {
    const at = findBlock(joined, piece);
    const last = joined[at];
    if (last === undefined)
      joined.push(piece as JsonObject); // likewise
    else joined[at] = join(last, piece);
  }
  return joined;
};
