import { type Dirent, readdirSync, type Stats } from 'node:fs';
import path from 'node:path';
import { isObeyedOnEntry, mayBeProtected, protectionOf } from '../../../policy/paths/protected-paths.js';

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

/** Resolution of file times, in ms. A folder that changed just now may change again with the same time. */
export const TICK_MS = 25;

/** `inPackages`: only what is obeyed on entry. */
export type ProtectedNames = 'everywhere' | 'inPackages';

/** All paths are absolute. */
export type FolderContents = {
  /** Folders to enter at once, without protected ones. */
  readonly folders: readonly string[];
  /** Folders of packages and of results. */
  readonly packages: readonly string[];
  readonly results: readonly string[];
  /** Protected entries. */
  readonly found: readonly string[];
  readonly sockets: readonly string[];
  /** Whether git would take the folder for a repository by itself. */
  readonly isGitFolder: boolean;
  readonly changedMs: number;
  readonly ino: number;
  readonly dev: number;
  readonly readAtMs: number;
};

/** Whether these are still the contents of a folder, by its present status. */
export const isStill = (contents: FolderContents, { ctimeMs, ino, dev }: Stats): boolean =>
  contents.changedMs === ctimeMs &&
  contents.ino === ino &&
  contents.dev === dev &&
  contents.readAtMs - ctimeMs > TICK_MS;

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

type ListName = 'folders' | 'packages' | 'results' | 'found' | 'sockets';

const listFor = (entry: Dirent): ListName | null => {
  if (!entry.isDirectory()) return entry.isSocket() ? 'sockets' : null;
  if (PACKAGES.has(entry.name)) return 'packages';
  return RESULTS.has(entry.name) ? 'results' : 'folders';
};

export const readFolder = (folder: string, status: Stats, scope: ProtectedNames): FolderContents => {
  const readAtMs = Date.now();
  const { ino, dev } = status;
  const parents = parentsOf(folder);
  const lists: Readonly<Record<ListName, string[]>> = {
    folders: [],
    packages: [],
    results: [],
    found: [],
    sockets: [],
  };
  let [hasHead, hasObjects] = [false, false];
  for (const entry of entriesOf(folder)) {
    const { name } = entry;
    if (name === 'HEAD') hasHead = true;
    if (name === 'objects' || name === 'commondir') hasObjects = true;
    const list = isProtected(parents, entry, scope) ? 'found' : listFor(entry);
    if (list !== null) lists[list].push(path.join(folder, name));
  }
  const isGitFolder = hasHead && hasObjects;
  // Not by a spread: such objects are read slowly, and these are read a thousand times a command.
  const { folders, packages, results, found, sockets } = lists;
  const changedMs = status.ctimeMs;
  return { folders, packages, results, found, sockets, isGitFolder, changedMs, ino, dev, readAtMs };
};
