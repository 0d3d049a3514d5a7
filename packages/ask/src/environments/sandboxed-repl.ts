/**
 * A program behind a sandbox that runs cells (programs of the model) and keeps their variables.
 *
 * 1. Between two requests the program is paused.
 * 2. An unexpected message kills the program: the model's code must have written to its channel.
 *
 * From top to bottom: the connection to the program; messages; and the data that it starts with.
 */

import { realpathSync, statSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import * as v from 'valibot';
import type { EnvironmentOptions } from '../ports.js';
import { wellFormed } from './cell-output.js';
import {
  CHANNEL_MISUSED,
  type FromRepl,
  type Repl,
  type ReplListener,
  type ToRepl,
} from './repl.js';
import {
  type SandboxedEnd,
  type SandboxedProgram,
  startSandboxed,
  whyNotStarted,
} from './run-program.js';

const LINE_BYTES_MAX = 128 * 1024 * 1024;
const READY_MS = 60_000;
const NEWLINE = 0x0a;
const OUT_OF_MEMORY = /Cannot allocate memory|MemoryError/;

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
export const startSandboxedRepl = async (
  program: SandboxedProgram,
  inputs: Inputs,
  { memoryMax }: Pick<EnvironmentOptions, 'memoryMax'>,
): Promise<Repl> => {
  const started = startSandboxed(program);
  started.channel.write(lineFor(inputs));
  let hasExited = false;
  /** Why we killed it; null if it runs, or ended without us. */
  let killedFor: string | null = null;
  let hear: ((message: ProgramMessage) => void) | null = null;
  let listener: ReplListener | null = null;
  const kill = (why: string): void => {
    killedFor ??= why;
    started.kill();
  };
  const ended = started.ended.then((end) => {
    hasExited = true;
    listener?.gone(killedFor ?? whyEnded(end, memoryMax));
    return end;
  });
  const hearLine = (line: string): void => {
    if (killedFor !== null || hasExited) return;
    const message = readLine(line);
    if (message === null || hear === null) kill(CHANNEL_MISUSED);
    else hear(message);
  };
  splitLines(started.channel, hearLine, () => kill(CHANNEL_MISUSED));
  const timeout = setTimeout(() => kill(`it was not ready after ${READY_MS / 1_000} s`), READY_MS);
  const answered = new Promise<ProgramMessage>((resolve) => {
    hear = resolve;
  });
  const first = await Promise.race([answered, ended]);
  clearTimeout(timeout);
  const notStarted = (why: string): Error => new Error(`${program.program} did not start: ${why}`);
  // no message: the program has ended
  if (!('type' in first))
    throw killedFor === null
      ? new Error(whyNotStarted(first, program.program))
      : notStarted(killedFor);
  if (first.type !== 'ready') {
    kill(CHANNEL_MISUSED);
    await ended;
    throw first.type === 'refused' ? new Error(first.why) : notStarted(CHANNEL_MISUSED);
  }
  hear = null;
  started.hold(); // pauses the program until the first request
  return {
    tell: (message) => void started.channel.write(lineFor(message)),
    listen(next) {
      listener = next;
      hear = (message) => {
        const expected = toReplMessage(message);
        if (expected === null || next === null) kill(CHANNEL_MISUSED);
        else next.hear(expected);
      };
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

type ToProgram = Inputs | ToRepl;

const Text = v.pipe(v.string(), v.transform(wellFormed));
const Count = v.pipe(v.number(), v.integer(), v.minValue(0));
const Variable = v.strictObject({ name: Text, type: Text, size: v.nullable(Count) });

const programMessage = v.variant('type', [
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
type ProgramMessage = v.InferOutput<typeof programMessage>;

/** The message in the form that all environments share; null for those of the start. */
const toReplMessage = (message: ProgramMessage): FromRepl | null => {
  switch (message.type) {
    case 'subcall': {
      const { type, number, model, ...call } = message;
      return { type, number, subcall: model === null ? call : { ...call, model } };
    }
    case 'finished': {
      const { type, number, ...report } = message;
      // the program reports only while it keeps its variables and can run another cell
      return { type, number, report: { ...report, variablesLost: 'no' }, unfit: null };
    }
    case 'ready':
    case 'refused':
      return null;
    default:
      return message;
  }
};

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
const readLine = (line: string): ProgramMessage | null => {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return null; // the caller kills the program, and the report says so
  }
  const read = v.safeParse(programMessage, json);
  return read.success ? read.output : null;
};

// ---- The start: settings of the program, and the inputs as readable files ----

const TEXT_MAX = 10_000_000;
/**
 * `last_output` has at most one character for so many bytes of the code's memory: Python stores a
 * character in one to four bytes.
 */
const BYTES_PER_KEPT_CHARACTER = 4;

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
      keptMax: Math.floor(memoryMax / BYTES_PER_KEPT_CHARACTER),
      textMax: TEXT_MAX,
    },
    readable: files,
    contextBytes: sizes.reduce((sum, size) => sum + size, 0),
  };
};
