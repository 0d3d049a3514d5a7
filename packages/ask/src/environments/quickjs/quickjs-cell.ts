import type { CellReport } from '../../run/cell-types.js';
import { collectOutput, cutOutput, type Output, wellFormed } from '../cell-output.js';
import { redeclare } from '../rewrite-declarations.js';
import type { Realm, RealmCellEnd, RealmEnding, Thrown } from './quickjs-realm.js';

/** Runs one cell in a QuickJS realm and makes its report. */

const FRAMES_MAX = 6;

export type Outputs = { readonly stdout: Output; readonly stderr: Output };
/** Maximum characters kept of a cell's output. The next cell gets them as `last_output`, which must fit into memory. */
const KEPT_MAX = 4_000_000;
const KEPT_PART_OF_MEMORY = 16;

export const newOutputs = (memoryMax: number): Outputs => {
  const keptMax = Math.min(KEPT_MAX, memoryMax / KEPT_PART_OF_MEMORY);
  return { stdout: collectOutput(keptMax), stderr: collectOutput(keptMax) };
};

export type CellRun = {
  readonly realm: Realm;
  readonly code: string;
  readonly number: number;
  /** Collects the output of the realm while the cell runs. */
  readonly outputs: Outputs;
  /** Output of the previous cell. */
  readonly lastOutput: string;
  readonly outputMax: number;
  /** True if the cell was interrupted, by its deadline or from outside. */
  readonly wasStopped: () => boolean;
  /** Grants some extra time for the report, which may run code of the cell's values (e.g. toJSON). */
  readonly allowEnding: () => void;
};

/** `unfit`: the reason why the realm must be replaced; null if it can be used again. */
export type Finished = {
  readonly report: CellReport;
  readonly unfit: string | null;
  readonly output: string;
};

const fileOf = (number: number): string => `cell-${number}`;

/** The stack frames in cells, as lines such as `at f, line 3`. Other frames are left out. */
const placesOf = (stack: string, number: number): readonly string[] =>
  [...stack.matchAll(/^ *at (.*?) ?\(?cell-(\d+):(\d+)(?::\d+)?\)?$/gm)]
    .slice(0, FRAMES_MAX)
    .map(([, name = '', cell, line]) => {
      const within = name === '' || name.startsWith('<') ? '' : `${name}, `;
      const elsewhere = Number(cell) === number ? '' : ' of an earlier cell';
      return `\n    at ${within}line ${line}${elsewhere}`;
    });

const failureText = ({ text, stack }: Thrown, number: number): string =>
  `${text}${placesOf(stack, number).join('')}\n`;

const STUCK =
  'Error: the code waits for a promise that nothing can settle: there are no timers, files or network here\n';

/** Runs the code and writes its failure to stderr. */
const evaluate = ({ realm, code, number, outputs, wasStopped }: CellRun): 'ok' | 'raised' | 'stopped' => {
  const { stderr } = outputs;
  if (wasStopped()) {
    stderr.add('Stopped: the cell was cancelled before it began.\n');
    return 'stopped';
  }
  const written = redeclare(code);
  if (written.status === 'failed') {
    const place = written.line === null ? '' : `\n    at line ${written.line}`;
    stderr.add(`SyntaxError: ${written.message}${place}\n`);
    return 'raised';
  }
  const outcome: RealmCellEnd = realm.evaluate(written.code, fileOf(number));
  if (wasStopped()) {
    stderr.add('Stopped: the cell was interrupted; what it had bound is kept.\n');
    return 'stopped';
  }
  if (outcome.status === 'raised') stderr.add(failureText(outcome.thrown, number));
  if (outcome.status === 'stuck') stderr.add(STUCK);
  return outcome.status === 'ok' ? 'ok' : 'raised';
};

/** The answer and the variables; null if the realm fails to list them. */
const endingOf = (realm: Realm): RealmEnding | null => {
  try {
    return realm.end();
  } catch {
    return null; // out of memory or time: the realm is unfit, and the report says so
  }
};

const whyUnfit = (realm: Realm, ending: RealmEnding | null, status: string): string | null => {
  if (status !== 'ok' && !realm.hasRoom()) return 'its memory was full';
  if (ending === null) return 'it could not tell what is bound';
  return realm.isBusy() ? 'the code left work behind that never ends' : null;
};

/** Prepares the realm; returns names that could not be restored. If memory is short, `last_output` is cut. */
const begin = ({ realm, lastOutput, outputMax }: CellRun): readonly string[] => {
  try {
    return realm.begin(lastOutput);
  } catch {
    // Retry with a shorter text. If that fails, too, the realm is replaced and the report says so.
    return realm.begin(cutOutput(lastOutput, outputMax, ''));
  }
};

/** Runs a cell. Throws if the engine itself breaks. */
export const runCell = (run: CellRun): Finished => {
  const { realm, outputs, outputMax } = run;
  const lost = begin(run);
  const status = evaluate(run);
  run.allowEnding();
  const ending = endingOf(realm);
  const unfit = whyUnfit(realm, ending, status);
  if (lost.length > 0) outputs.stderr.add(`Note: the code made ${lost.join(', ')} impossible to restore.\n`);
  const output = outputs.stdout.whole();
  const report: CellReport = {
    status,
    stdout: cutOutput(output, outputMax, '; the next cell has all of it in last_output'),
    stderr: cutOutput(outputs.stderr.whole(), outputMax, ''),
    variables: ending?.variables ?? [],
    answer: ending === null || ending.answer === null ? null : wellFormed(ending.answer),
    variablesLost: 'no',
  };
  return { report, unfit, output };
};

/** A stopwatch for one cell that excludes the time spent waiting for calls. */
export type CellWatch = {
  usedMs(): number;
  /** Runs the work without counting its time. */
  wait<T>(work: () => T): T;
};

export const startWatch = (now: () => number): CellWatch => {
  const startedAtMs = now();
  let waitedMs = 0;
  return {
    usedMs: () => now() - startedAtMs - waitedMs,
    wait(work) {
      const fromMs = now();
      const result = work();
      waitedMs += now() - fromMs;
      return result;
    },
  };
};
