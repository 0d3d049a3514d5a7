import type { ChildProcess } from 'node:child_process';
import { Duplex } from 'node:stream';

/**
 * A guard for programs that must not outlive Pawl, also if Pawl is killed and nothing of its own code runs any more.
 *
 * The guard is a process in the group of the program. It reads a pipe of which only Pawl holds the other end. A line
 * says that the program has ended. If the pipe closes without it, the guard kills the group: Pawl is dead.
 *
 * It starts before the program, so there is no moment without it. It stays when its group is asked to end.
 */

/**
 * The beginning of a shell script: starts the guard, and closes its pipe at `pipe` for everything that follows. The
 * script must lead its own process group. `others`: further open descriptors, which the guard must not hold open.
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
 * Pawl's end of the guard's pipe, which comes after `descriptors`. Null if there is no guard, or it could not be started.
 * The guard ends with the group of its program.
 */
export const guardOf = (
  child: Pick<ChildProcess, 'stdio'>,
  { isGuarded, descriptors }: { readonly isGuarded: boolean; readonly descriptors: readonly number[] },
): Duplex | null => {
  const pipe = isGuarded ? child.stdio[STANDARD_STREAMS + descriptors.length] : null;
  if (!(pipe instanceof Duplex)) return null;
  pipe.on('error', () => undefined); // the guard is gone, and its program with it
  pipe.resume();
  return pipe;
};
