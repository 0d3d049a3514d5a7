import { readdirSync, readFileSync } from 'node:fs';
import type { ProgramPath } from '../../platform/programs/find-program.js';
import { SandboxRefusal } from './sandbox-refusal.js';

/**
 * Open files that started programs would inherit by accident.
 *
 * Node closes its own files in child processes, but passes on those that Pawl was started with. A descriptor of a
 * folder leads out of any sandbox.
 */

const CLOSED_AT_START = 0o2000000;
const STANDARD_MAX = 2;

const flagsOf = (descriptor: string): number => {
  try {
    const found = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1'))?.[1];
    return Number.parseInt(found ?? '0', 8);
  } catch {
    return CLOSED_AT_START; // it was closed meanwhile, for example the one that listed them
  }
};

/** Descriptors above 2 that a started program would inherit. Empty without /proc. */
export const inheritedDescriptors = (): readonly number[] => {
  let names: readonly string[];
  try {
    names = readdirSync('/proc/self/fd');
  } catch {
    return [];
  }
  return names
    .filter((name) => Number(name) > STANDARD_MAX && (flagsOf(name) & CLOSED_AT_START) === 0)
    .map(Number);
};

/**
 * A bash script that closes all descriptors above `$0`, then runs the program in its arguments. Other shells can't
 * address descriptors above 9.
 */
export const CLOSING_SCRIPT =
  'for file in /proc/self/fd/*; do n=$' +
  '{file##*/}; if [ "$n" -gt "$0" ]; then eval "exec $n>&-" 2>/dev/null; fi; done; exec "$@"';

type Start<P extends string> = { readonly program: P; readonly words: readonly string[] };

/** Wraps a program so that it inherits no descriptor above `last`. Needs bash. */
export const closingOthers = <P extends string>(
  start: Start<P>,
  last: number,
  bash: ProgramPath | null,
): Start<P | ProgramPath> => {
  if (inheritedDescriptors().length === 0) return start;
  if (bash === null)
    throw new SandboxRefusal(
      'Pawl was started with open files, and bash, which would close them, is missing. Install bash',
    );
  // Pipes of Node are sockets, and with a socket as stdin bash takes itself for a remote shell and reads ~/.bashrc.
  return {
    program: bash,
    words: ['--norc', '-c', CLOSING_SCRIPT, String(last), start.program, ...start.words],
  };
};
