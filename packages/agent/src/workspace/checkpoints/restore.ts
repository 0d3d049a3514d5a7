/**
 * Takes changes of files back by a stored plan: the part of a rewind that concerns files.
 *
 * From top to bottom: the plan and how it is performed; folders, held open; the change of one path;
 * the phases of a plan. A leaf is a file or a link.
 *
 * 1. A file is replaced as a whole, by a file that was written beside it.
 * 2. What somebody changed meanwhile stays: the old file is moved aside and looked at there, and
 *    the new one takes its place only while nothing else has it.
 * 3. A plan can be performed again: what is done already is left as it is.
 * 4. Nothing outside the workspace is read or touched: a folder is opened, and the kernel asked for
 *    its path, before something in it is read or changes.
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
  readlinkSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FileLeft } from '../../machine/event.js';
import { attemptNow } from '../../platform/attempt.js';
import {
  descriptorPath,
  errorCode,
  hasDescriptorPaths,
  hashBytes,
  O_PATH,
} from '../../platform/files.js';
import {
  type HeldWorkspaceFolder,
  holdFolder,
  loadIn,
  lookAt,
  readState,
  splitName,
} from './file-entries.js';
import {
  type FileState,
  fileLeft,
  isSameState,
  type PathChange,
  type RefChange,
} from './manifest.js';
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

export type PlanOutcome = {
  readonly done: readonly PathChange[];
  readonly left: readonly FileLeft[];
};

/** Performs a plan, phase by phase. `planId`: the sha256 of the plan. */
export const performPlan = async (
  store: CheckpointStore,
  planId: string,
  { workspace, changes, left: leftBefore }: Plan,
): Promise<PlanOutcome> => {
  const prefix = `.pawl-rewind-${planId.slice(0, 12)}`;
  // the index of a change is in its draft's name, so that a later run of the plan finds the draft
  const numbers = new Map(changes.map(({ path }, index) => [path, index]));
  const failed = new Map(clearDrafts(workspace, changes, prefix));
  for (const phase of PHASES)
    for (const [at, change] of sortForPhase(changes, phase).entries()) {
      if (!phase.concerns(change) || failed.has(change.path)) continue;
      if (at % 16 === 0) await nextTurn();
      const step = { workspace, store, change, draftName: `${prefix}-${numbers.get(change.path)}` };
      const why = await runPhase(step, phase);
      if (why !== null) failed.set(change.path, why);
    }
  const done = changes.filter(({ path }) => !failed.has(path));
  // that a folder was to go and stays is seen from the files in it
  for (const { path, after } of changes)
    if (after.kind === 'absent' && failed.get(path) === OTHERS_INSIDE) failed.delete(path);
  return { done, left: [...leftBefore, ...[...failed].map(([path, why]) => fileLeft(path, why))] };
};

/** Inner folders are removed before those around them, and added after them. */
const sortForPhase = (
  changes: readonly PathChange[],
  { innerFirst = false }: Phase,
): readonly PathChange[] => {
  const sorted = [...changes].sort((one, other) => (one.path < other.path ? -1 : 1));
  return innerFirst ? sorted.reverse() : sorted;
};

/** Whether a path becomes another kind of thing, in two phases: a kill may come between them. */
const needsTwoPhases = ({ before, after }: Sides): boolean =>
  (isLeaf(before) && after.kind === 'folder') || (before.kind === 'folder' && isLeaf(after));

const runPhase = async (step: Step, phase: Phase): Promise<string | null> => {
  const { before, after } = step.change;
  const now = await readState(step.workspace, step.change.path);
  if (isSameState(now, after)) return null;
  const isExpected =
    isSameState(now, before) || (now.kind === 'absent' && needsTwoPhases(step.change));
  // a folder is expected whatever its mode: it is opened first, and gets its mode at last
  const isFolder = now.kind === 'folder' && (before.kind === 'folder' || after.kind === 'folder');
  if (!isExpected && !isFolder) return now.kind === 'notKept' ? now.why : CHANGED_SINCE;
  try {
    return await phase.run(step);
  } catch (error) {
    return explainFailure(error);
  }
};

/** Why a path can't be changed. Throws the error if it is not from the file system. */
const explainFailure = (error: unknown): string => {
  const code = errorCode(error);
  if (code === 'ELOOP') return ELSEWHERE;
  if (code === '') throw error;
  if (code === 'ENOENT' || code === 'ENOTDIR') return CHANGED_SINCE;
  if (code === 'ENOTEMPTY') return OTHERS_INSIDE;
  return `it can’t be changed (${code})`;
};

/**
 * Removes the drafts of a killed run. A file that it had moved away is removed if it has the
 * expected content, and comes back otherwise. Returns the paths of the latter, with the reason.
 */
const clearDrafts = (
  workspace: string,
  changes: readonly PathChange[],
  prefix: string,
): ReadonlyMap<string, string> => {
  const failed = new Map<string, string>();
  for (const folder of new Set(changes.map(({ path }) => splitName(path)[0]))) {
    try {
      const held = holdFolder(workspace, folder);
      try {
        for (const entry of readdirSync(held.at('.'), { encoding: 'buffer' })) {
          const name = entry.toString('latin1');
          if (!name.startsWith(prefix)) continue;
          const change = changes[Number.parseInt(name.slice(prefix.length + 1), 10)];
          if (!name.endsWith('.old') || change === undefined) remove(held.at(name));
          else {
            const base = held.at(splitName(change.path)[1]);
            const settled = attemptNow(() => settleAside(base, held.at(name), change));
            const why = settled.kind === 'done' ? settled.value : explainFailure(settled.fault);
            if (why !== null) failed.set(change.path, why);
          }
        }
      } finally {
        held.close();
      }
    } catch (error) {
      // the folder is gone, elsewhere or closed to us: then no file that was moved away is in it
      if (errorCode(error) === '') throw error;
    }
  }
  return failed;
};

// ---- Folders, held open ----

/** Opens a folder, which is made with those around it if it is missing. */
export const holdOrMake = (workspace: string, folder: string): HeldWorkspaceFolder => {
  try {
    return holdFolder(workspace, folder);
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
  return holdFolder(workspace, folder);
};

// ---- One path ----

/** The change of one path in one phase. */
type Step = {
  readonly workspace: string;
  readonly store: CheckpointStore;
  readonly change: PathChange;
  /** The name of the draft, written beside the file. With `.old`: of the file that it replaces. */
  readonly draftName: string;
};

export const CHANGED_SINCE = 'somebody else changed it since';
const CHANGED_TWICE =
  'somebody else changed it twice meanwhile; their first text is in a file beside it, .pawl-rewind…';
const ELSEWHERE = 'its folder is a symlink now';
const MISSING_CONTENT = 'its content is not in the store of checkpoints';
const OTHERS_INSIDE = 'other files are in it';

/** Whether a file or link has the expected content. */
const hasState = (place: Buffer, expected: FileState): boolean => {
  try {
    if (expected.kind === 'link')
      return readlinkSync(place, 'buffer').toString('latin1') === expected.target;
    const now = loadIn(place);
    return (
      expected.kind === 'file' && now.kind === 'bytes' && hashBytes(now.bytes) === expected.sha256
    );
  } catch {
    return false; // it is something else
  }
};

/** Removes a file, if it is there. */
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

/** Whether a hard link failed because the system has none, or none to other users' files. */
const hasNoLinks = (error: unknown): boolean =>
  ['EPERM', 'EOPNOTSUPP', 'ENOTSUP', 'ENOSYS'].includes(errorCode(error));

/**
 * Moves a file or link to a place where nothing is. False: something is there. Without hard links,
 * a file that is saved there in the same moment is lost.
 */
const put = (from: Buffer, target: Buffer): boolean => {
  try {
    const moved = loadIn(from);
    // on some systems a hard link to a symlink links the file that it leads to
    if (moved.kind === 'link') symlinkSync(Buffer.from(moved.target, 'latin1'), target);
    else linkSync(from, target);
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    if (!hasNoLinks(error)) throw error;
    if (inodeAt(target) !== null) return false;
    renameSync(from, target);
  }
  remove(from);
  return true;
};

/**
 * Replaces a file whose content is `before`. It is moved aside first, for a moment without a file:
 * what somebody saves there since then stands in the way of the draft, and is never overwritten.
 */
const replace = (draft: Buffer, target: Buffer, aside: Buffer, sides: Sides): string | null => {
  if (!hasState(target, sides.before)) return CHANGED_SINCE;
  renameSync(target, aside);
  let isPut = false;
  let settled: string | null = null;
  try {
    isPut = hasState(aside, sides.before) && put(draft, target);
  } finally {
    settled = settleAside(target, aside, sides);
  }
  return isPut ? settled : (settled ?? CHANGED_SINCE);
};

type Sides = Pick<PathChange, 'before' | 'after'>;

/**
 * Removes the replaced file if it had the expected content, and something has its place. Otherwise
 * it comes back.
 */
const settleAside = (target: Buffer, aside: Buffer, sides: Sides): string | null => {
  const old = inodeAt(aside);
  if (old === null) return null;
  const now = inodeAt(target);
  const isExpected = hasState(aside, sides.before);
  const isReplaced = now !== null || !isLeaf(sides.after);
  // the same file under two names (it came back already), or the expected one
  if (now === old || (isExpected && isReplaced)) {
    remove(aside);
    return null;
  }
  if (now === null) {
    if (!put(aside, target)) return settleAside(target, aside, sides);
    return isExpected ? null : CHANGED_SINCE;
  }
  if (!hasState(target, sides.after)) return CHANGED_TWICE;
  renameSync(aside, target);
  return CHANGED_SINCE;
};

const inodeAt = (place: Buffer): string | null => {
  const status = lstatSync(place, { bigint: true, throwIfNoEntry: false });
  return status === undefined ? null : `${status.dev} ${status.ino}`;
};

/** Removes a file, unless its content is not the expected one. */
const takeAway = (target: Buffer, aside: Buffer, sides: Sides): string | null => {
  renameSync(target, aside);
  return settleAside(target, aside, sides);
};

const isLeaf = ({ kind }: FileState): boolean => kind === 'file' || kind === 'link';

/** Removes a file or link where nothing or a folder is to be. */
const removeLeaf = (step: Step): string | null => {
  if (lookAt(step.workspace, step.change.path) === null) return null;
  const [folder, base] = splitName(step.change.path);
  const held = holdFolder(step.workspace, folder);
  try {
    return takeAway(held.at(base), held.at(`${step.draftName}.old`), step.change);
  } finally {
    held.close();
  }
};

/** Writes a file or link. */
const writeLeaf = async (step: Step): Promise<string | null> => {
  const [folder, base] = splitName(step.change.path);
  const held = holdOrMake(step.workspace, folder);
  const draft = held.at(step.draftName);
  try {
    if (!(await writeDraft(step, draft))) return MISSING_CONTENT;
    const isThere = lookAt(step.workspace, step.change.path) !== null;
    const target = held.at(base);
    if (!isThere) return put(draft, target) ? null : CHANGED_SINCE;
    return replace(draft, target, held.at(`${step.draftName}.old`), step.change);
  } finally {
    try {
      remove(draft);
    } finally {
      held.close();
    }
  }
};

/** Changes a folder at the step's path. */
const changeFolder = (step: Step, work: (target: Buffer) => void): string | null => {
  const [folder, base] = splitName(step.change.path);
  const held = holdOrMake(step.workspace, folder);
  try {
    work(held.at(base));
  } catch (error) {
    // it is there already, or gone
    if (!['EEXIST', 'ENOENT'].includes(errorCode(error))) throw error;
  } finally {
    held.close();
  }
  return null;
};

// ---- The phases ----

/** `concerns`: whether the phase changes this path. `run`: returns why it could not; null: done. */
type Phase = {
  readonly concerns: (change: PathChange) => boolean;
  readonly run: (step: Step) => Promise<string | null> | string | null;
  readonly innerFirst?: boolean;
};

const OWN_ACCESS = 0o700;

/** Sets the mode of a folder, also of one that is closed to us. */
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
      changeFolder(step, (target) => {
        const { before } = step.change;
        if (before.kind === 'folder') setMode(target, before.mode | OWN_ACCESS);
      }),
  },
  { concerns: ({ before, after }) => isLeaf(before) && !isLeaf(after), run: removeLeaf },
  {
    concerns: ({ before, after }) => before.kind === 'folder' && after.kind !== 'folder',
    run: (step) => changeFolder(step, rmdirSync),
    innerFirst: true,
  },
  {
    concerns: ({ before, after }) => before.kind !== 'folder' && after.kind === 'folder',
    run: (step) => changeFolder(step, mkdirSync),
  },
  { concerns: ({ after }) => isLeaf(after), run: writeLeaf },
  {
    concerns: ({ after }) => after.kind === 'folder',
    run: (step) => {
      const { after } = step.change;
      return changeFolder(step, (target) => {
        if (after.kind === 'folder') setMode(target, after.mode);
      });
    },
  },
];
