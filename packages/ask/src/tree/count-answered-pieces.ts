import type { Outcome } from '../run/state.js';
import { digestOf } from '../run/text/text-hash.js';

/**
 * Counts the prompts of sub-calls (the pieces of a question) and their results.
 *
 * A piece is missing if its prompt was never answered, however often it was asked. A later answer to the same prompt
 * fills it.
 */

/** `refused`: a limit stopped the call. `failed`: anything else. */
export type Missing = { readonly kind: 'refused' | 'failed'; readonly why: string };

export type PieceCounts = {
  /** All prompts; a repeated one counts each time. */
  readonly asked: number;
  readonly answered: number;
  /** Prompts without an answer, by their hash. */
  readonly missing: Readonly<Record<string, Missing>>;
};

export const noPieces: PieceCounts = { asked: 0, answered: 0, missing: {} };

/** Why a child has no answer for its slot; null if it has one. */
export const missingOf = (outcome: Outcome): Missing | null => {
  switch (outcome.status) {
    case 'answered':
      return null;
    case 'stopped': {
      const isMoney = ['usd', 'tokens', 'unpriced'].includes(outcome.reason);
      return { kind: isMoney ? 'refused' : 'failed', why: outcome.message };
    }
    case 'failed':
      return { kind: 'failed', why: outcome.message };
    case 'cancelled':
      return { kind: 'failed', why: 'cancelled' };
    default:
      return outcome satisfies never;
  }
};

/** Counts one prompt and its result. `missing` is null if it was answered. */
export const countPiece = (counts: PieceCounts, prompt: string, missing: Missing | null): PieceCounts => {
  const digest = digestOf([prompt]);
  const { [digest]: before, ...others } = counts.missing;
  return {
    asked: counts.asked + 1,
    answered: counts.answered + (missing === null ? 1 : 0),
    missing: missing === null ? others : { ...others, [digest]: missing },
  };
};

/** Counts for people and scripts: prompts asked, answered, and without an answer at the end. */
export type Pieces = {
  /** All prompts of sub-calls; a repeated one counts each time. */
  readonly asked: number;
  readonly answered: number;
  /** Prompts without an answer because a limit stopped the call. */
  readonly refused: number;
  /** Prompts without an answer for another reason. */
  readonly failed: number;
  /** Each reason with its count, the most frequent first. */
  readonly reasons: readonly { readonly why: string; readonly count: number }[];
};

export const piecesOf = ({ asked, answered, missing }: PieceCounts): Pieces => {
  const all = Object.values(missing);
  const counts = new Map<string, number>();
  for (const { why } of all) counts.set(why, (counts.get(why) ?? 0) + 1);
  const reasons = [...counts].map(([why, count]) => ({ why, count }));
  return {
    asked,
    answered,
    refused: all.filter(({ kind }) => kind === 'refused').length,
    failed: all.filter(({ kind }) => kind === 'failed').length,
    reasons: reasons.toSorted((one, other) => other.count - one.count),
  };
};
