/**
 * The folders whose configuration Pawl reads: from the workspace up to the one that holds `.git`.
 *
 * 1. The walk ends at a folder of another user, who could otherwise configure and instruct the
 *    agent of everybody below. Git does the same. Root does not count as another user, nor does the
 *    user who called sudo, nor the owner of the workspace, whose files are read anyway.
 * 2. It ends where git ends it: at another file system, and at folders of
 *    `GIT_CEILING_DIRECTORIES`.
 * 3. A `.git` of another user in a folder that everybody may write to (/tmp) counts as absent.
 */

import { existsSync, type Stats, statSync } from 'node:fs';
import path from 'node:path';
import { entryStatus, isOwnOrSystem } from './files.js';

type RepositoryFolders = {
  /**
   * The workspace first, the folder with `.git` last; only the workspace if there is no repository.
   */
  readonly folders: readonly string[];
  /** The last of them, if it holds `.git`. */
  readonly top: string | null;
  /**
   * The folder of another user at which the walk to a repository ended (rules 1 and 3); otherwise
   * null.
   */
  readonly foreign: string | null;
};

/** Walks up from the workspace, a real path. */
export const repositoryFolders = (workspace: string): RepositoryFolders => {
  const trusts = trustAt(workspace);
  const folders: string[] = [];
  let foreign: string | null = null;
  for (let folder: string | null = workspace; folder !== null; folder = folderAbove(folder)) {
    const own = entryStatus(folder);
    const dotGit = existsSync(path.join(folder, '.git'))
      ? entryStatus(path.join(folder, '.git'))
      : null;
    const isForeign =
      folder !== workspace && [own, dotGit].some((status) => status !== null && !trusts(status));
    // Above a foreign folder no folder counts. The loop goes on only to learn whether a repository
    // is there: then the user is told why it is not used.
    if (isForeign) foreign ??= folder;
    if (foreign === null) folders.push(folder);
    if (dotGit !== null && foreign === null) return { folders, top: folder, foreign: null };
    if (dotGit !== null) return { folders: [workspace], top: null, foreign };
  }
  return { folders: [workspace], top: null, foreign: null };
};

/** The user who became root by sudo. */
const callerOfRoot = (): number | null => {
  const caller = Number(process.env.SUDO_UID);
  return process.geteuid?.() === 0 && process.env.SUDO_UID !== undefined && Number.isInteger(caller)
    ? caller
    : null;
};

/**
 * The nearest folder at or above `folder` that contains `.git`; null if there is none. Unlike
 * `repositoryFolders` it also goes through folders of other users.
 */
export const findFolderWithGit = (folder: string): string | null => {
  for (let place: string | null = folder; place !== null; place = folderAbove(place)) {
    if (existsSync(path.join(place, '.git'))) return place;
  }
  return null;
};

/** Whether an owner may configure the agent (rule 1). */
type Trust = (status: Pick<Stats, 'uid'>) => boolean;

const trustAt = (workspace: string): Trust => {
  const owner = statSync(workspace, { throwIfNoEntry: false })?.uid;
  const caller = callerOfRoot();
  return ({ uid }) => isOwnOrSystem({ uid }) || uid === owner || uid === caller;
};

/**
 * Whether a file above the workspace belongs to another user, so that it must not be read. Files in
 * the workspace may always be read.
 */
export const isOfOtherUser = (place: string, workspace: string): boolean => {
  const status = entryStatus(place);
  if (status === null || path.dirname(place) === workspace) return false;
  return !trustAt(workspace)(status);
};

/** A sentence about `foreign`, for the user. */
export const foreignFolder = (foreign: string): string =>
  `${foreign} belongs to another user, so the repository, instructions and settings there ` +
  'are not used.';

/**
 * The folder in which the search for a repository goes on; null if it ends at `folder`.
 *
 * It ends where git ends it: at the root, at another file system (unless
 * GIT_DISCOVERY_ACROSS_FILESYSTEM says otherwise), and below a folder that GIT_CEILING_DIRECTORIES
 * names. `folder` is a real path.
 */
export const folderAbove = (folder: string): string | null => {
  const parent = path.dirname(folder);
  if (parent === folder || ceilings().includes(parent)) return null;
  return isYes(process.env.GIT_DISCOVERY_ACROSS_FILESYSTEM) || isOneFileSystem(folder, parent)
    ? parent
    : null;
};

const ceilings = (): readonly string[] =>
  (process.env.GIT_CEILING_DIRECTORIES ?? '')
    .split(path.delimiter)
    .filter((place) => path.isAbsolute(place))
    .map((place) => path.resolve(place));

/** Whether git reads the value as true. */
const isYes = (value: string | undefined): boolean => /^(true|yes|on|1)$/i.test(value ?? '');

const isOneFileSystem = (folder: string, parent: string): boolean => {
  const own = entryStatus(folder);
  const above = entryStatus(parent);
  // a folder that does not exist yet will be made on the file system of its parent
  return own === null || above === null || own.dev === above.dev;
};
