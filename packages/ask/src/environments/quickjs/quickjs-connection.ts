import { MessageChannel, Worker } from 'node:worker_threads';
import type { EnvironmentOptions } from '../../environment-and-journal-types.js';
import { programFile } from '../bundled-program-file.js';
import {
  BELL,
  CONTROL_BYTES,
  type FromWorker,
  STOP,
  type ToWorker,
  type WorkerInput,
} from './quickjs-protocol.js';

/** Stack of the worker's thread, large enough that the engine's own limit of 1 MB is always reached first. */
const STACK_MB = 32;

/** A running worker that has reported `ready`. */
export type LiveWorker = {
  post(message: ToWorker): void;
  /** Sets the listener for messages; null removes it. */
  listen(hear: ((message: FromWorker) => void) | null): void;
  /** Sends the answer texts of a sub-call and wakes the worker. */
  give(number: number, ordinal: number, texts: readonly string[]): void;
  /** Interrupts the cell, also while it waits for a sub-call. */
  stop(number: number): void;
  /** Terminates the worker; `ended` then resolves with the reason. */
  kill(why: string): Promise<void>;
  /** Resolves with the reason when the worker has ended. */
  readonly ended: Promise<string>;
  hasEnded(): boolean;
};

const newWorker = (options: EnvironmentOptions, workerData: WorkerInput): Worker =>
  new Worker(programFile('quickjs-worker-from-source.js', 'quickjs-worker.js'), {
    workerData,
    transferList: [workerData.texts],
    name: `quickjs with ${options.contexts.length} contexts`,
    env: {},
    resourceLimits: { stackSizeMb: STACK_MB },
  });

/** Starts a worker with the contexts loaded. Rejects if a file is missing or the contexts do not fit into memory. */
export const startWorker = async (options: EnvironmentOptions): Promise<LiveWorker> => {
  const control = new Int32Array(new SharedArrayBuffer(CONTROL_BYTES));
  const { port1, port2 } = new MessageChannel();
  const { contexts, names, outputMax, memoryMax } = options;
  const worker = newWorker(options, { contexts, names, outputMax, memoryMax, control, texts: port2 });
  let why = 'its worker ended';
  let life: 'alive' | 'over' = 'alive';
  let hear: ((message: FromWorker) => void) | null = null;
  const ended = new Promise<string>((resolve) => {
    worker.on('error', (error) => {
      why = error.message;
    });
    worker.on('exit', () => {
      life = 'over';
      port1.close();
      resolve(why);
    });
  });
  const ready = new Promise<'ready'>((resolve) => {
    worker.on('message', (message: FromWorker) => {
      if (message.type === 'ready') resolve('ready');
      else hear?.(message);
    });
  });
  const first = await Promise.race([ready, ended]);
  if (first !== 'ready') throw new Error(`QuickJS did not start: ${first}`);
  const ring = (): void => {
    Atomics.add(control, BELL, 1);
    Atomics.notify(control, BELL);
  };
  return {
    ended,
    hasEnded: () => life === 'over',
    post: (message) => worker.postMessage(message),
    listen(next) {
      hear = next;
    },
    give(number, ordinal, texts) {
      port1.postMessage({ number, ordinal, texts });
      ring();
    },
    stop(number) {
      Atomics.store(control, STOP, number);
      ring();
    },
    async kill(reason) {
      why = reason;
      await worker.terminate();
    },
  };
};
