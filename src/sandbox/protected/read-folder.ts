import { type Dirent, readdirSync, type Stats } from 'node:fs';
import path from 'node:path';
import { isObeyedOnEntry, mayBeProtected, protectionOf } from '../../agent/policy/paths/protected-paths.js';

/** Reads one folder for the scans of protected paths, and says which folders they treat differently. */

const names = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/**
 * Folders of packages. Packages bring settings of editors and CI along, which nobody obeys there. What git and shells
 * obey as soon as they are in a folder is protected there too.
 */
const PACKAGES = names(
  'node_modules bower_components .venv venv site-packages .tox .nox vendor Pods .pnpm-store DerivedData',
);
/** Folders of build results and caches. */
const RESULTS = names(
  `__pycache__ target dist build out .next .nuxt .cache .turbo .gradle .terraform .mypy_cache .pytest_cache .ruff_cache
  .parcel-cache coverage`,
);

export const isPackageFolder = (name: string): boolean => PACKAGES.has(name);
/** Whether the quick scan leaves a folder to the walk. */
export const isLeftToWalk = (name: string): boolean => PACKAGES.has(name) || RESULTS.has(name);

/** Resolution of file times, in ms. A folder that changed just now may change again with the same time. */
export const TICK_MS = 25;

/** `inPackages`: only what is obeyed on entry. */
export type ProtectedNames = 'everywhere' | 'inPackages';

export type FolderContents = {
  /** Names of folders, without protected ones. */
  readonly folders: readonly string[];
  /** Names of protected entries. */
  readonly found: readonly string[];
  /** Names of sockets. */
  readonly sockets: readonly string[];
  /** Whether git would take the folder for a repository by itself. */
  readonly isGitFolder: boolean;
  /** Whether this is still its contents, by its present status. */
  isStill(status: Stats): boolean;
};

const entriesOf = (folder: string): readonly Dirent[] => {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // it is gone, or closed to us
  }
};

/**
 * The names of the folder and of the one above it, if they may begin a protected path, which has at most three names.
 * Empty otherwise, and below a protected path: then the user has made a workspace of it.
 */
const parentsOf = (folder: string): string => {
  const names = [path.basename(path.dirname(folder)), path.basename(folder)];
  const parents = names.join('/');
  return names.some(mayBeProtected) && protectionOf(parents) === null ? parents : '';
};

/**
 * Whether an entry is protected. A folder like `.github` is protected in parts, but as a symlink as a whole, since its
 * target may change. `parents`: the names above, or empty if they begin no protected path.
 */
const isProtected = (parents: string, entry: Dirent, scope: ProtectedNames): boolean => {
  if (scope === 'inPackages') return isObeyedOnEntry(entry.name);
  const mayBegin = mayBeProtected(entry.name);
  if (!mayBegin && parents === '') return false;
  if (mayBegin && (entry.isSymbolicLink() || protectionOf(entry.name) !== null)) return true;
  return parents !== '' && protectionOf(`${parents}/${entry.name}`) !== null;
};

export const readFolder = (folder: string, status: Stats, scope: ProtectedNames): FolderContents => {
  const readAtMs = Date.now();
  const { ctimeMs, ino, dev } = status;
  const parents = parentsOf(folder);
  const [folders, found, sockets]: [string[], string[], string[]] = [[], [], []];
  let [hasHead, hasObjects] = [false, false];
  for (const entry of entriesOf(folder)) {
    const { name } = entry;
    if (name === 'HEAD') hasHead = true;
    if (name === 'objects' || name === 'commondir') hasObjects = true;
    if (isProtected(parents, entry, scope)) found.push(name);
    else if (entry.isSocket()) sockets.push(name);
    else if (entry.isDirectory()) folders.push(name);
  }
  const isStill = (now: Stats): boolean =>
    now.ctimeMs === ctimeMs && now.ino === ino && now.dev === dev && readAtMs - ctimeMs > TICK_MS;
  return { folders, found, sockets, isGitFolder: hasHead && hasObjects, isStill };
};
