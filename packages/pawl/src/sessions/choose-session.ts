import { createInterface } from 'node:readline';
import { formatWhen, oneLine } from '@pawl/terminal/paint-text';
import { type Safe, safe } from '@pawl/terminal/safe-text';
import { writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../exit-codes.js';
import { type RunFlags, usageStop } from '../flags.js';
import { userSessions } from './stored-sessions.js';

/** Reads a line in the terminal's own line mode. Ctrl-C ends the program. */
export const askLine = async (question: Safe): Promise<string> => {
  writeOut(question);
  const asking = createInterface({ input: process.stdin, terminal: false });
  try {
    return await new Promise<string>((resolve, reject) => {
      asking.on('line', resolve);
      asking.on('close', () => {
        writeOut(safe`\n`);
        reject(new Stop(exitCodes.usage, 'cancelled', 'Nothing was chosen.'));
      });
    });
  } finally {
    asking.removeAllListeners().close();
  }
};

/** `--resume` without an id: lists the sessions and lets the user choose one. */
export const chooseSession = async (flags: RunFlags): Promise<RunFlags> => {
  if (flags.resume !== true) return flags;
  const found = (await userSessions()).slice(0, 20);
  if (found.length === 0) throw usageStop('There is no session to resume yet.');
  for (const [index, info] of found.entries()) {
    const number = safe`${index + 1}`.padStart(3);
    writeOut(
      safe`${number}  ${formatWhen(info.changedAt)}  ${oneLine(info.workspace, Number.POSITIVE_INFINITY)}  ${oneLine(info.title, 60)}\n`,
    );
  }
  const answer = await askLine(safe`Which one? `);
  const info = found[Number(answer) - 1];
  if (info === undefined) throw usageStop(`'${answer}' is not a number from 1 to ${found.length}.`);
  return { ...flags, resume: info.sessionId };
};
