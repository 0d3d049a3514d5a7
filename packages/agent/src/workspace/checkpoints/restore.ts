/**
 * Takes changes of files back by a stored plan.
 *
 * 1. A file is replaced as a whole, by the rename of a file that was written beside it.
 * 2. What was changed meanwhile is left: the content that is replaced is kept under another name
 *    until it is known to be the expected one.
 * 3. A plan can be performed again: what is done already is left as it is.
 * 4. Nothing outside the workspace is touched: a folder is opened, and the kernel asked for its
 *    path, before something in it changes.
 */

import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { errorCode } from '../../journal/journal-error.js';
import { hashBytes } from '../../journal/state-folder.js';
import type { FileLeft } from '../../machine/event.js';
import { descriptorPath, hasDescriptorPaths, O_PATH } from '../../platform/files.js';
import { type FileState, isSameState, left, type PathChange, type RefChange } from './manifest.js';
import { lookAt, placeOf, whyUnknown } from './scan.js';
import type { CheckpointStore } from './store.js';

/** `changes`: from how a path is (`before`) to how it shall be (`after`). */
export type Plan = {
  readonly version: 1;
  readonly workspace: string;
  readonly changes: readonly PathChange[];
  /** Refs that go back after the files. Missing: none. */
  readonly refs?: readonly RefChange[];
  /** Files that stay as they are. */
  readonly left: readonly FileLeft[];
};

export const FILE_BYTES_MAX = 20 * 1024 * 1024;
export const TOO_LARGE = 'it has more than 20 MB';

/** How a path is now. The bytes of a file are given to `keep`, if it is small enough. */
export const readState = async (
  workspace: string,
  name: string,
  keep: (bytes: Buffer) => Promise<string> | string = hashBytes,
): Promise<FileState> => {
  const entry = lookAt(workspace, name);
  if (entry === null) {
    const why = whyUnknown(workspace, name);
    return why === null ? { kind: 'absent' } : { kind: 'notKept', why };
  }
  if (entry.kind === 'link') return { kind: 'link', target: entry.target ?? '' };
  if (entry.kind === 'folder') return { kind: 'folder', mode: entry.mode };
  if (entry.bytes > FILE_BYTES_MAX) return { kind: 'notKept', why: TOO_LARGE };
  try {
    const bytes = readFileAt(placeOf(workspace, name));
    return { kind: 'file', sha256: await keep(bytes), bytes: bytes.length, mode: entry.mode };
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return { kind: 'absent' };
    return { kind: 'notKept', why: `it can’t be read or kept (${errorCode(error) || error})` };
  }
};

const readFileAt = (place: Buffer | string): Buffer => {
  const descriptor = openSync(
    place,
    constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
  );
  try {
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
};

// ---- Folders, held open ----

type Held = { at(base: string): Buffer; close(): void };

const splitName = (name: string): readonly [folder: string, base: string] => {
  const at = name.lastIndexOf('/');
  return at < 0 ? ['', name] : [name.slice(0, at), name.slice(at + 1)];
};

const folderPlace = (workspace: string, folder: string): Buffer =>
  folder === '' ? Buffer.from(workspace) : placeOf(workspace, folder);

class Elsewhere extends Error {}

const hold = (workspace: string, folder: string): Held => {
  const place = folderPlace(workspace, folder);
  const flags = constants.O_DIRECTORY | constants.O_NOFOLLOW | O_PATH;
  const plain = constants.O_DIRECTORY | constants.O_NOFOLLOW;
  const descriptor = openSync(place, hasDescriptorPaths() ? flags : plain);
  const reach = hasDescriptorPaths() ? Buffer.from(descriptorPath(descriptor)) : place;
  const held = {
    at: (base: string) => Buffer.concat([reach, Buffer.from('/'), Buffer.from(base, 'latin1')]),
    close: () => closeSync(descriptor),
  };
  const isThere = !hasDescriptorPaths() || readlinkSync(reach, 'buffer').equals(place);
  if (isThere) return held;
  held.close();
  throw new Elsewhere();
};

const holdOrMake = (workspace: string, folder: string): Held => {
  try {
    return hold(workspace, folder);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT' || folder === '') throw error;
  }
  const [parent, base] = splitName(folder);
  const above = holdOrMake(workspace, parent);
  try {
    mkdirSync(above.at(base));
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  } finally {
    above.close();
  }
  return hold(workspace, folder);
};

// ---- One path ----

type Step = {
  readonly workspace: string;
  readonly store: CheckpointStore;
  readonly change: PathChange;
  /** The name of the file that is written beside it; with `.old` of the one that it replaces. */
  readonly draftName: string;
};

const CHANGED_SINCE = 'somebody else changed it since';
const CHANGED_TWICE =
  'somebody else changed it twice meanwhile; their first text is in a file beside it, .pawl-rewind…';
const ELSEWHERE = 'its folder is a symlink now';
const MISSING_CONTENT = 'its content is not in the store of checkpoints';

const stateAt = (place: Buffer, expected: FileState): boolean => {
  try {
    if (expected.kind === 'link')
      return readlinkSync(place, 'buffer').toString('latin1') === expected.target;
    return expected.kind === 'file' && hashBytes(readFileAt(place)) === expected.sha256;
  } catch {
    return false; // it is something else
  }
};

const remove = (place: Buffer): void => {
  try {
    unlinkSync(place);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
};

/** Writes the new file or link beside its place. False: its content is missing. */
const writeDraft = async ({ store, change }: Step, draft: Buffer): Promise<boolean> => {
  const { after } = change;
  remove(draft);
  if (after.kind === 'link') {
    symlinkSync(Buffer.from(after.target, 'latin1'), draft);
    return true;
  }
  const bytes = after.kind === 'file' ? await store.get(after.sha256) : null;
  if (bytes === null || after.kind !== 'file') return false;
  const descriptor = openSync(draft, 'wx', 0o600);
  try {
    writeFileSync(descriptor, bytes);
    fchmodSync(descriptor, after.mode);
  } finally {
    closeSync(descriptor);
  }
  return true;
};

/** Whether there are no hard links here, or none to files of somebody else. */
const hasNoLinks = (error: unknown): boolean =>
  ['EPERM', 'EOPNOTSUPP', 'ENOTSUP', 'ENOSYS'].includes(errorCode(error));

/** Puts a file or link at a place where nothing is. */
const place = (from: Buffer, target: Buffer, state: FileState): string | null => {
  try {
    // a hard link of a link is none of it on some systems
    if (state.kind === 'link') symlinkSync(Buffer.from(state.target, 'latin1'), target);
    else linkSync(from, target);
    return null;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return CHANGED_SINCE;
    if (!hasNoLinks(error)) throw error;
    renameSync(from, target);
    return null;
  } finally {
    remove(from);
  }
};

/**
 * Replaces a file whose content is `before`. The old one has a second name until its content is
 * known: only who replaces the file by another one between the two calls here is not seen.
 */
const replace = (
  draft: Buffer,
  target: Buffer,
  aside: Buffer,
  { before, after }: PathChange,
): string | null => {
  try {
    if (!stateAt(target, before)) return CHANGED_SINCE;
    try {
      if (before.kind === 'file') linkSync(target, aside);
    } catch (error) {
      if (!hasNoLinks(error)) throw error;
    }
    renameSync(draft, target);
    return putBack(target, aside, { before, after });
  } finally {
    remove(draft);
  }
};

type Sides = Pick<PathChange, 'before' | 'after'>;

/** Removes what was replaced, if it is the expected content; else it comes back. */
const putBack = (target: Buffer, aside: Buffer, { before, after }: Sides): string | null => {
  const old = inodeAt(aside);
  if (old === null) return null;
  const now = inodeAt(target);
  if (now === old || stateAt(aside, before)) {
    remove(aside);
    return null;
  }
  if (now !== null && !stateAt(target, after)) return CHANGED_TWICE;
  renameSync(aside, target);
  return CHANGED_SINCE;
};

const inodeAt = (place: Buffer): string | null => {
  const status = lstatSync(place, { bigint: true, throwIfNoEntry: false });
  return status === undefined ? null : `${status.dev} ${status.ino}`;
};

const takeAway = (target: Buffer, aside: Buffer, sides: Sides): string | null => {
  renameSync(target, aside);
  return putBack(target, aside, sides);
};

const isLeaf = ({ kind }: FileState): boolean => kind === 'file' || kind === 'link';

/** Removes a file or link that is not to be there, or as a folder. */
const removeLeaf = (step: Step): string | null => {
  if (lookAt(step.workspace, step.change.path) === null) return null;
  const [folder, base] = splitName(step.change.path);
  const held = hold(step.workspace, folder);
  try {
    return takeAway(held.at(base), held.at(`${step.draftName}.old`), step.change);
  } finally {
    held.close();
  }
};

const writeLeaf = async (step: Step): Promise<string | null> => {
  const [folder, base] = splitName(step.change.path);
  const held = holdOrMake(step.workspace, folder);
  const draft = held.at(step.draftName);
  try {
    if (!(await writeDraft(step, draft))) return MISSING_CONTENT;
    const isThere = lookAt(step.workspace, step.change.path) !== null;
    return isThere
      ? replace(draft, held.at(base), held.at(`${step.draftName}.old`), step.change)
      : place(draft, held.at(base), step.change.after);
  } finally {
    try {
      remove(draft);
    } finally {
      held.close();
    }
  }
};

const inFolder = (step: Step, work: (target: Buffer) => void): string | null => {
  const [folder, base] = splitName(step.change.path);
  const held = holdOrMake(step.workspace, folder);
  try {
    work(held.at(base));
  } catch (error) {
    // other files are in it, so it stays; or it is there already
    if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(errorCode(error))) throw error;
  } finally {
    held.close();
  }
  return null;
};

type Phase = {
  readonly concerns: (change: PathChange) => boolean;
  readonly run: (step: Step) => Promise<string | null> | string | null;
};

const OWN_ACCESS = 0o700;

/** Also of a folder that is closed to us. */
const setMode = (folder: Buffer, mode: number): void => {
  const flags = constants.O_DIRECTORY | constants.O_NOFOLLOW;
  const descriptor = openSync(folder, hasDescriptorPaths() ? flags | O_PATH : flags);
  try {
    if (hasDescriptorPaths()) chmodSync(descriptorPath(descriptor), mode);
    else fchmodSync(descriptor, mode);
  } finally {
    closeSync(descriptor);
  }
};

/** In this order, a folder never stands in the way of a file, nor the other way round. */
const PHASES: readonly Phase[] = [
  {
    // folders that are closed to us, or can't be written, are opened for what is in them
    concerns: ({ before }) => before.kind === 'folder' && (before.mode & OWN_ACCESS) !== OWN_ACCESS,
    run: (step) =>
      inFolder(step, (target) => {
        const { before } = step.change;
        if (before.kind === 'folder') setMode(target, before.mode | OWN_ACCESS);
      }),
  },
  { concerns: ({ before, after }) => isLeaf(before) && !isLeaf(after), run: removeLeaf },
  {
    concerns: ({ before, after }) => before.kind === 'folder' && after.kind !== 'folder',
    run: (step) => inFolder(step, rmdirSync),
  },
  {
    concerns: ({ before, after }) => before.kind !== 'folder' && after.kind === 'folder',
    run: (step) => inFolder(step, mkdirSync),
  },
  { concerns: ({ after }) => isLeaf(after), run: writeLeaf },
  {
    concerns: ({ after }) => after.kind === 'folder',
    run: (step) => {
      const { after } = step.change;
      return inFolder(step, (target) => {
        if (after.kind === 'folder') setMode(target, after.mode);
      });
    },
  },
];

const REMOVE_FOLDERS = 2;

/** Deep folders are removed before those around them, and made after them. */
const inOrder = (changes: readonly PathChange[], phase: number): readonly PathChange[] => {
  const sorted = [...changes].sort((one, other) => (one.path < other.path ? -1 : 1));
  return phase === REMOVE_FOLDERS ? sorted.reverse() : sorted;
};

/** Whether something is removed before another thing takes its place: a kill may come between. */
const isInTwoSteps = ({ before, after }: Sides): boolean =>
  (isLeaf(before) && after.kind === 'folder') || (before.kind === 'folder' && isLeaf(after));

const runPhase = async (step: Step, phase: Phase): Promise<string | null> => {
  const { before, after } = step.change;
  const now = await readState(step.workspace, step.change.path);
  if (isSameState(now, after)) return null;
  const isExpected =
    isSameState(now, before) || (now.kind === 'absent' && isInTwoSteps(step.change));
  // the mode of a folder is set when its files are done
  const isFolder = now.kind === 'folder' && (before.kind === 'folder' || after.kind === 'folder');
  if (!isExpected && !isFolder) return now.kind === 'notKept' ? now.why : CHANGED_SINCE;
  try {
    return await phase.run(step);
  } catch (error) {
    if (error instanceof Elsewhere || errorCode(error) === 'ELOOP') return ELSEWHERE;
    const code = errorCode(error);
    if (code === '') throw error;
    if (code === 'ENOENT' || code === 'ENOTDIR') return CHANGED_SINCE;
    return `it can’t be changed (${code})`;
  }
};

/** Removes what a killed run has left beside the files, once it is known to be the expected. */
const clear = (
  workspace: string,
  changes: readonly PathChange[],
  prefix: string,
): ReadonlyMap<string, string> => {
  const failed = new Map<string, string>();
  for (const folder of new Set(changes.map(({ path }) => splitName(path)[0]))) {
    try {
      const held = hold(workspace, folder);
      try {
        for (const found of readdirSync(held.at('.'), { encoding: 'buffer' })) {
          const name = found.toString('latin1');
          if (!name.startsWith(prefix)) continue;
          const change = changes[Number.parseInt(name.slice(prefix.length + 1), 10)];
          const isOld = name.endsWith('.old') && change !== undefined;
          const base = isOld ? splitName(change.path)[1] : '';
          const why = isOld ? putBack(held.at(base), held.at(name), change) : null;
          if (!isOld) remove(held.at(name));
          else if (why !== null) failed.set(change.path, why);
        }
      } finally {
        held.close();
      }
    } catch (error) {
      // the folder is gone, or elsewhere: then nothing of ours is in it
      if (!(error instanceof Elsewhere) && errorCode(error) === '') throw error;
    }
  }
  return failed;
};

export type PlanOutcome = {
  readonly done: readonly PathChange[];
  readonly left: readonly FileLeft[];
};

/** `planId`: its sha256. */
export const performPlan = async (
  store: CheckpointStore,
  planId: string,
  { workspace, changes, left: leftBefore }: Plan,
): Promise<PlanOutcome> => {
  const prefix = `.pawl-rewind-${planId.slice(0, 12)}`;
  const numbers = new Map(changes.map(({ path }, index) => [path, index]));
  const failed = new Map(clear(workspace, changes, prefix));
  for (const [index, phase] of PHASES.entries())
    for (const [at, change] of inOrder(changes, index).entries()) {
      if (!phase.concerns(change) || failed.has(change.path)) continue;
      if (at % 16 === 0) await nextTurn();
      const step = { workspace, store, change, draftName: `${prefix}-${numbers.get(change.path)}` };
      const why = await runPhase(step, phase);
      if (why !== null) failed.set(change.path, why);
    }
  const done = changes.filter(({ path }) => !failed.has(path));
  return { done, left: [...leftBefore, ...[...failed].map(([path, why]) => left(path, why))] };
};
