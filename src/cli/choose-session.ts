import { createInterface } from 'node:readline';
import { formatWhen, oneLine } from '../terminal/print.js';
import { type ExitCode, exitCodes, Stop } from './exit-codes.js';
import { type RunFlags, usageStop } from './flags.js';
import { sessionsOf } from './stored.js';

const ask = async (question: string): Promise<string> => {
  const asking = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return await new Promise<string>((resolve, reject) => {
      const leave = (exit: ExitCode): void => {
        process.stdout.write('\n');
        reject(new Stop(exit, 'cancelled', 'Nothing was chosen.'));
      };
      asking.on('SIGINT', () => leave(exitCodes.interrupted));
      asking.on('close', () => leave(exitCodes.usage));
      asking.question(question, resolve);
    });
  } finally {
    asking.removeAllListeners().close();
  }
};

/** `--resume` without an id: the sessions there are, one to choose. */
export const chooseSession = async (flags: RunFlags): Promise<RunFlags> => {
  if (flags.resume !== true) return flags;
  const found = (await sessionsOf('agent')).slice(0, 20);
  if (found.length === 0) throw usageStop('There is no session to resume yet.');
  for (const [index, info] of found.entries()) {
    process.stdout.write(
      `${String(index + 1).padStart(3)}  ${formatWhen(info.changedAt)}  ${info.workspace}  ${oneLine(info.title, 60)}\n`,
    );
  }
  const answer = await ask('Which one? ');
  const info = found[Number(answer) - 1];
  if (info === undefined) throw usageStop(`'${answer}' is none of 1 to ${found.length}.`);
  return { ...flags, resume: info.sessionId };
};
