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
