import type { Cell, EnvironmentOptions, Subcall, SubcallAnswerer } from '../needs-recursive.js';
import type { CellReport } from '../recursive/cell.js';
import type { SandboxedProgram } from '../sandbox/bubblewrap.js';
import { startCountdown } from './countdown.js';
import { type CellEnd, type Life, textsOf } from './lives.js';
import { type Live, NONSENSE, startLive } from './program-live.js';
import type { FromProgram } from './program-wire.js';

/**
 * Cells in a program behind the sandbox.
 *
 * 1. Time in which a call is open does not count.
 * 2. To stop a cell, an open call is given up and the program interrupted, again and again, until it
 *    reports; where it does not within GRACE_MS, it is killed.
 * 3. An answer belongs to one call of one cell; a late one is dropped.
 */

const GRACE_MS = 2_000;
const AGAIN_MS = 100;
const READ_MS = 10_000;
const NEVER = new AbortController().signal;

type Finished = Extract<FromProgram, { readonly type: 'finished' }>;
type Called = Extract<FromProgram, { readonly type: 'subcall' }>;
type Printed = Extract<FromProgram, { readonly type: 'printed' }>;
type CellOrder = Pick<Cell, 'code' | 'deadlineMs' | 'signal'> & {
  readonly number: number;
  readonly outputMax: number;
};

const reportOf = ({ status, stdout, stderr, variables, answer }: Finished): CellReport => ({
  ...{ status, stdout, stderr, variables, answer },
  variablesLost: 'no',
});

/** Interrupts it until the returned function is called: one interrupt alone may come between two pieces of the code's work. */
const interruptUntil = (live: Live): (() => void) => {
  live.interrupt();
  const again = setInterval(() => live.interrupt(), AGAIN_MS);
  const patience = setTimeout(() => live.kill('the cell could not be interrupted'), GRACE_MS);
  return () => {
    clearInterval(again);
    clearTimeout(patience);
  };
};

/** The calls of one cell, one open at a time. */
const answerCalls = (live: Live, number: number, answer: SubcallAnswerer) => {
  let open: Subcall | null = null;
  let last = 0;
  let isStopped = false;
  const give = (subcall: Subcall, texts: readonly string[] | null): void => {
    if (open !== subcall) return;
    open = null;
    live.tell({ type: 'texts', number, ordinal: subcall.ordinal, texts });
  };
  return {
    /** Whether it is the call that may come now; the texts were given when the promise resolves. */
    take(called: Called): Promise<void> | null {
      if (called.number !== number || called.ordinal !== last + 1 || open !== null) return null;
      last = called.ordinal;
      const subcall: Subcall = { kind: called.kind, ordinal: called.ordinal, prompts: called.prompts };
      open = subcall;
      if (!isStopped) return textsOf(subcall, answer).then((texts) => give(subcall, texts));
      give(subcall, null);
      return Promise.resolve();
    },
    stop(): void {
      isStopped = true;
      if (open !== null) give(open, null);
    },
  };
};

/** What was printed, as far as it was told: the head. */
const collectPrinted = (outputMax: number) => {
  const printed = { stdout: '', stderr: '' };
  const shown = (text: string): string =>
    text.length < outputMax / 2 ? text : `${text}\n… what was printed after this is lost …\n`;
  return {
    /** Whether it may say as much. */
    add({ stream, text }: Printed): boolean {
      printed[stream] += text;
      return printed[stream].length <= outputMax + 1;
    },
    known: () => ({ stdout: shown(printed.stdout), stderr: shown(printed.stderr) }),
  };
};

const runIn = (live: Live, order: CellOrder, answer: SubcallAnswerer): Promise<CellEnd> =>
  new Promise((resolve) => {
    const { number, code, deadlineMs, signal, outputMax } = order;
    const printed = collectPrinted(outputMax);
    const calls = answerCalls(live, number, answer);
    let isStopping = false;
    let release = (): void => undefined;
    const stop = (): void => {
      if (isStopping) return;
      isStopping = true;
      countdown.cancel();
      calls.stop();
      release = interruptUntil(live);
    };
    const countdown = startCountdown(deadlineMs, stop);
    const finish = (end: CellEnd): void => {
      countdown.cancel();
      release();
      signal.removeEventListener('abort', stop);
      live.listen(null);
      resolve(end);
    };
    const call = (given: Promise<void> | null): void => {
      if (given === null) live.kill(NONSENSE);
      if (given === null || isStopping) return;
      countdown.pause();
      void given.then(() => countdown.resume());
    };
    signal.addEventListener('abort', stop, { once: true });
    live.listen({
      hear(said) {
        if (said.type === 'subcall') call(calls.take(said));
        else if (said.type === 'finished' && said.number === number) {
          finish({ type: 'finished', report: reportOf(said) });
        } else if (said.type !== 'printed' || !printed.add(said)) live.kill(NONSENSE);
      },
      gone: (why) => finish({ type: 'gone', why, ...printed.known(), answer: null }),
    });
    live.tell({ type: 'run', number, code });
  });

/** A cell whose signal is given already: nothing of it runs, what is bound is told. */
const runNothing = async (live: Live, order: CellOrder): Promise<CellEnd> => {
  const end = await runIn(live, { ...order, code: '', signal: NEVER }, async () => []);
  if (end.type === 'gone') return end;
  const stderr = `${end.report.stderr}Stopped: the cell was cancelled before it began.\n`;
  return { ...end, report: { ...end.report, status: 'stopped', stderr } };
};

const readIn = (live: Live, name: string): Promise<string | null> =>
  new Promise((resolve) => {
    const countdown = startCountdown(READ_MS, () => live.kill('a variable could not be read'));
    const finish = (text: string | null): void => {
      countdown.cancel();
      live.listen(null);
      resolve(text);
    };
    live.listen({
      hear: (said) => (said.type === 'value' ? finish(said.text) : live.kill(NONSENSE)),
      gone: () => finish(null),
    });
    live.tell({ type: 'read', name });
  });

/** A fresh program, which gets code as `prepare` makes it. Rejects where it does not start. */
export const beginLife = async (
  program: SandboxedProgram,
  { memoryMax, outputMax }: EnvironmentOptions,
  prepare: (code: string) => string,
): Promise<Life> => {
  const live = await startLive(program, memoryMax);
  return {
    run(number, { code, deadlineMs, signal }, answer) {
      const order = { number, code: prepare(code), deadlineMs, signal, outputMax };
      return signal.aborted ? runNothing(live, order) : runIn(live, order, answer);
    },
    read: (name) => readIn(live, name),
    hasEnded: () => live.hasEnded(),
    async end(why) {
      live.kill(why);
      await live.ended;
    },
  };
};
