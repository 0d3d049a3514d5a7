/**
 * Runs one process of an external program to its end: git, a formatter, a hook of the user. It adds
 * no sandbox: a caller who wants one passes a program that makes it.
 *
 * 1. It leads its own session: it has no terminal, and its children end with it.
 * 2. It reads only `input`, prints at most `bytesMax`, and runs at most `deadlineMs`.
 * 3. When the promise settles or this program exits, no process of its group is left.
 */

import type { ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { ProgramPath } from './find-program.js';
import { atExit, awaited, guardPipe, startProgram } from './start-program.js';

/**
 * `missing`: it can't be started. `stopped`: the caller's signal. `late`: the deadline passed.
 * `tooMuch`: it printed more than allowed. `refused`: its exit code is not 0.
 */
type ProgramFailureKind = 'missing' | 'stopped' | 'late' | 'tooMuch' | 'refused';

export class ProgramFailure extends Error {
  override readonly name = 'ProgramFailure';
  readonly kind: ProgramFailureKind;

  constructor(kind: ProgramFailureKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

export type ProgramRequest = {
  readonly program: ProgramPath;
  readonly words: readonly string[];
  /** Name of the process in messages. */
  readonly title: string;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly input: string | null;
  readonly bytesMax: number;
  /** At `bytesMax`: the call fails, or the output is cut. */
  readonly atMax: 'fail' | 'cut';
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
  /**
   * How long to wait for output after the process has ended, if a process that left its group keeps
   * it open. Default: to the deadline.
   */
  readonly leftOpenMs?: number;
  /** Open files that the process inherits as descriptors 3, 4, … . */
  readonly descriptors?: readonly number[];
  /** It has a guard (start-program.ts), which reads one more pipe after `descriptors`. */
  readonly isGuarded?: boolean;
};

export type ProgramEnd = {
  /** Exit code; 0 if the process was ended because of `cut`. */
  readonly code: number;
  readonly output: Buffer;
  /** The beginning of its stderr. */
  readonly errors: string;
  readonly cut: boolean;
};

const ERRORS_MAX = 4_096;
/** A guard kills its program within this time, in ms. Then we kill it ourselves. */
const GUARD_MS = 500;

const endGroup = (pid: number): void => {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // the group has already ended
  }
};

/** Why we ended a process. */
type Ending = 'stopped' | 'late' | 'tooMuch';

const endingMessage = (ending: Ending, { title, deadlineMs, bytesMax }: ProgramRequest): string => {
  const reasons: Readonly<Record<Ending, string>> = {
    stopped: 'was stopped',
    late: `took longer than ${deadlineMs / 1_000} s and was stopped`,
    tooMuch: `printed more than ${bytesMax} bytes and was stopped`,
  };
  return `${title} ${reasons[ending]}`;
};

type Child = ChildProcessByStdio<Writable | null, Readable, Readable>;

const start = ({
  program,
  words,
  folder,
  environment,
  input,
  descriptors = [],
  isGuarded,
}: ProgramRequest): Child =>
  startProgram(program, words, {
    cwd: folder,
    env: environment,
    detached: true,
    stdio: [
      input === null ? 'ignore' : 'pipe',
      'pipe',
      'pipe',
      ...descriptors,
      ...(isGuarded === true ? (['pipe'] as const) : []),
    ],
    // the overload for 'pipe' | 'ignore' at the first place is not declared; the type above says
    // what it gives
  }) as Child;

/** Collects the output. Calls `full` once if it exceeds the limit. */
const gather = (child: Child, { bytesMax }: ProgramRequest, full: () => void) => {
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
    if (errors.length < ERRORS_MAX)
      errors += piece.toString('utf8').slice(0, ERRORS_MAX - errors.length);
  });
  return { output: () => Buffer.concat(pieces), errors: () => errors.trim() };
};

/** Runs a program to its end. Rejects with a ProgramFailure, but not because of the exit code. */
export const runProgram = (request: ProgramRequest): Promise<ProgramEnd> =>
  new Promise((resolve, reject) => {
    const { signal, title } = request;
    if (signal.aborted) {
      reject(new ProgramFailure('stopped', endingMessage('stopped', request)));
      return;
    }
    const child = start(request);
    awaited.set(child, title);
    const guard = guardPipe(child, {
      isGuarded: request.isGuarded === true,
      descriptors: request.descriptors ?? [],
    });
    const { pid } = child;
    const kill = (): void => {
      if (pid !== undefined) endGroup(pid);
    };
    const release = pid === undefined ? () => undefined : atExit(kill);
    let ending: Ending | null = null;
    let killTimer: NodeJS.Timeout | undefined;
    const end = (why: Ending): void => {
      if (ending !== null) return;
      ending = why;
      // A guard also reaches what has left the group. It may have been killed itself.
      if (guard === null) kill();
      else killTimer = setTimeout(kill, GUARD_MS);
      guard?.destroy();
      // processes that left the group may hold the streams open
      child.stdout.destroy();
      child.stderr.destroy();
    };
    const stop = (): void => end('stopped');
    const { output, errors } = gather(child, request, () => end('tooMuch'));
    const deadline = setTimeout(() => end('late'), request.deadlineMs);
    signal.addEventListener('abort', stop, { once: true });
    const settle = (): void => {
      awaited.delete(child);
      clearTimeout(deadline);
      signal.removeEventListener('abort', stop);
      release();
    };
    child.once('error', (error) => {
      if (pid !== undefined) return; // it is running and will still end
      settle();
      reject(
        new ProgramFailure('missing', `${request.program} can't be started: ${error.message}`),
      );
    });
    let leftOpenTimer: NodeJS.Timeout | undefined;
    child.once('exit', () => {
      clearTimeout(killTimer);
      kill();
      if (request.leftOpenMs === undefined) return;
      leftOpenTimer = setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, request.leftOpenMs);
    });
    child.once('close', (code) => {
      clearTimeout(leftOpenTimer);
      settle();
      const cut = ending === 'tooMuch' && request.atMax === 'cut';
      if (ending !== null && !cut)
        reject(new ProgramFailure(ending, endingMessage(ending, request)));
      else if (code === null && !cut)
        reject(new ProgramFailure('refused', `${title} was ended by a signal`));
      else resolve({ code: cut ? 0 : (code ?? 0), output: output(), errors: errors(), cut });
    });
    // it may end before it has read all input; the exit code tells more than the broken pipe
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(request.input);
  });

/** Like Promise.all, but waits for all promises even if one rejects. */
export const settleAll = async <T extends readonly unknown[]>(
  work: {
    readonly [Key in keyof T]: Promise<T[Key]>;
  },
): Promise<{ -readonly [Key in keyof T]: Awaited<T[Key]> }> => {
  await Promise.allSettled(work);
  return Promise.all(work);
};
