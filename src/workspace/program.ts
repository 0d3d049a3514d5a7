import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { atExit } from './at-exit.js';

/**
 * One process of somebody else's program: git, or a formatter.
 *
 * 1. It leads its own session: no terminal to ask at, and whatever it starts dies with it.
 * 2. It reads nothing but `input`, prints at most `bytesMax`, and lives at most `deadlineMs`.
 * 3. When the promise settles nothing of its group runs; when this program exits, neither.
 */

/**
 * `missing`: it can't be started. `stopped`: the caller's signal. `late`: the deadline passed. `tooMuch`: it printed
 * more than allowed. `refused`: it ended with another code than 0.
 */
export type ProgramFailureKind = 'missing' | 'stopped' | 'late' | 'tooMuch' | 'refused';

export class ProgramFailure extends Error {
  override readonly name = 'ProgramFailure';
  readonly kind: ProgramFailureKind;

  constructor(kind: ProgramFailureKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

export type ProgramOrder = {
  /** Absolute path. */
  readonly program: string;
  readonly words: readonly string[];
  /** What the process is called in messages. */
  readonly title: string;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly input: string | null;
  readonly bytesMax: number;
  /** What happens at `bytesMax`: the call fails, or what was printed until then is the output. */
  readonly atMax: 'fail' | 'cut';
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
};

export type ProgramEnd = {
  /** Exit code; of a process that was ended because of `cut`, 0. */
  readonly code: number;
  readonly output: Buffer;
  /** The beginning of what it said about itself. */
  readonly errors: string;
  readonly cut: boolean;
};

const ERRORS_MAX = 4_096;

const endGroup = (pid: number): void => {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // none of the group is left: there is nothing to end
  }
};

/** Why a process was ended by us. */
type Ending = 'stopped' | 'late' | 'tooMuch';

const seconds = (durationMs: number): string => `${durationMs / 1_000} s`;

const endingMessage = (ending: Ending, { title, deadlineMs, bytesMax }: ProgramOrder): string => {
  switch (ending) {
    case 'stopped':
      return `${title} was stopped`;
    case 'late':
      return `${title} took longer than ${seconds(deadlineMs)} and was stopped`;
    case 'tooMuch':
      return `${title} printed more than ${bytesMax} bytes and was stopped`;
    default:
      return ending satisfies never;
  }
};

type Child = ChildProcessByStdio<Writable | null, Readable, Readable>;

const start = ({ program, words, folder, environment, input }: ProgramOrder): Child =>
  spawn(program, words, {
    cwd: folder,
    env: environment,
    detached: true,
    stdio: [input === null ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    // the overload for 'pipe' | 'ignore' at the first place is not declared; the type above says what it gives
  }) as Child;

/** Gathers what the process prints; `full` is called once, when it is more than allowed. */
const gather = (child: Child, { bytesMax }: ProgramOrder, full: () => void) => {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let errors = '';
  child.stdout.on('data', (piece: Buffer) => {
    const room = bytesMax - bytes;
    bytes += piece.length;
    if (room > 0) pieces.push(piece.subarray(0, room));
    if (room >= 0 && piece.length > room) full();
  });
  child.stderr.on('data', (piece: Buffer) => {
    if (errors.length < ERRORS_MAX) errors += piece.toString('utf8').slice(0, ERRORS_MAX - errors.length);
  });
  return { output: () => Buffer.concat(pieces), errors: () => errors.trim() };
};

/** Runs it to its end. Rejects with a ProgramFailure; an exit code other than 0 is no failure here. */
export const runProgram = (order: ProgramOrder): Promise<ProgramEnd> =>
  new Promise((resolve, reject) => {
    const { signal, title } = order;
    if (signal.aborted) {
      reject(new ProgramFailure('stopped', endingMessage('stopped', order)));
      return;
    }
    const child = start(order);
    const { pid } = child;
    const release = pid === undefined ? () => undefined : atExit(() => endGroup(pid));
    let ending: Ending | null = null;
    const end = (why: Ending): void => {
      ending ??= why;
      if (pid !== undefined) endGroup(pid);
      // what left the group may hold them open
      child.stdout.destroy();
      child.stderr.destroy();
    };
    const stop = (): void => end('stopped');
    const { output, errors } = gather(child, order, () => end('tooMuch'));
    const patience = setTimeout(() => end('late'), order.deadlineMs);
    signal.addEventListener('abort', stop, { once: true });
    const settle = (): void => {
      clearTimeout(patience);
      signal.removeEventListener('abort', stop);
      release();
    };
    child.once('error', (error) => {
      if (pid !== undefined) return; // it runs: its end is still to come
      settle();
      reject(new ProgramFailure('missing', `${order.program} can't be started: ${error.message}`));
    });
    child.once('exit', () => {
      if (pid !== undefined) endGroup(pid);
    });
    child.once('close', (code) => {
      settle();
      const cut = ending === 'tooMuch' && order.atMax === 'cut';
      if (ending !== null && !cut) reject(new ProgramFailure(ending, endingMessage(ending, order)));
      else if (code === null && !cut) reject(new ProgramFailure('refused', `${title} was ended by a signal`));
      else resolve({ code: cut ? 0 : (code ?? 0), output: output(), errors: errors(), cut });
    });
    // it may end without reading all of its input, which its exit code tells better than a broken pipe
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(order.input);
  });

/** Like Promise.all, but waits for all of them also where one rejects: none is left running. */
export const settleAll = async <T extends readonly unknown[]>(
  work: {
    readonly [Key in keyof T]: Promise<T[Key]>;
  },
): Promise<{ -readonly [Key in keyof T]: Awaited<T[Key]> }> => {
  await Promise.allSettled(work);
  return Promise.all(work);
};
