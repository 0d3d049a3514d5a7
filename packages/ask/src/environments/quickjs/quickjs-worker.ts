/**
 * The worker thread that runs QuickJS, started by quickjs.ts.
 *
 * 1. Running code blocks the thread. A number in shared memory, polled by the engine's interrupt
 *    handler, stops it.
 * 2. A sub-call blocks the thread until its texts arrive. Texts for another cell or call are
 *    dropped.
 * 3. An uncaught error ends the worker; the environment reports it and starts another one.
 * 4. After a cell its values are read for the report, which may run code of them: that is a run of
 *    its own, with number 0, a short time, and no sub-calls.
 */

import { readFileSync } from 'node:fs';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { programFile } from '../bundled-program-file.js';
import { wellFormed } from '../cell-output.js';
import {
  BELL,
  type FromWorker,
  STOP,
  type Texts,
  type ToWorker,
  type WorkerInput,
} from './quickjs-protocol.js';
import {
  newOutputs,
  type Outputs,
  openRealm,
  type RealmRequest,
  runCell,
} from './quickjs-realm.js';

const ENDING_MS = 1_000;
const READ_MS = 5_000;

// Only quickjs.ts starts this file, with a WorkerInput.
const input = workerData as WorkerInput;
const port = parentPort;
if (port === null) throw new Error('this file is the program of a worker');
const tell = (message: FromWorker): void => port.postMessage(message);

/** The current run: a cell, or (number 0) a report or a read. Only cells can make sub-calls. */
type Running = Outputs & {
  readonly number: number;
  readonly endsAtMs: number;
  sentCharacters: number;
  ordinal: number;
  wasInterrupted: boolean;
};
let current: Running | null = null;

const isStopAsked = ({ number }: Running): boolean =>
  number !== 0 && Atomics.load(input.control, STOP) === number;

/** Polled by the engine: whether the run must end. Remembers that it said so. */
const checkInterrupt = (): boolean => {
  if (current === null) return false;
  current.wasInterrupted ||= isStopAsked(current) || performance.now() > current.endsAtMs;
  return current.wasInterrupted;
};

/** Blocks until the texts of the current call arrive, or until the cell must stop (null). */
const awaitTexts = (running: Running): readonly string[] | null => {
  for (;;) {
    const bell = Atomics.load(input.control, BELL);
    // Only quickjs.ts has the other end of the port.
    const answer = receiveMessageOnPort(input.texts)?.message as Texts | undefined;
    if (answer?.number === running.number && answer.ordinal === running.ordinal)
      return answer.texts;
    if (isStopAsked(running)) return null;
    if (answer === undefined) Atomics.wait(input.control, BELL, bell);
  }
};

const ask = ({ kind, prompts, model }: RealmRequest): readonly string[] | null => {
  const running = current;
  if (running === null || running.number === 0 || checkInterrupt()) return null;
  running.ordinal += 1;
  const named = model === null ? {} : { model: wellFormed(model) };
  const subcall = { kind, ordinal: running.ordinal, prompts: prompts.map(wellFormed), ...named };
  tell({ type: 'subcall', number: running.number, subcall });
  const texts = awaitTexts(running);
  running.wasInterrupted ||= texts === null;
  return texts;
};

/** Keeps the output for the report. About the first half of what fits there is sent at once. */
const print = (stream: 'stdout' | 'stderr', text: string): void => {
  const running = current;
  running?.[stream].add(text);
  if (running === null || running.number === 0 || running.sentCharacters >= input.outputMax / 2)
    return;
  const head = text.slice(0, input.outputMax - running.sentCharacters);
  running.sentCharacters += head.length;
  tell({ type: 'printed', stream, text: head });
};

const realm = await openRealm(
  readFileSync(programFile('javascript-prelude.js'), 'utf8'),
  { contexts: input.contexts.map((file) => readFileSync(file, 'utf8')), names: input.names },
  input.memoryMax,
  { print, ask, isOver: checkInterrupt },
);

/** Starts a run, and clears the interruption of the previous one. */
const begin = (number: number, limitMs: number, outputs: Outputs): Running => {
  current = {
    number,
    endsAtMs: performance.now() + limitMs,
    ...outputs,
    sentCharacters: 0,
    ordinal: 0,
    wasInterrupted: false,
  };
  return current;
};

let lastOutput = '';

const run = ({ number, code }: Extract<ToWorker, { readonly type: 'run' }>): void => {
  const outputs = newOutputs(input.memoryMax);
  // the environment stops a cell whose time is over
  const running = begin(number, Number.POSITIVE_INFINITY, outputs);
  const finished = runCell({
    realm,
    code,
    number,
    outputs,
    lastOutput,
    outputMax: input.outputMax,
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
    return null; // its toJSON never ends, or its text is too large
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
