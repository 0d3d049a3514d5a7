/**
 * The state of a command, judged from the files of its launcher. It is the same for the process that started the
 * command and for one that finds the files after a crash.
 */

/**
 * The process of bubblewrap. Its start time (ticks since boot) distinguishes it from a later process with the same
 * number.
 */
export type LaunchedProcess = { readonly pid: number; readonly startedAt: number };

/** The content of the file `status`. */
export type CommandStatus = {
  /** Null before the process exists. */
  readonly process: LaunchedProcess | null;
  readonly exitCode: number | null;
  /** When it ended, in ms since boot; null if that is unknown. */
  readonly endedAt: number | null;
  /** All of the output is written. */
  readonly isComplete: boolean;
  /** Output is missing because the disk was full. */
  readonly isCut: boolean;
  /** Name of the pipe that its runner and its fence hold open; null if there is none. */
  readonly alivePipe: string | null;
};

export type LaunchFacts = {
  /** Whether the file `claim` exists. */
  readonly isClaimed: boolean;
  readonly status: CommandStatus;
  /** Whether that process runs. Determine it before reading `status`, so that its last lines are not missed. */
  readonly isAlive: boolean;
  /** The file `why`: the reason why the command was killed; empty if there is none. */
  readonly why: string;
};

export type CommandVerdict =
  /** It never began. After claiming it now, it never will. */
  | { readonly kind: 'neverStarted' }
  | { readonly kind: 'running'; readonly process: LaunchedProcess | null }
  /** It has ended; more of its output may come for a moment. */
  | { readonly kind: 'draining'; readonly exitCode: number }
  | { readonly kind: 'finished'; readonly exitCode: number }
  /** It ended without an exit code. `lost`: nobody intended that. */
  | { readonly kind: 'killed'; readonly why: 'deadline' | 'cancelled' | 'lost' };

const numberIn = (line: string | undefined, at: number): number => Number(line?.split(' ')[at]);

/** Parses `status`: lines, then blanks. A line without a newline is not complete yet. */
export const readStatus = (text: string): CommandStatus => {
  const lines = text.split('\n').slice(0, -1);
  const run = lines.find((line) => /^run \d+ \d+$/.test(line));
  const exit = lines.find((line) => /^exit \d+(?: \d+(?:\.\d+)?)?$/.test(line));
  const seconds = numberIn(exit, 2);
  return {
    process: run === undefined ? null : { pid: numberIn(run, 1), startedAt: numberIn(run, 2) },
    exitCode: exit === undefined ? null : numberIn(exit, 1),
    endedAt: Number.isNaN(seconds) ? null : seconds * 1000,
    isComplete: lines.includes('eof'),
    isCut: lines.includes('cut'),
    alivePipe: /^alive (alive-[\da-f]+)$/m.exec(lines.join('\n'))?.[1] ?? null,
  };
};

/** The meaning of the file `why`. */
export const whyKilled = (why: string): 'deadline' | 'cancelled' | 'lost' => {
  const word = why.trim();
  return word === 'deadline' || word === 'cancelled' ? word : 'lost';
};

export const verdictOf = ({ isClaimed, status, isAlive, why }: LaunchFacts): CommandVerdict => {
  if (!isClaimed) return { kind: 'neverStarted' };
  const { exitCode, isComplete, process } = status;
  if (exitCode !== null) return { kind: isComplete ? 'finished' : 'draining', exitCode };
  if (isAlive) return { kind: 'running', process };
  return { kind: 'killed', why: whyKilled(why) };
};
