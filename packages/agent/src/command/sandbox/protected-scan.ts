/**
 * Finds the protected paths of a workspace: those that other programs run or obey later without a
 * question, such as a hook of git or the settings of an editor. It finds them quickly, before and
 * after each command, and completely, by a walk beside other work.
 *
 * A folder is read again only if it has changed, so a second scan costs a few microseconds per
 * folder. The scan stops at a depth, at a number of folders, and at folders of packages and
 * results: these are the frontier, where the walk starts. Each scan also looks at the places of the
 * last walk, the folders that git's index takes for repositories, the git folders that `.git` files
 * name, and what git's configuration names, wherever they lie in the workspace.
 *
 * A repository is here an entry named `.git`: a folder, or a file that names the git folder. A git
 * folder is where git keeps history and configuration. Of it only the parts are protected that git
 * obeys or runs: configuration and hooks. A folder that we may not enter is left out: commands
 * can't enter it either.
 *
 * From top to bottom: one protected path, and what lies in it; `ProtectedScan`, the quick scan;
 * `BackgroundWalk`, the complete one; and reading one folder, for both.
 */

import type { Dirent, Stats } from 'node:fs';
import path from 'node:path';
import type { ProcessEnvironment } from '../../platform/environment.js';
import { entryStatus, isWithin } from '../../platform/files.js';
import { findProgram } from '../../platform/find-program.js';
import { listFolder } from '../../platform/replaceable-files.js';
import { findProtection, isObeyedOnEntry, listWords, mayBeProtected } from '../../policy/paths.js';
import {
  type ConfigPlace,
  codePlaces,
  createIndexReader,
  createPlaceReader,
  gitFoldersAt,
  listConfigs,
  type ReadPlaces,
  type RepositoryPaths,
} from './git-folders.js';

const DEPTH_MAX = 8;
const FOLDERS_MAX = 1_000;
/** Entries in a protected folder after which no further folder below it is read. */
const INSIDE_MAX = 500;

export type ProtectedKind = 'file' | 'folder' | 'link' | 'repository';

export type ProtectedPath = {
  readonly path: string;
  readonly kind: ProtectedKind;
  readonly dev: number;
  readonly ino: number;
  readonly changedMs: number;
  readonly size: number;
  /** How many hard links it has: names of the same file. */
  readonly links: number;
  readonly mode: number;
  /** Whether it lies in a git folder, as configuration and hooks do. */
  readonly inGit: boolean;
  /**
   * The key of git's configuration that names it; null for a path that is protected by its name.
   */
  readonly namedBy: string | null;
};

export type Scan = {
  readonly protectedPaths: ReadonlyMap<string, ProtectedPath>;
  /** Paths of all scanned folders. */
  readonly folders: Pick<ReadonlySet<string>, 'has'>;
  readonly sockets: readonly string[];
  /** Folders that the scan did not enter. */
  readonly frontier: readonly Frontier[];
};

/** Null if it is no folder, or unreachable for us. */
const folderStatus = (folder: string): Stats | null => {
  const status = entryStatus(folder);
  return status?.isDirectory() ? status : null;
};

const getKind = (place: string, status: Stats): ProtectedKind => {
  if (status.isSymbolicLink()) return 'link';
  if (path.basename(place) === '.git') return 'repository';
  return status.isDirectory() ? 'folder' : 'file';
};

/** Why a path is protected: by its name, as a part of a git folder, or by git's configuration. */
type PlaceFacts = { readonly inGit: boolean; readonly namedBy: string | null };

const BY_NAME: PlaceFacts = { inGit: false, namedBy: null };
const IN_GIT: PlaceFacts = { inGit: true, namedBy: null };

/** Null if nothing is there. */
export const protectedPathAt = (place: string, facts = BY_NAME): ProtectedPath | null => {
  const status = entryStatus(place);
  if (status === null) return null;
  const { dev, ino, ctimeMs, size, nlink, mode } = status;
  // In a git folder, or if git's configuration names the path, an entry `.git` is no repository.
  const isPlain = facts !== BY_NAME && !status.isSymbolicLink();
  const kind = isPlain ? (status.isDirectory() ? 'folder' : 'file') : getKind(place, status);
  return { ...facts, path: place, kind, dev, ino, changedMs: ctimeMs, size, links: nlink, mode };
};

/** What git obeys or runs of a git folder. */
const listGitCode = (gitFolder: string): readonly ProtectedPath[] =>
  codePlaces(gitFolder)
    .map((place) => protectedPathAt(place, IN_GIT))
    .filter((one) => one !== null);

/** By path. */
type Marks = ReadonlyMap<string, string>;

export type Inside = {
  /** For each path that was read a mark, which differs when it was changed. */
  readonly marks: Marks;
  /** The marks as a text, for `readMarks`. */
  readonly fingerprint: string;
  /** When one of them was changed last, in ms. */
  readonly newestMs: number;
};

/**
 * What lies in a protected folder and below, but git's samples, which no program runs. No further
 * folder is read after INSIDE_MAX entries.
 */
export const readInside = (folder: string): Inside => {
  const marks = new Map<string, string>();
  let newestMs = 0;
  const open = [folder];
  for (let next = open.pop(); next !== undefined && marks.size < INSIDE_MAX; next = open.pop()) {
    const isHooks = path.basename(next) === 'hooks';
    for (const { name } of listFolder(next)) {
      if (isHooks && name.endsWith('.sample')) continue;
      const place = path.join(next, name);
      const status = entryStatus(place);
      if (status === null) continue;
      newestMs = Math.max(newestMs, status.ctimeMs);
      marks.set(place, `${status.dev}:${status.ino}:${status.ctimeMs}`);
      if (status.isDirectory()) open.push(place);
    }
  }
  return { marks, fingerprint: JSON.stringify([...marks].toSorted()), newestMs };
};

/** The marks of a fingerprint. */
export const readMarks = (fingerprint: string): Marks => new Map(JSON.parse(fingerprint));

/** The quick scan. It remembers each folder as it read it last. */
export class ProtectedScan {
  readonly #workspace: string;
  readonly #userPlaces: ReadonlySet<string>;
  /** Finds the places that git's configuration names. */
  readonly #readPlaces: ReadPlaces;
  readonly #readIndex: ReturnType<typeof createIndexReader>;
  #known = new Map<string, FolderContents>();
  /** Places outside the scanned folders that are looked at too; true: a git folder. */
  readonly #followed = new Map<string, boolean>();

  /** `userPlaces`: the user's places in the workspace, which are protected as a whole. */
  constructor(workspace: string, userPlaces: readonly string[], environment: ProcessEnvironment) {
    this.#workspace = workspace;
    this.#readIndex = createIndexReader(() => findProgram('git', { environment, workspace }));
    this.#userPlaces = new Set(userPlaces);
    this.#readPlaces = createPlaceReader(workspace, environment);
  }

  /** Looks at this place from now on. `isGitFolder`: at what git obeys of it. */
  follow(place: string, isGitFolder: boolean): void {
    this.#followed.set(place, isGitFolder);
  }

  /** Whether the repository with this top tracks the file. */
  isTracked(top: string, place: string): boolean {
    const folders = gitFoldersAt(path.join(top, '.git'));
    return folders !== null && this.#readIndex(folders.folder).isTracked(path.relative(top, place));
  }

  /** Scans. `repository`: that of the workspace if it is outside the scanned folders. */
  look(repository: RepositoryPaths | null): Scan {
    const protectedPaths = new Map<string, ProtectedPath>();
    const scan = this.#scanFolders(protectedPaths);
    for (const [place, isGitFolder] of this.#followed) {
      if (isGitFolder) this.#noteAll(protectedPaths, this.listCode(place, true));
      else if (!this.#note(protectedPaths, protectedPathAt(place))) this.#followed.delete(place);
    }
    for (const place of this.#userPlaces) this.#note(protectedPaths, protectedPathAt(place));
    for (const place of this.#gitlinks(repository)) {
      if (!protectedPaths.has(place)) this.#note(protectedPaths, protectedPathAt(place));
    }
    if (repository !== null && !protectedPaths.has(repository.common))
      this.#noteAll(protectedPaths, listGitCode(repository.common));
    this.#noteConfigured(protectedPaths, repository);
    return { protectedPaths, ...scan };
  }

  /** Reads the folders level by level, so that the frontier is deep everywhere. */
  #scanFolders(protectedPaths: Map<string, ProtectedPath>): Omit<Scan, 'protectedPaths'> {
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
        for (const inner of contents.folders) if (!this.#userPlaces.has(inner)) next.push(inner);
        for (const inner of contents.packages) frontier.push({ folder: inner, isInPackages: true });
        for (const inner of contents.results) frontier.push({ folder: inner, isInPackages: false });
        for (const place of contents.sockets) sockets.push(place);
        for (const place of contents.protectedEntries)
          this.#note(protectedPaths, protectedPathAt(place));
        if (contents.isGitFolder) this.#noteAll(protectedPaths, this.listCode(folder, true));
      }
      level = next;
    }
    this.#known = seen;
    return { folders: seen, sockets, frontier };
  }

  #noteAll(protectedPaths: Map<string, ProtectedPath>, all: readonly ProtectedPath[]): void {
    for (const one of all) protectedPaths.set(one.path, one);
  }

  /**
   * Adds a path, and of a repository what git obeys of it, wherever it lies in the workspace. False
   * if it is absent.
   */
  #note(protectedPaths: Map<string, ProtectedPath>, one: ProtectedPath | null): boolean {
    if (one === null) return false;
    protectedPaths.set(one.path, one);
    if (one.kind === 'repository') this.#noteAll(protectedPaths, this.listCode(one.path));
    return true;
  }

  /**
   * What git obeys of the repository behind a `.git`, or of a git folder by itself, and of the one
   * that it shares its configuration with: as far as they lie in the workspace.
   */
  listCode(place: string, isGitFolder = path.basename(place) === '.git'): readonly ProtectedPath[] {
    const folders = isGitFolder ? gitFoldersAt(place) : null;
    const both = folders === null ? [] : [...new Set([folders.folder, folders.common])];
    return both.filter((folder) => isWithin(folder, this.#workspace)).flatMap(listGitCode);
  }

  /** Places of `.git` in folders that git's index takes for repositories, such as submodules. */
  #gitlinks(repository: RepositoryPaths | null): readonly string[] {
    const here = gitFoldersAt(path.join(this.#workspace, '.git'));
    const folder = here?.folder ?? repository?.folder;
    if (folder === undefined) return [];
    const top = here === null ? (repository?.top ?? '') : this.#workspace;
    return this.#readIndex(folder)
      .gitlinks.map((link) => path.join(top, link, '.git'))
      .filter((place) => isWithin(place, this.#workspace));
  }

  /** Adds what the configuration of each repository, and of the user, names in the workspace. */
  #noteConfigured(
    protectedPaths: Map<string, ProtectedPath>,
    repository: RepositoryPaths | null,
  ): void {
    const configs: ConfigPlace[] = [];
    const tops = new Set([this.#workspace]);
    for (const one of protectedPaths.values()) {
      if (one.kind !== 'repository') continue;
      const top = path.dirname(one.path);
      const folders = gitFoldersAt(one.path);
      if (folders === null) continue;
      tops.add(top);
      configs.push(...listConfigs({ ...folders, top }));
    }
    if (repository !== null) {
      tops.add(repository.top);
      configs.push(...listConfigs(repository));
    }
    for (const { path: place, key } of this.#readPlaces(configs, [...tops])) {
      if (protectedPaths.has(place)) continue;
      const one = protectedPathAt(place, { inGit: false, namedBy: key });
      if (one !== null) protectedPaths.set(place, one);
    }
  }
}

// ---- The complete walk through the folders that the quick scan leaves out ----

/** A folder at which the quick scan stopped. */
export type Frontier = {
  readonly folder: string;
  readonly isInPackages: boolean;
};

export type WalkedPlace = {
  readonly path: string;
  /** The place is a git folder by itself, such as a bare repository. */
  readonly isGitFolder: boolean;
};

const WALKED_MAX = 300_000;
/** Folders that a walk reads at once, which takes about a millisecond. */
const SLICE_FOLDERS = 300;
/** The same before the first command. */
const FIRST_FOLDERS = 1_000;
/** Time between walks while commands run: in ms, and in lengths of the last walk. */
const WALK_PAUSE_MS = 5_000;
const WALK_PAUSE_LENGTHS = 50;

/** What is known when a walk has ended. */
export type WalkEnd = {
  /** Number of folders that were read. */
  readonly folders: number;
  /** There are more folders than a walk reads. */
  readonly isCut: boolean;
  readonly places: readonly WalkedPlace[];
  /** What changed before this time, in ms, was there before the commands. */
  readonly sinceMs: number;
  /** It started when no command could write, or by the end of one: clones are judged too. */
  readonly isEnd: boolean;
};

/** A walk that is under way: each step reads a folder. */
type Walk = {
  readonly steps: Iterator<void, Pick<WalkEnd, 'folders' | 'isCut' | 'places'>>;
  /** The value of `performance.now()`. */
  readonly startedAt: number;
  readonly isEnd: boolean;
  sinceMs: number;
};

/**
 * Walks beside other work: before the first command, while commands run, and after each command. No
 * folder is skipped and none is too deep. A folder is read again only if it has changed, so at rest
 * a walk costs a few microseconds a folder.
 */
export class BackgroundWalk {
  readonly #onEnd: (end: WalkEnd) => void;
  /** The folders of the last complete walk, and of the one before it. */
  #visited = new Map<string, FolderContents>();
  #earlier: ReadonlyMap<string, FolderContents> = new Map();
  #walk: Walk | null = null;
  #sinceMs: number | null = null;
  #hasWalked = false;
  /** Starts the walk after a command that ended during another walk. */
  #next: { readonly frontier: readonly Frontier[]; isIdle: boolean } | null = null;
  /** The earliest start of the next walk while commands run. */
  #nextAt = 0;
  #isWaitingForSlice = false;

  constructor(onEnd: (end: WalkEnd) => void) {
    this.#onEnd = onEnd;
  }

  /**
   * When the first command started that no complete walk has covered, in ms; null if there is none.
   */
  get sinceMs(): number | null {
    return this.#sinceMs;
  }

  /** Whether commands have run that no complete walk has covered. */
  get isPending(): boolean {
    return this.#sinceMs !== null || this.#walk !== null;
  }

  /**
   * Whether an earlier walk than the last one has seen this folder. What only the last one has
   * seen, a command may have made.
   */
  has(folder: string): boolean {
    return this.#earlier.has(folder);
  }

  /** A command starts. */
  begin(): void {
    this.#sinceMs ??= Date.now() - TICK_MS;
    if (this.#next !== null) this.#next.isIdle = false;
    // A walk that is under way may see what this command makes.
    if (this.#walk !== null) this.#walk.sinceMs = Math.min(this.#walk.sinceMs, this.#sinceMs);
    this.#goOn();
  }

  /** Commands of a killed session have run since then. */
  cover(sinceMs: number): void {
    this.#sinceMs = Math.min(this.#sinceMs ?? sinceMs, sinceMs);
  }

  /**
   * Before the first command everything is the user's. A long walk goes on while the command runs.
   */
  walkFirst(frontier: readonly Frontier[]): void {
    if (this.#hasWalked) return;
    // Everything was there before, unless `cover` has named commands of a killed session.
    this.#sinceMs ??= Number.POSITIVE_INFINITY;
    this.#start(frontier, true, true);
    this.#step(FIRST_FOLDERS);
  }

  /** A command has ended. `isIdle`: none that may write runs. */
  walkAfter(frontier: readonly Frontier[], isIdle: boolean): void {
    if (this.#walk === null) this.#start(frontier, true, isIdle);
    else this.#next = { frontier, isIdle };
    this.#step(SLICE_FOLDERS);
    this.#goOn();
  }

  /** While commands run, after a pause. `isIdle`: none of them may write. */
  walkDuring(frontier: readonly Frontier[], isIdle: boolean): void {
    if (performance.now() < this.#nextAt) return;
    this.#start(frontier, isIdle, isIdle);
    this.#goOn();
  }

  /** Ends the walk that is under way, and walks once more. `look`: finds where that walk starts. */
  walkAtOnce(look: () => readonly Frontier[], isIdle: boolean): void {
    this.#step(Number.POSITIVE_INFINITY);
    this.#start(look(), true, isIdle);
    this.#step(Number.POSITIVE_INFINITY);
  }

  #start(frontier: readonly Frontier[], isEnd: boolean, isIdle: boolean): void {
    if (this.#walk !== null || this.#sinceMs === null) return;
    this.#hasWalked = true;
    const steps = this.#visitAll(frontier);
    const startedAt = performance.now();
    this.#walk = { steps, startedAt, isEnd, sinceMs: this.#sinceMs };
    // No command runs, so this walk covers all that have run.
    if (isIdle) this.#sinceMs = null;
  }

  #goOn(): void {
    if (this.#isWaitingForSlice || this.#walk === null) return;
    this.#isWaitingForSlice = true;
    setImmediate(() => {
      this.#isWaitingForSlice = false;
      this.#step(SLICE_FOLDERS);
      this.#goOn();
    }).unref(); // the session ends with a complete walk
  }

  /** Reads so many folders at most. */
  #step(foldersMax: number): void {
    for (let left = foldersMax; left > 0 && this.#walk !== null; left--) {
      const { steps, startedAt, sinceMs, isEnd } = this.#walk;
      const step = steps.next();
      if (step.done !== true) continue;
      this.#walk = null;
      const now = performance.now();
      this.#nextAt = now + Math.max(WALK_PAUSE_MS, (now - startedAt) * WALK_PAUSE_LENGTHS);
      this.#onEnd({ ...step.value, sinceMs, isEnd });
      const next = this.#next;
      this.#next = null;
      if (next !== null) this.#start(next.frontier, true, next.isIdle);
    }
  }

  *#visitAll(frontier: readonly Frontier[]): Walk['steps'] {
    const places: WalkedPlace[] = [];
    const visited = new Map<string, FolderContents>();
    const open = [...frontier];
    while (visited.size < WALKED_MAX) {
      const next = open.pop();
      if (next === undefined) break;
      const { folder, isInPackages } = next;
      const status = folderStatus(folder);
      if (status === null) continue;
      const before = this.#visited.get(folder);
      const contents =
        before !== undefined && isStill(before, status)
          ? before
          : readFolder(folder, status, isInPackages ? 'inPackages' : 'everywhere');
      visited.set(folder, contents);
      for (const inner of contents.packages) open.push({ folder: inner, isInPackages: true });
      for (const inner of contents.results) open.push({ folder: inner, isInPackages });
      for (const inner of contents.folders) open.push({ folder: inner, isInPackages });
      for (const place of contents.protectedEntries)
        places.push({ path: place, isGitFolder: false });
      if (contents.isGitFolder) places.push({ path: folder, isGitFolder: true });
      yield;
    }
    this.#earlier = this.#visited;
    this.#visited = visited;
    return { folders: visited.size, isCut: open.length > 0, places };
  }
}

// ---- Reading one folder, for the scan and the walk ----

/**
 * Folders of packages. Packages bring settings of editors and CI along, which no program obeys
 * there. What git and shells obey as soon as they are in a folder is protected there too.
 */
const PACKAGES: ReadonlySet<string> = new Set(
  listWords(`
  node_modules bower_components .venv venv site-packages .tox .nox vendor Pods .pnpm-store DerivedData
`),
);
/** Folders of build results and caches. */
const RESULTS: ReadonlySet<string> = new Set(
  listWords(`
  __pycache__ target dist build out .next .nuxt .cache .turbo .gradle .terraform .mypy_cache .pytest_cache .ruff_cache
  .parcel-cache coverage
`),
);

/**
 * Resolution of file times, in ms. A folder that changed just now may change again with the same
 * time.
 */
const TICK_MS = 25;

/** `inPackages`: only what git and shells obey as soon as they are in the folder. */
export type ProtectedNames = 'everywhere' | 'inPackages';

/** All paths are absolute. */
export type FolderContents = {
  /** Folders to enter at once, without protected ones. */
  readonly folders: readonly string[];
  /** Folders of packages and of results. */
  readonly packages: readonly string[];
  readonly results: readonly string[];
  /** Protected entries. */
  readonly protectedEntries: readonly string[];
  readonly sockets: readonly string[];
  /** Whether git would take the folder for a repository by itself. */
  readonly isGitFolder: boolean;
  readonly changedMs: number;
  readonly ino: number;
  readonly dev: number;
  readonly readAtMs: number;
};

/** Whether these are still the contents of a folder, by its present status. */
const isStill = (contents: FolderContents, { ctimeMs, ino, dev }: Stats): boolean =>
  contents.changedMs === ctimeMs &&
  contents.ino === ino &&
  contents.dev === dev &&
  contents.readAtMs - ctimeMs > TICK_MS;

/**
 * The names of the folder and of the one above it, if they may begin a protected path, which has at
 * most three names. Empty otherwise, and below a protected path: then the user works in it as a
 * workspace.
 */
const protectedParents = (folder: string): string => {
  const names = [path.basename(path.dirname(folder)), path.basename(folder)];
  const parents = names.join('/');
  return names.some(mayBeProtected) && findProtection(parents) === null ? parents : '';
};

/**
 * Whether an entry is protected. A folder like `.github` is protected in parts, but as a symlink as
 * a whole, since its target may change. `parents`: the names above, or empty if they begin no
 * protected path.
 */
const isProtected = (parents: string, entry: Dirent, scope: ProtectedNames): boolean => {
  if (scope === 'inPackages') return isObeyedOnEntry(entry.name);
  const mayBegin = mayBeProtected(entry.name);
  if (!mayBegin && parents === '') return false;
  if (mayBegin && (entry.isSymbolicLink() || findProtection(entry.name) !== null)) return true;
  return parents !== '' && findProtection(`${parents}/${entry.name}`) !== null;
};

type ListName = 'folders' | 'packages' | 'results' | 'protectedEntries' | 'sockets';

/** The list that an entry without protection belongs to; null for none. */
const listFor = (entry: Dirent): ListName | null => {
  if (!entry.isDirectory()) return entry.isSocket() ? 'sockets' : null;
  if (PACKAGES.has(entry.name)) return 'packages';
  return RESULTS.has(entry.name) ? 'results' : 'folders';
};

const readFolder = (folder: string, status: Stats, scope: ProtectedNames): FolderContents => {
  const readAtMs = Date.now();
  const { ino, dev } = status;
  const parents = protectedParents(folder);
  const lists: Readonly<Record<ListName, string[]>> = {
    folders: [],
    packages: [],
    results: [],
    protectedEntries: [],
    sockets: [],
  };
  let hasHead = false;
  let findsObjects = false;
  for (const entry of listFolder(folder)) {
    const { name } = entry;
    if (name === 'HEAD') hasHead = true;
    if (name === 'objects' || name === 'commondir') findsObjects = true;
    const list = isProtected(parents, entry, scope) ? 'protectedEntries' : listFor(entry);
    if (list !== null) lists[list].push(path.join(folder, name));
  }
  const isGitFolder = hasHead && findsObjects;
  // Not by a spread: such objects are read slowly, and these are read a thousand times a command.
  const { folders, packages, results, protectedEntries, sockets } = lists;
  const changedMs = status.ctimeMs;
  return {
    folders,
    packages,
    results,
    protectedEntries,
    sockets,
    isGitFolder,
    changedMs,
    ino,
    dev,
    readAtMs,
  };
};
