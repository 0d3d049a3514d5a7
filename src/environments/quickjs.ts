import type {
  Cell,
  Environment,
  EnvironmentKind,
  EnvironmentOptions,
  Subcall,
  SubcallAnswerer,
} from '../needs-recursive.js';
import type { CellReport } from '../recursive/cell.js';
import { startCountdown } from './countdown.js';
import { type CellEnd, createEnvironment, type Life, textsOf } from './lives.js';
import { type Live, startWorker } from './quickjs-live.js';

/**
 * JavaScript in QuickJS, compiled to WebAssembly, in a worker thread: needs nothing of the system.
 *
 * 1. A cell is stopped by an interrupt of the engine; if that has no effect within GRACE_MS the worker is ended and a
 *    fresh one started.
 * 2. Time in which a call is open does not count, neither for the deadline nor for the grace.
 * 3. What arrives for a cell that has ended is dropped, on both sides.
 */

/** The engine's built-ins are not interrupted in the middle: this is what they may take after the end of a cell's time. */
const GRACE_MS = 3_000;
const READ_MS = 8_000;

/** What a cell leaves behind is not fit for the next one: the worker goes, and what is known of the cell is kept. */
const giveUp = async (live: Live, why: string, report: CellReport): Promise<CellEnd> => {
  await live.kill(why);
  const { stdout, stderr, answer } = report;
  return { type: 'gone', why, stdout, stderr, answer };
};

/** Runs a cell in a worker until it reports or is gone. */
const runIn = (live: Live, number: number, cell: Cell, answer: SubcallAnswerer): Promise<CellEnd> =>
  new Promise((resolve) => {
    const { signal } = cell;
    const printed = { stdout: '', stderr: '' };
    const countdown = startCountdown(cell.deadlineMs + GRACE_MS, () => {
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
      const texts = await textsOf(subcall, answer);
      live.give(number, subcall.ordinal, texts);
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

const readIn = (live: Live, name: string): Promise<string | null> =>
  new Promise((resolve) => {
    const countdown = startCountdown(READ_MS, () => void live.kill('a variable could not be read'));
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

const beginLife = async (options: EnvironmentOptions): Promise<Life> => {
  const live = await startWorker(options);
  return {
    run: (number, cell, answer) => runIn(live, number, cell, answer),
    read: (name) => readIn(live, name),
    hasEnded: live.hasEnded,
    end: live.kill,
  };
};

const start = (options: EnvironmentOptions): Promise<Environment> =>
  createEnvironment('QuickJS', () => beginLife(options));

/** Starts one and ends it: WebAssembly, threads and shared memory are all that can be missing. */
const probe = async (): Promise<string | null> => {
  try {
    const tried = await start({ contexts: [], outputMax: 0, memoryMax: 0 });
    await tried.close();
    return null;
  } catch (thrown) {
    // Nothing is lost: why it failed is the answer.
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
};

export const quickjs: EnvironmentKind = { name: 'quickjs', language: 'javascript', probe, start };
