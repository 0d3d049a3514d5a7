import type { Job, ToolOutcome } from '../../ports/tool.js';
import type { OutputReceiver } from '../launcher/spool-reader.js';
import { type CommandOutput, createCommandOutput } from './command-output.js';
import { describeEnd, endLines, outputOf, type StartedCommand } from './command-result.js';
import type { CommandEnd } from './running-command.js';

/** A background command as a job of the session. */

export const jobStarted = (jobId: string): ToolOutcome => ({
  status: 'ok',
  text: `Started ${jobId} in the background. See or kill it with jobAction and jobId.`,
});

export const jobOf = (jobId: string, command: string, started: StartedCommand): Job => {
  const { running } = started;
  let end: CommandEnd | undefined;
  void running.ended.then((ended) => {
    end = ended;
  });
  return {
    jobId,
    command,
    status: () => (end === undefined ? 'running' : describeEnd(end)),
    droppedBytes: () => running.output.droppedBytes(),
    output: () => [outputOf(running), ...(end === undefined ? [] : endLines(started, end))].join('\n'),
    kill: async () => {
      running.kill();
      await running.ended;
    },
  };
};

/** A job that no process runs any more, whose output is read from its files when it is wanted. */
export const jobLeft = (
  { jobId, command }: Pick<Job, 'jobId' | 'command'>,
  end: string,
  read: (to: OutputReceiver) => void,
): Job => {
  let output: CommandOutput | null = null;
  const whole = (): CommandOutput => {
    if (output !== null) return output;
    const made = createCommandOutput(() => undefined);
    read({ bytes: (bytes) => made.add(bytes), skipped: (count) => made.skip(count) });
    made.finish();
    output = made;
    return made;
  };
  return {
    jobId,
    command,
    status: () => end,
    droppedBytes: () => whole().droppedBytes(),
    output: () => outputOf({ output: whole() }),
    kill: async () => undefined,
  };
};
