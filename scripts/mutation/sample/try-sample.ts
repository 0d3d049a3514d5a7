/**
 * Tries mutants against the test files that reach their places, the quickest first, until one
 * fails.
 *
 * 1. Each test file runs once without a mutant: how long it takes, what it reaches, which of its
 *    tests fail in the sandbox. These never count.
 * 2. A file that takes three times as long as without the mutant, and ten seconds more, hangs: the
 *    mutant is caught.
 * 3. A failure counts if it comes again: a test that is unsteady catches nothing.
 */

import type { Mutation } from '../score.js';
import type { SwitchedMutant } from './instrument.js';
import type { TestCopy } from './test-copy.js';

type TestFile = {
  readonly file: string;
  readonly durationMs: number;
  readonly reached: ReadonlySet<string>;
  readonly failing: ReadonlySet<string>;
};

const FIRST_TIME_MAX_MS = 120_000;

const timeMaxOf = ({ durationMs }: TestFile): number => durationMs * 3 + 10_000;

/** What the tests reach, quickest first, and files that can't run in the sandbox. */
export const reachAll = async (
  copy: TestCopy,
  files: readonly string[],
): Promise<{ readonly testFiles: readonly TestFile[]; readonly faults: readonly string[] }> => {
  const testFiles: TestFile[] = [];
  const faults: string[] = [];
  for (const file of files) {
    const { ran, reached } = await copy.reach(file, FIRST_TIME_MAX_MS);
    if (ran.fault !== null) faults.push(`${file}: ${ran.fault}`);
    else
      testFiles.push({ file, durationMs: ran.durationMs, reached, failing: new Set(ran.failed) });
    for (const name of ran.failed) faults.push(`${file}: '${name}' fails without a mutant`);
    console.log(
      `${file}: ${(ran.durationMs / 1000).toFixed(1)} s, reaches ${reached.size} mutants`,
    );
  }
  return {
    testFiles: testFiles.toSorted((one, other) => one.durationMs - other.durationMs),
    faults,
  };
};

type Outcome = Pick<Mutation, 'status' | 'why'>;

const runOnce = async (copy: TestCopy, test: TestFile, id: string): Promise<Outcome | null> => {
  const isNew = (name: string): boolean => !test.failing.has(name);
  const { failed, fault, hung } = await copy.run(test.file, id, timeMaxOf(test), isNew);
  const first = failed.find(isNew);
  if (first !== undefined) return { status: 'Killed', why: `${test.file}: ${first}` };
  if (fault === null) return null;
  return { status: hung ? 'Timeout' : 'Killed', why: `${test.file}: ${fault}` };
};

const tryMutant = async (
  copy: TestCopy,
  testFiles: readonly TestFile[],
  { id }: SwitchedMutant,
): Promise<Outcome> => {
  const reaching = testFiles.filter(({ reached }) => reached.has(id));
  if (reaching.length === 0) return { status: 'NoCoverage', why: 'no test reaches it' };
  for (const test of reaching) {
    const outcome = await runOnce(copy, test, id);
    if (outcome !== null && (await runOnce(copy, test, id)) !== null) return outcome;
  }
  return { status: 'Survived', why: `${reaching.length} test files reach it` };
};

/** Ends when the time is over: the first mutants of a sample are a sample. */
export const trySample = async (
  copy: TestCopy,
  testFiles: readonly TestFile[],
  mutants: readonly SwitchedMutant[],
  endsAtMs: number,
): Promise<readonly Mutation[]> => {
  const mutations: Mutation[] = [];
  for (const [index, mutant] of mutants.entries()) {
    if (performance.now() >= endsAtMs) break;
    const { id: _id, ...mutation } = { ...mutant, ...(await tryMutant(copy, testFiles, mutant)) };
    mutations.push(mutation);
    const { file, line, was, becomes, status, why } = mutation;
    console.log(
      `${index + 1}/${mutants.length} ${status} ${file}:${line} '${was}' -> '${becomes}' (${why})`,
    );
  }
  return mutations;
};
