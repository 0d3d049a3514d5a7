/**
 * Which files and folders Pawl trusts, by their owners.
 *
 * From top to bottom: whose a file is, and who else may write it; and the folders whose
 * configuration Pawl reads: from the workspace up to the one that holds `.git`.
 */

import { existsSync, readFileSync, type Stats, statSync } from 'node:fs';
import path from 'node:path';
import { entryStatus } from './files.js';

// ---- Whose a file is: ours, the system's or another user's; and who else may write it ----
// Windows has no numeric owners, so every owner counts as ours there.

type Owned = { readonly uid: number; readonly gid: number; readonly mode: number };

/** Bits of a mode. */
const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;
/**
 * Groups of administrators that own parts of the search path: Debian's /usr/local, Homebrew, Nix.
 */
const ADMINISTRATORS = new Set(['root', 'wheel', 'admin', 'sudo', 'nixbld', 'linuxbrew']);
/** On macOS every user is in `staff`; on Debian only administrators of /usr/local are. */
const STAFF = 'staff';

/** Effective user id; null on Windows. */
const ownUserId = (): number | null => process.geteuid?.() ?? null;

const ownersAt = (place: string): readonly number[] => {
  const status = statSync(place, { throwIfNoEntry: false });
  return status === undefined ? [] : [status.uid];
};

let systemIds: ReadonlySet<number> | null = null;

/**
 * Whether a user id is the system's. Usually that is root. In a user namespace root may appear as
 * another number, so the owners of `/` and `/usr` count too.
 */
const isSystem = (uid: number): boolean => {
  systemIds ??= new Set([0, ...ownersAt('/'), ...ownersAt('/usr')]);
  return systemIds.has(uid);
};

/** Whether something belongs to us or to the system. */
export const isOwnOrSystem = ({ uid }: Pick<Owned, 'uid'>): boolean => {
  const userId = ownUserId();
  return userId === null || uid === userId || isSystem(uid);
};

let groups: ReadonlyMap<number, string> | null = null;

const groupName = (gid: number): string => {
  if (groups === null) {
    let table = '';
    try {
      table = readFileSync('/etc/group', 'utf8');
    } catch {
      // no table: no group is known to be one of administrators
    }
    groups = new Map(
      table.split('\n').map((line) => {
        const [name = '', , number = ''] = line.split(':');
        return [Number(number), name] as const;
      }),
    );
  }
  return groups.get(gid) ?? '';
};

/**
 * Other users who may write. `administrators`: a group of the machine's administrators. `sticky`:
 * others may add entries to the folder, but not replace those of another user. Our group counts as
 * the user alone if it has the user's number.
 */
type Writers = 'none' | 'administrators' | 'sticky' | 'others';

/** Judges by owner and mode. */
export const otherWriters = ({ uid, gid, mode }: Owned): Writers => {
  const userId = ownUserId();
  if (userId === null) return 'none';
  const isForAll = (mode & OTHERS_WRITE) !== 0;
  const isOwnGroup = gid === userId && gid === process.getegid?.();
  // Group 0 is root's, so it is the system.
  const isForGroup = (mode & GROUP_WRITES) !== 0 && gid !== 0 && !isOwnGroup;
  if (!isForAll && !isForGroup) return 'none';
  if ((mode & STICKY) !== 0 && isOwnOrSystem({ uid })) return 'sticky';
  if (isForAll) return 'others';
  const name = groupName(gid);
  const runsMachine = ADMINISTRATORS.has(name) || (name === STAFF && process.platform !== 'darwin');
  return runsMachine ? 'administrators' : 'others';
};

/*
 * ---- The folders of a repository ----
 *
 * 1. The walk ends at a folder of another user, who could otherwise configure and instruct the
 *    agent of everybody below. Git does the same. Root does not count as another user, nor does the
 *    user who called sudo, nor the owner of the workspace, whose files are read anyway.
 * 2. It ends where git ends it: at another file system, and at folders of
 *    `GIT_CEILING_DIRECTORIES`.
 * 3. A `.git` of another user in a folder that everybody may write to (/tmp) counts as absent.
 */

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
