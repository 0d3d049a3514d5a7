import type { Duplex } from 'node:stream';
import {
  type SandboxedEnd,
  type SandboxedProgram,
  startSandboxed,
  whyNotStarted,
} from '@pawl/agent/command/sandbox/run-program-in-bubblewrap';
import { type FromProgram, type Inputs, lineFor, readLine, type ToProgram } from './repl-protocol.js';

/**
 * The connection to a sandboxed program that has reported `ready`.
 *
 * 1. Between two orders the program is paused.
 * 2. A program that was interrupted is told to settle before its next order: an interrupt that it notices late must not stop
 *    another cell.
 * 3. An unexpected message kills the program: the model's code must have written to its channel.
 */

const LINE_BYTES_MAX = 128 * 1024 * 1024;
const READY_MS = 60_000;
const NEWLINE = 0x0a;
/** The reason for killing a program that sent an invalid or unexpected message. */
export const CHANNEL_MISUSED = 'its channel was written to by the code';
const OUT_OF_MEMORY = /heap out of memory|process out of memory|Cannot allocate memory|MemoryError/;

export type ReplListener = {
  hear(said: FromProgram): void;
  /** The program has ended. */
  gone(why: string): void;
};

export type LiveRepl = {
  tell(order: ToProgram): void;
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
    return `the code used more memory than the ${Math.round(memoryMax / 1024 ** 2)} MB that it may use`;
  }
  if (signal !== null) return `it was ended by ${signal}`;
  return code !== null && code > 128 ? `it crashed (code ${code})` : `the code ended it (exit code ${code})`;
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

/** Writes orders. After an interrupt the program settles before its next order. */
const orderWriter = (channel: Duplex) => {
  let isUnsettled = false;
  return {
    settleLater(): void {
      isUnsettled = true;
    },
    write(next: ToProgram): void {
      const isOrder = next.type === 'run' || next.type === 'read';
      if (isOrder && isUnsettled) channel.write(lineFor({ type: 'settle' }));
      if (isOrder) isUnsettled = false;
      channel.write(lineFor(next));
    },
  };
};

/** Starts the program and waits until it is ready. Rejects with the reason if it does not start. */
export const startLive = async (
  order: SandboxedProgram,
  inputs: Inputs,
  memoryMax: number,
): Promise<LiveRepl> => {
  const started = startSandboxed(order);
  started.channel.write(lineFor(inputs));
  let life: 'alive' | 'over' = 'alive';
  let killedFor: string | null = null;
  let listener: ReplListener | null = null;
  const kill = (why: string): void => {
    killedFor ??= why;
    started.kill();
  };
  const ended = started.ended.then((end) => {
    life = 'over';
    killedFor ??= whyEnded(end, memoryMax);
    listener?.gone(killedFor);
    return end;
  });
  const hearLine = (line: string): void => {
    if (killedFor !== null) return;
    const said = readLine(line);
    if (said === null || listener === null) kill(CHANNEL_MISUSED);
    else listener.hear(said);
  };
  splitLines(started.channel, hearLine, () => kill(CHANNEL_MISUSED));
  const patience = setTimeout(() => kill('it took too long'), READY_MS);
  const answered = new Promise<FromProgram>((resolve) => {
    listener = { hear: resolve, gone: () => undefined };
  });
  const first = await Promise.race([answered, ended]);
  clearTimeout(patience);
  if (!('type' in first)) throw new Error(whyNotStarted(first, order.program));
  if (first.type !== 'ready') {
    kill(CHANNEL_MISUSED);
    await ended;
    throw new Error(first.type === 'refused' ? first.why : CHANNEL_MISUSED);
  }
  listener = null;
  started.hold();
  const orders = orderWriter(started.channel);
  return {
    tell: (next) => orders.write(next),
    listen(next) {
      listener = next;
      if (next === null) started.hold();
      else started.release();
    },
    interrupt() {
      orders.settleLater();
      started.interrupt();
    },
    kill,
    ended,
    hasEnded: () => life === 'over',
  };
};
