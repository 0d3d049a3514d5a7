/** `pawl verify` and `pawl replay`: check a stored session. */

import { existsSync } from 'node:fs';
import path from 'node:path';
import { journalPath } from '@pawl/agent/journal/state-folder';
import { type EndProof, type Verification, verifyStored } from '@pawl/agent/journal/transfer';
import { stateFolder } from '@pawl/agent/platform/environment';
import { plural } from '@pawl/agent/platform/text';
import type { MachineTypes } from '@pawl/agent/ports/journal';
import type { Stepped } from '@pawl/agent/ports/session';
import { makeSafe, type Safe, safeJson } from '@pawl/terminal/safe-text';
import { writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { pathLine, pathStates, pathsByRun, printReplay } from '../sessions/session-text.js';
import { findInfo, foldStored, storedJournals } from '../sessions/stored-sessions.js';
import { readSeq } from '../settings/flags.js';

/**
 * A word with a slash or with the ending of a journal or an export is a path, and so is the name of
 * an existing file; any other word is the id of a session.
 */
const findJournalPath = async (idOrPath: string): Promise<string> => {
  const isPath =
    idOrPath.includes('/') || idOrPath.endsWith('.jsonl') || idOrPath.endsWith('.pawl');
  if (isPath || (idOrPath !== '' && existsSync(idOrPath))) return path.resolve(idOrPath);
  return journalPath(stateFolder(process.env), (await findInfo(idOrPath)).sessionId);
};

const faultText = ({
  path: where,
  line,
  byte,
  why,
  seq,
}: NonNullable<Verification['fault']>): string => {
  const good = seq === 0 ? 'No entry before it is good.' : `Entries 1 to ${seq} are good.`;
  return `${where}: line ${line}, which begins at byte ${byte}: ${why}. ${good}`;
};

/** `earlierChecks`: hashes that an earlier version of Pawl recorded and that differ. */
type Replayed = {
  readonly checks: number;
  readonly earlierChecks: number;
  readonly mismatches: readonly { readonly seq: number }[];
};

/**
 * The result of good lines: no more than is known of the end. A mark is a file beside the journal
 * that says how far it was acknowledged, so that missing lines are noticed.
 */
const resultText = (end: EndProof, counts: string): string => {
  switch (end) {
    case 'mark':
    case 'export':
      return `all good (${counts})`;
    case 'nothing':
      return (
        `all lines are good (${counts}). Lines at the end may be missing: no good mark beside ` +
        'the file says how long it was'
      );
    default:
      return end satisfies never;
  }
};

const earlierText = ({ earlierChecks }: Replayed): string =>
  earlierChecks === 0
    ? ''
    : `, ${earlierChecks} of an earlier version of Pawl differ, which is no fault`;

/** Compares the recorded state hashes of a session that is stored here; null for any other file. */
const replayStored = async ({
  path: file,
  sessionId,
  kind,
}: Verification): Promise<Replayed | null> => {
  const folder = stateFolder(process.env);
  if (sessionId === null || path.resolve(journalPath(folder, sessionId)) !== file) return null;
  if (kind === 'agent') return storedJournals().replay(sessionId);
  return (await import('@pawl/ask/journaled-ask-machine'))
    .fileAskJournals({ folder })
    .replay(sessionId);
};

/** `pawl verify`: names file, line and byte of the first fault. Changes nothing. */
export const verifySession = async (idOrPath: string): Promise<number> => {
  const verified = await verifyStored(await findJournalPath(idOrPath));
  if (verified.fault !== null)
    throw new Stop(exitCodes.badInput, 'damaged', faultText(verified.fault));
  const replayed = await replayStored(verified);
  const [mismatch] = replayed?.mismatches ?? [];
  if (mismatch !== undefined)
    throw new Stop(
      exitCodes.badInput,
      'damaged',
      `${verified.path}: line ${mismatch.seq + 1}: a replay comes to another state than was ` +
        'recorded. The file or the machine has changed.',
    );
  const checks =
    replayed === null
      ? ''
      : `, ${plural(replayed.checks, 'state hash', 'state hashes')}${earlierText(replayed)}`;
  const counts =
    `${plural(verified.entries, 'entry', 'entries')}${checks}, ` +
    `${plural(verified.blobs, 'blob')}`;
  writeOut(makeSafe(`${verified.path}: ${resultText(verified.end, counts)}\n`));
  return exitCodes.done;
};

type ReplayFlags = { readonly at?: string; readonly json?: true };

/** A line for each run that changed its state; the session of an agent is one run without a name. */
const stepLines = (stepped: Stepped<MachineTypes>, json: boolean): readonly Safe[] =>
  [...pathsByRun(stepped)].map(([node, edges]) => {
    const { seq, event } = stepped;
    const run = node === '' ? {} : { node };
    return json
      ? safeJson({ seq, event: event.type, ...run, path: pathStates({ path: edges }) })
      : makeSafe(pathLine({ seq, event, path: edges }, node));
  });

/**
 * `pawl replay`: folds a journal, performs nothing, compares the recorded hashes, prints the path.
 */
export const replaySession = async (id: string, flags: ReplayFlags): Promise<number> => {
  const at = flags.at === undefined ? undefined : readSeq('--at', flags.at);
  const { sessionId, kind } = await findInfo(id);
  const lines: Safe[] = [];
  const visit = (stepped: Stepped<MachineTypes>): void =>
    void lines.push(...stepLines(stepped, flags.json ?? false));
  if (kind === 'agent') return printReplay(lines, await foldStored(sessionId, at, visit));
  const { foldRun } = await import('./ask-show.js');
  return printReplay(lines, await foldRun(sessionId, at, visit));
};
