/**
 * The files of a session's workspace as they were after a checkpoint, for a comparison or a copy. A
 * manifest is a checkpoint with the states of its paths before and after. A leaf is a file or link.
 *
 * 1. Files that the session never changed are the present ones.
 * 2. A copy is written into a new folder: folders and files first, then links. So no link leads a
 *    file elsewhere.
 */

import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import type { FileLeft } from '../../machine/event.js';
import type { ProcessEnvironment } from '../../platform/environment.js';
import { copyRegular, errorCode } from '../../platform/files.js';
import { KnownRepository, useRepository } from '../git.js';
import { addEmptyWorktree } from '../session-worktrees.js';
import {
  foldersAround,
  type HeldWorkspaceFolder,
  holdFolder,
  lookAt,
  placeOf,
  splitName,
} from './file-entries.js';
import {
  ABSENT,
  type FileState,
  fileLeft,
  isDuringCommands,
  isSameState,
  type Manifest,
  type PathChange,
} from './manifest.js';
import { setMode } from './restore.js';
import type { CheckpointStore } from './store.js';
import { WorkspaceLister } from './workspace-lister.js';

/** States by path. */
export type FileStates = ReadonlyMap<string, FileState>;

/**
 * The paths that the checkpoints name, as they were after the first `count` of them. A missing
 * manifest is null: it names nothing.
 */
export const statesAfter = (manifests: readonly (Manifest | null)[], count: number): FileStates => {
  const states = new Map<string, FileState>();
  // from the last to the first, so that the state before a path's first later change remains
  for (const manifest of manifests.slice(count).toReversed())
    for (const { path, before } of manifest?.changes.toReversed() ?? []) states.set(path, before);
  const later = new Set(states.keys());
  const earlier = new Map<string, FileState>();
  for (const manifest of manifests.slice(0, count))
    for (const { path, after } of manifest?.changes ?? []) earlier.set(path, after);
  // if a content was not stored then, the state before the next change may have it
  for (const [path, state] of earlier)
    if (!later.has(path) || state.kind !== 'notKept') states.set(path, state);
  return states;
};

/**
 * What the checkpoints from `from` to `to` changed together. The origin is known where a command
 * ran while one of them changed the path.
 */
export const changesBetween = (
  manifests: readonly (Manifest | null)[],
  from: number,
  to: number,
): readonly PathChange[] => {
  const [old, now] = [statesAfter(manifests, from), statesAfter(manifests, to)];
  const duringCommands = new Set(
    manifests
      .slice(from, to)
      .flatMap((manifest) => manifest?.changes.filter(isDuringCommands) ?? [])
      .map(({ path }) => path),
  );
  const changes: PathChange[] = [];
  for (const [path, after] of now) {
    const before = old.get(path) ?? ABSENT;
    // the same object: no checkpoint between changed it
    const isSame = isSameState(before, after) || (before.kind === 'notKept' && after === before);
    const origin = duringCommands.has(path) ? { origin: 'commands' as const } : {};
    if (!isSame) changes.push({ path, before, after, ...origin });
  }
  return changes.sort((one, other) => (one.path < other.path ? -1 : 1));
};

// ---- A copy ----

export type CopyRequest = {
  /** Real absolute path. */
  readonly workspace: string;
  /** Real absolute path of a folder that is empty, or a worktree without files. */
  readonly target: string;
  readonly states: FileStates;
  readonly store: CheckpointStore;
  readonly environment: ProcessEnvironment;
  readonly signal: AbortSignal;
};

/**
 * Copies the workspace with these states of files. What git ignores is left out, unless the session
 * changed it. Returns the files that could not be copied.
 */
export const copyFiles = async (request: CopyRequest): Promise<readonly FileLeft[]> => {
  const { target, signal } = request;
  const { folders, files, links, left: leftFiles } = await collectContents(request);
  const sorted = [...folders].sort(([one], [other]) => (one < other ? -1 : 1));
  const failed = new Set<string>();
  for (const [name] of sorted) {
    const failure = await workIn(target, name, 'made', makeFolder);
    if (failure === null) continue;
    failed.add(name);
    leftFiles.push(failure);
  }
  for (const leaf of [...files, ...links]) {
    signal.throwIfAborted();
    const failure = await workIn(target, leaf.name, 'copied', leaf.write);
    if (failure !== null) leftFiles.push(failure);
  }
  for (const [name, mode] of sorted.toReversed()) {
    if (mode === null || failed.has(name)) continue;
    const failure = await workIn(target, name, 'given its mode', async (place) => {
      setMode(place, mode);
      return null;
    });
    if (failure !== null) leftFiles.push(failure);
  }
  return leftFiles;
};

/** A file or link of the copy. */
type Leaf = { readonly name: string; readonly write: Work };

/** Makes or changes an entry of the copy. Returns why it can't; null: it did. */
type Work = (place: Buffer) => Promise<string | null>;

const makeFolder: Work = async (place) => {
  await mkdir(place).catch((error: unknown) => {
    if (errorCode(error) !== 'EEXIST') throw error;
  });
  return null;
};

/** A leaf as it is in the workspace now; null if it is gone, or of another kind. */
const presentLeaf = (
  workspace: string,
  name: string,
): { readonly kind: 'file' | 'link'; readonly leaf: Leaf } | null => {
  const entry = lookAt(workspace, name);
  if (entry?.kind === 'link') return { kind: 'link', leaf: linkTo(name, entry.target ?? '') };
  if (entry?.kind !== 'file') return null;
  const from = placeOf(workspace, name);
  const write: Work = async (place) => {
    await copyRegular(from, place, { follow: 'none' });
    return null;
  };
  return { kind: 'file', leaf: { name, write } };
};

const linkTo = (name: string, target: string): Leaf => ({
  name,
  write: async (place) => {
    await symlink(Buffer.from(target, 'latin1'), place);
    return null;
  },
});

const storedFile = (
  store: CheckpointStore,
  name: string,
  { sha256, mode }: Extract<FileState, { readonly kind: 'file' }>,
): Leaf => ({
  name,
  write: async (place) => {
    const bytes = await store.get(sha256);
    if (bytes === null) return 'its content is not in the store of checkpoints';
    await writeFile(place, bytes, { flag: 'wx', mode: 0o600 });
    await chmod(place, mode);
    return null;
  },
});

/** Works on an entry of the copy, unless its folder is a link or a file in it. */
const workIn = async (
  target: string,
  name: string,
  done: string,
  work: Work,
): Promise<FileLeft | null> => {
  const [folder, base] = splitName(name);
  let held: HeldWorkspaceFolder | null = null;
  try {
    held = holdFolder(target, folder);
    const why = await work(held.at(base));
    return why === null ? null : fileLeft(name, why);
  } catch (error) {
    const why = held === null ? 'its folder is a link at that time' : null;
    return fileLeft(name, why ?? `it can’t be ${done} (${errorCode(error) || error})`);
  } finally {
    held?.close();
  }
};

/** What the copy consists of. */
type Contents = {
  /** Modes by name; null: the default. */
  readonly folders: Map<string, number | null>;
  readonly files: Leaf[];
  readonly links: Leaf[];
  readonly left: FileLeft[];
};

const collectContents = async (request: CopyRequest): Promise<Contents> => {
  const { workspace, states, store, environment, signal } = request;
  const contents: Contents = { folders: new Map(), files: [], links: [], left: [] };
  const lister = new WorkspaceLister({
    workspace,
    environment,
    signal,
    known: new KnownRepository(environment),
  });
  const listing = await lister.list(false); // not which files equal git's blobs
  if (listing.limit !== null) contents.left.push(fileLeft('.', listing.limit));
  for (const name of listing.names) {
    if (states.has(name)) continue;
    const present = presentLeaf(workspace, name);
    if (present !== null) contents[present.kind === 'file' ? 'files' : 'links'].push(present.leaf);
  }
  for (const [name, state] of states) {
    if (state.kind === 'file') contents.files.push(storedFile(store, name, state));
    if (state.kind === 'link') contents.links.push(linkTo(name, state.target));
    if (state.kind === 'folder') contents.folders.set(name, state.mode);
    if (state.kind === 'notKept') contents.left.push(fileLeft(name, state.why));
  }
  const leaves = [...contents.files, ...contents.links].map(({ name }) => name);
  for (const folder of foldersAround([...leaves, ...contents.folders.keys()]))
    if (!contents.folders.has(folder)) contents.folders.set(folder, null);
  return contents;
};

/**
 * Makes the folder of a copy: a worktree of the workspace's repository with a detached HEAD and no
 * files, or an empty folder where there is no repository. `folder` must not exist, or be empty.
 * Rejects with a ProgramFailure if git refuses.
 */
export const makeTarget = async (
  workspace: string,
  folder: string,
  environment: ProcessEnvironment,
  signal: AbortSignal,
): Promise<'worktree' | 'folder'> => {
  const found = await useRepository({ workspace, environment, signal }, async (repository) => ({
    isTop: repository.top === workspace,
    head: await repository.tryAsk(['rev-parse', '--verify', '--quiet', 'HEAD^{commit}']),
  }));
  if (found === null || !found.isTop || found.head === null) {
    await mkdir(folder, { recursive: true });
    return 'folder';
  }
  const place = { repository: workspace, path: folder, environment, signal };
  await addEmptyWorktree(place, found.head);
  return 'worktree';
};
