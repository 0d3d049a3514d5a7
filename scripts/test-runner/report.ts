/**
 * What `npm test` prints: one line a file, failures in full where they happen and at the end, the
 * counts.
 */

import type { ProgramsOfProcesses, StartedPrograms } from './programs.js';
import type { Rerun } from './rerun.js';
import { type FileResult, hasFailed } from './run-file.js';

export type Counts = {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly todo: number;
  readonly suites: number;
};

const indent = (text: string): string => text.replace(/^(?=.)/gm, '  ');

const withNewline = (text: string): string =>
  text === '' || text.endsWith('\n') ? text : `${text}\n`;

/** A file with a fault counts as a failed test more. */
export const addCounts = (results: readonly FileResult[]): Counts => {
  const tests = results.flatMap((result) => result.tests);
  const count = (type: string): number => tests.filter((test) => test.type === type).length;
  return {
    passed: count('passed'),
    failed: count('failed') + results.filter(({ fault }) => fault !== null).length,
    skipped: count('skipped'),
    todo: count('todo'),
    suites: results.reduce((sum, { suites }) => sum + suites, 0),
  };
};

/** The failed tests of a file and its fault, in full. */
const describeFailures = ({ file, tests, fault }: FileResult): string =>
  [
    ...tests
      .filter(({ type }) => type === 'failed')
      .map(({ name, error }) => `✖ ${name} (${file})\n${withNewline(indent(error))}`),
    fault === null ? '' : `✖ ${file}: ${fault}\n`,
  ].join('');

const seconds = (durationMs: number): string => `${(durationMs / 1000).toFixed(1)} s`;

const times = ({ durationMs, cpuMs }: FileResult): string =>
  `${seconds(durationMs)}, CPU ${seconds(cpuMs)}`;

const EXPENSIVE = 10;

/** Cores are what a run lacks: the files that take most of their time. */
const mostExpensive = (results: readonly FileResult[]): readonly string[] =>
  results
    .toSorted((one, other) => other.cpuMs - one.cpuMs)
    .slice(0, EXPENSIVE)
    .filter(({ cpuMs }) => cpuMs > 0)
    .map(({ file, cpuMs }) => `ℹ CPU ${seconds(cpuMs)} ${file}\n`);

const DEAREST_PROGRAMS = 5;

const describePrograms = (programs: StartedPrograms): string =>
  Object.entries(programs)
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, DEAREST_PROGRAMS)
    .map(([name, times]) => `${times} ${name}`)
    .join(', ');

/**
 * What each file cost, the dearest first: CPU seconds, seconds by the clock, tests, started programs
 * and which. Unit tests are one line for each of their processes.
 */
export const describeCosts = (
  results: readonly FileResult[],
  programs: ProgramsOfProcesses | null,
): string => {
  const rows = results
    .toSorted((one, other) => other.cpuMs - one.cpuMs)
    .map(({ file, tests, durationMs, cpuMs, processId }) => {
      const started = programs?.[String(processId)] ?? {};
      const count = Object.values(started).reduce((sum, times) => sum + times, 0);
      const figures = [
        (cpuMs / 1000).toFixed(1),
        (durationMs / 1000).toFixed(1),
        String(tests.length),
        programs === null ? '?' : String(count),
      ];
      return `${figures.map((figure) => figure.padStart(8)).join('')}  ${file}  ${describePrograms(started)}\n`;
    });
  const heads = ['CPU s', 'seconds', 'tests', 'programs'];
  return `${heads.map((head) => head.padStart(8)).join('')}  file\n${rows.join('')}`;
};

/** Tests that were left out, by name. */
const leftOut = ({ file, tests }: FileResult): readonly string[] =>
  tests
    .filter(({ type }) => type === 'skipped' || type === 'todo')
    .map(({ type, name }) => `- ${type}: ${name} (${file})\n`);

/** One file: what it printed, its failures, what it left out, and its line. */
export const describeFile = (result: FileResult): string => {
  const { file, tests, printed, notes } = result;
  const { failed } = addCounts([result]);
  const account = failed > 0 ? `${failed} failed, ${tests.length} tests` : `${tests.length} tests`;
  return [
    withNewline(printed),
    ...leftOut(result),
    ...notes.map((note) => `ℹ ${file}: ${note}\n`),
    describeFailures(result),
    `${failed > 0 ? '✖' : '✔'} ${file}: ${account}, ${times(result)}\n`,
  ].join('');
};

/**
 * Files that ran in one process: what they printed, failures in full, and one line. `whole` is the
 * result of the process.
 */
export const describeUnits = (results: readonly FileResult[], whole: FileResult): string => {
  const all = [...results, whole];
  const { passed, failed } = addCounts(all);
  const slowest = results.toSorted((one, other) => other.durationMs - one.durationMs)[0];
  const longest =
    slowest === undefined ? '' : `, longest ${slowest.file} ${seconds(slowest.durationMs)}`;
  return [
    withNewline(whole.printed),
    ...results.flatMap(leftOut),
    ...whole.notes.map((note) => `ℹ ${whole.file}: ${note}\n`),
    ...all.map(describeFailures),
    `${failed > 0 ? '✖' : '✔'} ${whole.file} of ${results.length} files: ${failed > 0 ? `${failed} failed, ` : ''}${passed + failed} tests, ${times(whole)}${longest}\n`,
  ].join('');
};

/**
 * Failures again at the end, where a long log is read first; then the counts, and as the last line
 * the two that decide.
 */
export const describeEnd = (
  { results, unsteady }: Rerun,
  failedChecks: readonly string[],
  spent: Pick<FileResult, 'durationMs' | 'cpuMs'>,
): string => {
  const counts = addCounts(results);
  const { passed, skipped, todo, suites } = counts;
  const failed = counts.failed + failedChecks.length;
  const failedFiles = results.filter(hasFailed);
  return [
    ...unsteady.map(
      (first) => `${describeFailures(first)}⚠ ${first.file} is unsteady: it passed alone\n`,
    ),
    ...failedFiles.map(describeFailures),
    ...[...failedChecks.toSorted(), ...failedFiles.map(({ file }) => file).toSorted()].map(
      (name) => `✖ ${name}\n`,
    ),
    ...(results.length > EXPENSIVE ? mostExpensive(results) : []),
    `ℹ tests ${passed + counts.failed + skipped + todo}\n`,
    `ℹ suites ${suites}\n`,
    `ℹ pass ${passed}\n`,
    `ℹ fail ${failed}\n`,
    `ℹ unsteady ${unsteady.length}\n`,
    `ℹ skipped ${skipped}\n`,
    `ℹ todo ${todo}\n`,
    `ℹ cpu_ms ${Math.round(spent.cpuMs)}\n`,
    `ℹ duration_ms ${Math.round(spent.durationMs)}\n`,
    `${passed} passed, ${failed} failed\n`,
  ].join('');
};
