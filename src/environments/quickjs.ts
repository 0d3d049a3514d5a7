import type {
  Cell,
  CellReport,
  Environment,
  EnvironmentKind,
  EnvironmentOptions,
  Subcall,
  SubcallAnswerer,
} from '../needs-recursive.js';
import { startCountdown } from './countdown.js';
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

type Printed = { readonly stdout: string; readonly stderr: string };
type Ended =
  | { readonly type: 'finished'; readonly report: CellReport; readonly unfit: string | null }
  | ({ readonly type: 'gone'; readonly why: string } & Printed);

/** One text per prompt, whatever the answerer does. */
const textsOf = async (subcall: Subcall, answer: SubcallAnswerer): Promise<readonly string[]> => {
  try {
    const texts = await answer(subcall);
    return subcall.prompts.map((_, index) => texts[index] ?? 'Error: this call has no answer');
  } catch (thrown) {
    // Nothing is lost: the code sees the failure in each slot.
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return subcall.prompts.map(() => `Error: ${message}`);
  }
};

/** Runs a cell in a worker until it reports or is gone. */
const runIn = (live: Live, number: number, cell: Cell, answer: SubcallAnswerer): Promise<Ended> =>
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
    const end = (ended: Ended): void => {
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
      else end(message);
    });
    void live.ended.then((why) => end({ type: 'gone', why, ...printed }));
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

const died = (why: string, { stdout, stderr }: Printed, answer: string | null): CellReport => ({
  status: 'died',
  stdout,
  stderr: `${stderr}QuickJS was replaced by a fresh one: ${why}. All variables are lost.\n`,
  variables: [],
  answer,
  variablesLost: 'yes',
});

/** One cell or look at a variable at a time; the worker behind it may change. */
const environment = (options: EnvironmentOptions, first: Live): Environment => {
  let live = first;
  let number = 0;
  let use: 'free' | 'busy' | 'closed' = 'free';
  let lost: 'no' | 'yes' = 'no';

  /** A worker that ended between two cells took the variables with it. */
  const replace = async (): Promise<void> => {
    live = await startWorker(options);
    lost = 'yes';
  };
  const reportOf = async (ended: Ended): Promise<CellReport> => {
    if (ended.type === 'gone') {
      if (use === 'busy') await replace();
      return died(ended.why, ended, null);
    }
    const { report, unfit } = ended;
    if (unfit === null) return report;
    await live.kill(unfit);
    if (use === 'busy') await replace();
    return died(unfit, report, report.answer);
  };
  /** Keeps to one use at a time, in a worker that lives. */
  const using = async <T>(work: () => Promise<T>): Promise<T> => {
    if (use === 'closed') throw new Error('this environment is closed: start another one');
    if (use === 'busy') throw new Error('this environment runs one cell at a time: wait for the one before');
    use = 'busy';
    try {
      if (live.hasEnded()) await replace();
      return await work();
    } finally {
      if (use === 'busy') use = 'free';
    }
  };

  return {
    run: (cell, answer) =>
      using(async () => {
        number += 1;
        const report = await reportOf(await runIn(live, number, cell, answer));
        const variablesLost = lost;
        lost = 'no';
        return variablesLost === 'no' ? report : { ...report, variablesLost };
      }),
    read: (name) => using(() => readIn(live, name)),
    async close() {
      use = 'closed';
      await live.kill('it was closed');
    },
  };
};

const start = async (options: EnvironmentOptions): Promise<Environment> =>
  environment(options, await startWorker(options));

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
