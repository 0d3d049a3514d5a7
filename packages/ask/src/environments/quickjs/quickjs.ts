/**
 * JavaScript in QuickJS, compiled to WebAssembly, in a worker thread. Needs no programs of the
 * system.
 */

import { MessageChannel, Worker } from 'node:worker_threads';
import type { EnvironmentKind, EnvironmentOptions } from '../../ports.js';
import { programFile } from '../bundled-program-file.js';
import { createProcess, type Repl, type ReplListener } from '../repl.js';
import { createEnvironment } from '../restartable-environment.js';
import {
  BELL,
  CONTROL_BYTES,
  type FromWorker,
  STOP,
  type WorkerInput,
} from './quickjs-protocol.js';

export const quickjs: EnvironmentKind = {
  name: 'quickjs',
  language: 'javascript',
  probe: () => Promise.resolve(null), // it comes with Pawl
  start: (options) =>
    createEnvironment('QuickJS', async () => createProcess(await startWorker(options), options)),
};

/** Stack of the worker's thread: large enough that the engine's limit of 1 MB comes first. */
const STACK_MB = 32;

const newWorker = (options: EnvironmentOptions, workerData: WorkerInput): Worker =>
  new Worker(programFile('quickjs-worker-from-source.js', 'quickjs-worker.js'), {
    workerData,
    transferList: [workerData.texts],
    name: `quickjs with ${options.contexts.length} contexts`,
    env: {},
    execArgv: [], // those of the program may not fit a thread: --input-type
    resourceLimits: { stackSizeMb: STACK_MB },
  });

/**
 * Starts a worker with the contexts loaded. Rejects if a file is missing or the contexts do not fit
 * into memory.
 */
const startWorker = async (options: EnvironmentOptions): Promise<Repl> => {
  const control = new Int32Array(new SharedArrayBuffer(CONTROL_BYTES));
  const { port1, port2 } = new MessageChannel();
  const { contexts, names, outputMax, memoryMax } = options;
  const worker = newWorker(options, {
    contexts,
    names,
    outputMax,
    memoryMax,
    control,
    texts: port2,
  });
  let why = 'its worker ended';
  let hasExited = false;
  let runningCell = 0;
  let listener: ReplListener | null = null;
  const ended = new Promise<string>((resolve) => {
    worker.on('error', (error) => {
      why = error.message;
    });
    worker.on('exit', () => {
      hasExited = true;
      port1.close();
      listener?.gone(why);
      resolve(why);
    });
  });
  const ready = new Promise<'ready'>((resolve) => {
    worker.on('message', (message: FromWorker) => {
      if (message.type === 'ready') resolve('ready');
      else listener?.hear(message);
    });
  });
  const first = await Promise.race([ready, ended]);
  if (first !== 'ready') throw new Error(`QuickJS did not start: ${first}`);
  // While a cell waits for a sub-call its thread sleeps in Atomics.wait and hears no messages: texts
  // go over a port, and the bell wakes it.
  const ring = (): void => {
    Atomics.add(control, BELL, 1);
    Atomics.notify(control, BELL);
  };
  return {
    tell(message) {
      if (message.type === 'run') runningCell = message.number;
      if (message.type !== 'texts') return worker.postMessage(message);
      port1.postMessage(message);
      ring();
    },
    listen(next) {
      listener = next;
    },
    interrupt() {
      Atomics.store(control, STOP, runningCell);
      ring();
    },
    kill(reason) {
      why = reason;
      void worker.terminate();
    },
    ended,
    hasEnded: () => hasExited,
  };
};
