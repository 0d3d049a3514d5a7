/**
 * Tries every mutant of the machine, or of some of its files (score.ts says what a mutant is).
 */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Stryker } from '@stryker-mutator/core';
import { options } from './options.js';
import { figures, page } from './page.js';
import { sectionIn, withSection } from './sample/sample-page.js';
import { faultsOf, type Mutation, mutationOf, percent, scoresOf, totalOf } from './score.js';
import { survivors } from './survivors.js';

const PERCENT_MIN = 90;

const PAGE = 'docs/mutation.md';
const LAST_RUN = '.stryker/last-run.json';
type Tried = {
  readonly at: string;
  readonly minutes: number;
  readonly mutations: readonly Mutation[];
  /** Files that were tried again after the whole run. */
  readonly again: readonly string[];
};

const tryMutants = async (root: string, chosen: readonly string[]): Promise<Tried> => {
  const startedAt = new Date();
  const results = await new Stryker({
    ...options,
    ...(chosen.length === 0 ? {} : { mutate: [...chosen] }),
  }).runMutationTest();
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

/** Whether the score is as promised, and survivors and reasons agree. */
export const mutateMachine = async (root: string, words: readonly string[]): Promise<boolean> => {
  const chosen = words.filter((word) => word !== '--page');
  const isWhole = chosen.length === 0;
  // The processes that Stryker starts load plugins that are written in TypeScript.
  process.env.NODE_OPTIONS = '--import tsx';
  const last = words.includes('--page') ? readLastRun() : await tryMutants(root, chosen);
  const { mutations } = last;
  if (isWhole) writeFileSync(LAST_RUN, JSON.stringify(last));
  else if (existsSync(LAST_RUN))
    writeFileSync(LAST_RUN, JSON.stringify(correct(readLastRun(), last)));
  const scores = scoresOf(mutations);
  const tried = new Set(mutations.map(({ file }) => file));
  const faults = [
    ...faultsOf(mutations, isWhole ? survivors : survivors.filter(({ file }) => tried.has(file))),
  ];
  if (percent(totalOf(scores)) < PERCENT_MIN) faults.push(`the score is under ${PERCENT_MIN} %`);

  console.log(`\n${figures(scores)}\n`);
  for (const fault of faults) console.error(fault);
  if (isWhole) {
    const { at, minutes, again } = last;
    const written = page({ at: new Date(at), minutes, again, mutations, scores, survivors });
    const samples = existsSync(PAGE) ? sectionIn(readFileSync(PAGE, 'utf8')) : '';
    writeFileSync(PAGE, samples === '' ? written : withSection(written, samples));
  }
  return faults.length === 0;
};
