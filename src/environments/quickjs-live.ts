import { MessageChannel, Worker } from 'node:worker_threads';
import type { EnvironmentOptions } from '../needs-recursive.js';
import { programFile } from './program-file.js';
import {
  BELL,
  CONTROL_BYTES,
  type FromWorker,
  STOP,
  type ToWorker,
  type WorkerInput,
} from './quickjs-wire.js';

/** Of the worker's thread: the engine's own limit of 1 MB must come first, also where it parses. */
const STACK_MB = 32;

/** A worker that has said that it is ready. */
export type Live = {
  post(message: ToWorker): void;
  /** Hears what it says from now on; null: nobody listens. */
  listen(hear: ((message: FromWorker) => void) | null): void;
  /** Hands over texts and wakes it. */
  give(number: number, ordinal: number, texts: readonly string[]): void;
  /** Asks the engine to interrupt the cell, also where it waits. */
  stop(number: number): void;
  /** Ends it, whatever it does; the reason is told by `ended`. */
  kill(why: string): Promise<void>;
  /** Why it ended, once it has. */
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

/** Starts a worker with the contexts loaded. Rejects where that fails: a file that is not there, too big for it. */
export const startWorker = async (options: EnvironmentOptions): Promise<Live> => {
  const control = new Int32Array(new SharedArrayBuffer(CONTROL_BYTES));
  const { port1, port2 } = new MessageChannel();
  const { contexts, outputMax, memoryMax } = options;
  const worker = newWorker(options, { contexts, outputMax, memoryMax, control, texts: port2 });
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
