import { type Dirent, readdirSync, type Stats, statSync } from 'node:fs';
import path from 'node:path';
import { mayBeProtected, protectionOf } from '../../agent/policy/paths/protected-paths.js';
import { statusOf } from '../../files/entry-status.js';
import { codePlaces } from './git-folders.js';

/**
 * Finds the protected paths of a workspace.
 *
 * A folder is read again only if it has changed, so a second scan costs a few microseconds per folder. The scan is
 * bounded: it skips package and build folders, and stops at a depth and a number of folders.
 */

const SKIPPED: ReadonlySet<string> = new Set([
  ...[
    'node_modules',
    'bower_components',
    '.venv',
    'venv',
    'site-packages',
    '__pycache__',
    '.tox',
    '.nox',
    'vendor',
  ],
  ...[
    'target',
    'dist',
    'build',
    'out',
    '.next',
    '.nuxt',
    '.cache',
    '.turbo',
    '.gradle',
    '.terraform',
    'Pods',
  ],
  ...[
    'DerivedData',
    '.mypy_cache',
    '.pytest_cache',
    '.ruff_cache',
    '.parcel-cache',
    'coverage',
    '.pnpm-store',
  ],
]);
const DEPTH_MAX = 8;
const FOLDERS_MAX = 1_000;
/** Resolution of file times, in ms. A folder that changed just now may change again with the same time. */
const TICK_MS = 25;

export type ProtectedKind = 'file' | 'folder' | 'link' | 'repository';

export type ProtectedPath = {
  readonly path: string;
  readonly kind: ProtectedKind;
  readonly dev: number;
  readonly ino: number;
  readonly changedMs: number;
  readonly size: number;
  readonly links: number;
  /** Whether it lies in a git folder, as configuration and hooks do. */
  readonly inGit: boolean;
};

type Folder = {
  readonly changedMs: number;
  readonly ino: number;
  readonly readAtMs: number;
  readonly folders: readonly string[];
  readonly found: readonly string[];
  readonly sockets: readonly string[];
  /** Whether git would treat the folder as a bare repository. */
  readonly isGitFolder: boolean;
};

export type Scan = {
  readonly found: ReadonlyMap<string, ProtectedPath>;
  /** Paths of all scanned folders. */
  readonly folders: ReadonlySet<string>;
  readonly sockets: readonly string[];
};

const entriesOf = (folder: string): readonly Dirent[] => {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // it is gone, or closed to us
  }
};

/**
 * Whether an entry is protected. A folder like `.github` is protected in parts, but as a symlink as a whole, since its
 * target may change.
 */
const isProtected = (parent: string, entry: Dirent): boolean => {
  if (!mayBeProtected(entry.name) && !mayBeProtected(path.basename(parent))) return false;
  if (protectionOf(entry.name) !== null) return true;
  if (entry.isSymbolicLink() && mayBeProtected(entry.name)) return true;
  return protectionOf(`${path.basename(parent)}/${entry.name}`) !== null;
};

const readFolder = (folder: string, status: Stats, now: number): Folder => {
  const folders: string[] = [];
  const found: string[] = [];
  const sockets: string[] = [];
  const entries = entriesOf(folder);
  for (const entry of entries) {
    const place = path.join(folder, entry.name);
    if (isProtected(folder, entry)) found.push(place);
    else if (entry.isSocket()) sockets.push(place);
    else if (entry.isDirectory() && !SKIPPED.has(entry.name)) folders.push(place);
  }
  const has = (name: string): boolean => entries.some((entry) => entry.name === name);
  const isGitFolder = has('HEAD') && (has('objects') || has('commondir'));
  return { changedMs: status.ctimeMs, ino: status.ino, readAtMs: now, folders, found, sockets, isGitFolder };
};

const folderStatus = (folder: string): Stats | null => {
  try {
    const status = statSync(folder, { throwIfNoEntry: false });
    return status?.isDirectory() ? status : null;
  } catch {
    return null; // closed to us
  }
};

const kindOf = (place: string, status: Stats): ProtectedKind => {
  if (status.isSymbolicLink()) return 'link';
  if (path.basename(place) === '.git') return 'repository';
  return status.isDirectory() ? 'folder' : 'file';
};

const foundAt = (place: string, inGit: boolean): ProtectedPath | null => {
  const status = statusOf(place);
  if (status === null) return null;
  const { dev, ino, ctimeMs, size, nlink } = status;
  const kind =
    inGit && !status.isSymbolicLink() ? (status.isDirectory() ? 'folder' : 'file') : kindOf(place, status);
  return { path: place, kind, dev, ino, changedMs: ctimeMs, size, links: nlink, inGit };
};

export type ProtectedScan = {
  /** `repository`: the git folder of the workspace if it lies outside the scanned folders. */
  look(repository: string | null): Scan;
};

export const createProtectedScan = (workspace: string): ProtectedScan => {
  let known = new Map<string, Folder>();

  const folderAt = (folder: string, now: number): Folder | null => {
    const status = folderStatus(folder);
    if (status === null) return null;
    const before = known.get(folder);
    const isSame = before !== undefined && before.changedMs === status.ctimeMs && before.ino === status.ino;
    return isSame && before.readAtMs - before.changedMs > TICK_MS ? before : readFolder(folder, status, now);
  };

  const codeOf = (gitFolder: string): readonly ProtectedPath[] => {
    const places = [...codePlaces(gitFolder)];
    return places.map((place) => foundAt(place, true)).filter((one) => one !== null);
  };

  return {
    look(repository) {
      const seen = new Map<string, Folder>();
      const found = new Map<string, ProtectedPath>();
      const sockets: string[] = [];
      const note = (one: ProtectedPath | null): void => {
        if (one === null) return;
        found.set(one.path, one);
        const isFolder = one.kind === 'repository' && statusOf(one.path)?.isDirectory() === true;
        if (isFolder) for (const code of codeOf(one.path)) found.set(code.path, code);
      };
      let level: readonly string[] = [workspace];
      for (let depth = 0; depth < DEPTH_MAX && level.length > 0; depth++) {
        const next: string[] = [];
        for (const folder of level) {
          if (seen.size >= FOLDERS_MAX) break;
          const read = folderAt(folder, Date.now());
          if (read === null) continue;
          seen.set(folder, read);
          next.push(...read.folders);
          sockets.push(...read.sockets);
          for (const place of read.found) note(foundAt(place, false));
          if (read.isGitFolder) for (const code of codeOf(folder)) found.set(code.path, code);
        }
        level = next;
      }
      if (repository !== null && !found.has(repository)) {
        for (const code of codeOf(repository)) found.set(code.path, code);
      }
      known = seen;
      return { found, folders: new Set(seen.keys()), sockets };
    },
  };
};
