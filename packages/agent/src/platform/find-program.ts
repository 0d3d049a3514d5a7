/**
 * Finds programs by name. Every program that Pawl starts comes from here, except its own Node and
 * the system's shell.
 *
 * The path is absolute; empty and relative entries of the search path are ignored. Neither the
 * folder nor the target of a symlink lies in the workspace or its repository, so a search never
 * finds a program that a repository brings along. Only this user and the system can replace the
 * program.
 *
 * From top to bottom: `createSearch` behind `searchPrograms` and `findProgram`; a program of the
 * repository, which is not trusted, or that the user has named; following a path (`followTrusted`);
 * and ripgrep.
 */

import { constants, existsSync, readlinkSync, type Stats, statSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import type { ProcessEnvironment } from './environment.js';
import { entryStatus, isWithin, mayAccess } from './files.js';
import { findFolderWithGit, isOwnOrSystem, otherWriters } from './trusted-folders.js';

/**
 * Absolute path of a program that may be started. The compiler refuses a plain string: it comes
 * from this file, or is a fixed path of start-program.ts.
 */
export type ProgramPath = string & { readonly isProgramPath: never };

export type SearchPlace = {
  /** PATH and HOME are read. */
  readonly environment: ProcessEnvironment;
  /** Absolute; null if no workspace is known yet. */
  readonly workspace: string | null;
};

export type SkippedFolder = { readonly folder: string; readonly why: string };

export type ProgramSearch = {
  /** The used folders of the search path, in order, as real paths. */
  readonly folders: readonly string[];
  /** Existing folders of the search path that are not used. */
  readonly skipped: readonly SkippedFolder[];
  /** Used folders, or folders above them, that administrators of the machine may write to. */
  readonly writableByAdmins: readonly string[];
  /** Null if there is none. */
  find(name: string): ProgramPath | null;
  /**
   * Why the first program of that name was refused, or PATH names no folder; null if there is just
   * none.
   */
  whyNot(name: string): string | null;
};

/** Program folders of the system, which are usable whatever the workspace is. */
const SYSTEM_FOLDERS = [
  '/usr/local/sbin',
  '/usr/local/bin',
  '/usr/sbin',
  '/usr/bin',
  '/sbin',
  '/bin',
];

/**
 * The folders to avoid. If the repository contains the whole home, only the workspace is avoided.
 */
const forbiddenFolders = (workspace: string, home: string): readonly string[] => {
  const top = findFolderWithGit(workspace) ?? workspace;
  return top === workspace || isWithin(home, top) ? [workspace] : [top, workspace];
};

/** Device and inode of a folder; empty if there is no such folder. */
const identify = (folder: string): readonly Identity[] => {
  const status = statSync(folder, { throwIfNoEntry: false });
  return status === undefined ? [] : [status];
};

const splitSearchPath = (searchPath: string): readonly string[] => [
  ...new Set(searchPath.split(path.delimiter).filter((entry) => path.isAbsolute(entry))),
];

/** Why a search can find nothing at all; null if it could. */
const searchPathFault = (searchPath: string): string | null => {
  if (searchPath === '') return 'PATH is not set';
  return splitSearchPath(searchPath).length === 0 ? 'PATH names no absolute folder' : null;
};

const isRunnable = (file: string, status: Stats): boolean =>
  status.isFile() && mayAccess(file, constants.X_OK);

type Lookup =
  | { readonly kind: 'found'; readonly program: ProgramPath }
  | { readonly kind: 'none' }
  | { readonly kind: 'refused'; readonly why: string };

/** Whether another user may change a file. The sticky bit of a file protects nothing. */
const isChangedByOthers = (status: Stats): boolean => {
  const writers = otherWriters(status);
  return !isOwnOrSystem(status) || writers === 'others' || writers === 'sticky';
};

/**
 * Looks in one trusted folder. The path keeps the name, since some programs depend on the name by
 * which they are called.
 */
const lookInFolder = (folder: string, name: string, forbidden: readonly Identity[]): Lookup => {
  const file = path.join(folder, name);
  const own = entryStatus(file);
  if (own === null) return { kind: 'none' };
  const followed = own.isSymbolicLink() ? followTrusted(file, forbidden) : null;
  if (followed?.kind === 'absent') return { kind: 'none' };
  if (followed?.kind === 'refused') return followed;
  const { real, status } = followed ?? { real: file, status: own };
  if (!isRunnable(real, status)) return { kind: 'none' };
  if (isChangedByOthers(status)) return { kind: 'refused', why: `other users may change ${real}` };
  // what the head of this file promises holds for it
  return { kind: 'found', program: file as ProgramPath };
};

/** The forbidden folders for a search in one folder. */
type ForbiddenIn = (folder: string) => readonly Identity[];

/** System folders stay usable even if the workspace is the whole machine. */
const forbidWorkspace = (workspace: string | null, home: string): ForbiddenIn => {
  const avoided = workspace === null ? [] : forbiddenFolders(path.resolve(workspace), home);
  const known = avoided.map((folder) => ({ folder, identities: identify(folder) }));
  return (folder) =>
    known
      .filter((one) => !(SYSTEM_FOLDERS.includes(folder) && isWithin(folder, one.folder)))
      .flatMap(({ identities }) => identities);
};

type Folders = Pick<ProgramSearch, 'folders' | 'skipped' | 'writableByAdmins'>;

/** The folders of a search path, and why some are not used. */
const judgeFolders = (searchPath: string, forbiddenIn: ForbiddenIn): Folders => {
  const folders = new Set<string>();
  const skipped: SkippedFolder[] = [];
  const writableByAdmins = new Set<string>();
  for (const entry of splitSearchPath(searchPath)) {
    const followed = followTrusted(entry, forbiddenIn(entry));
    if (followed.kind === 'refused') skipped.push({ folder: entry, why: followed.why });
    if (followed.kind !== 'trusted' || !followed.status.isDirectory()) continue;
    folders.add(followed.real);
    for (const place of followed.writableByAdmins) writableByAdmins.add(place);
  }
  return { folders: [...folders], skipped, writableByAdmins: [...writableByAdmins] };
};

const createSearch = ({ environment, workspace }: SearchPlace): ProgramSearch => {
  const forbiddenIn = forbidWorkspace(workspace, environment.HOME || homedir());
  const usable = judgeFolders(environment.PATH ?? '', forbiddenIn);
  const lookFor = (name: string): Lookup => {
    if (name === '' || name.includes('/') || name.includes('\0')) return { kind: 'none' };
    let firstRefusal: Lookup = { kind: 'none' };
    for (const folder of usable.folders) {
      const one = lookInFolder(folder, name, forbiddenIn(folder));
      if (one.kind === 'found') return one;
      if (firstRefusal.kind === 'none') firstRefusal = one;
    }
    return firstRefusal;
  };
  const known = new Map<string, ProgramPath>();
  return {
    ...usable,
    find(name) {
      const before = known.get(name);
      if (before !== undefined && existsSync(before)) return before;
      const looked = lookFor(name);
      if (looked.kind !== 'found') return null;
      known.set(name, looked.program);
      return looked.program;
    },
    whyNot(name) {
      const looked = lookFor(name);
      if (looked.kind === 'refused') return looked.why;
      return looked.kind === 'none' ? searchPathFault(environment.PATH ?? '') : null;
    },
  };
};

/** Maximum age of a cached search, since folders and programs may appear during a session. */
const CACHED_MS = 2_000;
const CACHED_MAX = 32;
const searches = new Map<string, { readonly at: number; readonly search: ProgramSearch }>();

/** The search for one workspace and environment, cached for a moment. */
export const searchPrograms = (place: SearchPlace): ProgramSearch => {
  const { environment, workspace } = place;
  const key = [environment.PATH ?? '', environment.HOME ?? '', workspace ?? ''].join('\0');
  const cached = searches.get(key);
  const now = performance.now();
  if (cached !== undefined && now - cached.at < CACHED_MS) return cached.search;
  const search = createSearch(place);
  if (searches.size >= CACHED_MAX) searches.clear();
  searches.set(key, { at: now, search });
  return search;
};

/** Absolute path of a program that may be started; null if there is none. */
export const findProgram = (name: string, place: SearchPlace): ProgramPath | null =>
  searchPrograms(place).find(name);

/** The search for the current folder, with our own environment. */
export const ownPrograms = (): ProgramSearch => {
  let workspace: string | null = null;
  try {
    workspace = process.cwd();
  } catch {
    // the folder is gone: nothing can be found in it either
  }
  return searchPrograms({ environment: process.env, workspace });
};

/**
 * The first program of that name in folders of the repository itself. It is untrusted: run it only
 * in the sandbox, or if the user's own configuration asks for it.
 */
export const findRepositoryProgram = (
  folders: readonly string[],
  name: string,
): ProgramPath | null => {
  for (const folder of folders) {
    const file = path.join(folder, name);
    const status = statSync(file, { throwIfNoEntry: false });
    // The caller knows that the repository supplies it.
    if (status !== undefined && isRunnable(file, status)) return file as ProgramPath;
  }
  return null;
};

/**
 * The program that the user has named: a name is searched, a path is taken as it is. `folder`: from
 * which relative paths are read; null: there are none. Throws with the reason if there is none.
 */
export const findNamedProgram = (
  name: string,
  place: SearchPlace,
  folder: string | null = null,
): ProgramPath => {
  const home = place.environment.HOME || homedir();
  const whole = name.startsWith('~/') ? path.join(home, name.slice(2)) : name;
  if (whole.includes('/')) {
    if (!path.isAbsolute(whole) && folder === null)
      throw new Error(`${name} is a relative path. Write the whole path, or a program's name`);
    const file = path.resolve(folder ?? '/', whole);
    // The user has named or allowed exactly this program, so no place is refused.
    const program = findRepositoryProgram([path.dirname(file)], path.basename(file));
    if (program !== null) return program;
    throw new Error(`there is no program ${file}, or it may not be executed`);
  }
  const programs = searchPrograms(place);
  const program = programs.find(whole);
  if (program !== null) return program;
  const why = programs.whyNot(whole);
  throw new Error(`there is no program ${whole}${why === null ? ' in PATH' : `: ${why}`}`);
};

// ---- Following a path ----

/*
 * For every folder and symlink on the way it is checked whether another user could change the
 * target.
 *
 * 1. Everything on the way belongs to this user or the system, and no other user may write to it.
 *    In a sticky folder of the system (/tmp) others may add entries but not replace ours, so the
 *    entry itself is checked.
 * 2. No folder on the way is forbidden. Folders are compared by device and inode, so their names
 *    don't matter.
 */

/** A folder, whatever its name is. */
type Identity = { readonly dev: number; readonly ino: number };

type Followed =
  | {
      readonly kind: 'trusted';
      /** The path without symlinks. */
      readonly real: string;
      readonly status: Stats;
      /** Folders that administrators of the machine may write to. */
      readonly writableByAdmins: readonly string[];
    }
  | { readonly kind: 'absent' }
  | { readonly kind: 'refused'; readonly why: string };

const LINKS_MAX = 40;

const ownerFault = (place: string, status: Stats): string | null =>
  isOwnOrSystem(status) ? null : `${place} belongs to another user (${status.uid})`;

const folderFault = (
  place: string,
  status: Stats,
  forbidden: readonly Identity[],
): string | null => {
  if (forbidden.some(({ dev, ino }) => dev === status.dev && ino === status.ino))
    return `it lies in ${place}, which the workspace belongs to`;
  const fault = ownerFault(place, status);
  if (fault !== null) return fault;
  return otherWriters(status) === 'others' ? `other users may write to ${place}` : null;
};

const isFolder = (status: Stats): boolean => (status.mode & constants.S_IFMT) === constants.S_IFDIR;

/** The text of a symlink; null if it is gone meanwhile. */
const readTarget = (link: string): string | null => {
  try {
    return readlinkSync(link);
  } catch {
    return null;
  }
};

/** Follows an absolute path. Never throws. */
const followTrusted = (place: string, forbidden: readonly Identity[]): Followed => {
  const writableByAdmins: string[] = [];
  let links = 0;
  let real = '/';
  let rest = place.split('/').filter((part) => part !== '' && part !== '.');
  let status = entryStatus(real);
  for (;;) {
    if (status === null) return { kind: 'absent' };
    if (isFolder(status)) {
      const fault = folderFault(real, status, forbidden);
      if (fault !== null) return { kind: 'refused', why: fault };
      if (otherWriters(status) === 'administrators') writableByAdmins.push(real);
    }
    const [part, ...others] = rest;
    if (part === undefined) return { kind: 'trusted', real, status, writableByAdmins };
    if (!isFolder(status)) return { kind: 'absent' };
    rest = others;
    const next = part === '..' ? path.dirname(real) : path.join(real, part);
    status = entryStatus(next);
    if (status?.isSymbolicLink()) {
      const fault = ownerFault(next, status);
      if (fault !== null) return { kind: 'refused', why: fault };
      links += 1;
      if (links > LINKS_MAX)
        return { kind: 'refused', why: `${place} leads through too many symlinks` };
      const target = readTarget(next);
      if (target === null) return { kind: 'absent' };
      rest = [...target.split('/').filter((name) => name !== '' && name !== '.'), ...rest];
      if (target.startsWith('/')) real = '/';
      status = entryStatus(real);
    } else real = next;
  }
};

/** The ripgrep that is installed with Pawl. Rejects if the package is missing. */
export const ripgrepProgram = async (): Promise<ProgramPath> => {
  const { rgPath } = await import('@vscode/ripgrep');
  return rgPath as ProgramPath; // a file of our own installation, as trusted as this one
};
