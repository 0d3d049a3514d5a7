import { randomBytes } from 'node:crypto';
import { writeWhole } from '../terminal/print.js';
import { exitCodes } from './exit-codes.js';
import { type RunFlags, readSeq, usageStop } from './flags.js';
import type { Prompt } from './prompt.js';
import { openStateFolder } from './state-folder.js';
import { findInfo, storedJournals } from './stored.js';

/** Ids of forks say where they come from and sort behind it. */
export const forkId = (sessionId: string): string =>
  `${sessionId.slice(0, 100)}-${randomBytes(2).toString('hex')}`;

/** `pawl fork`: a new session with the entries up to a line; with a prompt it goes on at once. */
export const forkSession = async (
  given: string,
  at: string,
  flags: RunFlags,
  prompt: Prompt | undefined,
): Promise<number> => {
  const seq = readSeq('--at', at);
  const { sessionId, kind } = await findInfo(given);
  if (kind === 'ask' && prompt !== undefined)
    throw usageStop(`${sessionId} is a run of pawl ask: it has its question, and takes no prompt.`);
  openStateFolder(process.env);
  const newId = forkId(sessionId);
  await storedJournals().fork(sessionId, seq, newId, Date.now());
  process.stderr.write(
    `${newId} is a fork of ${sessionId} at ${seq}; the files of the workspace are as they are now.\n`,
  );
  if (prompt !== undefined)
    return (await import('./headless.js')).runHeadless({ ...flags, resume: newId }, prompt);
  writeWhole(1, `${newId}\n`);
  return exitCodes.done;
};
