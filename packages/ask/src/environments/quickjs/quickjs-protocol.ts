/**
 * Messages between the environment and its worker. Cells count from 1; messages of another cell are
 * dropped.
 */

import type { MessagePort } from 'node:worker_threads';
import type { Subcall } from '../../ports.js';
import type { CellReport } from '../../run/cell-types.js';

export type WorkerInput = {
  /** Paths of the contexts. */
  readonly contexts: readonly string[];
  readonly names: readonly string[];
  readonly outputMax: number;
  readonly memoryMax: number;
  /** See BELL and STOP. */
  readonly control: Int32Array;
  /** Carries the texts for the open call; the worker reads it when BELL changes. */
  readonly texts: MessagePort;
};

/** Index in `control` that is incremented and notified to wake the waiting worker. */
export const BELL = 0;
/** Index in `control` of the number of the cell to stop; 0 means none. */
export const STOP = 1;
export const CONTROL_BYTES = 8;

export type ToWorker =
  | {
      readonly type: 'run';
      readonly number: number;
      readonly code: string;
      readonly deadlineMs: number;
    }
  | { readonly type: 'read'; readonly name: string };

export type Texts = {
  readonly number: number;
  readonly ordinal: number;
  readonly texts: readonly string[];
};

export type FromWorker =
  | { readonly type: 'ready' }
  /** Head of the output, stored in case the worker has to be terminated. */
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
      /** The reason why the worker must be replaced; null if it can go on. */
      readonly unfit: string | null;
    }
  | { readonly type: 'value'; readonly text: string | null };
