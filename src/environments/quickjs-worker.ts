import { readFileSync } from 'node:fs';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { wellFormed } from './output.js';
import { programFile } from './program-file.js';
import { newOutputs, type Outputs, runCell, startWatch, type Watch } from './quickjs-cell.js';
import { openRealm } from './quickjs-realm.js';
import { BELL, type FromWorker, STOP, type Texts, type ToWorker, type WorkerInput } from './quickjs-wire.js';

/**
 * The worker in which QuickJS runs: a program of its own, started by quickjs.ts.
 *
 * 1. While code runs nothing else does: it is stopped by a number in shared memory that the engine's interrupt sees.
 * 2. A call into the world blocks this thread. Texts that belong to another cell or call are dropped.
 * 3. Whatever throws here ends the worker; the environment reports it and starts another one.
 */

const ENDING_MS = 1_000;
const READ_MS = 5_000;

// Given by quickjs.ts, the only one who starts this file.
const input = workerData as WorkerInput;
const port = parentPort;
if (port === null) throw new Error('this file is the program of a worker');
const tell = (message: FromWorker): void => port.postMessage(message);

/** What runs: a cell, or with number 0 what may not call into the world. */
type Running = Outputs & {
  readonly number: number;
  readonly watch: Watch;
  limitMs: number;
  toldCharacters: number;
  ordinal: number;
  wasInterrupted: boolean;
};
let current: Running | null = null;

const isStopAsked = ({ number }: Running): boolean =>
  number !== 0 && Atomics.load(input.control, STOP) === number;

/** Asked by the engine now and then. Once it was true for a run it stays so. */
const isOver = (): boolean => {
  if (current === null) return false;
  current.wasInterrupted ||= isStopAsked(current) || current.watch.usedMs() > current.limitMs;
  return current.wasInterrupted;
};

/** Waits until the texts of this very call are there, or the cell is to end. */
const awaitTexts = (run: Running): readonly string[] | null => {
  for (;;) {
    const bell = Atomics.load(input.control, BELL);
    // Only quickjs.ts has the other end of the port.
    const found = receiveMessageOnPort(input.texts)?.message as Texts | undefined;
    if (found?.number === run.number && found.ordinal === run.ordinal) return found.texts;
    if (isStopAsked(run)) return null;
    if (found === undefined) Atomics.wait(input.control, BELL, bell);
  }
};

const ask = (kind: 'llm' | 'rlm', prompts: readonly string[]): readonly string[] | null => {
  const run = current;
  if (run === null || run.number === 0 || isOver()) return null;
  run.ordinal += 1;
  const subcall = { kind, ordinal: run.ordinal, prompts: prompts.map(wellFormed) };
  tell({ type: 'subcall', number: run.number, subcall });
  return run.watch.wait(() => awaitTexts(run));
};

const print = (stream: 'stdout' | 'stderr', text: string): void => {
  const run = current;
  run?.[stream].add(text);
  if (run === null || run.number === 0 || run.toldCharacters >= input.outputMax / 2) return;
  run.toldCharacters += text.length;
  tell({ type: 'printed', number: run.number, stream, text: text.slice(0, input.outputMax) });
};

const realm = await openRealm(
  readFileSync(programFile('javascript-prelude.js'), 'utf8'),
  input.contexts.map((file) => readFileSync(file, 'utf8')),
  input.memoryMax,
  { print, ask, isOver },
);

/** Starts the clock of a run; whatever interrupted the one before has had its effect. */
const begin = (number: number, limitMs: number, outputs: Outputs): Running => {
  const watch = startWatch(() => performance.now());
  current = { number, limitMs, ...outputs, watch, toldCharacters: 0, ordinal: 0, wasInterrupted: false };
  return current;
};

let lastOutput = '';

const run = ({ number, code, deadlineMs }: Extract<ToWorker, { readonly type: 'run' }>): void => {
  const outputs = newOutputs(input.memoryMax);
  const running = begin(number, deadlineMs, outputs);
  const finished = runCell({
    ...{ realm, code, number, outputs, lastOutput, outputMax: input.outputMax },
    wasStopped: () => running.wasInterrupted || isStopAsked(running),
    allowEnding: () => begin(0, ENDING_MS, outputs),
  });
  lastOutput = finished.output;
  tell({ type: 'finished', number, report: finished.report, unfit: finished.unfit });
};

const read = (name: string): string | null => {
  try {
    const text = realm.read(name);
    return text === null ? null : wellFormed(text);
  } catch {
    return null; // its toJSON never ends, or it is too big to be one text: there is no text of it
  }
};

port.on('message', (message: ToWorker) => {
  if (message.type === 'run') run(message);
  else {
    begin(0, READ_MS, newOutputs(input.memoryMax));
    tell({ type: 'value', text: read(message.name) });
  }
  current = null;
});
tell({ type: 'ready' });
