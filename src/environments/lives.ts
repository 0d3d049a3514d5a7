import type { Cell, Environment, Subcall, SubcallAnswerer } from '../needs-recursive.js';
import type { CellReport } from '../recursive/cell.js';

/**
 * An environment over processes that may end.
 *
 * 1. One cell, or one look at a variable, at a time.
 * 2. A process that ended takes the variables with it: the report says so, once, and a fresh one stands ready.
 */

/** How a cell ended: with a report, or with its process. */
export type CellEnd =
  | { readonly type: 'finished'; readonly report: CellReport }
  /** `stdout`, `stderr`, `answer`: what is known of them. */
  | {
      readonly type: 'gone';
      readonly why: string;
      readonly stdout: string;
      readonly stderr: string;
      readonly answer: string | null;
    };

/** One process with its variables. */
export type Life = {
  /** `number`: of the cell in its environment, from 1. Never rejects. */
  run(number: number, cell: Cell, answer: SubcallAnswerer): Promise<CellEnd>;
  /** Never rejects; null also where it ends over it. */
  read(name: string): Promise<string | null>;
  hasEnded(): boolean;
  /** Resolves when nothing of it is left. */
  end(why: string): Promise<void>;
};

/** One text per prompt, whatever the answerer does. */
export const textsOf = async (subcall: Subcall, answer: SubcallAnswerer): Promise<readonly string[]> => {
  try {
    const texts = await answer(subcall);
    return subcall.prompts.map((_, index) => texts[index] ?? 'Error: this call has no answer');
  } catch (thrown) {
    // Nothing is lost: the code sees the failure in each slot.
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return subcall.prompts.map(() => `Error: ${message}`);
  }
};

const died = (what: string, end: Extract<CellEnd, { readonly type: 'gone' }>): CellReport => ({
  status: 'died',
  stdout: end.stdout,
  stderr: `${end.stderr}${what} was replaced by a fresh one: ${end.why}. All variables are lost.\n`,
  variables: [],
  answer: end.answer,
  variablesLost: 'yes',
});

/** `what` runs the code, by name; `begin` starts a fresh life and rejects where none can be had. */
export const createEnvironment = async (what: string, begin: () => Promise<Life>): Promise<Environment> => {
  let life = await begin();
  let number = 0;
  let use: 'free' | 'busy' | 'closed' = 'free';
  let variablesLost: 'no' | 'yes' = 'no';

  const replace = async (): Promise<void> => {
    life = await begin();
    variablesLost = 'yes';
    // It was closed meanwhile, and close() ended the life before.
    if (use === 'closed') await life.end('it was closed');
  };
  const using = async <T>(work: () => Promise<T>): Promise<T> => {
    if (use === 'closed') throw new Error('this environment is closed: start another one');
    if (use === 'busy') throw new Error('this environment runs one cell at a time: wait for the one before');
    use = 'busy';
    try {
      if (life.hasEnded()) await replace();
      return await work();
    } finally {
      if (use === 'busy') use = 'free';
    }
  };
  const runCell = async (cell: Cell, answer: SubcallAnswerer): Promise<CellReport> => {
    number += 1;
    const end = await life.run(number, cell, answer);
    if (end.type === 'gone' && use === 'busy') await replace();
    const report = end.type === 'gone' ? died(what, end) : end.report;
    const lost = variablesLost;
    variablesLost = 'no';
    return lost === 'no' ? report : { ...report, variablesLost: lost };
  };

  return {
    run: (cell, answer) => using(() => runCell(cell, answer)),
    read: (name) => using(() => life.read(name)),
    async close() {
      use = 'closed';
      await life.end('it was closed');
    },
  };
};
