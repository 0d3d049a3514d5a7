import type { Outcome } from '../run/state.js';
import { digestOf } from '../run/text/text-digest.js';

/**
 * Counts the prompts of sub-calls (the pieces of a question) and their results.
 *
 * A piece has no answer if its prompt was never answered, however often it was asked: a program that asks again for
 * what has failed makes it good.
 */

/** `refused`: a limit did not allow it. `failed`: anything else. */
export type Missing = { readonly kind: 'refused' | 'failed'; readonly why: string };

export type PieceCounts = {
  /** Prompts, repeated ones each time. */
  readonly asked: number;
  readonly answered: number;
  /** Prompts without an answer, by their digest. */
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

/** Counts one prompt and what became of it; `missing` is null of one that was answered. */
export const countPiece = (counts: PieceCounts, prompt: string, missing: Missing | null): PieceCounts => {
  const digest = digestOf([prompt]);
  const { [digest]: before, ...others } = counts.missing;
  return {
    asked: counts.asked + 1,
    answered: counts.answered + (missing === null ? 1 : 0),
    missing: missing === null ? others : { ...others, [digest]: missing },
  };
};

/** For people and scripts: how many pieces were asked for, answered, and have no answer in the end. */
export type Pieces = {
  /** Prompts of all sub-calls, repeated ones each time. */
  readonly asked: number;
  readonly answered: number;
  /** Prompts without an answer because a limit did not allow the call. */
  readonly refused: number;
  /** Prompts without an answer for another reason. */
  readonly failed: number;
  /** The reasons, each once with its count, the commonest first. */
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
