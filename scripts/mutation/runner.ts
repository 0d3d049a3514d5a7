/**
 * Runs the suite that `build.ts` bundled, for Stryker, which tries mutants: changed places of the
 * machine. Each mutant meets a fresh suite: the whole bundle, machine and tests, is evaluated again
 * with the mutant in it. It meets the tests that reach its place, those that caught others before it
 * first and slow ones last, until one fails. What a test file does while it loads counts for all its
 * tests. (Stryker's own runners start a program for each mutant: hours in place of minutes.)
 */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { compileFunction } from 'node:vm';
import type { InstrumenterContext, MutantCoverage } from '@stryker-mutator/api/core';
import { PluginKind } from '@stryker-mutator/api/plugin';
import {
  type DryRunResult,
  DryRunStatus,
  determineHitLimitReached,
  type MutantRunOptions,
  type MutantRunResult,
  MutantRunStatus,
  type TestResult,
  type TestRunner,
  TestStatus,
} from '@stryker-mutator/api/test-runner';
import type { Place, Test } from './one-by-one.js';

/** The bundle as a function. `place` takes the name of the test file that is loading. */
type Suite = (
  exports: object,
  load: NodeJS.Require,
  module: { exports: { tests: readonly Test[] } },
  place: Place,
) => void;

type Tests = ReadonlyMap<string, Test>;

const LOADS = 'the suite loads';
/** These are about something else than the machine, and slow. */
const EXPLORING = /\/exploration\//;
const SHELL = /\/test\/shell\//;
/** A test that takes longer comes after all that don't. */
const LONG_MS = 50;
const why = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const compile = (text: string): Suite =>
  // It is what esbuild makes of `format: 'cjs'`, with the name that the bundle uses as its own.
  compileFunction(text, ['exports', 'require', 'module', 'placeOnTest']) as Suite;

const load = createRequire(path.resolve('test/suite.cjs'));

const loadTests = (suite: Suite, place: Place): Tests => {
  const module = { exports: { tests: [] as readonly Test[] } };
  suite(module.exports, load, module, place);
  return new Map(
    module.exports.tests.map((test, at) => [`${at} ${test.file}: ${test.title}`, test]),
  );
};

type Ran = { readonly failure: string | null; readonly timeMs: number };

/** `failure`: null of a test that passes, or why it fails. */
const runTest = async (test: Test): Promise<Ran> => {
  const startedAtMs = performance.now();
  const failure = await test.run().then(() => null, why);
  return { failure, timeMs: performance.now() - startedAtMs };
};

const dryResult = (id: string, fileName: string, { failure, timeMs }: Ran): TestResult => {
  const result = { id, name: id, fileName, timeSpentMs: timeMs };
  return failure === null
    ? { ...result, status: TestStatus.Success }
    : { ...result, status: TestStatus.Failed, failureMessage: failure };
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
  /** Without Stryker's counts, which cost most of the time and are of no use for a mutant. */
  readonly #quick = compile(this.#text.replace(/\bstryCov_9fa48\d*\((?:"\d+"(?:, )?)+\)/g, '0'));
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
    const context: InstrumenterContext = {};
    Object.assign(globalThis, { __stryker__: context });
    // Stryker counts what is reached for a test; while a file loads, its name stands for one.
    const place: Place = {
      get file() {
        return context.currentTestId ?? '';
      },
      set file(name) {
        context.currentTestId = name;
      },
    };
    const tests = loadTests(compile(this.#text), place);
    const results: TestResult[] = [
      { id: LOADS, name: LOADS, status: TestStatus.Success, timeSpentMs: 0 },
    ];
    for (const [id, test] of tests) {
      context.currentTestId = id;
      results.push(dryResult(id, path.resolve(test.file), await runTest(test)));
    }
    const { mutantCoverage = { static: {}, perTest: {} } } = context;
    return {
      status: DryRunStatus.Complete,
      tests: results,
      mutantCoverage: shareOut(mutantCoverage, tests),
    };
  }

  async mutantRun(options: MutantRunOptions): Promise<MutantRunResult> {
    const { activeMutant, hitLimit } = options;
    const context: InstrumenterContext = {
      activeMutant: activeMutant.id,
      hitCount: 0,
      ...(hitLimit === undefined ? {} : { hitLimit }),
    };
    Object.assign(globalThis, { __stryker__: context });
    const caught = (id: string, failureMessage: string, nrOfTests: number): MutantRunResult =>
      determineHitLimitReached(context.hitCount, hitLimit) === undefined
        ? { status: MutantRunStatus.Killed, killedBy: [id], failureMessage, nrOfTests }
        : { status: MutantRunStatus.Timeout, reason: failureMessage };
    let tests: Tests;
    try {
      tests = loadTests(this.#quick, { file: '' });
    } catch (error) {
      return caught(LOADS, why(error), 1);
    }
    const ordered = this.#orderTests(tests, options);
    for (const [index, id] of ordered.entries()) {
      const test = tests.get(id);
      if (test === undefined) continue;
      const { failure, timeMs } = await runTest(test);
      if (failure !== null) {
        this.#catchers = [id, ...this.#catchers.filter((other) => other !== id)];
        return caught(id, failure, index + 1);
      }
      this.#timesMs.set(id, timeMs);
    }
    return { status: MutantRunStatus.Survived, nrOfTests: ordered.length };
  }

  #orderTests(
    tests: Tests,
    { activeMutant: { fileName }, testFilter }: MutantRunOptions,
  ): readonly string[] {
    const reaching = new Set(testFilter ?? tests.keys());
    const isMeant = (id: string): boolean =>
      (EXPLORING.test(fileName) || !EXPLORING.test(id)) &&
      (/\/policy\//.test(fileName) || !SHELL.test(id));
    const longMs = (id: string): number => {
      const timeMs = this.#timesMs.get(id) ?? 0;
      return timeMs < LONG_MS ? 0 : timeMs;
    };
    return [...new Set([...this.#catchers, ...tests.keys()])]
      .filter((id) => reaching.has(id) && isMeant(id))
      .sort((one, other) => longMs(one) - longMs(other));
  }
}

/** The used part of a node of the syntax tree. */
type Node = {
  readonly type: string;
  readonly test?: Node | null;
  readonly consequent?: Node | readonly Node[];
  readonly argument?: Node | null;
  readonly expression?: Node;
  readonly typeAnnotation?: Node;
};

const isNever = (node: Node | null | undefined): boolean =>
  node?.type === 'TSSatisfiesExpression' && node.typeAnnotation?.type === 'TSNeverKeyword';

/** `default: return x satisfies never;` is never reached, as the compiler proves. */
const isImpossible = ({ type, test, consequent }: Node): boolean => {
  if (type !== 'SwitchCase' || test !== null || !Array.isArray(consequent)) return false;
  const [only, more] = consequent as readonly Node[];
  return more === undefined && isNever(only?.argument ?? only?.expression);
};

const neverReached = {
  // Stryker hands over Babel's paths without saying so in its types.
  shouldIgnore: ({ node }: { readonly node: Node }): string | undefined =>
    isImpossible(node) ? 'the compiler proves that this is never reached' : undefined,
};

export const strykerPlugins = [
  { kind: PluginKind.TestRunner, name: 'suite', injectableClass: SuiteRunner },
  { kind: PluginKind.Ignore, name: 'never-reached', value: neverReached },
];
