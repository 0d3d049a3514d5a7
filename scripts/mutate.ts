/**
 * `npm run mutate [-- FILE…]`: tries every mutant of src/machine-kit/kernel and src/agent, or of the files given, and prints the
 * score. A whole run writes docs/mutation.md. Fails under the score we promise, and where survivors and their reasons
 * (scripts/mutation/survivors.ts) do not agree. `-- --page` tries nothing: it writes the page of the last whole run again,
 * with the reasons as they are now, and with what was tried again since of some files.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Stryker } from '@stryker-mutator/core';
import { options } from './mutation/options.js';
import { figures, page } from './mutation/page.js';
import { faultsOf, type Mutation, mutationOf, percent, scoresOf, totalOf } from './mutation/score.js';
import { survivors } from './mutation/survivors.js';

const PERCENT_MIN = 90;

const root = fileURLToPath(new URL('..', import.meta.url));
process.chdir(root);
// The processes that Stryker starts load plugins that are written in TypeScript.
process.env.NODE_OPTIONS = '--import tsx';

const LAST_RUN = '.stryker/last-run.json';
type Tried = {
  readonly at: string;
  readonly minutes: number;
  readonly mutations: readonly Mutation[];
  /** Files that were tried again after the whole run. */
  readonly again: readonly string[];
};

const chosen = process.argv.slice(2).filter((word) => word !== '--page');
const isWhole = chosen.length === 0;

const tryMutants = async (): Promise<Tried> => {
  const startedAt = new Date();
  const results = await new Stryker({ ...options, ...(isWhole ? {} : { mutate: chosen }) }).runMutationTest();
  const mutations = results.map((mutant) => {
    const file = path.relative(root, mutant.fileName).replaceAll(path.sep, '/');
    return mutationOf(file, readFileSync(file, 'utf8'), mutant);
  });
  const minutes = Math.round((Date.now() - startedAt.getTime()) / 60_000);
  return { at: startedAt.toISOString(), minutes, mutations, again: [] };
};

/** The data that this script wrote to the page. */
const readLastRun = (): Tried => JSON.parse(readFileSync(LAST_RUN, 'utf8')) as Tried;

/** The last whole run, with these files as they are now. */
const correct = (whole: Tried, { mutations }: Tried): Tried => {
  const files = new Set(mutations.map(({ file }) => file));
  return {
    ...whole,
    mutations: [...whole.mutations.filter(({ file }) => !files.has(file)), ...mutations],
    again: [...new Set([...whole.again, ...files])].sort(),
  };
};

const last = process.argv.includes('--page') ? readLastRun() : await tryMutants();
const { mutations } = last;
if (isWhole) writeFileSync(LAST_RUN, JSON.stringify(last));
else if (existsSync(LAST_RUN)) writeFileSync(LAST_RUN, JSON.stringify(correct(readLastRun(), last)));
const scores = scoresOf(mutations);
const tried = new Set(mutations.map(({ file }) => file));
const faults = [
  ...faultsOf(mutations, isWhole ? survivors : survivors.filter(({ file }) => tried.has(file))),
];
if (percent(totalOf(scores)) < PERCENT_MIN) faults.push(`the score is under ${PERCENT_MIN} %`);

console.log(`\n${figures(scores)}\n`);
for (const fault of faults) console.error(fault);
if (isWhole)
  writeFileSync(
    'docs/mutation.md',
    page({ at: new Date(last.at), minutes: last.minutes, again: last.again, mutations, scores, survivors }),
  );
process.exitCode = faults.length === 0 ? 0 : 1;
