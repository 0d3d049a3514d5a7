import type { Job } from '@pawl/agent/ports/tool';
import { harmless, oneLine } from '@pawl/terminal/paint-text';
import { type Command, NotNow } from './command-context.js';

/** `/jobs`: lists, reads and kills background commands of the agent. */

const COMMAND_COLUMNS = 50;

const rowOf = ({ jobId, command, status }: Job): string => {
  return `  ${jobId}  ${status()}  ${oneLine(command, COMMAND_COLUMNS)}`;
};

const indent = (text: string): string => text.trimEnd().replace(/^/gm, '    ');

export const jobs: Command = async ({ view, session }, words) => {
  const all = session.jobs();
  const say = (text: string): void => view.print(harmless(text));
  if (words === '') {
    const hint = '  /jobs read 1 shows its output, /jobs kill 1 ends it';
    return say(all.length === 0 ? '  Nothing runs in the background.' : [...all.map(rowOf), hint].join('\n'));
  }
  const wish = /^(read|kill)\s+(?:job-)?(\d+)$/i.exec(words);
  if (wish === null)
    throw new NotNow(
      '/jobs lists the background commands; /jobs read 1 shows the output of one, /jobs kill 1 ends it.',
    );
  const job = all.find(({ jobId }) => jobId === `job-${wish[2]}`);
  if (job === undefined) throw new NotNow(`There is no job-${wish[2]}. /jobs lists them.`);
  if (wish[1]?.toLowerCase() === 'kill') await job.kill();
  else say(indent(job.output()) || '    (no output yet)');
  say(rowOf(job));
};
