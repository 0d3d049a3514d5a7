/**
 * JavaScript in QuickJS, compiled to WebAssembly, in a worker thread. Needs no programs of the
 * system.
 *
 * 1. The engine's interrupt stops a cell (a program of the model). If it has no effect within
 *    GRACE_MS, the worker is terminated and replaced.
 * 2. The time of open sub-calls (calls of the cell to models) counts neither for the deadline nor
 *    for the grace period.
 * 3. Both sides drop messages for a cell that has ended.
 */

import { MessageChannel, Worker } from 'node:worker_threads';
import type {
  Cell,
  Environment,
  EnvironmentKind,
  EnvironmentOptions,
  Subcall,
  SubcallAnswerer,
} from '../../ports.js';
import type { CellReport } from '../../run/cell-types.js';
import { programFile } from '../bundled-program-file.js';
import {
  answerTexts,
  type CellEnd,
  createEnvironment,
  type EnvironmentProcess,
  startPausableTimer,
} from '../restartable-environment.js';
import {
  BELL,
  CONTROL_BYTES,
  type FromWorker,
  STOP,
  type ToWorker,
  type WorkerInput,
} from './quickjs-protocol.js';

/**
 * Grace period after a cell's deadline: the engine can't interrupt a built-in function in the
 * middle.
 */
const GRACE_MS = 3_000;
const READ_MS = 8_000;

/**
 * Terminates a worker that is unfit for another cell, and keeps the output and answer of its last
 * cell.
 */
const giveUp = async (live: LiveWorker, why: string, report: CellReport): Promise<CellEnd> => {
  await live.kill(why);
  const { stdout, stderr, answer } = report;
  return { type: 'gone', why, stdout, stderr, answer };
};

/** Runs a cell until the worker reports or ends. */
const runCell = (
  live: LiveWorker,
  number: number,
  cell: Cell,
  answer: SubcallAnswerer,
): Promise<CellEnd> =>
  new Promise((resolve) => {
    const { signal } = cell;
    const printed = { stdout: '', stderr: '' };
    const countdown = startPausableTimer(cell.deadlineMs + GRACE_MS, () => {
      void live.kill('the cell could not be interrupted');
    });
    const stop = (): void => {
      live.stop(number);
      countdown.restart(GRACE_MS);
    };
    const end = (ended: CellEnd | Promise<CellEnd>): void => {
      countdown.cancel();
      signal.removeEventListener('abort', stop);
      live.listen(null);
      resolve(ended);
    };
    const call = async (subcall: Subcall): Promise<void> => {
      countdown.pause();
      const texts = await answerTexts(subcall, answer);
      live.sendTexts(number, subcall.ordinal, texts);
      countdown.resume();
    };
    live.listen((message) => {
      if (message.type === 'value' || message.type === 'ready' || message.number !== number) return;
      if (message.type === 'printed') printed[message.stream] += message.text;
      else if (message.type === 'subcall') void call(message.subcall);
      else if (message.unfit === null) end({ type: 'finished', report: message.report });
      else end(giveUp(live, message.unfit, message.report));
    });
    void live.ended.then((why) => end({ type: 'gone', why, ...printed, answer: null }));
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    live.post({ type: 'run', number, code: cell.code, deadlineMs: cell.deadlineMs });
  });

const readVariable = (live: LiveWorker, name: string): Promise<string | null> =>
  new Promise((resolve) => {
    const countdown = startPausableTimer(
      READ_MS,
      () => void live.kill('a variable could not be read'),
    );
    const end = (text: string | null): void => {
      countdown.cancel();
      live.listen(null);
      resolve(text);
    };
    live.listen((message) => {
      if (message.type === 'value') end(message.text);
    });
    void live.ended.then(() => end(null));
    live.post({ type: 'read', name });
  });

const startProcess = async (options: EnvironmentOptions): Promise<EnvironmentProcess> => {
  const live = await startWorker(options);
  return {
    run: (number, cell, answer) => runCell(live, number, cell, answer),
    read: (name) => readVariable(live, name),
    hasEnded: live.hasEnded,
    end: live.kill,
  };
};

const start = (options: EnvironmentOptions): Promise<Environment> =>
  createEnvironment('QuickJS', () => startProcess(options));

export const quickjs: EnvironmentKind = {
  name: 'quickjs',
  language: 'javascript',
  probe: () => Promise.resolve(null), // it comes with Pawl
  start,
};

/** Stack of the worker's thread: large enough that the engine's limit of 1 MB comes first. */
const STACK_MB = 32;

/** A running worker that has reported `ready`. */
type LiveWorker = {
  post(message: ToWorker): void;
  /** Sets the listener for messages; null removes it. */
  listen(hear: ((message: FromWorker) => void) | null): void;
  /** Sends the answer texts of a sub-call and wakes the worker. */
  sendTexts(number: number, ordinal: number, texts: readonly string[]): void;
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
    execArgv: [], // those of the program may not fit a thread: --input-type
    resourceLimits: { stackSizeMb: STACK_MB },
  });

/**
 * Starts a worker with the contexts loaded. Rejects if a file is missing or the contexts do not fit
 * into memory.
 */
const startWorker = async (options: EnvironmentOptions): Promise<LiveWorker> => {
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
  let hear: ((message: FromWorker) => void) | null = null;
  const ended = new Promise<string>((resolve) => {
    worker.on('error', (error) => {
      why = error.message;
    });
    worker.on('exit', () => {
      hasExited = true;
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
    hasEnded: () => hasExited,
    post: (message) => worker.postMessage(message),
    listen(next) {
      hear = next;
    },
    sendTexts(number, ordinal, texts) {
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
