/**
 * `npm run mutate [-- FILE…]`: tries every mutant of packages/machine/src/kernel and
 * packages/agent/src/machine, or of the files given, and prints the score. A whole run writes
 * docs/mutation.md. Fails under the score we promise, and where survivors and their reasons
 * (scripts/mutation/survivors.ts) do not agree. `-- --page` tries nothing: it writes the page of
 * the last whole run again, with the reasons as they are now, and with what was tried again since
 * of some files.
 *
 * `npm run mutate -- --sample [--count 60] [--seed 7] [FOLDER…]`: tries a random sample of the
 * mutants of each of some other folders and writes their section of the page. `--alive` tries again
 * only those that no test caught the last time; `--tests FOLDER`, as often as wanted, says which
 * tests they meet; `--page` tries nothing and writes the section again.
 */
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
process.chdir(root);
const words = process.argv.slice(2);

const run = async (): Promise<boolean> => {
  if (words.includes('--sample'))
    return (await import('./mutation/sample/sample-run.js')).mutateSample(root, words);
  return (await import('./mutation/whole-run.js')).mutateMachine(root, words);
};

process.exitCode = (await run()) ? 0 : 1;
