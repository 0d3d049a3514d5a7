/**
 * Results of mutation testing: figures and survivors. A mutant is a change in one place of the
 * sources. It is caught if a test fails with it; else it is alive, a survivor.
 */

import type { MutantResult } from '@stryker-mutator/api/core';
import type { Survivor } from './survivors/survivor.js';

/** A mutant by its texts, so that it is known again when lines move. */
type Change = Omit<Survivor, 'count' | 'because'>;

export type Mutation = Change & {
  readonly line: number;
  readonly status: MutantResult['status'];
  readonly why: string;
};

export type Score = {
  readonly file: string;
  readonly caught: number;
  /** Those of the caught that a test noticed only because it did not end. */
  readonly hung: number;
  readonly alive: number;
};

/** Of 100. */
export const percent = ({ caught, alive }: Pick<Score, 'caught' | 'alive'>): number =>
  caught + alive === 0 ? 100 : (100 * caught) / (caught + alive);

const squeeze = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** The text between two places, as Stryker counts them: both from 1 in its results. */
const between = (lines: readonly string[], { start, end }: MutantResult['location']): string => {
  const chosen = lines.slice(start.line - 1, end.line);
  const last = chosen.length - 1;
  return chosen
    .map((line, index) =>
      line.slice(index === 0 ? start.column - 1 : 0, index === last ? end.column - 1 : undefined),
    )
    .join('\n');
};

export const mutationOf = (file: string, text: string, mutant: MutantResult): Mutation => ({
  file,
  mutator: mutant.mutatorName,
  was: squeeze(between(text.split('\n'), mutant.location)),
  becomes: squeeze(mutant.replacement ?? ''),
  line: mutant.location.start.line,
  status: mutant.status,
  why: mutant.statusReason ?? '',
});

const isAlive = ({ status }: Mutation): boolean => status === 'Survived' || status === 'NoCoverage';
const isCaught = ({ status }: Mutation): boolean => status === 'Killed' || status === 'Timeout';

export const scoresOf = (mutations: readonly Mutation[]): readonly Score[] =>
  [...new Set(mutations.map(({ file }) => file))].sort().map((file) => {
    const own = mutations.filter((mutation) => mutation.file === file);
    return {
      file,
      caught: own.filter(isCaught).length,
      hung: own.filter(({ status }) => status === 'Timeout').length,
      alive: own.filter(isAlive).length,
    };
  });

const sum = (counts: readonly number[]): number =>
  counts.reduce((total, count) => total + count, 0);

export const totalOf = (scores: readonly Score[]): Score => ({
  file: 'in all',
  caught: sum(scores.map(({ caught }) => caught)),
  hung: sum(scores.map(({ hung }) => hung)),
  alive: sum(scores.map(({ alive }) => alive)),
});

const group = (mutations: readonly Mutation[]): ReadonlyMap<string, readonly Mutation[]> => {
  const groups = new Map<string, Mutation[]>();
  for (const mutation of mutations) {
    const own = groups.get(keyOf(mutation));
    if (own === undefined) groups.set(keyOf(mutation), [mutation]);
    else own.push(mutation);
  }
  return groups;
};

const keyOf = ({ file, mutator, was, becomes }: Change): string =>
  JSON.stringify([file, mutator, was, becomes]);

const sentence = ({ file, mutator, was, becomes }: Change, said: string): string =>
  `${file}: ${mutator} '${was}' -> '${becomes}' ${said}`;

/**
 * Faults of a run: mutants that could not be tried, survivors without a reason, reasons without a
 * survivor.
 */
export const faultsOf = (
  mutations: readonly Mutation[],
  listed: readonly Survivor[],
): readonly string[] => {
  const alive = group(mutations.filter(isAlive));
  const known = new Map(listed.map((survivor) => [keyOf(survivor), survivor]));
  const untried = mutations
    .filter(
      (mutation) => !isAlive(mutation) && !isCaught(mutation) && mutation.status !== 'Ignored',
    )
    .map((mutation) =>
      sentence(mutation, `could not be tried: ${mutation.status} ${mutation.why}`),
    );
  const unlisted = [...alive].flatMap(([key, same]) => {
    const [first] = same;
    const survivor = known.get(key);
    const count = survivor === undefined ? 0 : (survivor.count ?? 1);
    if (first === undefined || count === same.length) return [];
    const lines = same.map(({ line }) => line).join(', ');
    return [sentence(first, `survives ${same.length} times (line ${lines}), listed are ${count}`)];
  });
  const gone = listed
    .filter((survivor) => !alive.has(keyOf(survivor)))
    .map((survivor) => sentence(survivor, 'is listed and does not survive'));
  const twice = listed.length === known.size ? [] : ['a survivor is listed twice'];
  return [...untried, ...unlisted, ...gone, ...twice];
};
