import type { ChildProcess, ChildProcessByStdio } from 'node:child_process';
import type { Duplex, Readable } from 'node:stream';
import { guardOf, PROGRAM_ENDED } from '../../platform/programs/end-with-pawl.js';
import type { ProgramPath } from '../../platform/programs/find-program.js';
import { startProgram } from '../../platform/programs/start-program.js';
import { createMarkReader } from '../launcher/command-shell-scripts.js';
import type { LaunchedEnd } from '../launcher/follow-command.js';
import type { PreparedCommand, WaitingCommand } from '../sandbox/command-sandbox-types.js';
import type { CommandOutput } from './command-output.js';

/** The process of a command, started directly or by the launcher. */

export type CommandProcessEnd =
  | { readonly kind: 'exited'; readonly code: number }
  | {
      readonly kind: 'killed';
      readonly signal: string;
      /** Of a command that an earlier process has started: the recorded reason. */
      readonly why?: 'deadline' | 'cancelled' | 'lost';
    }
  | { readonly kind: 'notStarted'; readonly why: string };

export type ShellEnd = {
  /** `again`: it never started and can be started once more. */
  readonly how: CommandProcessEnd | { readonly kind: 'again' };
  /** A process that left the group holds the output open. */
  readonly heldOpen: boolean;
  /** A fenced command left processes behind. All of them have ended. */
  readonly leftBehind: boolean;
  /** When it ended, in ms since boot, as far as it is known. */
  readonly endedAt?: number | null;
};

export type CommandProcess = {
  /** null if it could not be started. */
  readonly pid: number | null;
  readonly ended: Promise<ShellEnd>;
  /** Announces an immediate kill. */
  killing(): void;
  /** Stops reading output. */
  close(): void;
};

/** How long to wait for output that another process holds open after the shell has ended, in ms. */
const HELD_OPEN_MS = 100;

const howItEnded = (code: number | null, signal: NodeJS.Signals | null): CommandProcessEnd =>
  code === null ? { kind: 'killed', signal: signal ?? 'a signal' } : { kind: 'exited', code };

const whyNotStarted = (error: Error, program: string): CommandProcessEnd => {
  const missing = 'code' in error && error.code === 'ENOENT';
  const why = missing
    ? `${program} or the workspace is missing; install ${program}, or look at the workspace`
    : error.message;
  return { kind: 'notStarted', why };
};

/** Turns of the event loop to read remaining output: the last bytes, then the end of the stream. */
const READING_ROUNDS = 3;

/** Calls back after the available output was read. A timer alone may fire too early in a busy program. */
const afterReading = (done: () => void, rounds = READING_ROUNDS): void => {
  setImmediate(() => (rounds === 0 ? done() : afterReading(done, rounds - 1)));
};

type Ended = Pick<ShellEnd, 'how' | 'heldOpen'>;

/** How long to wait for the end of a guard, in ms. Only a stopped one takes long. */
const GUARD_MS = 500;

/** Ends the guard of a command that has ended. Calls back when it is gone: it counts as a process of the command. */
const endGuard = (pipe: Duplex | null, done: () => void): void => {
  if (pipe === null || pipe.destroyed) {
    done();
    return;
  }
  const patience = setTimeout(() => pipe.destroy(), GUARD_MS);
  pipe.once('close', () => {
    clearTimeout(patience);
    done();
  });
  pipe.end(PROGRAM_ENDED);
};

/** Resolves when the shell has ended and its output is closed or no longer awaited. */
const shellEnd = (child: ChildProcess, program: string, guard: Duplex | null): Promise<Ended> =>
  new Promise((resolve) => {
    const closed = new Promise<void>((close) => void child.once('close', () => close()));
    child.once('error', (error) => {
      if (child.pid === undefined) resolve({ how: whyNotStarted(error, program), heldOpen: false });
    });
    child.once('exit', (code, signal) => {
      const how = howItEnded(code, signal);
      endGuard(guard, () => {
        const patience = setTimeout(() => afterReading(() => resolve({ how, heldOpen: true })), HELD_OPEN_MS);
        void closed.then(() => {
          clearTimeout(patience);
          resolve({ how, heldOpen: false });
        });
      });
    });
  });

const STANDARD = ['ignore', 'pipe', 'pipe'] as const;

type Child = ChildProcessByStdio<null, Readable, Readable>;

/** `program`: its name for people. */
export const startPrepared = (
  prepared: PreparedCommand,
  { program, isFenced }: { readonly program: string; readonly isFenced: boolean },
  output: (bytes: Buffer) => void,
): CommandProcess => {
  const { words, environment, folder, descriptors, isGuarded } = prepared;
  // bubblewrap or the shell, both located by find-program.ts
  const child = startProgram(prepared.program as ProgramPath, words, {
    cwd: folder,
    env: environment,
    detached: true,
    stdio: [...STANDARD, ...descriptors, ...(isGuarded ? (['pipe'] as const) : [])],
    // The first three entries of `stdio` determine the types of the streams.
  }) as Child;
  prepared.started();
  const marks = createMarkReader(output);
  child.stdout.on('data', output);
  child.stderr.on('data', isFenced ? (bytes: Buffer) => marks.add(bytes) : output);
  return {
    pid: child.pid ?? null,
    ended: shellEnd(child, program, guardOf(child, prepared)).then((end) => ({
      ...end,
      leftBehind: marks.end(),
    })),
    killing: () => undefined,
    close() {
      child.stdout.destroy();
      child.stderr.destroy();
    },
  };
};

/** Exit code of a shell whose command was killed by SIGKILL. */
const KILLED_CODE = 128 + 9;
const CUT = '\n[the disk is full: from here on output is missing]\n';

const ENDLESS = '\n[the end of the output is missing: what writes it was killed]\n';

/** What nobody could see happen. */
type Found = { readonly isFound: boolean };

const howLaunchedEnded = (
  { how, why }: LaunchedEnd,
  isKilled: boolean,
  { isFound }: Found,
): ShellEnd['how'] => {
  const killed = { kind: 'killed', signal: 'SIGKILL', ...(isFound && !isKilled ? { why } : {}) } as const;
  switch (how.kind) {
    case 'exited': {
      const wasKilled = isKilled || (isFound && why !== 'lost');
      return wasKilled && how.code === KILLED_CODE ? killed : how;
    }
    case 'killed':
      return killed;
    case 'neverStarted':
      return { kind: 'again' };
    default:
      return how satisfies never;
  }
};

/** Starts a command that waits in its launcher, or follows one that an earlier process has started. */
export const startWaiting = (
  waiting: WaitingCommand,
  due: number | null,
  output: CommandOutput,
  found: Found & { readonly isFenced: boolean },
): CommandProcess => {
  let isKilled = false;
  const ended = waiting.ended.then((end): ShellEnd => {
    const { leftBehind, isCut, isWhole, endedAt } = end;
    if (isCut) output.add(Buffer.from(CUT));
    const isEndless = !isWhole && end.how.kind === 'exited';
    if (isEndless && found.isFenced && !isCut) output.add(Buffer.from(ENDLESS));
    const heldOpen = isEndless && !found.isFenced;
    return { how: howLaunchedEnded(end, isKilled, found), heldOpen, leftBehind, endedAt };
  });
  waiting.go(due, { bytes: (bytes) => output.add(bytes), skipped: (count) => output.skip(count) });
  return {
    pid: waiting.process?.pid ?? null,
    ended,
    killing() {
      isKilled = true;
      waiting.cancelled();
    },
    close: () => undefined,
  };
};
