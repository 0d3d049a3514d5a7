/** `pawl fork`: a new session from the beginning of another one, with its files on request. */

import { existsSync, readdirSync, realpathSync } from 'node:fs';
import path from 'node:path';
import type { FileLeft } from '@pawl/agent/machine/event';
import { attempt } from '@pawl/agent/platform/attempt';
import { isWithin } from '@pawl/agent/platform/files';
import { movedText } from '@pawl/agent/session/rewind';
import { leftText } from '@pawl/terminal/rewind-words';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { type Prompt, readDemands, refuseEmpty } from '../headless/headless.js';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { findForkSeq, findInfo, forkStored, openStateFolder } from '../sessions/stored-sessions.js';
import { refuseWorkspace } from '../settings/connect-model.js';
import { type RunFlags, readSeq, usageStop } from '../settings/flags.js';

type ForkFlags = RunFlags & { readonly at: string; readonly worktree?: string };

/** The folder with the files of a fork. `notCopied`: files that are missing there, and why. */
type ForkPlace = { readonly folder: string; readonly notCopied: readonly FileLeft[] };

/**
 * `pawl fork`: copies a session up to a line of its journal, with `--worktree` also the files as
 * they were then. With a prompt, the fork runs it at once.
 */
export const forkSession = async (
  id: string,
  flags: ForkFlags,
  prompt: Prompt | undefined,
): Promise<number> => {
  const at = readSeq('--at', flags.at);
  const info = await findInfo(id);
  const { sessionId, kind } = info;
  if (kind === 'ask' && prompt !== undefined)
    throw usageStop(
      `${sessionId} is a run of pawl ask. It has its own question and takes no prompt.`,
    );
  // If the turn can't start, fail before the fork is made: an unused fork would remain. The demands
  // are what the flags ask of the turn, such as a JSON Schema for its answer.
  const demands = prompt === undefined ? undefined : await readDemands(flags);
  if (prompt !== undefined) {
    refuseEmpty(prompt);
    // throws if the session can't be opened with these flags
    await (await import('../sessions/open-session.js')).checkResumable(flags, sessionId);
  }
  // throws if nothing can be stored there: before files are copied for a fork that can't be made
  openStateFolder(process.env);
  const seq = await findForkSeq(info, at);
  if (seq !== at) writeError(makeSafe(`${movedText(at, seq)}.\n`));
  const place = flags.worktree === undefined ? null : await copyWorkspace(sessionId, seq, flags);
  const forkId = await forkStored(sessionId, seq);
  if (place !== null) await moveTo(forkId, place.folder);
  writeError(makeSafe(`${forkId} is a fork of ${sessionId} at ${seq}; ${filesText(place)}.\n`));
  if (prompt !== undefined)
    return (await import('../headless/headless.js')).runHeadless(
      { ...flags, ...(place === null ? {} : { workspace: place.folder }), resume: forkId },
      prompt,
      demands,
    );
  writeOut(safe`${makeSafe(forkId)}\n`);
  return exitCodes.done;
};

const filesText = (place: ForkPlace | null): string => {
  if (place === null) return 'the files of the workspace are as they are now';
  const { folder, notCopied } = place;
  const missing = notCopied.length === 0 ? '' : ` · ${leftText(notCopied)}`;
  return `its files are in ${folder} as they were then${missing}`;
};

/** The absolute path of a folder that can be made. Throws a `Stop` otherwise. */
const checkFolder = (written: string, workspace: string): string => {
  const folder = path.resolve(written);
  const parent = path.dirname(folder);
  if (written === '') throw usageStop('--worktree needs a folder that does not exist yet.');
  if (!existsSync(parent))
    throw usageStop(`${parent} does not exist. Make it, or name another folder.`);
  const real = path.join(realpathSync(parent), path.basename(folder));
  if (isWithin(real, workspace) || isWithin(workspace, real))
    throw usageStop(
      `${real} and the workspace of the session, ${workspace}, lie one in the other. Name a folder beside it.`,
    );
  if (existsSync(real) && !isEmptyFolder(real))
    throw usageStop(`${real} is there already. Name a folder that does not exist yet.`);
  refuseWorkspace(real, 'Name another folder.');
  return real;
};

const isEmptyFolder = (folder: string): boolean => {
  try {
    return readdirSync(folder).length === 0;
  } catch {
    return false; // a file, or closed to us
  }
};

/** Makes the folder with the files as they were at `seq`. */
const copyWorkspace = async (
  sessionId: string,
  seq: number,
  flags: ForkFlags,
): Promise<ForkPlace> => {
  const [{ openCopies, readFileHistory, stepsUntil }, { copyFiles, makeTarget }] =
    await Promise.all([
      import('../sessions/file-history.js'),
      import('@pawl/agent/workspace/checkpoints/files-at'),
    ]);
  if (flags.workspace !== undefined)
    throw usageStop(
      '--worktree and --workspace exclude each other: the fork works in its worktree.',
    );
  const history = await readFileHistory(sessionId);
  const { workspace, store } = history;
  if (seq > history.seq)
    throw usageStop(`--at ${seq} is after the end: the last entry is ${history.seq}.`);
  const copies = await openCopies(history); // throws if there can be none
  if (!existsSync(workspace))
    throw new Stop(
      exitCodes.badInput,
      'notFound',
      `The folder of the session, ${workspace}, is gone: its files can't be copied. Leave out --worktree.`,
    );
  const folder = checkFolder(flags.worktree ?? '', workspace);
  const signal = new AbortController().signal;
  // a git worktree without files, or an empty folder where there is no git
  const made = await attempt(() => makeTarget(workspace, folder, process.env, signal));
  if (made.kind === 'fault')
    throw new Stop(
      exitCodes.cannotWrite,
      'cannotWrite',
      `The folder ${folder} can't be made: ${made.fault.message}`,
    );
  // what stood in the files after the checkpoints up to `seq`
  const states = copies.after(stepsUntil(history, seq));
  const request = { workspace, target: folder, states, store, environment: process.env, signal };
  return { folder, notCopied: [...copies.untouched, ...(await copyFiles(request))] };
};

/**
 * The fork works there from now on: opening it with the folder writes that into its journal.
 * Nothing else is done in it.
 */
const moveTo = async (forkId: string, folder: string): Promise<void> => {
  const { useWithoutModel } = await import('../sessions/closed-model.js');
  await useWithoutModel(forkId, async () => undefined, folder); // opening it there is enough
};
