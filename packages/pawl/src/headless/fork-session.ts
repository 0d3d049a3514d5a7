import { randomBytes } from 'node:crypto';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../process/exit-codes.js';
import { findInfo, openStateFolder, storedJournals } from '../sessions/stored-sessions.js';
import { type RunFlags, readSeq, usageStop } from '../settings/flags.js';
import { type Prompt, refuseEmpty } from './headless.js';

/** Id of a new fork. It begins with the original's id, so it sorts after it. */
export const forkId = (sessionId: string): string =>
  `${sessionId.slice(0, 100)}-${randomBytes(2).toString('hex')}`;

/** `pawl fork`: copies a session up to a line of its journal. With a prompt, the fork runs it at once. */
export const forkSession = async (
  given: string,
  at: string,
  flags: RunFlags,
  prompt: Prompt | undefined,
): Promise<number> => {
  const seq = readSeq('--at', at);
  const { sessionId, kind } = await findInfo(given);
  if (kind === 'ask' && prompt !== undefined)
    throw usageStop(`${sessionId} is a run of pawl ask. It has its own question and takes no prompt.`);
  // If the turn can't start, fail before the fork is made: an unused fork would remain.
  if (prompt !== undefined) {
    refuseEmpty(prompt);
    await (await import('../sessions/open-session.js')).checkResumable(flags, sessionId);
  }
  openStateFolder(process.env);
  const newId = forkId(sessionId);
  await storedJournals().fork(sessionId, seq, newId, Date.now());
  writeError(
    safe`${makeSafe(newId)} is a fork of ${makeSafe(sessionId)} at ${seq}; the files of the workspace are as they are now.\n`,
  );
  if (prompt !== undefined)
    return (await import('./headless.js')).runHeadless({ ...flags, resume: newId }, prompt);
  writeOut(safe`${makeSafe(newId)}\n`);
  return exitCodes.done;
};
