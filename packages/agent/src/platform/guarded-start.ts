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
export const guardScript = (pipe: number, others: readonly number[] = []): string => `(
  (trap '' HUP INT QUIT TERM; read -r line <&${pipe} || kill -9 0) </dev/null ${silenced(others)} &
) || exit 126
exec ${pipe}<&-
`;

const silenced = (others: readonly number[]): string =>
  ['>/dev/null 2>/dev/null', ...others.map((descriptor) => `${descriptor}<&-`)].join(' ');

/**
 * The same for bubblewrap, which writes the number of its inner process to descriptor `report`. The
 * guard kills that process too. Between two system calls it has left the group and is not yet bound
 * to the outer process: if that one dies then, the program would run for ever. bubblewrap lets it
 * go on only after the number is written. Needs bash.
 */
const fenceGuardScript = (pipe: number, others: readonly number[], report: number): string => `
exec ${report}> >(
  (
    trap '' HUP INT QUIT TERM
    child=
    while read -r word value && [ "$word" != '}' ]; do
      [ "$word" = '"child-pid":' ] && child=\${value%,}
    done
    read -r line <&${pipe} || kill -9 $child 0
  ) <&0 ${silenced(others)} &
) || exit 126
exec ${pipe}<&-
`;

/** Tells the guard that the program has ended. */
export const PROGRAM_ENDED = 'ended\n';

const STANDARD_STREAMS = 3;
const STANDARD_MAX = 2;

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

/**
 * `--norc`, `-p`: bash runs neither ~/.bashrc nor the file in BASH_ENV. Unlike other shells it
 * passes on variables with any name.
 */
const GUARD_OPTIONS = ['--norc', '-p', '-c'];

/** The start of a program with a guard. The guard's pipe is its descriptor 3. */
export const guardedStart = ({ program, words }: Start, bash: ProgramPath): Start<ProgramPath> => {
  const script = `${guardScript(STANDARD_STREAMS)}exec "$@"`;
  return { program: bash, words: [...GUARD_OPTIONS, script, 'pawl-guard', program, ...words] };
};

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
    ? { ...closingOthers(start, STANDARD_MAX, bash), isGuarded: false }
    : { ...closingOthers(guardedStart(start, bash), STANDARD_MAX + 1, bash), isGuarded: true };

type FenceStart = {
  readonly bwrap: ProgramPath;
  readonly words: readonly string[];
  /** A program that starts another one in a network, with its words. */
  readonly entry: readonly [program: ProgramPath, ...words: string[]] | readonly [];
  /** How many open files it inherits; they stand from descriptor 3 on. */
  readonly descriptors: number;
};

/** How to start bubblewrap. `isGuarded` as in openStart. */
export const fencedStart = (
  { bwrap, words, entry, descriptors }: FenceStart,
  bash: ProgramPath | null,
  isGuarded: boolean,
): Start & { readonly isGuarded: boolean } => {
  const pipe = STANDARD_STREAMS + descriptors;
  const report = pipe + 1;
  const others = Array.from({ length: descriptors }, (_, index) => STANDARD_STREAMS + index);
  const program = entry[0] ?? bwrap;
  const first = entry.length === 0 ? [] : [...entry.slice(1), bwrap];
  if (bash === null || !isGuarded) {
    const start = { program, words: [...first, ...words] };
    return { ...closingOthers(start, pipe - 1, bash), isGuarded: false };
  }
  const script = `${fenceGuardScript(pipe, others, report)}exec "$@"`;
  const fenced = [program, ...first, '--info-fd', String(report), ...words];
  const start = { program: bash, words: [...GUARD_OPTIONS, script, 'pawl-guard', ...fenced] };
  return { ...closingOthers(start, pipe, bash), isGuarded: true };
};

const CLOSED_AT_START = 0o2000000;

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
