/** Runs unit tests in one process: to start one for each takes longer than most of them. */

import type { CompiledTests } from './compile.js';
import type { OutcomeLine, TestOutcome } from './outcome.js';
import {
  FILE_TIME_MAX_MS,
  type FileResult,
  faultOf,
  isTest,
  type ProgramResult,
  runProgram,
} from './run-file.js';

/** The name of a result that is about their common process, not about one file. */
export const UNIT_TESTS = 'unit tests';

type Suite = Extract<OutcomeLine, { type: 'suite' }>;

const isSuite = (line: OutcomeLine): line is Suite => line.type === 'suite';

/** Names begin with the file: the suite around it. */
const withoutFile = (file: string, test: TestOutcome): TestOutcome =>
  test.name === file ? test : { ...test, name: test.name.slice(`${file} > `.length) };

const resultOf = (file: string, { lines }: ProgramResult): FileResult | null => {
  const isOf = ({ name }: { readonly name: string }): boolean =>
    name === file || name.startsWith(`${file} > `);
  const tests = lines.filter(isTest).filter(isOf);
  const suites = lines.filter(isSuite).filter(isOf);
  const own = suites.find(({ name }) => name === file);
  // A suite that threw is told as a test that failed.
  const ended = own !== undefined || tests.some(({ name }) => name === file);
  if (!ended) return null;
  return {
    file,
    tests: tests.map((test) => withoutFile(file, test)),
    suites: suites.length - (own === undefined ? 0 : 1),
    fault: tests.length === 0 ? 'it ran no test' : null,
    printed: '',
    notes: [],
    durationMs: own?.durationMs ?? 0,
    cpuMs: 0, // counted for their common process
    processId: null,
  };
};

/**
 * One result for each file that ran to its end; and one with the name UNIT_TESTS where the process
 * has a fault.
 */
export const runUnits = async (
  root: string,
  files: readonly string[],
  compiled: Pick<CompiledTests, 'unitProgramOf' | 'reporter'>,
  timeMaxMs = FILE_TIME_MAX_MS,
): Promise<readonly FileResult[]> => {
  const program = compiled.unitProgramOf(files);
  const ran = await runProgram(root, program, compiled.reporter, timeMaxMs);
  const results = files.map((file) => resultOf(file, ran)).filter((result) => result !== null);
  const fault = faultOf(ran.lines, ran.ending);
  const ended = new Set(results.map(({ file }) => file));
  const missing = files.find((file) => !ended.has(file));
  const process: FileResult = {
    file: UNIT_TESTS,
    tests: [],
    suites: 0,
    fault: missing === undefined ? fault : `${fault ?? 'it ended'}, in ${missing} or soon after it`,
    printed: ran.printed,
    notes: [...new Set(ran.notes)],
    durationMs: ran.durationMs,
    cpuMs: ran.cpuMs,
    processId: ran.processId,
  };
  return [...results, process];
};
