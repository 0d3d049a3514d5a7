/**
 * `npm run mutate [-- FILE…]`: tries every mutant of src/kernel and src/agent, or of the files given, and prints the
 * score. A whole run writes docs/mutation.md. Fails under the score we promise, and where survivors and their reasons
 * (scripts/mutation/survivors.ts) do not agree.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Stryker } from '@stryker-mutator/core';
import { options } from './mutation/options.js';
import { figures, page } from './mutation/page.js';
import { faultsOf, mutationOf, percent, scoresOf, totalOf } from './mutation/score.js';
import { survivors } from './mutation/survivors.js';

const PERCENT_MIN = 90;

const root = fileURLToPath(new URL('..', import.meta.url));
process.chdir(root);
// The processes that Stryker starts load plugins that are written in TypeScript.
process.env.NODE_OPTIONS = '--import tsx';

const chosen = process.argv.slice(2);
const startedAt = new Date();
const mutate = chosen.length > 0 ? { mutate: chosen } : {};
const results = await new Stryker({ ...options, ...mutate }).runMutationTest();
const minutes = Math.round((Date.now() - startedAt.getTime()) / 60_000);

const mutations = results.map((mutant) => {
  const file = path.relative(root, mutant.fileName).replaceAll(path.sep, '/');
  return mutationOf(file, readFileSync(file, 'utf8'), mutant);
});
const scores = scoresOf(mutations);
const tried = new Set(mutations.map(({ file }) => file));
const faults = [
  ...faultsOf(mutations, chosen.length > 0 ? survivors.filter(({ file }) => tried.has(file)) : survivors),
];
if (percent(totalOf(scores)) < PERCENT_MIN) faults.push(`the score is under ${PERCENT_MIN} %`);

console.log(`\n${figures(scores)}\n`);
for (const fault of faults) console.error(fault);
if (chosen.length === 0)
  writeFileSync('docs/mutation.md', page({ at: startedAt, minutes, mutations, scores, survivors }));
process.exitCode = faults.length === 0 ? 0 : 1;
