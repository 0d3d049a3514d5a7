import type { Job, ToolOutcome } from '../../ports/tool.js';
import { describeEnd, endLines, outputOf, type StartedCommand } from './command-result.js';
import type { CommandEnd } from './shell-command.js';

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
