/** The section of docs/mutation.md about folders of which only a sample is tried. */

import { code, figures } from '../page.js';
import { type Mutation, percent, scoresOf, totalOf } from '../score.js';
import type { Survivor } from '../survivors/survivor.js';

export type SampledFolder = {
  /** When it was tried, as an ISO date. */
  readonly at: string;
  readonly seed: number;
  /** Number of all mutants of the folder. */
  readonly all: number;
  readonly mutations: readonly Mutation[];
  /** Mutants that had lived and were tried once more. */
  readonly again?: readonly Retry[];
};

export type Retry = {
  /** As an ISO date. */
  readonly at: string;
  readonly count: number;
  readonly caught: number;
  readonly how: string;
};
type Samples = Readonly<Record<string, SampledFolder>>;

const isAlive = ({ status }: Mutation): boolean => status === 'Survived' || status === 'NoCoverage';

const isOf = (survivor: Survivor, mutation: Mutation): boolean =>
  survivor.file === mutation.file &&
  survivor.mutator === mutation.mutator &&
  survivor.was === mutation.was &&
  survivor.becomes === mutation.becomes;

const sentence = ({ file, line, mutator, was, becomes }: Mutation, said: string): string =>
  `${file}:${line}: ${mutator} '${was}' -> '${becomes}' ${said}`;

/**
 * Survivors without a reason, and reasons whose mutants are caught. A reason may be of a mutant
 * outside the sample.
 */
export const sampleFaults = (samples: Samples, listed: readonly Survivor[]): readonly string[] => {
  const mutations = Object.values(samples).flatMap((sample) => sample.mutations);
  const unlisted = mutations
    .filter((mutation) => isAlive(mutation) && !listed.some((survivor) => isOf(survivor, mutation)))
    .map((mutation) => sentence(mutation, `survives (${mutation.why})`));
  const gone = listed.flatMap((survivor) => {
    const own = mutations.filter((mutation) => isOf(survivor, mutation));
    const [first] = own;
    return first === undefined || own.some(isAlive)
      ? []
      : [sentence(first, 'is listed and does not survive')];
  });
  return [...unlisted, ...gone];
};

/**
 * Bounds in percent within which the share of all mutants lies, with 95 % probability (Wilson's
 * interval).
 */
const boundsOf = (caught: number, tried: number): readonly [number, number] => {
  const z = 1.96;
  const share = caught / tried;
  const middle = share + z ** 2 / (2 * tried);
  const half = z * Math.sqrt((share * (1 - share)) / tried + z ** 2 / (4 * tried ** 2));
  const whole = 1 + z ** 2 / tried;
  return [(100 * (middle - half)) / whole, (100 * (middle + half)) / whole];
};

/** Under it, a share says nothing. */
const FEWEST = 30;

const row = (folder: string, { at, seed, all, mutations, again = [] }: SampledFolder): string => {
  const score = totalOf(scoresOf(mutations));
  const unreached = mutations.filter(({ status }) => status === 'NoCoverage').length;
  // Tests that were written for mutants of the sample say nothing of the others.
  const caughtLater = again.reduce((sum, { caught }) => sum + caught, 0);
  const [low, high] = boundsOf(score.caught - caughtLater, mutations.length).map((bound) =>
    bound.toFixed(0),
  );
  const cells = [
    folder.replace('packages/', ''),
    at.slice(0, 10),
    seed,
    all,
    mutations.length,
    score.caught,
    score.hung,
    score.alive - unreached,
    unreached,
    ...(mutations.length < FEWEST
      ? ['too few', 'too few']
      : [percent(score).toFixed(1), `${low} to ${high}`]),
  ];
  return `| ${cells.join(' | ')} |`;
};

/** Figures of the folders, as they are printed and written. */
export const sampleFigures = (samples: Samples): string =>
  [
    '| folder | date | seed | mutants | tried | caught | of these by not ending | alive | not reached | % | of all, by the first try |',
    '|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|',
    ...Object.entries(samples).map(([folder, sample]) => row(folder, sample)),
  ].join('\n');

/** What was tried once more, for readers. */
const againLines = (samples: Samples): readonly string[] =>
  Object.entries(samples).flatMap(([folder, { again = [] }]) =>
    again.map(
      ({ at, count, caught, how }) =>
        `- ${folder.replace('packages/', '')}: ${count} on ${at.slice(0, 10)}, ${how}: ${caught} caught`,
    ),
  );

const triedAgain = (lines: readonly string[]): readonly string[] =>
  lines.length === 0
    ? []
    : [
        '',
        'Tried again of those that had lived, most of them after tests were written for them, some with tests of other folders:',
        '',
        ...lines,
      ];

const reasonRows = (samples: Samples, listed: readonly Survivor[]): readonly string[] =>
  Object.values(samples)
    .flatMap(({ mutations }) => mutations.filter(isAlive))
    .map((mutation) => {
      const because =
        listed.find((survivor) => isOf(survivor, mutation))?.because ?? 'No reason yet.';
      const { file, was, becomes } = mutation;
      return `| ${file.replace('packages/', '')} | ${code(was)} | ${code(becomes)} | ${because} |`;
    })
    .toSorted();

const BEGIN = '<!-- samples -->';

export const sampleSection = (samples: Samples, listed: readonly Survivor[]): string =>
  [
    BEGIN,
    '## Samples beyond the machine',
    '',
    'Tests of these folders use real files, processes and sandboxes: to try all mutants would take days. `npm run mutate --',
    '--sample` tries a random sample, spread over the files in proportion to their mutants, each with the test files of these',
    'folders that reach its place, in a sandbox. A failure counts if it comes again. Changes of text literals are left out. The',
    'last column says between which bounds the share of all mutants lies, with 95 % probability. It counts what was caught at',
    'the first try, since tests that were written for mutants of the sample say nothing of the others. Of a folder with less than',
    `${FEWEST} tried it says nothing.`,
    '',
    sampleFigures(samples),
    '',
    'Most mutants met the tests of their own folder alone: what only tests of other folders catch counts as alive. Tests that',
    "need Pawl's own sandbox fail in the one of this script and don't count either.",
    ...triedAgain(againLines(samples)),
    '',
    '### Those that live, and why',
    '',
    '| file | was | becomes | why |',
    '|---|---|---|---|',
    ...reasonRows(samples, listed),
    '',
    '### Figures by file',
    '',
    figures(scoresOf(Object.values(samples).flatMap(({ mutations }) => mutations))),
    '',
  ].join('\n');

/** A page with its section of samples exchanged; the section is its end. */
export const withSection = (page: string, section: string): string => {
  const [before = ''] = page.split(BEGIN);
  return `${before.trimEnd()}\n\n${section}`;
};

/** The section as it stands in a page, '' if there is none. */
export const sectionIn = (page: string): string => {
  const from = page.indexOf(BEGIN);
  return from === -1 ? '' : page.slice(from);
};
