/**
 * `npm test`: builds, then checks and runs every test; ends with the line `N passed, N failed`.
 * Paths of test files or folders run only these, without the checks. `--fast` (`npm run check`)
 * checks the sources and runs the unit tests but the longest, without builds.
 *
 * `--deep` (`npm run test:deep`) runs everything: all rows, all kills, files named `*.deep.test.ts`
 * (test/tier.ts). `--report` prints what each file cost, and which programs it started.
 *
 * Unit tests share two processes, all other files have one of their own (test-runner/tier.ts).
 *
 * 1. A step that fails is reported at once, and no test file is started after it.
 * 2. A file that crashes, hangs, ends early or runs no test has failed, and is named.
 * 3. A file that failed beside others runs once more, alone, with the same random seed. If it
 *    passes then, the run passes, and the file is named as unsteady with its first failure in full.
 *    More than two such files fail the run.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, realpathSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { keyVariables, providers } from '../packages/agent/src/models/provider-table.js';
import { killProcessesWith } from '../test/kit/tools/processes.js';
import { missingNeeds } from './needs.js';
import { BUILDS, CHECKS, type Check, runCheck } from './test-runner/check.js';
import { allTests, chooseTests } from './test-runner/choose.js';
import { type CompiledTests, compileTests } from './test-runner/compile.js';
import { spentCpuMs } from './test-runner/cpu-time.js';
import { withOwnFolder } from './test-runner/own-folder.js';
import { countPrograms } from './test-runner/programs.js';
import { describeCosts, describeEnd, describeFile, describeUnits } from './test-runner/report.js';
import { type Rerun, rerunFailed } from './test-runner/rerun.js';
import { type FileResult, hasFailed, killRunning, runFile } from './test-runner/run-file.js';
import { runUnits, UNIT_TESTS } from './test-runner/run-units.js';
import { addTestUser } from './test-runner/test-user.js';
import { LONG_UNIT_TESTS } from './test-runner/tier.js';

/** More processes than cores: what tests wait for takes as long as what they compute. */
const AT_ONCE = availableParallelism() + 3;

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * What would let the machine of whoever runs the tests decide about them: keys, settings, colours.
 * Variables that only tests read stay: how often random tests run, and with which seed.
 */
const FOREIGN =
  /^(ANTHROPIC|OPENAI|GOOGLE|XDG|GIT)_|^PAWL_(?!SEED$|COUNT$)|^(NO_COLOR|FORCE_COLOR|NODE_OPTIONS|NODE_TEST_CONTEXT|UPDATE)$/;

const ofProviders = new Set([...keyVariables, ...providers.map(({ urlVariable }) => urlVariable)]);

/**
 * Certificates of whoever runs the tests cost each process of Node 60 ms of CPU at its start, two
 * thirds of it all: only the test that calls npm (packages/pawl/test/pack/) gets them, by this
 * name.
 */
const keepCertificatesForNpm = (): void => {
  const { NODE_EXTRA_CA_CERTS: file } = process.env;
  if (file === undefined) return;
  process.env.CA_CERTS_OF_NPM = file;
  delete process.env.NODE_EXTRA_CA_CERTS;
};

const cleanEnvironment = (): void => {
  for (const name of Object.keys(process.env))
    if (FOREIGN.test(name) || ofProviders.has(name)) delete process.env[name];
  keepCertificatesForNpm();
  // What is learned once holds for all tests: compiled code, and whether bubblewrap works.
  process.env.XDG_CACHE_HOME = path.join(root, 'node_modules', '.cache', 'pawl-code');
  // Sessions that name no other folder keep their state here, and not where that of the user is.
  process.env.XDG_STATE_HOME = path.join(tmpdir(), 'state');
  // Whatever repository lies around the temporary files, tests are not in it.
  process.env.GIT_CEILING_DIRECTORIES = realpathSync(tmpdir());
};

/**
 * One seed for all files of a run. It comes from the tree of the commit, so the same commit meets
 * the same random cases wherever it is tested, and each change meets others.
 */
const shareSeed = (): void => {
  const git = spawnSync('git', ['rev-parse', 'HEAD^{tree}'], { cwd: root, encoding: 'utf8' });
  const tree = git.status === 0 ? git.stdout : '1';
  process.env.PAWL_SEED ??= String(Number.parseInt(tree.slice(0, 7), 16));
  console.log(`ℹ PAWL_SEED=${process.env.PAWL_SEED}`);
};

/** Starts the jobs in order, so many at once. */
const runAll = async (jobs: readonly (() => Promise<void>)[]): Promise<void> => {
  const waiting = jobs[Symbol.iterator]();
  const work = async (): Promise<void> => {
    for (const job of waiting) await job();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
};

/** One after the other: the papers are made of the declarations. Gives the title of one that failed. */
const runBuilds = async (builds: readonly Check[]): Promise<readonly string[]> => {
  for (const build of builds) if (!(await runCheck(root, build))) return [build.title];
  return [];
};

const compile = async (files: readonly string[]): Promise<CompiledTests | null> => {
  const startedAtMs = performance.now();
  try {
    const compiled = await compileTests(root, files);
    const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
    console.log(`✔ ${files.length} test files compiled: ${seconds} s`);
    return compiled;
  } catch (error) {
    console.log(`✖ test files compiled: ${error instanceof Error ? error.message : String(error)}`);
    return null;
  }
};

/** What a run consists of. */
type Plan = {
  readonly builds: readonly Check[];
  readonly checks: readonly Check[];
  /** In two processes. */
  readonly units: readonly string[];
  /** Each in a process of its own. */
  readonly files: readonly string[];
};

/**
 * `daily` and `deep`: with the checks and every test of the tier; `fast`: what needs no build;
 * `chosen`: only the files that were named.
 */
type Extent = 'daily' | 'deep' | 'fast' | 'chosen';

const planOf = (extent: Extent, files: readonly string[], unitTests: readonly string[]): Plan => {
  const units = unitTests.filter((file) => !LONG_UNIT_TESTS.includes(file));
  // the tests start the bundle; packing, which the deep tier tries, needs the others too
  const builds = extent === 'deep' ? BUILDS : BUILDS.slice(0, 1);
  if (extent === 'chosen') return { builds, checks: [], units: [], files };
  if (extent === 'fast') return { builds: [], checks: CHECKS, units, files: [] };
  const others = files.filter((file) => !units.includes(file));
  return { builds, checks: CHECKS, units, files: others };
};

const runUnitsOf = async (
  units: readonly string[],
  compiled: CompiledTests,
): Promise<readonly FileResult[]> => {
  const results = await runUnits(root, units, compiled);
  const ofFiles = results.filter(({ file }) => file !== UNIT_TESTS);
  const [whole] = results.filter(({ file }) => file === UNIT_TESTS);
  if (whole !== undefined) process.stdout.write(describeUnits(ofFiles, whole));
  // the result of the common process counts only if something broke the process itself
  return whole?.fault === null ? ofFiles : results;
};

/**
 * Runs the checks beside the tests, then failed files alone; both lists are of what has been run.
 */
const runTests = async (
  { checks, units, files }: Plan,
  compiled: CompiledTests,
): Promise<{ readonly ran: Rerun; readonly failedChecks: readonly string[] }> => {
  const results: FileResult[] = [];
  const failedChecks: string[] = [];
  const checkJobs = checks.map((check) => async () => {
    if (!(await runCheck(root, check))) failedChecks.push(check.title);
  });
  const runAndDescribe = async (file: string): Promise<FileResult> => {
    const result = await runFile(root, file, compiled);
    process.stdout.write(describeFile(result));
    return result;
  };
  // One process alone would need longer than all checks beside it.
  const halves = [0, 1].map((half) => units.filter((_, index) => index % 2 === half));
  const unitJobs = halves
    .filter((half) => half.length > 0)
    .map((half) => async () => void results.push(...(await runUnitsOf(half, compiled))));
  const testJobs = files.map((file) => async () => {
    if (failedChecks.length === 0) results.push(await runAndDescribe(file));
  });
  await runAll([...unitJobs, ...checkJobs, ...testJobs]);
  // What broke the process of the unit tests can't be run alone.
  const isFinal =
    failedChecks.length > 0 ||
    units.length + files.length === 1 ||
    results.some(({ file, fault }) => file === UNIT_TESTS && fault !== null);
  const ran = isFinal ? { results, unsteady: [] } : await rerunFailed(results, runAndDescribe);
  return { ran, failedChecks };
};

const endOnSignal = (compiled: CompiledTests): void => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      killRunning();
      killProcessesWith(tmpdir());
      compiled.remove();
      process.exit(1);
    });
  }
};

const spentSince = (
  startedAtMs: number,
): { readonly durationMs: number; readonly cpuMs: number } => ({
  durationMs: performance.now() - startedAtMs,
  cpuMs: spentCpuMs(),
});

/** Whether everything passed. */
const run = async (
  files: readonly string[],
  extent: Extent,
  withCosts: boolean,
): Promise<boolean> => {
  const startedAtMs = performance.now();
  // A declaration of a file that is gone would go into the package.
  if (extent !== 'fast')
    rmSync(path.join(root, 'packages/pawl/dist/types'), { recursive: true, force: true });
  const [compiled, failedBuilds] = await Promise.all([
    compile(files),
    runBuilds(planOf(extent, files, []).builds),
  ]);
  if (compiled === null || failedBuilds.length > 0) {
    compiled?.remove();
    const failed = [...failedBuilds, ...(compiled === null ? ['test files compiled'] : [])];
    process.stdout.write(
      describeEnd({ results: [], unsteady: [] }, failed, spentSince(startedAtMs)),
    );
    return false;
  }
  if (extent !== 'fast') addTestUser();
  endOnSignal(compiled);
  const plan = planOf(extent, files, compiled.unitTests);
  const counter = withCosts ? await countPrograms() : null;
  const { ran, failedChecks } = await runTests(plan, compiled);
  compiled.remove();
  if (counter !== null) process.stdout.write(describeCosts(ran.results, await counter.end()));
  const started = new Set(ran.results.map(({ file }) => file));
  const left = plan.files.filter((file) => !started.has(file)).length;
  if (left > 0)
    console.log(
      `✖ ${left} of ${plan.files.length} test files were not started: a check had failed`,
    );
  if (extent === 'daily' || extent === 'deep')
    console.log('ℹ restate/ has tests of its own: cd restate && npm ci && npm test');
  process.stdout.write(describeEnd(ran, failedChecks, spentSince(startedAtMs)));
  return failedChecks.length === 0 && !ran.results.some(hasFailed);
};

const FLAGS: readonly string[] = ['--fast', '--deep', '--report'];

/** The checks beside unit tests need nothing that npm does not bring. */
const faultsOf = (flags: readonly string[], paths: readonly string[]): readonly string[] => {
  const unknown = flags
    .filter((flag) => !FLAGS.includes(flag))
    .map((flag) => `unknown flag ${flag}`);
  const gone = LONG_UNIT_TESTS.filter((file) => !existsSync(path.join(root, file)));
  const needs = flags.includes('--fast') && paths.length === 0 ? [] : missingNeeds();
  return [
    ...unknown,
    ...gone.map((file) => `scripts/test-runner/tier.ts names ${file}, which is gone`),
    ...needs,
  ];
};

const main = async (words: readonly string[]): Promise<void> => {
  const flags = words.filter((word) => word.startsWith('--'));
  const paths = words.filter((word) => !word.startsWith('--'));
  const chosen = chooseTests(root, paths);
  const faults = [...(chosen.kind === 'faults' ? chosen.faults : []), ...faultsOf(flags, paths)];
  for (const fault of faults) console.error(fault);
  process.exitCode = 1;
  if (faults.length > 0 || chosen.kind === 'faults') return;
  cleanEnvironment();
  shareSeed();
  console.log(`ℹ temporary files in ${tmpdir()}`);
  const isDeep = flags.includes('--deep');
  const whole = flags.includes('--fast') ? 'fast' : isDeep ? 'deep' : 'daily';
  process.env.PAWL_TIER = whole === 'fast' ? 'quick' : whole;
  const extent = paths.length === 0 ? whole : 'chosen';
  const files = paths.length === 0 ? allTests(root, isDeep) : chosen.files;
  const passed = await run(files, extent, flags.includes('--report'));
  if (passed) process.exitCode = 0;
};

const code = await withOwnFolder(() => main(process.argv.slice(2)));
if (code !== null) process.exitCode = code;
