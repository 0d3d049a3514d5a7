import type { CellReport } from '../recursive/cell.js';
import { collectOutput, cutOutput, type Output, wellFormed } from './output.js';
import type { Ending, Outcome, Realm, Thrown } from './quickjs-realm.js';
import { redeclare } from './redeclare.js';

/** One cell in a realm: code in, report out. */

const FRAMES_MAX = 6;

export type Outputs = { readonly stdout: Output; readonly stderr: Output };
/** What is kept of what one cell prints, in characters: the next cell gets it as `last_output`, which must fit in. */
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
  /** Where the realm prints to while the cell runs. */
  readonly outputs: Outputs;
  /** What the cell before printed. */
  readonly lastOutput: string;
  readonly outputMax: number;
  /** Whether it was interrupted: by its deadline, or from outside. */
  readonly wasStopped: () => boolean;
  /** From now on the report is made, which may look into values of the code's: some more time for that. */
  readonly allowEnding: () => void;
};

/** `unfit`: why the realm is not to be used again; null if it is. */
export type Finished = {
  readonly report: CellReport;
  readonly unfit: string | null;
  readonly output: string;
};

const fileOf = (number: number): string => `cell-${number}`;

/** Where it happened: `at f, line 3`. Frames that are not of a cell are left out. */
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
  const outcome: Outcome = realm.evaluate(written.code, fileOf(number));
  if (wasStopped()) {
    stderr.add('Stopped: the cell was interrupted; what it had bound is kept.\n');
    return 'stopped';
  }
  if (outcome.status === 'raised') stderr.add(failureText(outcome.thrown, number));
  if (outcome.status === 'stuck') stderr.add(STUCK);
  return outcome.status === 'ok' ? 'ok' : 'raised';
};

/** Null where the realm can't even tell what is bound. */
const endingOf = (realm: Realm): Ending | null => {
  try {
    return realm.end();
  } catch {
    return null; // no memory or no time left for it: the realm is unfit, and the report says so
  }
};

const whyUnfit = (realm: Realm, ending: Ending | null, status: string): string | null => {
  if (status !== 'ok' && !realm.hasRoom()) return 'its memory was full';
  if (ending === null) return 'it could not tell what is bound';
  return realm.isBusy() ? 'the code left work behind that never ends' : null;
};

/** Names that could not be restored. Where memory is short the cell goes without the output of the one before. */
const begin = ({ realm, lastOutput, outputMax }: CellRun): readonly string[] => {
  try {
    return realm.begin(lastOutput);
  } catch {
    // Nothing is lost that was not cut already: if this fails, too, the realm is replaced and that is said.
    return realm.begin(cutOutput(lastOutput, outputMax, ''));
  }
};

/** Runs a cell. Throws where the engine broke. */
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

/** A clock for one cell: time spent waiting for calls is not its own. */
export type Watch = {
  usedMs(): number;
  /** Runs the work, whose time does not count. */
  wait<T>(work: () => T): T;
};

export const startWatch = (now: () => number): Watch => {
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
