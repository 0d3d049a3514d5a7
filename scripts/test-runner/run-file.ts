/** Runs one test file in a process of its own, or a program of many. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { CompiledTests } from './compile.js';
import type { OutcomeLine, TestOutcome } from './outcome.js';
import { nameSources } from './source-lines.js';

export type FileResult = {
  readonly file: string;
  readonly tests: readonly TestOutcome[];
  readonly suites: number;
  /** Why the file as a whole failed, whatever its tests did: it crashed, hung, or ran no test. */
  readonly fault: string | null;
  /** What it and its tests printed, stdout and stderr as they came. */
  readonly printed: string;
  readonly notes: readonly string[];
  readonly durationMs: number;
  /** Of its process and the programs that it started; 0 of one that did not reach its end. */
  readonly cpuMs: number;
  /** Of its process; null of a unit test, which has none of its own, and of one that did not start. */
  readonly processId: number | null;
};

/** Whether the file or one of its tests failed. */
export const hasFailed = ({ tests, fault }: FileResult): boolean =>
  fault !== null || tests.some(({ type }) => type === 'failed');

export const FILE_TIME_MAX_MS = 1_800_000;
/** How long a descendant of a file that has ended may hold its output. */
const OUTPUT_GRACE_MS = 2_000;
const OUTPUT_MAX_CHARACTERS = 1_000_000;

export type Ending = {
  readonly code: number | null;
  readonly signal: string | null;
  /** How long it ran before it was killed; null of one that ended. */
  readonly killedAfterMs: number | null;
};

const readOutcomes = (root: string, file: string): readonly OutcomeLine[] => {
  if (!existsSync(file)) return [];
  // Names of sources look the same in JSON.
  return nameSources(root, readFileSync(file, 'utf8'))
    .split('\n')
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as OutcomeLine]; // our own reporter wrote it
      } catch {
        return []; // the last line of a process that was killed; that it has not ended is reported
      }
    });
};

export const isTest = (line: OutcomeLine): line is TestOutcome =>
  line.type === 'passed' ||
  line.type === 'failed' ||
  line.type === 'skipped' ||
  line.type === 'todo';

export const faultOf = (
  lines: readonly OutcomeLine[],
  { code, signal, killedAfterMs }: Ending,
): string | null => {
  const tests = lines.filter(isTest);
  const ran = `after ${tests.length} tests`;
  if (killedAfterMs !== null)
    return `it was still running after ${killedAfterMs / 1000} s and was killed, ${ran}`;
  if (signal !== null) return `its process was killed by ${signal} ${ran}`;
  if (tests.length === 0) return `it ran no test: its process ended with ${code}`;
  if (!lines.some(({ type }) => type === 'ended'))
    return `its process ended with ${code} ${ran}, not at its end`;
  const failed = tests.some(({ type }) => type === 'failed');
  return code === 0 || failed ? null : `all its tests passed, but its process ended with ${code}`;
};

/** Most code of a test runs too seldom to be worth optimising, which was up to a quarter of the CPU. */
const OPTIMISE_LESS = '--interrupt-budget=500000';
const canOptimiseLess = spawnSync(process.execPath, [OPTIMISE_LESS, '-e', '0']).status === 0;
/** Two cores have enough to do without threads that collect garbage and optimise beside a test. */
const LEAN_FLAGS: readonly string[] = [
  '--single-threaded',
  '--max-semi-space-size=32',
  ...(canOptimiseLess ? [OPTIMISE_LESS] : []), // later versions of Node lack it
];
const WITHOUT_ASYNC_HOOK = fileURLToPath(new URL('without-async-hook.cjs', import.meta.url));

const running = new Set<ChildProcess>();

/** Ends the files that run, when the whole run is interrupted. */
export const killRunning = (): void => {
  for (const child of running) child.kill('SIGKILL');
};

const waitFor = (child: ChildProcess, timeMaxMs: number): Promise<Ending> =>
  new Promise((resolve) => {
    let killedAfterMs: number | null = null;
    const timer = setTimeout(() => {
      killedAfterMs = timeMaxMs;
      child.kill('SIGKILL');
    }, timeMaxMs);
    child.once('error', () => resolve({ code: null, signal: 'no start', killedAfterMs }));
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      running.delete(child);
      const ending = { code, signal, killedAfterMs };
      const grace = setTimeout(() => resolve(ending), OUTPUT_GRACE_MS);
      child.once('close', () => {
        clearTimeout(grace);
        resolve(ending);
      });
    });
  });

export type ProgramResult = Pick<FileResult, 'printed' | 'notes' | 'durationMs' | 'cpuMs'> & {
  readonly lines: readonly OutcomeLine[];
  readonly ending: Ending;
  readonly processId: number | null;
};

/** Runs a compiled program of tests; `flags` are node's. */
export const runProgram = async (
  root: string,
  program: string,
  reporter: string,
  timeMaxMs: number,
  flags: readonly string[] = [],
): Promise<ProgramResult> => {
  const startedAtMs = performance.now();
  const outcomes = `${program}.outcomes`;
  rmSync(outcomes, { force: true });
  const reporting = [`--test-reporter=${reporter}`, `--test-reporter-destination=${outcomes}`];
  // With this variable node would report to the test process that started this one.
  const { NODE_TEST_CONTEXT: _context, ...environment } = process.env;
  const child = spawn(process.execPath, [...LEAN_FLAGS, ...flags, ...reporting, program], {
    cwd: root,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      if (printed.length < OUTPUT_MAX_CHARACTERS) printed += text;
    });
  }
  const ending = await waitFor(child, timeMaxMs);
  const lines = readOutcomes(root, outcomes);
  return {
    lines,
    ending,
    printed: nameSources(root, printed),
    notes: lines.flatMap((line) => (line.type === 'note' ? [line.text] : [])),
    durationMs: performance.now() - startedAtMs,
    cpuMs: lines.reduce((sum, line) => sum + (line.type === 'ended' ? line.cpuMs : 0), 0),
    processId: child.pid ?? null,
  };
};

export const runFile = async (
  root: string,
  file: string,
  compiled: Pick<CompiledTests, 'programOf' | 'reporter'>,
  timeMaxMs = FILE_TIME_MAX_MS,
): Promise<FileResult> => {
  const program = compiled.programOf(file);
  const { lines, ending, ...rest } = await runProgram(
    root,
    program,
    compiled.reporter,
    timeMaxMs,
    [`--require=${WITHOUT_ASYNC_HOOK}`], // files that share a process are suites, which need it
  );
  return {
    file,
    tests: lines.filter(isTest),
    suites: lines.filter(({ type }) => type === 'suite').length,
    fault: faultOf(lines, ending),
    ...rest,
  };
};
