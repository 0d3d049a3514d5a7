/**
 * Runs the suite that `build.ts` bundled, for Stryker, which tries mutants: changed places of the
 * machine.
 *
 * 1. Each mutant meets a fresh suite: the whole bundle is evaluated again, machine and tests, with
 *    the mutant in it from the first line on. A suite that does not load has caught its mutant.
 * 2. A mutant meets the tests that reach its place, those that caught others before it first and
 *    those that take long last, and no test after the one that fails. What a test file does while
 *    it loads counts for all its tests; what the machine does while it loads counts for every test
 *    there is.
 * 3. A mutant of the machine does not meet the tests that explore the machine, and only one of the
 *    policy meets those of shell texts: they are about something else, and slow.
 * 4. A mutant that runs a hundred times as often as its place did in the dry run hangs; so says
 *    Stryker.
 */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { compileFunction } from 'node:vm';
import type { MutantCoverage } from '@stryker-mutator/api/core';
import { PluginKind } from '@stryker-mutator/api/plugin';
import {
  type DryRunResult,
  DryRunStatus,
  type MutantRunOptions,
  type MutantRunResult,
  MutantRunStatus,
  type TestResult,
  type TestRunner,
  TestStatus,
} from '@stryker-mutator/api/test-runner';
import type { Place, Test } from './one-by-one.js';

/**
 * The bundle as a function. `place` takes the name of the test file that is loading; `mutant` is
 * the number of the mutant that is on, or NONE; `hit` is called each time its code runs.
 */
type Suite = (
  exports: object,
  load: NodeJS.Require,
  module: { exports: { tests: readonly Test[] } },
  place: Place,
  mutant: number,
  hit: () => true,
) => void;
type Tests = ReadonlyMap<string, Test>;
/** What Stryker's instruments keep, where they look for it. */
type Instruments = { currentTestId?: string | undefined; mutantCoverage?: MutantCoverage };

const LOADS = 'the suite loads';
const EXPLORING = /\/exploration\//;
const SHELL = /\/test\/shell\//;
const POLICY = /\/src\/policy\//;
/** A test that takes longer comes after all that don't. */
const LONG_MS = 50;
const NONE = -1;
const getTestId = ({ file, title }: Test, index: number): string => `${index} ${file}: ${title}`;
const why = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * `9fa48` is part of the names of Stryker's own functions. They count in every expression; while a
 * mutant runs, they need only tell which one is on.
 */
const withoutCounts = (instrumented: string): string =>
  instrumented
    .replace(/\bstryCov_9fa48\d*\((?:"\d+"(?:, )?)+\)/g, '0')
    .replace(/\bstryMutAct_9fa48\d*\("(\d+)"\)/g, '(mutantOnTest===$1&&hitOnTest())');

const compile = (text: string): Suite =>
  // It is what esbuild makes of `format: 'cjs'`, with the names that the bundle uses as its own.
  compileFunction(text, [
    'exports',
    'require',
    'module',
    'placeOnTest',
    'mutantOnTest',
    'hitOnTest',
  ]) as Suite;

const load = createRequire(path.resolve('test/suite.cjs'));

const loadTests = (suite: Suite, place: Place, mutant: number, hit: () => true): Tests => {
  const module = { exports: { tests: [] as readonly Test[] } };
  suite(module.exports, load, module, place, mutant, hit);
  return new Map(module.exports.tests.map((test, index) => [getTestId(test, index), test]));
};

type Ran = { readonly failure: string | null; readonly timeMs: number };

/** `failure`: null of a test that passes, or why it fails. */
const runTest = async (test: Test): Promise<Ran> => {
  const startedAtMs = performance.now();
  const failure = await test.run().then(() => null, why);
  return { failure, timeMs: performance.now() - startedAtMs };
};

const dryResult = (id: string, { failure, timeMs }: Ran): TestResult => {
  const told = { id, name: id, timeSpentMs: timeMs };
  return failure === null
    ? { ...told, status: TestStatus.Success }
    : { ...told, status: TestStatus.Failed, failureMessage: failure };
};

/** Gives each test what its file reached while it loaded. */
const shareOut = ({ static: always, perTest }: MutantCoverage, tests: Tests): MutantCoverage => ({
  static: always,
  perTest: Object.fromEntries(
    [...tests].map(([id, { file }]) => [id, { ...perTest[file], ...perTest[id] }]),
  ),
});

class SuiteRunner implements TestRunner {
  readonly #text = readFileSync('test/suite.cjs', 'utf8');
  readonly #quick = compile(withoutCounts(this.#text));
  /** The tests that caught a mutant, the last one first. */
  #catchers: readonly string[] = [];
  /** How long each test took when it last passed; 0 of one that this process has not run. */
  readonly #timesMs = new Map<string, number>();

  capabilities() {
    return { reloadEnvironment: true };
  }

  init(): Promise<void> {
    process.env.PAWL_SEED = '7';
    process.env.PAWL_TIER = 'quick';
    return Promise.resolve();
  }

  async dryRun(): Promise<DryRunResult> {
    const instruments: Instruments = {};
    Object.assign(globalThis, { __stryker__: instruments });
    // Stryker counts what is reached for a test; while a file loads, its name stands for one
    const place: Place = {
      get file() {
        return instruments.currentTestId ?? '';
      },
      set file(name) {
        instruments.currentTestId = name;
      },
    };
    const tests = loadTests(compile(this.#text), place, NONE, () => true);
    const results: TestResult[] = [
      { id: LOADS, name: LOADS, status: TestStatus.Success, timeSpentMs: 0 },
    ];
    for (const [id, test] of tests) {
      instruments.currentTestId = id;
      results.push(dryResult(id, await runTest(test)));
    }
    const { mutantCoverage = { static: {}, perTest: {} } } = instruments;
    return {
      status: DryRunStatus.Complete,
      tests: results,
      mutantCoverage: shareOut(mutantCoverage, tests),
    };
  }

  async mutantRun({
    activeMutant,
    testFilter,
    hitLimit,
  }: MutantRunOptions): Promise<MutantRunResult> {
    let hits = 0;
    const hangs = (): boolean => hitLimit !== undefined && hits > hitLimit;
    const hit = (): true => {
      hits += 1;
      if (hangs()) throw new Error(`the mutant ran ${hits} times`);
      return true;
    };
    const caught = (id: string, failureMessage: string, nrOfTests: number): MutantRunResult =>
      hangs()
        ? { status: MutantRunStatus.Timeout, reason: failureMessage }
        : { status: MutantRunStatus.Killed, killedBy: [id], failureMessage, nrOfTests };
    let tests: Tests;
    try {
      tests = loadTests(this.#quick, { file: '' }, Number(activeMutant.id), hit);
    } catch (error) {
      return caught(LOADS, why(error), 1);
    }
    const wanted = new Set(testFilter ?? tests.keys());
    const file = activeMutant.fileName.replaceAll(path.sep, '/');
    const isMeant = (id: string): boolean =>
      (EXPLORING.test(file) || !EXPLORING.test(id)) && (POLICY.test(file) || !SHELL.test(id));
    const longMs = (id: string): number => {
      const timeMs = this.#timesMs.get(id) ?? 0;
      return timeMs < LONG_MS ? 0 : timeMs;
    };
    const ordered = [...new Set([...this.#catchers, ...tests.keys()])]
      .filter((id) => wanted.has(id) && isMeant(id))
      .sort((one, other) => longMs(one) - longMs(other));
    for (const [index, id] of ordered.entries()) {
      const test = tests.get(id);
      if (test === undefined) continue;
      const { failure, timeMs } = await runTest(test);
      if (failure === null) {
        this.#timesMs.set(id, timeMs);
        continue;
      }
      this.#catchers = [id, ...this.#catchers.filter((other) => other !== id)];
      return caught(id, failure, index + 1);
    }
    return { status: MutantRunStatus.Survived, nrOfTests: ordered.length };
  }
}

export const strykerPlugins = [
  { kind: PluginKind.TestRunner, name: 'suite', injectableClass: SuiteRunner },
];
