import type { MessagePort } from 'node:worker_threads';
import type { Subcall } from '../needs-recursive.js';
import type { CellReport } from '../recursive/cell.js';

/** What passes between the environment and its worker. Cells are counted from 1; what belongs to another is dropped. */

export type WorkerInput = {
  /** Paths of the contexts. */
  readonly contexts: readonly string[];
  readonly outputMax: number;
  readonly memoryMax: number;
  /** See BELL and STOP. */
  readonly control: Int32Array;
  /** Texts for the call that the code waits for; the worker looks there when the bell has rung. */
  readonly texts: MessagePort;
};

/** Cells of `control`: changed and notified whenever the waiting worker should look. */
export const BELL = 0;
/** The number of the cell that is to end now; 0: none. */
export const STOP = 1;
export const CONTROL_BYTES = 8;

export type ToWorker =
  | { readonly type: 'run'; readonly number: number; readonly code: string; readonly deadlineMs: number }
  | { readonly type: 'read'; readonly name: string };

export type Texts = { readonly number: number; readonly ordinal: number; readonly texts: readonly string[] };

export type FromWorker =
  | { readonly type: 'ready' }
  /** Of the head of the output, for the case that the worker has to be ended. */
  | {
      readonly type: 'printed';
      readonly number: number;
      readonly stream: 'stdout' | 'stderr';
      readonly text: string;
    }
  | { readonly type: 'subcall'; readonly number: number; readonly subcall: Subcall }
  | {
      readonly type: 'finished';
      readonly number: number;
      readonly report: CellReport;
      /** Why the worker can't go on, or null if it can. */
      readonly unfit: string | null;
    }
  | { readonly type: 'value'; readonly text: string | null };
