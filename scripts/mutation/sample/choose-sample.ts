/**
 * A random sample of mutants, spread over the files in proportion to their mutants.
 *
 * 1. Within a file mutants come in a random order, and the k-th of m has the rank (k + r) / m,
 *    where r < 1 is random and belongs to the file. The sample is the `count` lowest ranks: each
 *    file gives its share, rounded at random.
 * 2. Random numbers are hashes of the seed and the texts: the sample stays the same when lines
 *    move, and a larger one with the same seed contains it.
 */

import { createHash } from 'node:crypto';
import type { Mutation } from '../score.js';

/** From 0 to 1. */
const randomOf = (...words: readonly (string | number)[]): number =>
  createHash('sha256').update(JSON.stringify(words)).digest().readUInt32BE() / 2 ** 32;

/** Mutants with the same texts in one file differ by their number among these. */
const withNumbers = <M extends Mutation>(
  mutations: readonly M[],
): readonly (readonly [M, number])[] => {
  const seen = new Map<string, number>();
  return mutations.map((mutation) => {
    const key = JSON.stringify([mutation.mutator, mutation.was, mutation.becomes]);
    const number = seen.get(key) ?? 0;
    seen.set(key, number + 1);
    return [mutation, number];
  });
};

type Ranked<M> = { readonly mutation: M; readonly rank: number };

const rankFile = <M extends Mutation>(own: readonly M[], seed: number): readonly Ranked<M>[] => {
  const [first] = own;
  const offset = randomOf(seed, first?.file ?? '');
  return withNumbers(own)
    .map(([mutation, number]) => {
      const { file, mutator, was, becomes } = mutation;
      return { mutation, key: randomOf(seed, file, mutator, was, becomes, number) };
    })
    .toSorted((one, other) => one.key - other.key)
    .map(({ mutation }, index) => ({ mutation, rank: (index + offset) / own.length }));
};

export const chooseSample = <M extends Mutation>(
  mutations: readonly M[],
  { seed, count }: { readonly seed: number; readonly count: number },
): readonly M[] => {
  const files = [...new Set(mutations.map(({ file }) => file))];
  return files
    .flatMap((file) =>
      rankFile(
        mutations.filter((mutation) => mutation.file === file),
        seed,
      ),
    )
    .toSorted((one, other) => one.rank - other.rank)
    .slice(0, count)
    .map(({ mutation }) => mutation);
};

/**
 * Pairs mutants with mutants of another time, by their texts and lines; each is in at most one
 * pair.
 */
export const pairMutants = <M extends Mutation, O extends Mutation>(
  mutants: readonly M[],
  others: readonly O[],
): ReadonlyMap<M, O> => {
  const byTexts = new Map<string, O[]>();
  const keyOf = ({ file, mutator, was, becomes, line }: Mutation): string =>
    JSON.stringify([file, mutator, was, becomes, line]);
  for (const other of others)
    byTexts.set(keyOf(other), [...(byTexts.get(keyOf(other)) ?? []), other]);
  return new Map(
    mutants.flatMap((mutant) => {
      const other = byTexts.get(keyOf(mutant))?.shift();
      return other === undefined ? [] : [[mutant, other] as const];
    }),
  );
};
