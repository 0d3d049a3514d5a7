import type { ToolContext, ToolOutcome } from '../../ports/tool.js';
import { failed } from '../../tools/files/change-file.js';
import type { CommandEnd, RunningCommand } from './running-command.js';
import { type FailedCommand, partialHint, sandboxHint } from './sandbox-hints.js';

/** A command's output and end as the model sees them. */

/** Pawl's own prefix, which bash repeats in its message about a syntax error. */
const JOINED_IN_MESSAGE = /`exec 2>&1; /g;

const seconds = (durationMs: number): string => `${(durationMs / 1000).toFixed(1)} s`;

export const describeEnd = ({ how, durationMs }: Pick<CommandEnd, 'how' | 'durationMs'>): string => {
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

export const outputOf = (running: Pick<RunningCommand, 'output'>): string =>
  running.output.text().replace(JOINED_IN_MESSAGE, '`').trimEnd() || NO_OUTPUT;

/** A started command and its surroundings. */
export type StartedCommand = { readonly running: RunningCommand } & Pick<
  FailedCommand,
  'level' | 'workspace' | 'home'
>;

/** Waits for the end; a cancelled call asks the command to end, then kills it. */
export const waitForEnd = async (
  running: RunningCommand,
  { signal, force }: Pick<ToolContext, 'signal' | 'force'>,
): Promise<CommandEnd> => {
  const stop = (): void => running.stop();
  const kill = (): void => running.kill();
  signal.addEventListener('abort', stop, { once: true });
  force.addEventListener('abort', kill, { once: true });
  if (signal.aborted) stop();
  if (force.aborted) kill();
  const end = await running.ended;
  signal.removeEventListener('abort', stop);
  force.removeEventListener('abort', kill);
  return end;
};

/** Lines below the output of a command that ended by itself: a sandbox hint, leftover processes, notes. */
export const endLines = ({ running, ...place }: StartedCommand, end: CommandEnd): readonly string[] => {
  const done = end.how.kind === 'exited' && end.how.code === 0;
  const isFailed = end.how.kind === 'exited' && !done;
  const output = running.output.text();
  const hint = isFailed ? sandboxHint({ ...place, output }) : done ? partialHint({ ...place, output }) : null;
  return [...(hint === null ? [] : [`[${hint}]`]), ...leftoverLines[end.leftovers], ...end.notes];
};

/** Why it was stopped: by us, or before we followed it. Null: it ended by itself. */
const whyStopped = ({ how }: CommandEnd, signal: AbortSignal): 'timedOut' | 'cancelled' | null => {
  if (signal.aborted) return signal.reason === 'timedOut' ? 'timedOut' : 'cancelled';
  if (how.kind !== 'killed' || how.why === undefined || how.why === 'lost') return null;
  return how.why === 'deadline' ? 'timedOut' : 'cancelled';
};

/** Result of a foreground command: its output and one line about its end. */
export const outcomeOf = (started: StartedCommand, end: CommandEnd, signal: AbortSignal): ToolOutcome => {
  const show = (line: string, more: readonly string[]): string =>
    [outputOf(started.running), `[${line}]`, ...more].join('\n');
  const droppedBytes = started.running.output.droppedBytes();
  const dropped = droppedBytes === 0 ? {} : { droppedBytes };
  const stopped = whyStopped(end, signal);
  if (stopped !== null) {
    const words = stopped === 'timedOut' ? 'timed out' : 'cancelled';
    const text = show(
      `${words} after ${seconds(end.durationMs)}: it was stopped together with all processes that it started; its effects up to then remain`,
      end.notes,
    );
    return { status: stopped, text, ...dropped };
  }
  if (end.how.kind === 'killed' && end.how.why === 'lost') {
    const text = show(
      'it was killed, and nobody saw how far it had come: check before you run it again',
      end.notes,
    );
    return { status: 'lost', text, ...dropped };
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
