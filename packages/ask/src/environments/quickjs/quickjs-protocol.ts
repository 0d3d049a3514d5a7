/** What the worker of QuickJS is started with, and its messages besides those of any program. */

import type { MessagePort } from 'node:worker_threads';
import type { FromRepl, ToRepl } from '../repl.js';

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

export type Texts = Extract<ToRepl, { readonly type: 'texts' }>;
export type ToWorker = Exclude<ToRepl, Texts>;
export type FromWorker = FromRepl | { readonly type: 'ready' };
