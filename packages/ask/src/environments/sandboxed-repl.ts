/**
 * Runs cells (programs of the model) in a sandboxed program, which keeps their variables.
 *
 * 1. The time of open sub-calls (calls of the cell to models) does not count.
 * 2. To stop a cell, its open call is answered with null, and the program is interrupted
 *    repeatedly until it reports. If it does not report within GRACE_MS, it is killed.
 * 3. An answer belongs to one call of one cell; a late answer is dropped.
 *
 * From top to bottom: `startProcess`; cells and variables; the connection to the program;
 * messages; and the data that a program starts with.
 */

import { realpathSync, statSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import * as v from 'valibot';
import type { Cell, EnvironmentOptions, Subcall, SubcallAnswerer } from '../ports.js';
import type { CellReport } from '../run/cell-types.js';
import { wellFormed } from './cell-output.js';
import {
  answerTexts,
  type CellEnd,
  type EnvironmentProcess,
  startPausableTimer,
} from './restartable-environment.js';
import {
  type SandboxedEnd,
  type SandboxedProgram,
  startSandboxed,
  whyNotStarted,
} from './run-program.js';

const GRACE_MS = 2_000;
const INTERRUPT_EVERY_MS = 100;
const READ_MS = 10_000;
const NEVER_ABORTED = new AbortController().signal;

/** Starts a new program. Rejects if it does not start. */
export const startProcess = async (
  program: SandboxedProgram,
  inputs: Inputs,
  { memoryMax, outputMax }: EnvironmentOptions,
): Promise<EnvironmentProcess> => {
  const repl = await startRepl(program, inputs, memoryMax);
  return {
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
  };
};

type Finished = Extract<FromProgram, { readonly type: 'finished' }>;
type Called = Extract<FromProgram, { readonly type: 'subcall' }>;
type Printed = Extract<FromProgram, { readonly type: 'printed' }>;
type CellRequest = Pick<Cell, 'code' | 'deadlineMs' | 'signal'> & {
  readonly number: number;
  readonly outputMax: number;
};

const toReport = ({ status, stdout, stderr, variables, answer }: Finished): CellReport => ({
  status,
  stdout,
  stderr,
  variables,
  answer,
  variablesLost: 'no',
});

/**
 * Interrupts repeatedly until the returned function is called, because a single interrupt can be
 * lost.
 */
const interruptUntil = (repl: LiveRepl): (() => void) => {
  repl.interrupt();
  const interrupts = setInterval(() => repl.interrupt(), INTERRUPT_EVERY_MS);
  const timeout = setTimeout(() => repl.kill('the cell could not be interrupted'), GRACE_MS);
  return () => {
    clearInterval(interrupts);
    clearTimeout(timeout);
  };
};

/** Answers the sub-calls of one cell, which has at most one open at a time. */
const answerCalls = (repl: LiveRepl, number: number, answer: SubcallAnswerer) => {
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
    take(called: Called): Promise<void> | null {
      if (called.number !== number || called.ordinal !== last + 1 || open !== null) return null;
      last = called.ordinal;
      const { kind, ordinal, prompts, model } = called;
      const subcall: Subcall = { kind, ordinal, prompts, ...(model === null ? {} : { model }) };
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
const runCell = (repl: LiveRepl, request: CellRequest, answer: SubcallAnswerer): Promise<CellEnd> =>
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
    const finish = (end: CellEnd): void => {
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
          finish({ type: 'finished', report: toReport(message) });
        } else if (message.type !== 'printed' || !printed.add(message)) repl.kill(CHANNEL_MISUSED);
      },
      gone: (why) => finish({ type: 'gone', why, ...printed.known(), answer: null }),
    });
    repl.tell({ type: 'run', number, code });
  });

/**
 * Reports the variables without running any code, for a cell that was cancelled before it began.
 */
const runNothing = async (repl: LiveRepl, request: CellRequest): Promise<CellEnd> => {
  const end = await runCell(repl, { ...request, code: '', signal: NEVER_ABORTED }, async () => []);
  if (end.type === 'gone') return end;
  const stderr = `${end.report.stderr}Stopped: the cell was cancelled before it began.\n`;
  return { ...end, report: { ...end.report, status: 'stopped', stderr } };
};

const readVariable = (repl: LiveRepl, name: string): Promise<string | null> =>
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

// ---- The connection to a program that has reported `ready` ----
//
// 1. Between two requests the program is paused.
// 2. An unexpected message kills the program: the model's code must have written to its channel.

const LINE_BYTES_MAX = 128 * 1024 * 1024;
const READY_MS = 60_000;
const NEWLINE = 0x0a;
/** The reason for killing a program that sent an invalid or unexpected message. */
const CHANNEL_MISUSED = 'its channel was written to by the code';
const OUT_OF_MEMORY = /Cannot allocate memory|MemoryError/;

type ReplListener = {
  hear(message: FromProgram): void;
  /** The program has ended. */
  gone(why: string): void;
};

type LiveRepl = {
  tell(message: ToProgram): void;
  /** Sets the listener. Without one (null) the program is paused, and any message kills it. */
  listen(next: ReplListener | null): void;
  interrupt(): void;
  /** Kills the program; the listener gets the reason. */
  kill(why: string): void;
  /** Resolves when the program has ended. */
  readonly ended: Promise<unknown>;
  hasEnded(): boolean;
};

const whyEnded = ({ code, signal, stderr }: SandboxedEnd, memoryMax: number): string => {
  if (OUT_OF_MEMORY.test(stderr)) {
    return (
      `the code used more memory than the ${Math.round(memoryMax / 1024 ** 2)} MB that it may ` +
      'use'
    );
  }
  if (signal !== null) return `it was ended by ${signal}`;
  return code !== null && code > 128
    ? `it crashed (code ${code})`
    : `the code ended it (exit code ${code})`;
};

/** Calls `hear` for each line, and `tooLong` if a line grows without end. */
const splitLines = (channel: Duplex, hear: (line: string) => void, tooLong: () => void): void => {
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  channel.on('data', (bytes: Buffer) => {
    let from = 0;
    for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, from)) {
      hear(Buffer.concat([...waiting, bytes.subarray(from, at)]).toString('utf8'));
      [waiting, waitingBytes, from] = [[], 0, at + 1];
    }
    waiting.push(bytes.subarray(from));
    waitingBytes += bytes.length - from;
    if (waitingBytes > LINE_BYTES_MAX) tooLong();
  });
};

/** Starts the program and waits until it is ready. Rejects with the reason if it does not start. */
const startRepl = async (
  program: SandboxedProgram,
  inputs: Inputs,
  memoryMax: number,
): Promise<LiveRepl> => {
  const started = startSandboxed(program);
  started.channel.write(lineFor(inputs));
  let hasExited = false;
  let killedFor: string | null = null;
  let listener: ReplListener | null = null;
  const kill = (why: string): void => {
    killedFor ??= why;
    started.kill();
  };
  const ended = started.ended.then((end) => {
    hasExited = true;
    killedFor ??= whyEnded(end, memoryMax);
    listener?.gone(killedFor);
    return end;
  });
  const hearLine = (line: string): void => {
    if (killedFor !== null) return;
    const message = readLine(line);
    if (message === null || listener === null) kill(CHANNEL_MISUSED);
    else listener.hear(message);
  };
  splitLines(started.channel, hearLine, () => kill(CHANNEL_MISUSED));
  const timeout = setTimeout(() => kill('it took too long'), READY_MS);
  const answered = new Promise<FromProgram>((resolve) => {
    listener = { hear: resolve, gone: () => undefined };
  });
  const first = await Promise.race([answered, ended]);
  clearTimeout(timeout);
  // no message: the program has ended
  if (!('type' in first)) throw new Error(whyNotStarted(first, program.program));
  if (first.type !== 'ready') {
    kill(CHANNEL_MISUSED);
    await ended;
    throw new Error(first.type === 'refused' ? first.why : CHANNEL_MISUSED);
  }
  listener = null;
  started.hold(); // pauses the program until the first request
  return {
    tell: (next) => void started.channel.write(lineFor(next)),
    listen(next) {
      listener = next;
      if (next === null) started.hold();
      else started.release();
    },
    interrupt: () => started.interrupt(),
    kill,
    ended,
    hasEnded: () => hasExited,
  };
};

// ---- Messages, one line of JSON each ----
//
// Cells count from 1, calls from 1 in each cell; messages of another cell or call are dropped.

/** Settings of the program, passed as JSON in argv. */
type ProgramSettings = {
  readonly outputMax: number;
  /** Maximum characters of `last_output`. */
  readonly keptMax: number;
  /**
   * Maximum characters of an answer, of a variable that is read, and of all prompts of one call.
   */
  readonly textMax: number;
};

/** The first line to the program. Names of inputs can be too long for argv. */
export type Inputs = {
  readonly type: 'inputs';
  /** Paths inside the sandbox. */
  readonly contexts: readonly string[];
  /** Unique names, in the same order. */
  readonly names: readonly string[];
};

type ToProgram =
  | Inputs
  | { readonly type: 'run'; readonly number: number; readonly code: string }
  | { readonly type: 'read'; readonly name: string }
  | {
      readonly type: 'texts';
      readonly number: number;
      readonly ordinal: number;
      /** Null: the cell is stopped, so the waiting code must not continue. */
      readonly texts: readonly string[] | null;
    };

const Text = v.pipe(v.string(), v.transform(wellFormed));
const Count = v.pipe(v.number(), v.integer(), v.minValue(0));
const Variable = v.strictObject({ name: Text, type: Text, size: v.nullable(Count) });

const FromProgram = v.variant('type', [
  v.strictObject({ type: v.literal('ready') }),
  /** The program can't start; sent instead of `ready`. */
  v.strictObject({ type: v.literal('refused'), why: Text }),
  /** Head of the output, sent while it is printed, so that it survives if the program dies. */
  v.strictObject({
    type: v.literal('printed'),
    stream: v.picklist(['stdout', 'stderr']),
    text: Text,
  }),
  v.strictObject({
    type: v.literal('subcall'),
    number: Count,
    ordinal: Count,
    kind: v.picklist(['llm', 'rlm']),
    prompts: v.array(Text),
    /** Null: the default sub-model. */
    model: v.nullable(Text),
  }),
  v.strictObject({
    type: v.literal('finished'),
    number: Count,
    status: v.picklist(['ok', 'raised', 'stopped']),
    stdout: Text,
    stderr: Text,
    variables: v.array(Variable),
    answer: v.nullable(Text),
  }),
  v.strictObject({ type: v.literal('value'), text: v.nullable(Text) }),
]);
type FromProgram = v.InferOutput<typeof FromProgram>;

/** Encodes a message as one line of ASCII, which can be split at any byte. */
const lineFor = (message: ToProgram): string => {
  const json = JSON.stringify(message).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `${json}\n`;
};

/**
 * Decodes a line of the program; null if it is invalid, which means that the model's code wrote it.
 */
const readLine = (line: string): FromProgram | null => {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return null; // the caller kills the program, and the report says so
  }
  const read = v.safeParse(FromProgram, json);
  return read.success ? read.output : null;
};

// ---- The start: settings of the program, and the inputs as readable files ----

const TEXT_MAX = 10_000_000;
/** `last_output` may take this fraction (1/n) of the code's memory. */
const KEPT_PART = 4;

type ProgramInput = {
  readonly settings: ProgramSettings;
  readonly inputs: Inputs;
  readonly readable: readonly { readonly from: string; readonly to: string }[];
  /** Bytes of all contexts. */
  readonly contextBytes: number;
};

/** Throws if an input is not a regular file. */
export const programInput = ({
  contexts,
  names,
  outputMax,
  memoryMax,
}: EnvironmentOptions): ProgramInput => {
  const files = contexts.map((file, index) => ({
    from: realpathSync(file),
    to: `/context/${index}`,
  }));
  const sizes = files.map(({ from }) => {
    const stats = statSync(from);
    if (!stats.isFile()) throw new Error(`${from} is not a file: an input must be one`);
    return stats.size;
  });
  return {
    inputs: { type: 'inputs', contexts: files.map(({ to }) => to), names },
    settings: {
      outputMax,
      keptMax: Math.floor(memoryMax / KEPT_PART),
      textMax: TEXT_MAX,
    },
    readable: files,
    contextBytes: sizes.reduce((sum, size) => sum + size, 0),
  };
};
