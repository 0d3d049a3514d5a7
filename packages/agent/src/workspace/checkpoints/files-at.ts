/**
 * The files of a session's workspace as they were after a checkpoint, for a comparison or a copy. A
 * manifest is a checkpoint with the states of its paths before and after.
 *
 * 1. Files that the session never changed are the present ones.
 * 2. All else is written like a rewind into an empty folder (restore.ts), so no link leads a file
 *    elsewhere.
 */

import { mkdir } from 'node:fs/promises';
import type { FileLeft } from '../../machine/event.js';
import type { ProcessEnvironment } from '../../platform/environment.js';
import { copyRegular, errorCode, hashBytes } from '../../platform/files.js';
import { KnownRepository, useRepository } from '../git.js';
import { addEmptyWorktree } from '../session-worktrees.js';
import { lookAt, placeOf, splitName } from './file-entries.js';
import {
  ABSENT,
  type FileState,
  fileLeft,
  isDuringCommands,
  isSameState,
  type Manifest,
  type PathChange,
} from './manifest.js';
import { holdOrMake, performPlan } from './restore.js';
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
  const { workspace, target, states, store, environment, signal } = request;
  const known = new KnownRepository(environment);
  const lister = new WorkspaceLister({ workspace, environment, signal, known });
  const { names, limit } = await lister.list(false); // not which files equal git's blobs
  const notCopied: FileLeft[] = limit === null ? [] : [fileLeft('.', limit)];
  const changes: PathChange[] = [];
  const write = (name: string, after: FileState): void => {
    changes.push({ path: name, before: ABSENT, after });
  };
  for (const name of names) {
    signal.throwIfAborted();
    const entry = states.has(name) ? null : lookAt(workspace, name);
    if (entry?.kind === 'link') write(name, { kind: 'link', target: entry.target ?? '' });
    const why = entry?.kind === 'file' ? await copyPresent(workspace, target, name) : null;
    if (why !== null) notCopied.push(fileLeft(name, why));
  }
  for (const [name, state] of states)
    if (state.kind === 'notKept') notCopied.push(fileLeft(name, state.why));
    else if (state.kind !== 'absent') write(name, state);
  const planId = hashBytes(Buffer.from(target)); // only drafts have it in their names
  const plan = { version: 1, workspace: target, changes, left: notCopied } as const;
  return (await performPlan(store, planId, plan)).left;
};

/** Copies a file as it is now. Returns why it can't; null: it did. */
const copyPresent = async (
  workspace: string,
  target: string,
  name: string,
): Promise<string | null> => {
  const [folder, base] = splitName(name);
  try {
    const held = holdOrMake(target, folder);
    try {
      await copyRegular(placeOf(workspace, name), held.at(base), { follow: 'none' });
      return null;
    } finally {
      held.close();
    }
  } catch (error) {
    return `it can’t be copied (${errorCode(error) || error})`;
  }
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
