/**
 * `npm run mutate -- --sample [FOLDER…]`: tries a random sample of the mutants of folders whose
 * tests take too long to try them all, and writes its section of docs/mutation.md. A mutant is a
 * change in one place of the sources; one that no test catches is alive.
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { chooseTests } from '../../test-runner/choose.js';
import type { Mutation } from '../score.js';
import { sampledSurvivors } from '../survivors.js';
import { chooseSample, pairMutants } from './choose-sample.js';
import { type Instrumented, instrument, type SwitchedMutant } from './instrument.js';
import {
  type Retry,
  type SampledFolder,
  sampleFaults,
  sampleFigures,
  sampleSection,
  withSection,
} from './sample-page.js';
import { openTestCopy } from './test-copy.js';
import { reachAll, trySample } from './try-sample.js';

const SAMPLED_FOLDERS = [
  'packages/agent/src/journal',
  'packages/agent/src/workspace',
  'packages/agent/src/tools',
  'packages/agent/src/session',
];
/** Tests of these folders, and of what stands on them. */
const TEST_FOLDERS = [
  'packages/agent/test/journal',
  'packages/agent/test/workspace',
  'packages/agent/test/tools',
  'packages/agent/test/runtime',
  'packages/verify/test/simulation',
];

const RESULTS = '.stryker/samples.json';
const PAGE = 'docs/mutation.md';

type Results = Readonly<Record<string, SampledFolder>>;

const readResults = (): Results =>
  existsSync(RESULTS) ? (JSON.parse(readFileSync(RESULTS, 'utf8')) as Results) : {}; // this script wrote it

const folderOf = ({ file }: Mutation, folders: readonly string[]): string =>
  folders.find((folder) => file.startsWith(`${folder}/`)) ?? file;

const isAlive = ({ status }: Mutation): boolean => status === 'Survived' || status === 'NoCoverage';

type SampleOptions = {
  readonly folders: readonly string[];
  readonly tests: readonly string[];
  readonly seed: number;
  readonly count: number;
  readonly minutesMax: number;
  /** Only those that no test caught the last time. */
  readonly onlyAlive: boolean;
  /** Tries none. */
  readonly onlyPage: boolean;
};

const readOptions = (words: readonly string[]): SampleOptions => {
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: {
      sample: { type: 'boolean' },
      page: { type: 'boolean', default: false },
      alive: { type: 'boolean', default: false },
      count: { type: 'string', default: '60' },
      seed: { type: 'string', default: '7' },
      minutes: { type: 'string', default: '600' },
      tests: { type: 'string', multiple: true, default: TEST_FOLDERS },
    },
  });
  return {
    folders: positionals.length === 0 ? SAMPLED_FOLDERS : positionals,
    tests: values.tests,
    seed: Number(values.seed),
    count: Number(values.count),
    minutesMax: Number(values.minutes),
    onlyAlive: values.alive,
    onlyPage: values.page,
  };
};

/** Pairs mutants with outcomes of the last run. */
const pairWithLast = (
  mutants: readonly SwitchedMutant[],
  results: Results,
  folders: readonly string[],
): ReadonlyMap<SwitchedMutant, Mutation> =>
  pairMutants(
    mutants,
    folders.flatMap((folder) => results[folder]?.mutations ?? []),
  );

/**
 * The outcome now: mutants that were not tried again, or that no test reaches this time, keep the
 * old one.
 */
const outcomeOf = (
  tried: Mutation | undefined,
  last: Mutation | undefined,
): readonly Mutation[] => {
  const outcome = tried === undefined || tried.status === 'NoCoverage' ? (last ?? tried) : tried;
  return outcome === undefined ? [] : [outcome];
};

const tryAll = async (
  root: string,
  sampleOptions: SampleOptions,
  sample: readonly SwitchedMutant[],
  sourcesWith: Instrumented['sourcesWith'],
): Promise<readonly Mutation[]> => {
  const chosen = chooseTests(root, sampleOptions.tests);
  if (chosen.kind === 'faults') throw new Error(chosen.faults.join('\n'));
  const copy = await openTestCopy(
    root,
    sourcesWith(new Set(sample.map(({ id }) => id))),
    chosen.files,
  );
  try {
    const { testFiles, faults } = await reachAll(copy, chosen.files);
    for (const fault of faults) console.log(fault);
    return await trySample(copy, testFiles, sample, sampleOptions.minutesMax * 60_000);
  } finally {
    copy.remove();
  }
};

/** Writes what is known; whether all that live have a reason. */
const writeResults = (results: Results): boolean => {
  mkdirSync(path.dirname(RESULTS), { recursive: true });
  writeFileSync(RESULTS, JSON.stringify(results));
  console.log(`\n${sampleFigures(results)}\n`);
  const faults = sampleFaults(results, sampledSurvivors);
  for (const fault of faults) console.error(fault);
  const missing = SAMPLED_FOLDERS.filter((folder) => results[folder] === undefined);
  if (missing.length === 0)
    writeFileSync(
      PAGE,
      withSection(readFileSync(PAGE, 'utf8'), sampleSection(results, sampledSurvivors)),
    );
  else console.log(`${PAGE} is written when ${missing.join(', ')} have been tried, too`);
  return faults.length === 0;
};

/** The date of the sample, and when some of it were tried again. */
const timesOf = (
  last: SampledFolder | undefined,
  now: Date,
  isAgain: boolean,
  retried: readonly Mutation[],
): Pick<SampledFolder, 'at' | 'again'> => {
  const at = now.toISOString();
  if (last === undefined || !isAgain) return { at };
  if (retried.length === 0) return last;
  const caught = retried.filter((mutation) => !isAlive(mutation)).length;
  const retry: Retry = { at, count: retried.length, caught, how: 'by this script' };
  return { at: last.at, again: [...(last.again ?? []), retry] };
};

/** Whether all that live have a reason. */
export const mutateSample = async (root: string, words: readonly string[]): Promise<boolean> => {
  const sampleOptions = readOptions(words);
  const { folders, seed, count } = sampleOptions;
  const startedAt = new Date();
  const results = readResults();
  if (sampleOptions.onlyPage) return writeResults(results);
  const { mutants, sourcesWith } = await instrument(root, folders);
  const lastOutcomes = sampleOptions.onlyAlive
    ? pairWithLast(mutants, results, folders)
    : new Map<SwitchedMutant, Mutation>();
  const sampleOf = (folder: string): readonly SwitchedMutant[] => {
    const own = mutants.filter((mutant) => folderOf(mutant, folders) === folder);
    return sampleOptions.onlyAlive
      ? own.filter((mutant) => lastOutcomes.has(mutant))
      : chooseSample(own, { seed, count });
  };
  const untried = folders.flatMap(sampleOf).filter((mutant) => {
    const last = lastOutcomes.get(mutant);
    return last === undefined || isAlive(last);
  });
  console.log(`${untried.length} of ${mutants.length} mutants, seed ${seed}`);
  const tried = await tryAll(root, sampleOptions, untried, sourcesWith);
  // Trying ends early when the time is over, but keeps the order.
  const triedOf = (mutant: SwitchedMutant): Mutation | undefined => tried[untried.indexOf(mutant)];
  const outcomeOfMutant = (mutant: SwitchedMutant): readonly Mutation[] =>
    outcomeOf(triedOf(mutant), lastOutcomes.get(mutant));
  const fresh = folders.map((folder): readonly [string, SampledFolder] => [
    folder,
    {
      ...timesOf(
        results[folder],
        startedAt,
        sampleOptions.onlyAlive,
        sampleOf(folder).flatMap((mutant) => triedOf(mutant) ?? []),
      ),
      seed,
      all: mutants.filter((mutant) => folderOf(mutant, folders) === folder).length,
      mutations: sampleOf(folder).flatMap(outcomeOfMutant),
    },
  ]);
  return writeResults({ ...results, ...Object.fromEntries(fresh) });
};
