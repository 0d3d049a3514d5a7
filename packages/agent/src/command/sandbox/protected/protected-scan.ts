import { readdirSync, type Stats, statSync } from 'node:fs';
import path from 'node:path';
import type { ProcessEnvironment } from '../../../platform/base/process-environment-type.js';
import { statusOf } from '../../../platform/files/entry-status.js';
import { isWithin } from '../../../platform/files/is-within.js';
import { type ConfigPlace, createConfiguredPlaces } from './configured-places.js';
import type { Frontier } from './folder-walk.js';
import { codePlaces, gitFoldersAt } from './git-folders.js';
import { createIndexReader } from './index-gitlinks.js';
import { type FolderContents, isStill, readFolder } from './read-folder.js';

/**
 * Finds the protected paths of a workspace quickly, before and after each command.
 *
 * 1. A folder is read again only if it has changed, so a second scan costs a few microseconds per folder. The scan
 *    stops at a depth, at a number of folders, and at folders of packages and results: these are the frontier, which
 *    folder-walk.ts walks through beside other work.
 * 2. Places that a walk has found are looked at by each scan.
 * 3. So are the folders that git's index takes for repositories, the git folders that `.git` files name, and what git's
 *    configuration names, wherever they lie in the workspace.
 */

const DEPTH_MAX = 8;
const FOLDERS_MAX = 1_000;
/** Number of entries of a protected folder that are compared. */
const INSIDE_MAX = 500;

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
  /** The key of git's configuration that names it; null for a path that is protected by its name. */
  readonly namedBy: string | null;
};

export type Scan = {
  readonly found: ReadonlyMap<string, ProtectedPath>;
  /** Paths of all scanned folders. */
  readonly folders: Pick<ReadonlySet<string>, 'has'>;
  readonly sockets: readonly string[];
  /** Folders that the scan did not enter. */
  readonly frontier: readonly Frontier[];
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

type PlaceFacts = { readonly inGit: boolean; readonly namedBy: string | null };

const BY_NAME: PlaceFacts = { inGit: false, namedBy: null };
const IN_GIT: PlaceFacts = { inGit: true, namedBy: null };

/** Null if nothing is there. */
export const protectedPathAt = (place: string, facts = BY_NAME): ProtectedPath | null => {
  const status = statusOf(place);
  if (status === null) return null;
  const { dev, ino, ctimeMs, size, nlink } = status;
  const isPlain = facts !== BY_NAME && !status.isSymbolicLink();
  const kind = isPlain ? (status.isDirectory() ? 'folder' : 'file') : kindOf(place, status);
  return { path: place, kind, dev, ino, changedMs: ctimeMs, size, links: nlink, ...facts };
};

/** What git obeys or runs of a git folder. */
export const codeOf = (gitFolder: string): readonly ProtectedPath[] =>
  codePlaces(gitFolder)
    .map((place) => protectedPathAt(place, IN_GIT))
    .filter((one) => one !== null);

export type Inside = {
  /** Differs when something in the folder was changed. */
  readonly print: string;
  /** When something was changed last, in ms. */
  readonly newestMs: number;
};

/** What lies in a protected folder, with everything below. */
export const insideOf = (folder: string): Inside => {
  const prints: string[] = [];
  let newestMs = 0;
  const open = [folder];
  for (let next = open.pop(); next !== undefined && prints.length < INSIDE_MAX; next = open.pop()) {
    let names: readonly string[] = [];
    try {
      names = readdirSync(next);
    } catch {
      continue; // gone, or closed to us
    }
    for (const name of names) {
      const place = path.join(next, name);
      const status = statusOf(place);
      if (status === null) continue;
      newestMs = Math.max(newestMs, status.ctimeMs);
      prints.push(`${place}\0${status.dev}:${status.ino}:${status.ctimeMs}`);
      if (status.isDirectory()) open.push(place);
    }
  }
  return { print: prints.toSorted().join('\n'), newestMs };
};

/** Configuration files of a repository, whose programs git runs in the folder with `.git`. */
const configsOf = (folder: string, common: string, top: string): readonly ConfigPlace[] =>
  [
    ...new Set([
      path.join(common, 'config'),
      path.join(folder, 'config.worktree'),
      path.join(folder, 'config'),
    ]),
  ].map((file) => ({ file, top }));

export type ProtectedScan = {
  /** `repository`: the git folder of the workspace if it lies outside the scanned folders. */
  look(repository: string | null): Scan;
  /** Looks at this place from now on. `isGitFolder`: at what git obeys of it. */
  follow(place: string, isGitFolder: boolean): void;
  /** Whether the repository with this top tracks the file. */
  isTracked(top: string, place: string): boolean;
};

class Scanner implements ProtectedScan {
  readonly #workspace: string;
  readonly #configured;
  readonly #indexes = createIndexReader();
  #known = new Map<string, FolderContents>();
  readonly #followed = new Map<string, boolean>();

  constructor(workspace: string, environment: ProcessEnvironment) {
    this.#workspace = workspace;
    this.#configured = createConfiguredPlaces(workspace, environment);
  }

  follow(place: string, isGitFolder: boolean): void {
    this.#followed.set(place, isGitFolder);
  }

  isTracked(top: string, place: string): boolean {
    const folders = gitFoldersAt(path.join(top, '.git'));
    return folders !== null && this.#indexes.read(folders.folder).isTracked(path.relative(top, place));
  }

  look(repository: string | null): Scan {
    const found = new Map<string, ProtectedPath>();
    const scan = this.#scanFolders(found);
    for (const [place, isGitFolder] of this.#followed) {
      if (isGitFolder) this.#noteAll(found, codeOf(place));
      else if (!this.#note(found, protectedPathAt(place))) this.#followed.delete(place);
    }
    for (const place of this.#gitlinks(repository)) {
      if (!found.has(place)) this.#note(found, protectedPathAt(place));
    }
    if (repository !== null && !found.has(repository)) this.#noteAll(found, codeOf(repository));
    this.#noteConfigured(found, repository);
    return { found, ...scan };
  }

  #scanFolders(found: Map<string, ProtectedPath>): Omit<Scan, 'found'> {
    const known = this.#known;
    const seen = new Map<string, FolderContents>();
    const sockets: string[] = [];
    const frontier: Frontier[] = [];
    let level: readonly string[] = [this.#workspace];
    for (let depth = 0; level.length > 0; depth++) {
      const next: string[] = [];
      for (const folder of level) {
        if (depth >= DEPTH_MAX || seen.size >= FOLDERS_MAX) {
          frontier.push({ folder, isInPackages: false });
          continue;
        }
        const status = folderStatus(folder);
        if (status === null) continue;
        const before = known.get(folder);
        const isSame = before !== undefined && isStill(before, status);
        const contents = isSame ? before : readFolder(folder, status, 'everywhere');
        seen.set(folder, contents);
        for (const inner of contents.folders) next.push(inner);
        for (const inner of contents.packages) frontier.push({ folder: inner, isInPackages: true });
        for (const inner of contents.results) frontier.push({ folder: inner, isInPackages: false });
        for (const place of contents.sockets) sockets.push(place);
        for (const place of contents.found) this.#note(found, protectedPathAt(place));
        if (contents.isGitFolder) this.#noteAll(found, codeOf(folder));
      }
      level = next;
    }
    this.#known = seen;
    return { folders: seen, sockets, frontier };
  }

  #noteAll(found: Map<string, ProtectedPath>, all: readonly ProtectedPath[]): void {
    for (const one of all) found.set(one.path, one);
  }

  /** Adds a path, and of a repository what git obeys of it, wherever it lies in the workspace. False if it is absent. */
  #note(found: Map<string, ProtectedPath>, one: ProtectedPath | null): boolean {
    if (one === null) return false;
    found.set(one.path, one);
    if (one.kind !== 'repository') return true;
    const folders = gitFoldersAt(one.path);
    if (folders === null) return true;
    for (const folder of new Set([folders.folder, folders.common])) {
      if (isWithin(folder, this.#workspace)) this.#noteAll(found, codeOf(folder));
    }
    return true;
  }

  /** Places of `.git` in the folders that the index takes for repositories. */
  #gitlinks(repository: string | null): readonly string[] {
    const own = gitFoldersAt(path.join(this.#workspace, '.git'));
    const folder = own?.folder ?? repository;
    if (folder === null) return [];
    const top = own === null ? path.dirname(folder) : this.#workspace;
    return this.#indexes
      .read(folder)
      .gitlinks.map((link) => path.join(top, link, '.git'))
      .filter((place) => isWithin(place, this.#workspace));
  }

  #noteConfigured(found: Map<string, ProtectedPath>, repository: string | null): void {
    const configs: ConfigPlace[] = [];
    const tops = new Set([this.#workspace]);
    for (const one of found.values()) {
      if (one.kind !== 'repository') continue;
      const top = path.dirname(one.path);
      const folders = gitFoldersAt(one.path);
      if (folders === null) continue;
      tops.add(top);
      configs.push(...configsOf(folders.folder, folders.common, top));
    }
    if (repository !== null) {
      const top = path.basename(repository) === '.git' ? path.dirname(repository) : this.#workspace;
      tops.add(top);
      configs.push(...configsOf(repository, repository, top));
    }
    for (const { path: place, key } of this.#configured.read(configs, [...tops])) {
      if (found.has(place)) continue;
      const one = protectedPathAt(place, { inGit: false, namedBy: key });
      if (one !== null) found.set(place, one);
    }
  }
}

export const createProtectedScan = (workspace: string, environment: ProcessEnvironment): ProtectedScan =>
  new Scanner(workspace, environment);
