import type { SandboxedProgram } from '@pawl/agent/command/sandbox/run-program-in-bubblewrap';
import type {
  Cell,
  EnvironmentOptions,
  Subcall,
  SubcallAnswerer,
} from '../../environment-and-journal-types.js';
import type { CellReport } from '../../run/cell-types.js';
import { startPausableTimer } from '../pausable-timer.js';
import { type CellEnd, type EnvironmentProcess, textsOf } from '../restartable-environment.js';
import { CHANNEL_MISUSED, type LiveRepl, startLive } from './repl-connection.js';
import type { FromProgram, Inputs } from './repl-protocol.js';

/**
 * Runs cells in a sandboxed program.
 *
 * 1. The time of open sub-calls does not count.
 * 2. To stop a cell, its open call is answered with null, and the program is interrupted repeatedly until it reports.
 *    If it does not report within GRACE_MS, it is killed.
 * 3. An answer belongs to one call of one cell; a late answer is dropped.
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
  status,
  stdout,
  stderr,
  variables,
  answer,
  variablesLost: 'no',
});

/** Interrupts repeatedly until the returned function is called, because a single interrupt can be lost. */
const interruptUntil = (live: LiveRepl): (() => void) => {
  live.interrupt();
  const again = setInterval(() => live.interrupt(), AGAIN_MS);
  const patience = setTimeout(() => live.kill('the cell could not be interrupted'), GRACE_MS);
  return () => {
    clearInterval(again);
    clearTimeout(patience);
  };
};

/** Answers the sub-calls of one cell, which has at most one open at a time. */
const answerCalls = (live: LiveRepl, number: number, answer: SubcallAnswerer) => {
  let open: Subcall | null = null;
  let last = 0;
  let isStopped = false;
  const give = (subcall: Subcall, texts: readonly string[] | null): void => {
    if (open !== subcall) return;
    open = null;
    live.tell({ type: 'texts', number, ordinal: subcall.ordinal, texts });
  };
  return {
    /** Answers the call. The promise resolves after the texts were sent; null if no call is allowed now. */
    take(called: Called): Promise<void> | null {
      if (called.number !== number || called.ordinal !== last + 1 || open !== null) return null;
      last = called.ordinal;
      const { kind, ordinal, prompts, model } = called;
      const subcall: Subcall = { kind, ordinal, prompts, ...(model === null ? {} : { model }) };
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

const runIn = (live: LiveRepl, order: CellOrder, answer: SubcallAnswerer): Promise<CellEnd> =>
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
    const countdown = startPausableTimer(deadlineMs, stop);
    const finish = (end: CellEnd): void => {
      countdown.cancel();
      release();
      signal.removeEventListener('abort', stop);
      live.listen(null);
      resolve(end);
    };
    const call = (given: Promise<void> | null): void => {
      if (given === null) live.kill(CHANNEL_MISUSED);
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
        } else if (said.type !== 'printed' || !printed.add(said)) live.kill(CHANNEL_MISUSED);
      },
      gone: (why) => finish({ type: 'gone', why, ...printed.known(), answer: null }),
    });
    live.tell({ type: 'run', number, code });
  });

/** Reports the variables without running any code, for a cell that was cancelled before it began. */
const runNothing = async (live: LiveRepl, order: CellOrder): Promise<CellEnd> => {
  const end = await runIn(live, { ...order, code: '', signal: NEVER }, async () => []);
  if (end.type === 'gone') return end;
  const stderr = `${end.report.stderr}Stopped: the cell was cancelled before it began.\n`;
  return { ...end, report: { ...end.report, status: 'stopped', stderr } };
};

const readIn = (live: LiveRepl, name: string): Promise<string | null> =>
  new Promise((resolve) => {
    const countdown = startPausableTimer(READ_MS, () => live.kill('a variable could not be read'));
    const finish = (text: string | null): void => {
      countdown.cancel();
      live.listen(null);
      resolve(text);
    };
    live.listen({
      hear: (said) => (said.type === 'value' ? finish(said.text) : live.kill(CHANNEL_MISUSED)),
      gone: () => finish(null),
    });
    live.tell({ type: 'read', name });
  });

/** Starts a new program; `prepare` rewrites the code of each cell. Rejects if the program does not start. */
export const startProcess = async (
  program: SandboxedProgram,
  inputs: Inputs,
  { memoryMax, outputMax }: EnvironmentOptions,
  prepare: (code: string) => string,
): Promise<EnvironmentProcess> => {
  const live = await startLive(program, inputs, memoryMax);
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
