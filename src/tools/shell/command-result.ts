import type { ToolOutcome } from '../../ports/tool.js';
import { failed } from '../change-file.js';
import { type FailedCommand, sandboxHint } from './sandbox-hints.js';
import type { CommandEnd, RunningCommand } from './shell-command.js';

/** A command's output and end as the model sees them. */

/** Pawl's own prefix, which bash repeats in its message about a syntax error. */
const JOINED_IN_MESSAGE = /`exec 2>&1; /g;

const seconds = (durationMs: number): string => `${(durationMs / 1000).toFixed(1)} s`;

export const describeEnd = ({ how, durationMs }: CommandEnd): string => {
  switch (how.kind) {
    case 'exited':
      return `exit code ${how.code}, ${seconds(durationMs)}`;
    case 'killed':
      return `ended by ${how.signal}, ${seconds(durationMs)}`;
    case 'notStarted':
      return `not started: ${how.why}`;
    default:
      return how satisfies never;
  }
};

const leftoverLines: Readonly<Record<CommandEnd['leftovers'], readonly string[]>> = {
  none: [],
  ended: ['[processes that it left in the background were ended; to keep one, use background: true]'],
  detached: ['[a process that it detached still runs]'],
};

const NO_OUTPUT = '(no output)';

export const outputOf = (running: RunningCommand): string =>
  running.output.text().replace(JOINED_IN_MESSAGE, '`').trimEnd() || NO_OUTPUT;

/** A started command and its surroundings. */
export type StartedCommand = { readonly running: RunningCommand } & Pick<
  FailedCommand,
  'level' | 'workspace' | 'home'
>;

/** Lines below the output of a command that ended by itself: a sandbox hint, leftover processes, notes. */
export const endLines = ({ running, ...place }: StartedCommand, end: CommandEnd): readonly string[] => {
  const done = end.how.kind === 'exited' && end.how.code === 0;
  const isFailed = end.how.kind === 'exited' && !done;
  const hint = isFailed ? sandboxHint({ ...place, output: running.output.text() }) : null;
  return [...(hint === null ? [] : [`[${hint}]`]), ...leftoverLines[end.leftovers], ...end.notes];
};

/** Result of a foreground command: its output and one line about its end. */
export const outcomeOf = (started: StartedCommand, end: CommandEnd, signal: AbortSignal): ToolOutcome => {
  const show = (line: string, more: readonly string[]): string =>
    [outputOf(started.running), `[${line}]`, ...more].join('\n');
  const droppedBytes = started.running.output.droppedBytes();
  const dropped = droppedBytes === 0 ? {} : { droppedBytes };
  if (signal.aborted) {
    const timedOut = signal.reason === 'timedOut';
    const why = timedOut ? 'timed out' : 'cancelled';
    const text = show(
      `${why} after ${seconds(end.durationMs)}: it was stopped with all it had started; what it did until then stands`,
      end.notes,
    );
    return { status: timedOut ? 'timedOut' : 'cancelled', text, ...dropped };
  }
  const done = end.how.kind === 'exited' && end.how.code === 0;
  const text = show(describeEnd(end), endLines(started, end));
  if (!done) return { ...failed(text), ...dropped };
  // The text already says that there is no output.
  return {
    status: 'ok',
    text,
    ...dropped,
    ...(outputOf(started.running) === NO_OUTPUT ? { summary: '' } : {}),
  };
};
