import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { type Prompt, readDemands, refuseEmpty } from '../headless/headless.js';
import { exitCodes } from '../process/exit-codes.js';
import { findInfo, forkStored, openStateFolder } from '../sessions/stored-sessions.js';
import { type RunFlags, readSeq, usageStop } from '../settings/flags.js';

/**
 * `pawl fork`: copies a session up to a line of its journal. With a prompt, the fork runs it at
 * once.
 */
export const forkSession = async (
  id: string,
  flags: RunFlags & { readonly at: string },
  prompt: Prompt | undefined,
): Promise<number> => {
  const seq = readSeq('--at', flags.at);
  const { sessionId, kind } = await findInfo(id);
  if (kind === 'ask' && prompt !== undefined)
    throw usageStop(
      `${sessionId} is a run of pawl ask. It has its own question and takes no prompt.`,
    );
  // If the turn can't start, fail before the fork is made: an unused fork would remain.
  const demands = prompt === undefined ? undefined : await readDemands(flags);
  if (prompt !== undefined) {
    refuseEmpty(prompt);
    await (await import('../sessions/open-session.js')).checkResumable(flags, sessionId);
  }
  openStateFolder(process.env);
  const forkId = await forkStored(sessionId, seq);
  writeError(
    safe`${makeSafe(forkId)} is a fork of ${makeSafe(sessionId)} at ${seq}; the files of the workspace are as they are now.\n`,
  );
  if (prompt !== undefined)
    return (await import('../headless/headless.js')).runHeadless(
      { ...flags, resume: forkId },
      prompt,
      demands,
    );
  writeOut(safe`${makeSafe(forkId)}\n`);
  return exitCodes.done;
};
