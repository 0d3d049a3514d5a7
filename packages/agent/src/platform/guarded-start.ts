import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { Duplex } from 'node:stream';
import type { ProgramPath } from './find-program.js';

/**
 * Starts of programs that inherit no open file by accident, and of those that must not outlive
 * Pawl.
 */

type Start<P extends string = string> = { readonly program: P; readonly words: readonly string[] };

/** A command can't be fenced. `message` gives the reason, for people and for the model. */
export class SandboxRefusal extends Error {}

/**
 * The beginning of a shell script: starts a guard, and closes its pipe at `pipe` for everything
 * that follows. The script must lead its own process group. `others`: further open descriptors,
 * which the guard must not hold open.
 *
 * The guard is a process in the group of the program. It reads a pipe of which only Pawl holds the
 * other end. A line says that the program has ended. If the pipe closes without it, the guard kills
 * the group: Pawl is dead, and nothing of its own code runs any more. The guard starts before the
 * program, so there is no moment without it. It stays when its group is asked to end.
 */
export const guardScript = (pipe: number, others: readonly number[] = []): string => {
  const closed = others.map((descriptor) => ` ${descriptor}<&-`).join('');
  return `(
  (trap '' HUP INT QUIT TERM; read -r line <&${pipe} || kill -9 0) </dev/null >/dev/null 2>/dev/null${closed} &
) || exit 126
exec ${pipe}<&-
`;
};

/** Tells the guard that the program has ended. */
export const PROGRAM_ENDED = 'ended\n';

const STANDARD_STREAMS = 3;

/**
 * Pawl's end of the guard's pipe, which comes after `descriptors`. Null if there is no guard, or it
 * could not be started. The guard ends with the group of its program.
 */
export const guardPipe = (
  child: Pick<ChildProcess, 'stdio'>,
  {
    isGuarded,
    descriptors,
  }: { readonly isGuarded: boolean; readonly descriptors: readonly number[] },
): Duplex | null => {
  const pipe = isGuarded ? child.stdio[STANDARD_STREAMS + descriptors.length] : null;
  if (!(pipe instanceof Duplex)) return null;
  pipe.on('error', () => undefined); // the guard is gone, and its program with it
  pipe.resume();
  return pipe;
};

/** The pipe of the guard of a program without other descriptors. */
const GUARD_PIPE = STANDARD_STREAMS;

/**
 * `--norc`, `-p`: bash runs neither ~/.bashrc nor the file in BASH_ENV. Unlike other shells it
 * passes on variables with any name.
 */
const GUARDED = ['--norc', '-p', '-c', `${guardScript(GUARD_PIPE)}exec "$@"`, 'pawl-guard'];

/** The start of a program with a guard. */
export const guardedStart = ({ program, words }: Start, bash: ProgramPath): Start<ProgramPath> => ({
  program: bash,
  words: [...GUARDED, program, ...words],
});

/**
 * How to start a command without a fence. A guard needs bash: `isGuarded` in the result says
 * whether there is one.
 */
export const openStart = (
  start: Start,
  bash: ProgramPath | null,
  isGuarded: boolean,
): Start & { readonly isGuarded: boolean } =>
  bash === null || !isGuarded
    ? { ...closingOthers(start, GUARD_PIPE - 1, bash), isGuarded: false }
    : { ...closingOthers(guardedStart(start, bash), GUARD_PIPE, bash), isGuarded: true };

const CLOSED_AT_START = 0o2000000;
const STANDARD_MAX = 2;

const readFlags = (descriptor: string): number => {
  try {
    const found = /^flags:\s*([0-7]+)/m.exec(
      readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1'),
    )?.[1];
    return Number.parseInt(found ?? '0', 8);
  } catch {
    return CLOSED_AT_START; // it was closed meanwhile, for example the one that listed them
  }
};

/**
 * Descriptors above 2 that a started program would inherit. Node closes its own files in child
 * processes, but passes on those that Pawl was started with. A descriptor of a folder leads out of
 * any sandbox. Empty without /proc.
 */
export const inheritedDescriptors = (): readonly number[] => {
  let names: readonly string[];
  try {
    names = readdirSync('/proc/self/fd');
  } catch {
    return [];
  }
  return names
    .filter((name) => Number(name) > STANDARD_MAX && (readFlags(name) & CLOSED_AT_START) === 0)
    .map(Number);
};

/**
 * A bash script that closes all descriptors above `$0`, then runs the program in its arguments.
 * Other shells can't address descriptors above 9.
 */
export const CLOSING_SCRIPT =
  'for file in /proc/self/fd/*; do n=$' +
  '{file##*/}; if [ "$n" -gt "$0" ]; then eval "exec $n>&-" 2>/dev/null; fi; done; exec "$@"';

/** Wraps a program so that it inherits no descriptor above `last`. Needs bash. */
export const closingOthers = <P extends string>(
  start: Start<P>,
  last: number,
  bash: ProgramPath | null,
): Start<P | ProgramPath> => {
  if (inheritedDescriptors().length === 0) return start;
  if (bash === null)
    throw new SandboxRefusal(
      'Pawl was started with open files, and bash, which would close them, is missing. ' +
        'Install bash',
    );
  // Pipes of Node are sockets, and with a socket as stdin bash takes itself for a remote shell and
  // reads ~/.bashrc.
  return {
    program: bash,
    words: ['--norc', '-c', CLOSING_SCRIPT, String(last), start.program, ...start.words],
  };
};
