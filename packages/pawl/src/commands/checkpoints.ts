/**
 * `pawl checkpoints`: what is kept of files so that changes can be taken back, and its size.
 *
 * A checkpoint is a manifest, which names the changed files, and their contents before and after.
 * The contents lie in a store, one for each workspace. From top to bottom: all checkpoints; those
 * of one session; bringing a file back (`--restore`); and removing (`--prune`).
 */

import path from 'node:path';
import { isLocked } from '@pawl/agent/journal/lock';
import { lockPath } from '@pawl/agent/journal/state-folder';
import { stateFolder } from '@pawl/agent/platform/environment';
import { isWithin, realPath } from '@pawl/agent/platform/files';
import { plural } from '@pawl/agent/platform/text';
import type { FileVersion } from '@pawl/agent/ports/checkpoints';
import {
  keptObjects,
  type Manifest,
  statesIn,
  toName,
} from '@pawl/agent/workspace/checkpoints/manifest';
import {
  ALL_BYTES_MAX,
  type CheckpointStore,
  checkpointSizes,
  pruneStores,
  STORE_BYTES_MAX,
  type StoredSession,
} from '@pawl/agent/workspace/checkpoints/store';
import { formatWhen, oneLine } from '@pawl/terminal/paint';
import { changesText, countFiles } from '@pawl/terminal/rewind-words';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { useWithoutModel } from '../sessions/closed-model.js';
import { type FileHistory, type FileStep, readFileHistory } from '../sessions/file-history.js';
import { allSessions } from '../sessions/stored-sessions.js';
import { readPlace, usageStop } from '../settings/flags.js';

export type CheckpointsFlags = {
  readonly restore?: string;
  readonly at?: string;
  readonly prune?: true;
  readonly json?: true;
};

const UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB'] as const;

/** `812 bytes`, `3.4 MB`. */
export const formatBytes = (bytes: number): string => {
  const step = Math.min(
    UNITS.length - 1,
    Math.floor(Math.log(Math.max(1, bytes)) / Math.log(1024)),
  );
  const amount = bytes / 1024 ** step;
  const digits = step === 0 || Number.isInteger(amount) ? 0 : 1;
  return `${amount.toFixed(digits)} ${bytes === 1 ? 'byte' : UNITS[step]}`;
};

const LIMITS_TEXT =
  `of at most ${formatBytes(ALL_BYTES_MAX)}, and ${formatBytes(STORE_BYTES_MAX)} a workspace. ` +
  'The oldest sessions go first.';

const folder = (): string => stateFolder(process.env);

type Sizes = Awaited<ReturnType<typeof checkpointSizes>>;

const storeLines = async ({ stores, sessions }: Sizes): Promise<readonly Safe[]> => {
  const infos = new Map((await allSessions()).map((info) => [info.sessionId, info]));
  return stores.flatMap(({ folder: store, bytes }) => {
    const storeSessions = sessions.filter((session) => session.store === store);
    const workspace = storeSessions
      .map(({ sessionId }) => infos.get(sessionId)?.workspace)
      .find((known) => known !== undefined);
    const newest = [...storeSessions].sort((one, other) => other.usedAtMs - one.usedAtMs);
    return [
      safe`${oneLine(workspace ?? '(sessions that are gone)', Number.POSITIVE_INFINITY)}  ${makeSafe(formatBytes(bytes))}`,
      ...newest.map(({ sessionId, checkpoints, usedAtMs }) => {
        const title = infos.get(sessionId)?.title ?? '(deleted)';
        return safe`  ${makeSafe(sessionId)}  ${formatWhen(usedAtMs)}  ${makeSafe(plural(checkpoints, 'checkpoint'))}  ${oneLine(title, 60)}`;
      }),
    ];
  });
};

const listAll = async (json: boolean): Promise<number> => {
  const sizes = await checkpointSizes(folder());
  if (json) {
    writeJson({ ...sizes, bytesMax: ALL_BYTES_MAX, storeBytesMax: STORE_BYTES_MAX });
    return exitCodes.done;
  }
  if (sizes.stores.length === 0) {
    writeError(safe`No checkpoints yet: no session has changed a file.\n`);
    return exitCodes.done;
  }
  writeOut(safe`${joinSafe(await storeLines(sizes), safe`\n`)}\n`);
  writeError(makeSafe(`\n${formatBytes(sizes.bytes)} ${LIMITS_TEXT}\n`));
  return exitCodes.done;
};

/** Bytes of the contents before compression, each once. */
const contentBytes = (manifests: readonly (Manifest | null)[]): number => {
  const sizes = new Map<string, number>();
  for (const manifest of manifests)
    for (const { before, after } of manifest?.changes ?? [])
      for (const state of [before, after])
        if (state.kind === 'file') sizes.set(state.sha256, state.bytes);
  return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
};

type KeptStep = FileStep & { readonly stored: 'whole' | 'inPart' | 'removed' };

/** Whether the checkpoint and all contents that it names are still there. */
const checkStep = async (
  store: CheckpointStore,
  step: FileStep,
  manifest: Manifest | null,
): Promise<KeptStep> => {
  if (manifest === null) return { ...step, stored: 'removed' };
  // the hashes of the contents that it names
  const found = await Promise.all(keptObjects(manifest).map((sha256) => store.has(sha256)));
  return { ...step, stored: found.every(Boolean) ? 'whole' : 'inPart' };
};

const MADE_BY = { agent: '', user: ' (yours)', rewind: '' } as const;
const STORED_TEXTS = {
  whole: '',
  inPart: ' · some contents are missing',
  removed: ' · removed: it can’t be taken back',
} as const;

const stepLine = (width: number, { seq, by, title, changes, stored }: KeptStep): Safe =>
  safe`${makeSafe(String(seq).padStart(width))}  ${oneLine(title, 60)}${makeSafe(MADE_BY[by])}: ${oneLine(changesText(changes, 'it') || 'no file', Number.POSITIVE_INFINITY)}${makeSafe(STORED_TEXTS[stored])}`;

const listSession = async (history: FileHistory, json: boolean): Promise<number> => {
  const { sessionId, workspace, steps, manifests, store, leftOut } = history;
  const kept = await Promise.all(
    steps.map((step, index) => checkStep(store, step, manifests[index] ?? null)),
  );
  const bytes = contentBytes(manifests);
  if (json) {
    writeJson({ sessionId, workspace, checkpoints: kept, contentBytes: bytes, leftOut });
    return exitCodes.done;
  }
  const width = String(steps.at(-1)?.seq ?? 0).length;
  for (const step of kept) writeOut(safe`${stepLine(width, step)}\n`);
  for (const sentence of leftOut)
    writeOut(safe`! ${oneLine(sentence, Number.POSITIVE_INFINITY)}\n`);
  writeError(
    makeSafe(
      steps.length === 0
        ? `${sessionId} has no checkpoints: it has changed no file.\n`
        : `\n${plural(steps.length, 'checkpoint')}, ${formatBytes(bytes)} of contents before ` +
            `compression.\nTo take changes back: pawl rewind ${sessionId}\n`,
    ),
  );
  return exitCodes.done;
};

/** The size of all checkpoints, for `pawl doctor`. */
export const findSizes = async (environment: NodeJS.ProcessEnv) => {
  const { bytes, stores, sessions } = await checkpointSizes(stateFolder(environment));
  const text = `Checkpoints of files: ${formatBytes(bytes)} in ${plural(stores.length, 'workspace')}`;
  return {
    sizes: { bytes, workspaces: stores.length, sessions: sessions.length },
    line:
      bytes === 0 ? '' : `${text}, of at most ${formatBytes(ALL_BYTES_MAX)}: pawl checkpoints\n`,
  };
};

// Bringing a file back

/** A file as a checkpoint has it. `seq`: a line of the journal at which it was so. */
type StoredVersion = FileVersion & {
  readonly seq: number;
  readonly atMs: number;
  /** The same for the same content and mode. */
  readonly state: string;
};

/** The contents of a file that checkpoints hold, the newest first, each once in a row. */
const listVersions = (
  { steps, manifests }: FileHistory,
  file: string,
): readonly StoredVersion[] => {
  const name = toName(file);
  const versions = steps.flatMap(({ checkpoint, isForeign, seq, from, at: atMs }, index) => {
    return statesIn(manifests[index], name).flatMap((state, number): readonly StoredVersion[] => {
      if (state.kind !== 'file' && state.kind !== 'link') return [];
      const named = { id: checkpoint, isForeign };
      const place = { seq: number === 0 ? from : seq, atMs, state: JSON.stringify(state) };
      return [{ checkpoint: named, path: file, at: number, ...place }];
    });
  });
  return versions.filter(({ state }, index) => state !== versions[index - 1]?.state).toReversed();
};

/** The versions of the file that the user names, from where they stand or from the workspace. */
const findVersions = (history: FileHistory, named: string) => {
  const { workspace } = history;
  const versions = [realPath(process.cwd()) ?? workspace, workspace].map((from) => {
    const place = path.resolve(from, named);
    return isWithin(place, workspace) ? listVersions(history, path.relative(workspace, place)) : [];
  });
  return versions.find((ones) => ones.length > 0) ?? [];
};

/** The first of the versions that differs from the present content is brought back. */
const bringBack = (sessionId: string, versions: readonly StoredVersion[]) =>
  useWithoutModel(sessionId, async (session) => {
    for (const version of versions) {
      const report = await session.restoreFile(version);
      if (countFiles(report.changes) > 0 || report.left.length > 0) return { version, report };
    }
    return null;
  });

const restoreFile = async (
  history: FileHistory,
  named: string,
  at: number | null,
  json: boolean,
): Promise<number> => {
  const { sessionId } = history;
  const versions = findVersions(history, named);
  const chosen = at === null ? versions : versions.filter(({ seq }) => seq === at);
  const places = [...new Set(versions.map(({ seq }) => seq))].join(', ');
  if (versions.length === 0)
    throw usageStop(
      `No checkpoint of ${sessionId} holds ${named}. pawl checkpoints ${sessionId} lists them.`,
    );
  if (chosen.length === 0)
    throw usageStop(`There is no version of ${named} at ${at}. There are: ${places}.`);
  const done = await bringBack(sessionId, chosen);
  const seq = done?.version.seq ?? null;
  const stays = done?.report.left ?? [];
  const listed = versions.map((one) => ({ seq: one.seq, at: new Date(one.atMs).toISOString() }));
  const file = chosen[0]?.path;
  if (json) writeJson({ sessionId, path: file, seq, left: stays, versions: listed });
  else if (done === null) writeOut(safe`${makeSafe(named)} is already as it was\n`);
  else if (stays.length > 0) writeOut(safe`${makeSafe(done.report.text)}\n`);
  else {
    const when = formatWhen(done.version.atMs);
    writeOut(safe`${makeSafe(named)} is as it was at ${makeSafe(String(seq))} (${when})\n`);
    writeError(
      makeSafe(`What it replaced is stored. All versions, for --restore with --at: ${places}\n`),
    );
  }
  return stays.length === 0 ? exitCodes.done : exitCodes.taskFailed;
};

// Removing

/** Nothing is removed from the store of an open session. */
const isOpen = (sessionId: string): Promise<boolean> => isLocked(lockPath(folder(), sessionId));

const tellRemoved = async (
  removed: readonly StoredSession[],
  bytesBefore: number,
  json: boolean,
): Promise<number> => {
  const { bytes } = await checkpointSizes(folder());
  const ids = removed.map(({ sessionId }) => sessionId);
  if (json) writeJson({ removed: ids, bytesBefore, bytes });
  else if (ids.length === 0)
    writeError(makeSafe(`Nothing to remove: ${formatBytes(bytes)} ${LIMITS_TEXT}\n`));
  else {
    for (const id of ids) writeOut(safe`${makeSafe(id)}\n`);
    writeError(
      makeSafe(
        `Removed the checkpoints of ${plural(ids.length, 'session')}: ` +
          `${formatBytes(bytesBefore)} before, ${formatBytes(bytes)} now. Their changes of files ` +
          'can’t be taken back any more. Contents of the last ten minutes go with the next prune.\n',
      ),
    );
  }
  return exitCodes.done;
};

/** Removes what is over the limits, and what belongs to sessions that are gone. */
const pruneAll = async (json: boolean): Promise<number> => {
  const { bytes } = await checkpointSizes(folder());
  const known = new Set((await allSessions()).map(({ sessionId }) => sessionId));
  // removed even if the limits are kept
  const isNeedless = (sessionId: string): boolean => !known.has(sessionId);
  const removed = await pruneStores(folder(), { isOpen, isNeedless });
  return tellRemoved(removed, bytes, json);
};

const pruneSession = async ({ sessionId }: FileHistory, json: boolean): Promise<number> => {
  if (await isOpen(sessionId))
    throw new Stop(
      exitCodes.tryAgain,
      'locked',
      `${sessionId} is open in another process. Close it there, then remove its checkpoints.`,
    );
  const { bytes } = await checkpointSizes(folder());
  // removed even if the limits are kept
  const isNeedless = (id: string): boolean => id === sessionId;
  const removed = await pruneStores(folder(), { isOpen, isNeedless });
  return tellRemoved(removed, bytes, json);
};

/** `pawl checkpoints [ID] [--restore PATH] [--prune]`. */
export const runCheckpoints = async (
  prefix: string | undefined,
  { restore, at, prune, json: isJson }: CheckpointsFlags,
): Promise<number> => {
  const json = isJson === true;
  if (restore === undefined && at !== undefined) throw usageStop('--at needs --restore PATH.');
  if (restore !== undefined && (prefix === undefined || prune))
    throw usageStop('--restore needs the id of a session, and goes without --prune.');
  if (prefix === undefined) return prune ? pruneAll(json) : listAll(json);
  const history = await readFileHistory(prefix);
  if (restore !== undefined)
    return restoreFile(history, restore, at === undefined ? null : readPlace('--at', at), json);
  return prune ? pruneSession(history, json) : listSession(history, json);
};
