/**
 * An environment that replaces its process when it ends.
 *
 * 1. It runs one cell (a program of the model), or reads one variable, at a time.
 * 2. The variables are lost with the process. One report says so, and a new process is started.
 */

import type { Cell, Environment, Subcall, SubcallAnswerer } from '../ports.js';
import type { CellReport } from '../run/cell-types.js';

/** The end of a cell: its report, or the end of its process. */
export type CellEnd =
  | { readonly type: 'finished'; readonly report: CellReport }
  /** The process ended. `stdout`, `stderr` and `answer` are incomplete. */
  | {
      readonly type: 'gone';
      readonly why: string;
      readonly stdout: string;
      readonly stderr: string;
      readonly answer: string | null;
    };

/** One process with its variables. */
export type EnvironmentProcess = {
  /** Runs a cell; `number` counts the environment's cells, from 1. Never rejects. */
  run(number: number, cell: Cell, answer: SubcallAnswerer): Promise<CellEnd>;
  /** Null if there is no such variable, or if the process ends meanwhile. Never rejects. */
  read(name: string): Promise<string | null>;
  hasEnded(): boolean;
  /** Ends the process; resolves when it has ended. */
  end(why: string): Promise<void>;
};

/**
 * Calls the answerer, and returns exactly one text per prompt even if it fails or returns fewer.
 */
export const answerTexts = async (
  subcall: Subcall,
  answer: SubcallAnswerer,
): Promise<readonly string[]> => {
  try {
    const texts = await answer(subcall);
    return subcall.prompts.map((_, index) => texts[index] ?? 'Error: this call has no answer');
  } catch (thrown) {
    // The code sees the failure as the text of each slot.
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return subcall.prompts.map(() => `Error: ${message}`);
  }
};

const createLossReport = (
  what: string,
  end: Extract<CellEnd, { readonly type: 'gone' }>,
): CellReport => ({
  status: 'died',
  stdout: end.stdout,
  stderr: `${end.stderr}${what} was replaced by a fresh one: ${end.why}. All variables are lost.\n`,
  variables: [],
  answer: end.answer,
  variablesLost: 'yes',
});

/** `what` names the engine in messages; `begin` starts a new process, and rejects if it can't. */
export const createEnvironment = async (
  what: string,
  begin: () => Promise<EnvironmentProcess>,
): Promise<Environment> => {
  let process = await begin();
  let number = 0;
  let use: 'free' | 'busy' | 'closed' = 'free';
  let variablesLost: 'no' | 'yes' = 'no';

  const replace = async (): Promise<void> => {
    process = await begin();
    variablesLost = 'yes';
    // close() was called meanwhile, but could end only the previous process.
    if (use === 'closed') await process.end('it was closed');
  };
  const refuseClosed = (): void => {
    if (use === 'closed') throw new Error('this environment is closed: start another one');
  };
  const whileFree = async <T>(work: () => Promise<T>): Promise<T> => {
    refuseClosed();
    if (use === 'busy')
      throw new Error('this environment runs one cell at a time: wait for the one before');
    use = 'busy';
    try {
      if (process.hasEnded()) await replace();
      refuseClosed(); // closed meanwhile
      return await work();
    } finally {
      if (use === 'busy') use = 'free';
    }
  };
  const runCell = async (cell: Cell, answer: SubcallAnswerer): Promise<CellReport> => {
    number += 1;
    const end = await process.run(number, cell, answer);
    if (end.type === 'gone' && use === 'busy') await replace();
    const report = end.type === 'gone' ? createLossReport(what, end) : end.report;
    const lost = variablesLost;
    variablesLost = 'no';
    return lost === 'no' ? report : { ...report, variablesLost: lost };
  };

  return {
    run: (cell, answer) => whileFree(() => runCell(cell, answer)),
    read: (name) => whileFree(() => process.read(name)),
    async close() {
      use = 'closed';
      await process.end('it was closed');
    },
  };
};

/**
 * A timer that can be paused. It calls `ring` once, when its running time has reached the limit.
 */
type PausableTimer = {
  pause(): void;
  resume(): void;
  /** Stops the timer for good. */
  cancel(): void;
};

export const startPausableTimer = (forMs: number, ring: () => void): PausableTimer => {
  let leftMs = forMs;
  let startedAtMs = 0;
  let timer: NodeJS.Timeout | 'paused' | 'over' = 'paused';
  const pause = (): void => {
    if (typeof timer === 'string') return;
    clearTimeout(timer);
    timer = 'paused';
    leftMs -= performance.now() - startedAtMs;
  };
  const resume = (): void => {
    if (timer !== 'paused') return;
    startedAtMs = performance.now();
    timer = setTimeout(
      () => {
        timer = 'over';
        ring();
      },
      Math.max(0, leftMs),
    );
  };
  resume();
  return {
    pause,
    resume,
    cancel() {
      if (typeof timer !== 'string') clearTimeout(timer);
      timer = 'over';
    },
  };
};
