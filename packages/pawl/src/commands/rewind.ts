/** `pawl rewind` and `pawl redo`: takes back what a stored session did, and does it again. */

import { versionIn } from '@pawl/agent/journal/replay';
import { readForeignUntil } from '@pawl/agent/journal/state-folder';
import { stateFolder } from '@pawl/agent/platform/environment';
import { plural } from '@pawl/agent/platform/text';
import { createLateCheckpoints } from '@pawl/agent/session/equipment';
import {
  planRewind,
  type RewindPoint,
  type RewindReport,
  type RewindRequest,
  readTimeline,
} from '@pawl/agent/session/rewind';
import { detectLook, formatWhen, oneLine, paint } from '@pawl/terminal/paint';
import { countFiles, namedFiles, pointText } from '@pawl/terminal/rewind-words';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../process/exit-codes.js';
import { useWithoutModel } from '../sessions/closed-model.js';
import {
  CUT_FOREIGN_REWIND,
  findInfo,
  foldStored,
  placeOfUser,
  storedJournals,
} from '../sessions/stored-sessions.js';
import { storedWorkspace } from '../settings/connect-model.js';
import { readPlace, usageStop } from '../settings/flags.js';

export type RewindFlags = {
  readonly at?: string;
  readonly files?: true;
  readonly conversation?: true;
  readonly force?: true;
  readonly editsOnly?: true;
  readonly refs?: true;
  readonly dryRun?: true;
  readonly json?: true;
};

const findAgentSession = async (prefix: string): Promise<string> => {
  const { sessionId, kind } = await findInfo(prefix);
  if (kind === 'agent') return sessionId;
  throw usageStop(
    `${sessionId} is a run of pawl ask: there is nothing to take back. pawl sessions lists the others.`,
  );
};

/** Turns `CannotRewind`, which says what to do, into a usage error. */
const asUsageError = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Error && error.name === 'CannotRewind') throw usageStop(error.message);
    throw error;
  }
};

// The list

const CUT_REWIND =
  'the program ended while files were taken back: the next start takes the rest back first';

/**
 * Reads a session and its checkpoints, and warns if its last rewind was cut off. Close the
 * checkpoints.
 */
const openStored = async (sessionId: string) => {
  const { header, state, seq } = await foldStored(sessionId, undefined);
  const entries = () => storedJournals().read(sessionId);
  const foreignUntil = await readForeignUntil(stateFolder(process.env), header);
  const isOwn = Number.isFinite(foreignUntil);
  if (state.name === 'Rewinding')
    writeError(makeSafe(`! ${isOwn ? CUT_REWIND : CUT_FOREIGN_REWIND}\n`));
  const { workspace } = state.session.settings;
  const checkpoints = createLateCheckpoints({
    workspace,
    standsIn: placeOfUser(foreignUntil, workspace),
    sessionId,
    environment: process.env,
  });
  return { journal: { header, entries, seq, foreignUntil }, state, checkpoints };
};

/** The first version of the machine whose sessions keep what calls change in files. */
const KEEPS_FILES_SINCE = 2;

/** Warns of entries from before Pawl kept files: a rewind takes back none that they changed. */
const warnOfOldEntries = async (sessionId: string): Promise<void> => {
  const { header } = await storedJournals().replay(sessionId, { at: 0 });
  if (versionIn(header) >= KEEPS_FILES_SINCE) return;
  let upgradedAt: number | null = null;
  const { seq } = await foldStored(sessionId, undefined, ({ seq: at, event }) => {
    if (event.type === 'Resumed' && event.upgrade !== undefined) upgradedAt ??= at;
  });
  writeError(
    makeSafe(
      `! an earlier version of Pawl wrote the entries up to ${upgradedAt ?? seq}, and kept no ` +
        'files: what their calls changed in files stays as it is\n',
    ),
  );
};

const pointLines = (points: readonly RewindPoint[]): Safe => {
  const look = detectLook(process.stdout, process.env);
  const width = String(points.at(-1)?.seq ?? 0).length;
  const lines = points.flatMap((point) => {
    const { seq, kind, at, title } = point;
    const changed = pointText(point, points);
    const isTurn = kind === 'turn';
    const what = oneLine(title, Math.max(20, look.columns - width - 22));
    const files = point.changes === null ? [] : namedFiles(point.changes, point.untouched ?? []);
    const head = safe`${makeSafe(String(seq).padStart(width))}  ${formatWhen(at)}  `;
    const indent = safe`${makeSafe(' '.repeat(width + 2))}    `;
    return [
      safe`${paint(look, 'dim', head)}${isTurn ? paint(look, 'bold', what) : safe`  ${what}`}`,
      // of changes from elsewhere each file has a line
      ...(point.untouched === undefined ? [changed].filter(Boolean) : files).map(
        (text) => safe`${indent}${makeSafe(text)}`,
      ),
    ];
  });
  return joinSafe(lines, safe`\n`);
};

const newestPlace = (points: readonly RewindPoint[]): number =>
  Math.max(...points.map(({ seq }) => seq));

const listPoints = async (sessionId: string, json: boolean): Promise<number> => {
  const { journal, checkpoints } = await openStored(sessionId);
  const { points } = await readTimeline(journal, checkpoints);
  await checkpoints.close();
  if (json) {
    for (const point of points) writeJson(point);
    return exitCodes.done;
  }
  if (points.length === 0) {
    writeError(
      makeSafe(
        `${sessionId} has no turn to take back. If one was taken back: pawl redo ${sessionId}\n`,
      ),
    );
    return exitCodes.done;
  }
  writeOut(safe`${pointLines(points)}\n`);
  writeError(
    makeSafe(
      `\nTo take back a line and all after it:\n  pawl rewind ${sessionId} --at ${newestPlace(points)}\n` +
        'To see first what it would do, add --dry-run. pawl redo goes forward again.\n',
    ),
  );
  return exitCodes.done;
};

// Going back and forward

const readRequest = (flags: RewindFlags & { readonly at: string }): RewindRequest => {
  const { files, conversation, force, editsOnly, refs } = flags;
  if (files && conversation)
    throw usageStop(
      '--files and --conversation exclude each other. Leave both out to take back both.',
    );
  if (conversation && force)
    throw usageStop('--force is about files, and --conversation leaves them alone.');
  if (conversation && editsOnly)
    throw usageStop('--edits-only is about files, and --conversation leaves them alone.');
  if (conversation && refs)
    throw usageStop('--refs goes with files, and --conversation leaves them alone.');
  return {
    at: readPlace('--at', flags.at),
    files: conversation !== true,
    conversation: files !== true,
    ...(force ? { force: true } : {}),
    ...(editsOnly ? { editsOnly: true } : {}),
    ...(refs ? { refs: true } : {}),
  };
};

const FORCE_ADVICE =
  ' --force also takes back what somebody else changed since, but no change of another session; ' +
  'it is saved first.';

/** `refusal`: why the planned rewind would be refused; null or absent: it would not. */
type TellableReport = RewindReport & { readonly refusal?: string | null };

const tell = (
  sessionId: string,
  report: TellableReport,
  direction: 'back' | 'forward',
  { dryRun, force, json }: Pick<RewindFlags, 'dryRun' | 'force' | 'json'>,
): number => {
  const { left, changes, refusal = null } = report; // files that stay, and those that change
  if (json) writeJson({ sessionId, direction, dryRun: dryRun === true, ...report });
  else {
    const outcome = refusal === null ? 'would be: ' : `would be refused: ${refusal}\n`;
    writeOut(safe`${makeSafe(`${dryRun ? outcome : ''}${report.text}`)}\n`);
    for (const text of dryRun ? namedFiles(changes, []) : []) writeOut(safe`  ${makeSafe(text)}\n`);
    if (countFiles(changes) > 0 && !dryRun)
      writeError(
        makeSafe(
          `What this replaced or removed is stored:\n  pawl checkpoints ${sessionId} --restore PATH\n`,
        ),
      );
    if (direction === 'back' && !dryRun)
      writeError(makeSafe(`To go forward again: pawl redo ${sessionId}\n`));
    if ((changes.duringCommands ?? 0) > 0 && dryRun)
      writeError(safe`! --edits-only leaves what changed while commands ran.\n`);
    if (left.length > 0 && direction === 'back' && refusal === null)
      writeError(
        makeSafe(`! ${plural(left.length, 'file')} left alone.${force ? '' : FORCE_ADVICE}\n`),
      );
  }
  if (refusal !== null) return exitCodes.usage;
  return left.length === 0 ? exitCodes.done : exitCodes.taskFailed;
};

const planOnly = async (sessionId: string, request: RewindRequest): Promise<TellableReport> => {
  const { journal, state, checkpoints } = await openStored(sessionId);
  try {
    // throws if the folder is gone, or none to work in; the plan says where a foreign one may go
    if (journal.foreignUntil === 0) storedWorkspace(sessionId, state.session.settings.workspace);
    const { report, refusal } = await planRewind(journal, state, checkpoints, request);
    return { ...report, refusal };
  } finally {
    await checkpoints.close();
  }
};

/** The flags that say how to go back. */
const NEEDS_PLACE = [
  ['files', '--files'],
  ['conversation', '--conversation'],
  ['force', '--force'],
  ['editsOnly', '--edits-only'],
  ['refs', '--refs'],
  ['dryRun', '--dry-run'],
] as const;

/**
 * `pawl rewind ID` lists where a session can go back to; with `--at` it goes there. Exit code 1 if
 * a file stays as it is, 2 if a dry run finds that the rewind would be refused.
 */
export const rewindSession = async (prefix: string, flags: RewindFlags): Promise<number> => {
  const { at, dryRun, json = false } = flags;
  if (at === undefined) {
    for (const [name, flag] of NEEDS_PLACE)
      if (flags[name]) throw usageStop(`${flag} needs --at SEQ. pawl rewind ${prefix} lists them.`);
    const listed = await findAgentSession(prefix);
    await warnOfOldEntries(listed);
    return listPoints(listed, json);
  }
  const request = readRequest({ ...flags, at });
  const sessionId = await findAgentSession(prefix);
  if (request.files) await warnOfOldEntries(sessionId);
  // `useWithoutModel` opens the session for work that asks no model
  const report: TellableReport = await asUsageError(() =>
    dryRun
      ? planOnly(sessionId, request)
      : useWithoutModel(sessionId, (session) => session.rewind(request)),
  );
  return tell(sessionId, report, 'back', flags);
};

/** `pawl redo`: goes forward again from the last rewind. */
export const redoSession = async (
  prefix: string,
  flags: Pick<RewindFlags, 'json'>,
): Promise<number> => {
  const sessionId = await findAgentSession(prefix);
  const report = await asUsageError(() => useWithoutModel(sessionId, (session) => session.redo()));
  return tell(sessionId, report, 'forward', flags);
};
