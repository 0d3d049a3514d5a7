/**
 * Runs cells (programs of the model) in a program that keeps their variables: one behind a sandbox,
 * or QuickJS in a worker.
 *
 * 1. The time of open sub-calls (calls of the cell to models) does not count.
 * 2. To stop a cell, its open call is answered with null, and the program is interrupted
 *    repeatedly until it reports. If it does not report within GRACE_MS, it is killed.
 * 3. An answer belongs to one call of one cell; a late answer is dropped.
 */

import type { Cell, EnvironmentOptions, Subcall, SubcallAnswerer } from '../ports.js';
import type { CellReport } from '../run/cell-types.js';
import {
  answerTexts,
  type CellEnd,
  type EnvironmentProcess,
  startPausableTimer,
} from './restartable-environment.js';

const GRACE_MS = 2_000;
const INTERRUPT_EVERY_MS = 100;
const READ_MS = 10_000;
const NEVER_ABORTED = new AbortController().signal;

/** The reason for killing a program that sent an invalid or unexpected message. */
export const CHANNEL_MISUSED = 'its channel was written to by the code';

/** Cells count from 1, calls from 1 in each cell; messages of another cell or call are dropped. */
export type ToRepl =
  | { readonly type: 'run'; readonly number: number; readonly code: string }
  | { readonly type: 'read'; readonly name: string }
  | {
      readonly type: 'texts';
      readonly number: number;
      readonly ordinal: number;
      /** Null: the cell is stopped, so the waiting code must not continue. */
      readonly texts: readonly string[] | null;
    };

export type FromRepl =
  /** Head of the output, sent while it is printed, so that it survives if the program dies. */
  | { readonly type: 'printed'; readonly stream: 'stdout' | 'stderr'; readonly text: string }
  | { readonly type: 'subcall'; readonly number: number; readonly subcall: Subcall }
  | {
      readonly type: 'finished';
      readonly number: number;
      readonly report: CellReport;
      /** Why the program must be replaced; null if it can go on. */
      readonly unfit: string | null;
    }
  | { readonly type: 'value'; readonly text: string | null };

export type ReplListener = {
  hear(message: FromRepl): void;
  /** The program has ended. */
  gone(why: string): void;
};

/** A running program that is ready for cells. */
export type Repl = {
  tell(message: ToRepl): void;
  /** Sets the listener. Without one (null) the program is paused, and any message kills it. */
  listen(next: ReplListener | null): void;
  /** Interrupts the cell that runs. */
  interrupt(): void;
  /** Kills the program; the listener gets the reason. */
  kill(why: string): void;
  /** Resolves when the program has ended. */
  readonly ended: Promise<unknown>;
  hasEnded(): boolean;
};

export const createProcess = (
  repl: Repl,
  { outputMax }: Pick<EnvironmentOptions, 'outputMax'>,
): EnvironmentProcess => ({
  run(number, { code, deadlineMs, signal }, answer) {
    const request = { number, code, deadlineMs, signal, outputMax };
    return signal.aborted ? runNothing(repl, request) : runCell(repl, request, answer);
  },
  read: (name) => readVariable(repl, name),
  hasEnded: () => repl.hasEnded(),
  async end(why) {
    repl.kill(why);
    await repl.ended;
  },
});

type Finished = Extract<FromRepl, { readonly type: 'finished' }>;
type Called = Extract<FromRepl, { readonly type: 'subcall' }>;
type Printed = Extract<FromRepl, { readonly type: 'printed' }>;
type CellRequest = Pick<Cell, 'code' | 'deadlineMs' | 'signal'> & {
  readonly number: number;
  readonly outputMax: number;
};

/** The end of a cell. A program that is unfit for another one is killed. */
const cellEnd = async (repl: Repl, { report, unfit }: Finished): Promise<CellEnd> => {
  if (unfit === null) return { type: 'finished', report };
  repl.kill(unfit);
  await repl.ended;
  const { stdout, stderr, answer } = report;
  return { type: 'gone', why: unfit, stdout, stderr, answer };
};

/**
 * Interrupts repeatedly until the returned function is called, because a single interrupt can be
 * lost.
 */
const interruptUntil = (repl: Repl): (() => void) => {
  repl.interrupt();
  const interrupts = setInterval(() => repl.interrupt(), INTERRUPT_EVERY_MS);
  const timeout = setTimeout(() => repl.kill('the cell could not be interrupted'), GRACE_MS);
  return () => {
    clearInterval(interrupts);
    clearTimeout(timeout);
  };
};

/** Answers the sub-calls of one cell, which has at most one open at a time. */
const answerCalls = (repl: Repl, number: number, answer: SubcallAnswerer) => {
  let open: Subcall | null = null;
  let last = 0;
  let isStopped = false;
  const sendTexts = (subcall: Subcall, texts: readonly string[] | null): void => {
    if (open !== subcall) return;
    open = null;
    repl.tell({ type: 'texts', number, ordinal: subcall.ordinal, texts });
  };
  return {
    /**
     * Answers the call. The promise resolves after the texts were sent; null if no call is allowed
     * now.
     */
    take({ number: cell, subcall }: Called): Promise<void> | null {
      if (cell !== number || subcall.ordinal !== last + 1 || open !== null) return null;
      last = subcall.ordinal;
      open = subcall;
      if (!isStopped)
        return answerTexts(subcall, answer).then((texts) => sendTexts(subcall, texts));
      sendTexts(subcall, null);
      return Promise.resolve();
    },
    stop(): void {
      isStopped = true;
      if (open !== null) sendTexts(open, null);
    },
  };
};

/** Collects the head of the output, which is sent while the cell runs. */
const collectPrinted = (outputMax: number) => {
  const printed = { stdout: '', stderr: '' };
  const shown = (text: string): string =>
    text.length < outputMax / 2 ? text : `${text}\n… what was printed after this is lost …\n`;
  return {
    /** Adds a piece; false if the program sent more than it may. */
    add({ stream, text }: Printed): boolean {
      printed[stream] += text;
      return printed[stream].length <= outputMax + 1;
    },
    known: () => ({ stdout: shown(printed.stdout), stderr: shown(printed.stderr) }),
  };
};

/** Runs a cell until the program reports or ends. */
const runCell = (repl: Repl, request: CellRequest, answer: SubcallAnswerer): Promise<CellEnd> =>
  new Promise((resolve) => {
    const { number, code, deadlineMs, signal, outputMax } = request;
    const printed = collectPrinted(outputMax);
    const calls = answerCalls(repl, number, answer);
    let isStopping = false;
    let endInterrupts = (): void => undefined;
    const stop = (): void => {
      if (isStopping) return;
      isStopping = true;
      countdown.cancel();
      calls.stop();
      endInterrupts = interruptUntil(repl);
    };
    const countdown = startPausableTimer(deadlineMs, stop);
    const finish = (end: CellEnd | Promise<CellEnd>): void => {
      countdown.cancel();
      endInterrupts();
      signal.removeEventListener('abort', stop);
      repl.listen(null);
      resolve(end);
    };
    const call = (answered: Promise<void> | null): void => {
      if (answered === null) repl.kill(CHANNEL_MISUSED);
      if (answered === null || isStopping) return;
      countdown.pause();
      void answered.then(() => countdown.resume());
    };
    signal.addEventListener('abort', stop, { once: true });
    repl.listen({
      hear(message) {
        if (message.type === 'subcall') call(calls.take(message));
        else if (message.type === 'finished' && message.number === number) {
          finish(cellEnd(repl, message));
        } else if (message.type !== 'printed' || !printed.add(message)) repl.kill(CHANNEL_MISUSED);
      },
      gone: (why) => finish({ type: 'gone', why, ...printed.known(), answer: null }),
    });
    repl.tell({ type: 'run', number, code });
  });

/**
 * Reports the variables without running any code, for a cell that was cancelled before it began.
 */
const runNothing = async (repl: Repl, request: CellRequest): Promise<CellEnd> => {
  const end = await runCell(repl, { ...request, code: '', signal: NEVER_ABORTED }, async () => []);
  if (end.type === 'gone') return end;
  const stderr = `${end.report.stderr}Stopped: the cell was cancelled before it began.\n`;
  return { ...end, report: { ...end.report, status: 'stopped', stderr } };
};

const readVariable = (repl: Repl, name: string): Promise<string | null> =>
  new Promise((resolve) => {
    const countdown = startPausableTimer(READ_MS, () => repl.kill('a variable could not be read'));
    const finish = (text: string | null): void => {
      countdown.cancel();
      repl.listen(null);
      resolve(text);
    };
    repl.listen({
      hear: (message) =>
        message.type === 'value' ? finish(message.text) : repl.kill(CHANNEL_MISUSED),
      gone: () => finish(null),
    });
    repl.tell({ type: 'read', name });
  });
