/** Protects the files that run later without a question from commands. */

import {
  closeSync,
  constants,
  cpSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import type { ProcessEnvironment } from '../../platform/environment.js';
import { isWithin, realPathOf, statusOf } from '../../platform/files.js';
import { protectionOf } from '../../policy/paths.js';
import {
  areHarmlessHooks,
  isHarmlessConfig,
  isHarmlessRepository,
  isHarmlessWorktree,
} from './git-folders.js';
import { type Mount, readableIfThere } from './mounts.js';
import {
  codeOf,
  createFolderWalk,
  createProtectedScan,
  type Frontier,
  insideOf,
  type ProtectedPath,
  protectedPathAt,
  type Scan,
  TICK_MS,
  type WalkedPlace,
} from './protected-scan.js';

/**
 * Keeps the protected paths of a workspace as they are while fenced commands run.
 *
 * 1. Existing protected paths are mounted read-only for each command (protected-mounts.ts). New ones are set aside.
 * 2. While no command runs, changes are the user's own and are accepted.
 * 3. A repository that a command makes may stay if nothing in it runs a program. What it tracks may stay with it if the
 *    command made its folder too, as `git clone` does, and only as long as the repository is there.
 * 4. What the quick scan leaves out is walked through beside other work after each command, at the latest before the
 *    session ends. By the times of files, which nobody can set back, it is known what was there before the command.
 * 5. While commands run, a record says what was there. If Pawl is killed, the next session in the workspace goes on
 *    with it.
 */

/** One running command, with the paths that are read-only for it. */
type WritingCommand = { readonly bound: ReadonlySet<string> };

export type ProtectedFiles = {
  /** Scans the workspace before a command starts. */
  look(repository: string | null): Scan;
  begin(running: WritingCommand): void;
  /** A command has ended. Returns lines about everything set aside since the last call. */
  end(running: WritingCommand, repository: string | null): readonly string[];
  /** While commands run, sets new protected paths aside, except repositories that are still being made. */
  sweep(repository: string | null): void;
  /** The user allowed writing to this path: its next content is accepted. */
  allow(place: string): void;
  /** Folders with a harmless repository that a command of this session made. Git may change its configuration. */
  own(): readonly string[];
  /** Accepts everything as it is. */
  accept(repository: string | null): void;
  /** Accepts new paths while fenced commands run: an unfenced command that the user allowed has made them. */
  acceptNew(repository: string | null): void;
  /**
   * Judges what commands of a killed session have made, if they have ended. Returns lines about everything set aside
   * since the last call.
   */
  settle(repository: string | null): readonly string[];
  /** Whether commands of a killed session still run. */
  isInterrupted(): boolean;
  /** Judges everything that is left to judge. */
  close(repository: string | null): void;
};

type ProtectedFilesOptions = {
  readonly workspace: string;
  /** Receives the files that are set aside. */
  readonly folder: string;
  /** Pawl's own environment, which says where the user's git configuration lies. */
  readonly environment: ProcessEnvironment;
  readonly record: GuardRecord;
  /** Guards of sessions that were killed while their commands ran. */
  readonly interrupted: readonly InterruptedGuard[];
  /** Lines of earlier sessions that nobody has read. */
  readonly notes: readonly string[];
};

/** Folders that a walk reads at once, which takes about a millisecond. */
const SLICE_FOLDERS = 300;
/** The same before the first command. */
const FIRST_FOLDERS = 1_000;
/** Time between walks while commands run: in ms, and in lengths of the last walk. */
const WALK_PAUSE_MS = 5_000;
const WALK_PAUSE_LENGTHS = 50;
/** In bytes. The content of a longer file that is not read-only for commands is not kept for restoring. */
const SMALL_MAX = 64 * 1024;

/** In bytes. The content of longer files with several names is not kept for restoring. */
const COPY_MAX = 1024 * 1024;

type Known = ProtectedPath & {
  /** The target of a symlink; `content` of a file with several names. */
  readonly target: string | null;
  readonly content: Buffer | null;
  /** What lies in a folder that is not read-only for commands; null for anything else. */
  readonly inside: string | null;
};

const contentOf = (found: ProtectedPath): Buffer | null => {
  if (found.kind !== 'file' || found.links < 2 || found.size > COPY_MAX) return null;
  try {
    return readFileSync(found.path);
  } catch {
    return null; // closed to us, so to commands as well
  }
};

const targetOf = (found: ProtectedPath): string | null => {
  if (found.kind !== 'link') return null;
  try {
    return readlinkSync(found.path);
  } catch {
    return null; // gone meanwhile
  }
};

const knownOf = (found: ProtectedPath): Known => ({
  ...found,
  target: targetOf(found),
  content: contentOf(found),
  inside: null,
});

const isFolder = ({ kind, path: place }: ProtectedPath): boolean =>
  kind === 'folder' || (kind === 'repository' && statusOf(place)?.isDirectory() === true);

const isSame = (one: ProtectedPath & { readonly inside?: string | null }, other: ProtectedPath): boolean =>
  one.ino === other.ino &&
  one.dev === other.dev &&
  (isFolder(other)
    ? (one.inside ?? null) === null || one.inside === insideOf(other.path).print
    : one.changedMs === other.changedMs && one.size === other.size);

const gitFolderOf = (place: string): string => {
  const parent = path.dirname(place);
  return path.basename(parent) === 'info' ? path.dirname(parent) : parent;
};

/** Whether a new path in a git folder is harmless. */
const isHarmlessCode = (place: string, workspace: string): boolean => {
  const folder = gitFolderOf(place);
  const name = path.basename(place);
  if (path.basename(path.dirname(folder)) === 'worktrees') return isHarmlessWorktree(folder, workspace);
  if (name === 'config') return isHarmlessConfig(place, workspace);
  return name === 'hooks' && areHarmlessHooks(place);
};

/** What a folder or small file holds, for a comparison after a command that could write to it. */
const rememberContents = (one: Known): Known => {
  if (isFolder(one) && one.kind === 'folder')
    return { ...one, inside: one.inside ?? insideOf(one.path).print };
  if (one.kind !== 'file' || one.content !== null || one.links > 1 || one.size > SMALL_MAX) return one;
  try {
    return { ...one, content: readFileSync(one.path) };
  } catch {
    return one; // gone, or closed to us
  }
};

const rankOf = ({ kind }: ProtectedPath): number => (kind === 'repository' ? 0 : 1);

const codePrint = (one: ProtectedPath): string =>
  (one.kind === 'repository' && isFolder(one) ? codeOf(one.path) : [one])
    .map(({ path: place, ino, changedMs }) => `${place}:${ino}:${changedMs}`)
    .join('\n');

const filesIn = (one: ProtectedPath): readonly string[] =>
  isFolder(one)
    ? insideOf(one.path)
        .print.split('\n')
        .map((line) => line.split('\0')[0] ?? '')
        .filter((place) => statusOf(place)?.isDirectory() === false)
    : [one.path];

class ProtectedFilesKeeper implements ProtectedFiles {
  readonly #workspace: string;
  readonly #folder: string;
  readonly #record: GuardRecord;
  readonly #scan;
  readonly #walk = createFolderWalk();
  #known = new Map<string, Known>();
  /** Paths that were known and no longer exist. */
  #gone: readonly Known[] = [];
  readonly #running = new Set<WritingCommand>();
  #interrupted: readonly { readonly command: WritingCommand; readonly guard: InterruptedGuard }[] = [];
  readonly #allowed = new Set<string>();
  /** Folders with a repository that a command of this session made. */
  readonly #made = new Set<string>();
  /** Protected paths that came with a repository, and its folder. */
  readonly #came = new Map<string, string>();
  /** Folders that were there before the running commands; null if that is unknown. */
  #foldersBefore: Pick<ReadonlySet<string>, 'has'> | null = null;
  /** When the first command started that no complete walk has covered, in ms; null if there is none. */
  #sinceMs: number | null = null;
  /** The same of the walk that is under way. */
  #walkSinceMs = 0;
  #hasWalked = false;
  #walkStartedAt = 0;
  /** The walk follows the end of a command. */
  #isEndWalk = true;
  #walkPauseMs = 0;
  #isWaitingForSlice = false;
  /** What a sweep saw last of harmful paths that may still be in the making. */
  readonly #unfinished = new Map<string, string>();
  #notes: string[] = [];
  #count = 0;

  constructor({ workspace, folder, environment, record, interrupted, notes }: ProtectedFilesOptions) {
    this.#notes = [...notes];
    this.#workspace = workspace;
    this.#folder = folder;
    this.#record = record;
    this.#scan = createProtectedScan(workspace, environment);
    for (const guard of interrupted) this.#goOnWith(guard);
    if (interrupted.length > 0) this.#writeRecord();
  }

  look(repository: string | null): Scan {
    this.#releaseInterrupted(repository);
    let scan: Scan;
    if (this.#running.size === 0) scan = this.#take(repository);
    else {
      this.#judge(repository, true);
      scan = this.#scan.look(repository);
    }
    this.#foldersBefore = scan.folders;
    this.#walkFirst(scan.frontier);
    return scan;
  }

  begin(running: WritingCommand): void {
    this.#running.add(running);
    this.#sinceMs ??= Date.now() - TICK_MS;
    this.#walkSinceMs = Math.min(this.#walkSinceMs, this.#sinceMs);
    this.#walkInSlices();
    for (const one of this.#known.values()) {
      if (running.bound.has(one.path) || one.kind === 'link') continue;
      this.#known.set(one.path, rememberContents(one));
    }
    this.#writeRecord();
  }

  end(running: WritingCommand, repository: string | null): readonly string[] {
    const { frontier } = this.#judge(repository, true);
    this.#running.delete(running);
    this.#writeRecord();
    this.#startWalk(frontier, true);
    if (this.#walk.isRunning && !this.#stepWalk(SLICE_FOLDERS)) this.#walkInSlices();
    return this.#takeNotes();
  }

  sweep(repository: string | null): void {
    this.#releaseInterrupted(repository);
    const { frontier } = this.#judge(repository, false);
    if (performance.now() - this.#walkStartedAt < this.#walkPauseMs) return;
    this.#startWalk(frontier, false);
    this.#walkInSlices();
  }

  settle(repository: string | null): readonly string[] {
    this.#releaseInterrupted(repository);
    return this.#takeNotes();
  }

  isInterrupted(): boolean {
    return this.#interrupted.length > 0;
  }

  close(repository: string | null): void {
    this.#releaseInterrupted(repository);
    if (this.#sinceMs !== null || this.#walk.isRunning) {
      if (this.#running.size > 0) this.#judge(repository, true);
      this.#stepWalk(Number.POSITIVE_INFINITY);
      this.#startWalk(this.#scan.look(repository).frontier, true);
      this.#stepWalk(Number.POSITIVE_INFINITY);
    }
    if (this.#notes.length > 0) this.#record.leaveNotes(this.#workspace, this.#takeNotes());
    // What an interrupted command still makes is judged by the next session.
    this.#running.clear();
    for (const { command } of this.#interrupted) this.#running.add(command);
    this.#writeRecord();
    if (this.#running.size === 0) this.#record.remove();
    else this.#record.close();
  }

  own(): readonly string[] {
    const isOwn = (top: string): boolean =>
      isHarmlessRepository(path.join(top, '.git'), this.#workspace, this.#repositories());
    return [...this.#made].filter((top) => top !== this.#workspace && isOwn(top));
  }

  allow(place: string): void {
    this.#allowed.add(place);
  }

  accept(repository: string | null): void {
    this.#take(repository);
  }

  acceptNew(repository: string | null): void {
    for (const one of this.#scan.look(repository).found.values()) {
      if (!this.#known.has(one.path)) this.#known.set(one.path, knownOf(one));
    }
  }

  #takeNotes(): readonly string[] {
    const notes = this.#notes;
    this.#notes = [];
    return notes;
  }

  /** Rule 2. */
  #take(repository: string | null): Scan {
    const scan = this.#scan.look(repository);
    const known = new Map<string, Known>();
    for (const one of scan.found.values()) {
      const before = this.#known.get(one.path);
      known.set(one.path, before !== undefined && isSame(before, one) ? before : knownOf(one));
    }
    this.#known = known;
    for (const [place, top] of this.#came) {
      if (!known.has(place) || !known.has(path.join(top, '.git'))) this.#came.delete(place);
    }
    return scan;
  }

  #judge(repository: string | null, isEnd: boolean): Scan {
    const scan = this.#scan.look(repository);
    const { found } = scan;
    this.#gone = [...this.#known.values()].filter((one) => !found.has(one.path));
    for (const one of this.#gone) {
      this.#known.delete(one.path);
      this.#restore(one);
    }
    // Repositories come first: it depends on them what else may stay.
    const all = [...found.values()].toSorted((one, other) => rankOf(one) - rankOf(other));
    for (const one of all) {
      const before = this.#known.get(one.path);
      if (before === undefined) this.#judgeNew(one, isEnd, null);
      else if (!isSame(before, one)) this.#judgeChanged(before, one, isEnd);
    }
    this.#judgeOrphans();
    return scan;
  }

  #judgeChanged(before: Known, now: ProtectedPath, isEnd: boolean): void {
    if (before.content !== null && before.ino === now.ino && before.links > 1) {
      this.#judgeContent(before, now);
      return;
    }
    const isExposed = [...this.#running].some(
      ({ bound }) => !bound.has(now.path) || (before.ino !== now.ino && !this.#isPinned(now.path)),
    );
    if (!isExposed) this.#known.set(now.path, knownOf(now));
    else if (isFolder(now) && before.ino === now.ino && before.inside !== null)
      this.#judgeInside(before, now, isEnd);
    else this.#judgeNew(now, isEnd, before);
  }

  /** A folder that was there before: only what is new in it is set aside. */
  #judgeInside(before: Known, now: ProtectedPath, isEnd: boolean): void {
    if (!this.#mayStay(now, isEnd)) {
      if (!isEnd && this.#isBeingMade(now)) return;
      const known = new Set(before.inside?.split('\n'));
      for (const line of insideOf(now.path).print.split('\n')) {
        const [place = ''] = line.split('\0');
        const status = statusOf(place);
        if (known.has(line) || status === null || status.isDirectory()) continue;
        this.#moveAside(place);
      }
    }
    this.#known.set(now.path, rememberContents(knownOf(now)));
  }

  /** Restores a file that was changed through another of its hard links. */
  #judgeContent(before: Known, now: ProtectedPath): void {
    const content = before.content;
    if (content === null || contentOf({ ...now, links: 2 })?.equals(content) === true) {
      this.#known.set(now.path, { ...now, target: null, content, inside: null });
      return;
    }
    try {
      writeBack(now.path, content);
      this.#notes.push(
        `${this.#shown(now.path)} was changed through another of its names (a hard link), so its old content was restored`,
      );
    } catch {
      // It no longer exists or is a symlink by now: the next scan sees that.
    }
    this.#known.delete(now.path);
    const again = protectedPathAt(now.path, now);
    if (again !== null) this.#known.set(now.path, knownOf(again));
  }

  #judgeNew(one: ProtectedPath, isEnd: boolean, before: Known | null): void {
    if (this.#mayStay(one, isEnd)) {
      if (one.kind === 'repository' && before === null && isEnd) this.#made.add(path.dirname(one.path));
      if (isEnd || !this.#isBeingMade(one)) this.#known.set(one.path, rememberContents(knownOf(one)));
      return;
    }
    if (!isEnd && this.#isBeingMade(one) && !this.#isFinished(one)) return;
    this.#putAway(one);
    if (before !== null) this.#restore(before);
  }

  /** Whether a clone may be under way: git writes its configuration step by step. */
  #isBeingMade(one: ProtectedPath): boolean {
    if (one.kind === 'repository') return true;
    if (one.namedBy !== null) return false;
    if (!one.inGit) return this.#newRepositoryAround(one.path) !== null;
    return !this.#repositories().some((folder) => isWithin(one.path, folder));
  }

  /** Whether the last sweep has seen the same: nobody is making it any more. */
  #isFinished(one: ProtectedPath): boolean {
    const print = codePrint(one);
    const isFinished = this.#unfinished.get(one.path) === print;
    this.#unfinished.set(one.path, print);
    return isFinished;
  }

  #mayStay(one: ProtectedPath, isEnd: boolean): boolean {
    const place = one.path;
    if (this.#allowed.has(place) || this.#wasMoved(one)) return true;
    if (one.kind === 'repository') return isHarmlessRepository(place, this.#workspace, this.#repositories());
    if (one.inGit) return one.kind !== 'link' && isHarmlessCode(place, this.#workspace);
    const top = this.#newRepositoryAround(place);
    const came = isEnd && top !== null && one.namedBy === null && one.kind !== 'link';
    if (!came || !filesIn(one).every((file) => this.#scan.isTracked(top, file))) return false;
    this.#came.set(place, top);
    return true;
  }

  /** Rule 3: the folder of a repository that the running command has made, and that it has made too. */
  #newRepositoryAround(place: string): string | null {
    for (let top = path.dirname(place); isWithin(top, this.#workspace); top = path.dirname(top)) {
      if (top === this.#workspace) return null;
      if (statusOf(path.join(top, '.git')) === null) continue;
      return this.#isNewFolder(top) ? top : null;
    }
    return null;
  }

  #isNewFolder(folder: string): boolean {
    if (this.#foldersBefore === null || this.#foldersBefore.has(folder) || this.#walk.has(folder))
      return false;
    const madeMs = statusOf(folder)?.birthtimeMs ?? 0;
    return madeMs === 0 || madeMs >= (this.#sinceMs ?? 0);
  }

  /** What came with a repository goes with it. */
  #judgeOrphans(): void {
    for (const [place, top] of this.#came) {
      if (statusOf(path.join(top, '.git')) !== null) continue;
      this.#came.delete(place);
      const known = this.#known.get(place);
      this.#known.delete(place);
      if (known !== undefined && statusOf(place) !== null) this.#putAway(known);
    }
  }

  /** Whether a path was moved along with its folder, and no command could write to it. */
  #wasMoved(one: ProtectedPath): boolean {
    if (one.kind === 'link') return false;
    if (one.kind === 'repository') return this.#oldRepository(one) !== null;
    if (one.inGit) return this.#wasMovedInRepository(one);
    return [...this.#known.values(), ...this.#gone].some(
      (known) => known.links === one.links && this.#isUntouched(known, one),
    );
  }

  /** Whether this is a known path, maybe under another name, that was read-only for all running commands. */
  #isUntouched(known: Known, one: ProtectedPath): boolean {
    const isBound = [...this.#running].every(({ bound }) => bound.has(known.path));
    return isBound && known.dev === one.dev && known.ino === one.ino;
  }

  /** The repository that was moved here. What git obeys of it is judged by itself. */
  #oldRepository(one: ProtectedPath): Known | null {
    const isOld = (known: Known): boolean => known.kind === 'repository' && this.#isUntouched(known, one);
    return this.#gone.find(isOld) ?? null;
  }

  #wasMovedInRepository(one: ProtectedPath): boolean {
    for (let folder = path.dirname(one.path); folder !== this.#workspace; folder = path.dirname(folder)) {
      if (path.dirname(folder) === folder) return false;
      if (path.basename(folder) !== '.git') continue;
      const repository = protectedPathAt(folder);
      const old = repository === null ? null : this.#oldRepository(repository);
      const before = old === null ? null : path.join(old.path, path.relative(folder, one.path));
      return this.#gone.some((known) => known.path === before && this.#isUntouched(known, one));
    }
    return false;
  }

  /** Whether a path can't be renamed: mount points can't, nor can the folders above them up to the next mount point. */
  #isPinned(place: string): boolean {
    const parent = path.dirname(place);
    const isPart = path.basename(parent).startsWith('.') && path.dirname(parent) === this.#workspace;
    if (parent === this.#workspace || isPart) return true;
    return this.#repositories().some(
      (folder) => path.dirname(folder) === this.#workspace && isWithin(place, folder),
    );
  }

  #repositories(): readonly string[] {
    return [...this.#known.values()].filter(({ kind }) => kind === 'repository').map((one) => one.path);
  }

  /** Before the first command everything is the user's. A long walk goes on while the command runs. */
  #walkFirst(frontier: readonly Frontier[]): void {
    if (this.#hasWalked || this.#running.size > 0) return;
    // A killed session may have left something to judge.
    this.#sinceMs ??= Number.POSITIVE_INFINITY;
    this.#startWalk(frontier, true);
    this.#stepWalk(FIRST_FOLDERS);
  }

  #startWalk(frontier: readonly Frontier[], isEnd: boolean): void {
    if (this.#walk.isRunning || this.#sinceMs === null) return;
    this.#isEndWalk = isEnd;
    this.#hasWalked = true;
    this.#walkSinceMs = this.#sinceMs;
    if (this.#running.size === 0) this.#sinceMs = null;
    this.#walkStartedAt = performance.now();
    this.#walk.start(frontier);
  }

  #walkInSlices(): void {
    if (this.#isWaitingForSlice || !this.#walk.isRunning) return;
    this.#isWaitingForSlice = true;
    setImmediate(() => {
      this.#isWaitingForSlice = false;
      if (!this.#stepWalk(SLICE_FOLDERS)) this.#walkInSlices();
    }).unref();
  }

  #stepWalk(foldersMax: number): boolean {
    if (!this.#walk.isRunning) return true;
    if (!this.#walk.step(foldersMax)) return false;
    const lengthMs = performance.now() - this.#walkStartedAt;
    this.#walkPauseMs = Math.max(WALK_PAUSE_MS, lengthMs * WALK_PAUSE_LENGTHS);
    if (this.#walk.isCut) {
      this.#notes.push(
        `the workspace has more than ${this.#walk.folders} folders: not all were looked through`,
      );
    }
    for (const place of this.#walk.places) this.#judgeWalked(place);
    return true;
  }

  /** Rule 4. A place that is known is judged by the quick scan, which follows it. */
  #judgeWalked({ path: place, isGitFolder: isBare }: WalkedPlace): void {
    const one = isBare ? null : protectedPathAt(place);
    if (one !== null && !this.#known.has(place)) this.#judgeUnlessOld(one);
    const isRepository = isBare || (one !== null && one.kind === 'repository' && isFolder(one));
    for (const code of isRepository ? codeOf(place) : []) {
      if (!this.#known.has(code.path)) this.#judgeUnlessOld(code);
    }
    if (statusOf(place) !== null) this.#scan.follow(place, isBare);
  }

  /**
   * A protected name is protected everywhere, so it does not matter whether a folder above was moved: only the file times
   * of the place itself count, and of what lies in it.
   */
  #judgeUnlessOld(one: ProtectedPath): void {
    const isOld =
      one.changedMs < this.#walkSinceMs &&
      (one.kind !== 'folder' || insideOf(one.path).newestMs < this.#walkSinceMs);
    if (isOld) this.#known.set(one.path, rememberContents(knownOf(one)));
    else this.#judgeNew(one, this.#isEndWalk, null);
  }

  /** Rule 5. */
  #goOnWith(guard: InterruptedGuard): void {
    const command = { bound: new Set(guard.bound) };
    this.#running.add(command);
    this.#interrupted = [...this.#interrupted, { command, guard }];
    this.#sinceMs = Math.min(this.#sinceMs ?? guard.sinceMs, guard.sinceMs);
    for (const one of guard.known) this.#known.set(one.path, { ...one, content: null, inside: null });
  }

  /** Judges what interrupted commands have made, once they have ended. */
  #releaseInterrupted(repository: string | null): void {
    const ended = this.#interrupted.filter(({ guard }) => !guard.isAlive());
    if (ended.length === 0) return;
    this.#judge(repository, true);
    for (const { command } of ended) this.#running.delete(command);
    this.#interrupted = this.#interrupted.filter((one) => !ended.includes(one));
    this.#writeRecord();
  }

  #writeRecord(): void {
    if (this.#running.size === 0) {
      this.#record.empty();
      return;
    }
    const running = [...this.#running];
    const known = [...this.#known.values()].map(
      ({ content: _content, inside: _inside, ...one }): RecordedPath => one,
    );
    const bound = [...(running[0]?.bound ?? [])].filter((place) =>
      running.every((command) => command.bound.has(place)),
    );
    this.#record.write({ workspace: this.#workspace, known, bound, sinceMs: this.#sinceMs ?? 0 });
  }

  #putAway(one: ProtectedPath): void {
    const moved = this.#move(one.path);
    if (moved === null) return;
    const why =
      one.namedBy === null
        ? (protectionOf(path.relative(this.#workspace, one.path))?.why ?? 'git obeys it')
        : `git's configuration names it: ${one.namedBy}`;
    this.#notes.push(
      `${this.#shown(one.path)} is protected (${why}); what the command put there was moved to ${moved}`,
    );
  }

  /** Sets a file of a protected folder aside. */
  #moveAside(place: string): void {
    const moved = this.#move(place);
    if (moved === null) return;
    const why = protectionOf(path.relative(this.#workspace, place))?.why ?? 'git obeys it';
    this.#notes.push(
      `${this.#shown(place)} is protected (${why}); what the command put there was moved to ${moved}`,
    );
  }

  #move(place: string): string | null {
    this.#count += 1;
    return setAside(place, path.join(this.#folder, String(this.#count)));
  }

  #restore(gone: Known): void {
    if (gone.kind === 'file' && gone.content !== null && gone.links < 2) {
      if ([...this.#made].some((top) => isWithin(gone.path, top))) return;
      this.#restoreFile(gone.path, gone.content);
      return;
    }
    if (gone.kind !== 'link' || gone.target === null) return;
    try {
      symlinkSync(gone.target, gone.path);
      this.#notes.push(`${this.#shown(gone.path)} is protected, so the symlink was restored`);
    } catch {
      // Its folder is gone as well, or something else stands there, which is judged by itself.
    }
  }

  /** Puts back what a small file held that was not read-only for a command. */
  #restoreFile(place: string, content: Buffer): void {
    try {
      writeFileSync(place, content, { flag: 'wx' });
      this.#notes.push(`${this.#shown(place)} is protected, so its old content was restored`);
    } catch {
      // Its folder is gone as well, or something else stands there, which is judged by itself.
    }
  }

  #shown(place: string): string {
    return isWithin(place, this.#workspace) ? path.relative(this.#workspace, place) : place;
  }
}

export const createProtectedFiles = (options: ProtectedFilesOptions): ProtectedFiles =>
  new ProtectedFilesKeeper(options);

/**
 * The read-only mounts inside a writable workspace.
 *
 * A folder that contains something read-only is a separate mount, so that it can't be renamed. A new folder in its
 * place would be writable.
 */

/** Each mount costs 0.2 ms. Paths beyond this number are only checked after a command. */
const MOUNTS_MAX = 60;
/** Number of repositories in which git works; further ones are entirely read-only. */
const REPOSITORIES_MAX = 6;

const writableIfThere = (place: string): Mount => ({ path: place, words: ['--bind-try', place, place] });

/** Makes the target of a symlink read-only if it lies in the workspace. */
const linkTargetMounts = (link: string, workspace: string): readonly Mount[] => {
  const real = realPathOf(link);
  if (real === null || real === workspace || !isWithin(real, workspace)) return [];
  return [readableIfThere(real)];
};

const mountsOf = (found: ProtectedPath, workspace: string): readonly Mount[] => {
  const parent = path.dirname(found.path);
  if (found.kind === 'link') return linkTargetMounts(found.path, workspace);
  if (found.kind === 'repository') {
    return [statusOf(found.path)?.isDirectory() ? writableIfThere(found.path) : readableIfThere(found.path)];
  }
  const isPart = path.basename(parent).startsWith('.') && parent !== workspace && !found.inGit;
  return [...(isPart ? [writableIfThere(parent)] : []), readableIfThere(found.path)];
};

const depthOf = (place: string): number => place.split(path.sep).length;

type ProtectedMounts = {
  readonly mounts: readonly Mount[];
  /** Paths that are read-only for the command. */
  readonly bound: ReadonlySet<string>;
  /** Mounted paths below folders that another command could exchange. */
  readonly exchangeable: readonly string[];
};

/**
 * `found`: the existing protected paths; if there are too many, the highest ones are mounted. `own`: folders whose
 * repositories stay writable and are only checked afterwards.
 */
export const protectedMounts = (
  found: Iterable<ProtectedPath>,
  { workspace, own }: { readonly workspace: string; readonly own: readonly string[] },
): ProtectedMounts => {
  const isOwn = ({ path: place, inGit, kind }: ProtectedPath): boolean =>
    (inGit || kind === 'repository') && own.some((folder) => isWithin(place, folder));
  const all = [...found]
    .filter((one) => !isOwn(one))
    .toSorted((one, other) => depthOf(one.path) - depthOf(other.path));
  const repositories = all.filter(({ kind }) => kind === 'repository').map((one) => one.path);
  const closed = repositories.slice(REPOSITORIES_MAX);
  const mounts = new Map<string, Mount>();
  const bound = new Set<string>();
  for (const one of all) {
    const outer = closed.find((repository) => isWithin(one.path, repository));
    if (outer !== undefined) {
      mounts.set(outer, readableIfThere(outer));
      bound.add(one.path);
      continue;
    }
    if (mounts.size >= MOUNTS_MAX) break;
    for (const mount of mountsOf(one, workspace)) {
      if (!mounts.has(mount.path) || mount.words[0] === '--ro-bind-try') mounts.set(mount.path, mount);
    }
    if (one.kind !== 'link') bound.add(one.path);
  }
  const isFirm = (place: string): boolean =>
    [workspace, path.join(workspace, '.git')].includes(path.dirname(place)) ||
    (path.dirname(path.dirname(place)) === workspace && mounts.has(path.dirname(place)));
  const exchangeable = [...mounts.keys()].filter((place) => isWithin(place, workspace) && !isFirm(place));
  return { mounts: [...mounts.values()], bound, exchangeable };
};

/**
 * What protected paths there were before the commands that run now, in a file of the session.
 *
 * It is empty unless fenced commands run that may write. If it says something when nobody runs, Pawl was killed, and
 * the next session in the workspace judges what came since.
 */

type RecordedPath = ProtectedPath & {
  /** The target of a symlink; null for anything else. */
  readonly target: string | null;
};

type RecordedGuard = {
  readonly workspace: string;
  readonly known: readonly RecordedPath[];
  /** Paths that were read-only for every running command. */
  readonly bound: readonly string[];
  /** When the first of the commands started, in ms. */
  readonly sinceMs: number;
};

export type InterruptedGuard = RecordedGuard & {
  /** Whether one of the commands still runs. */
  isAlive(): boolean;
};

type GuardRecord = {
  write(guard: RecordedGuard): void;
  /** No command runs. */
  empty(): void;
  /** What is written stays for the next session. */
  close(): void;
  remove(): void;
  /** Keeps lines that nobody has read when the session ends: the next session in the workspace tells them. */
  leaveNotes(workspace: string, notes: readonly string[]): void;
};

const fileIn = (sessionFolder: string): string => path.join(sessionFolder, 'protected.json');
const notesIn = (sessionFolder: string): string => path.join(sessionFolder, 'notes.json');

/** Null if it is not there, or was cut when Pawl was killed. */
const readJson = (file: string): unknown => {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
};

export const guardRecordIn = (sessionFolder: string): GuardRecord => {
  /** Stays open, since making a file for each command costs a quarter of a millisecond. */
  let descriptor: number | null = null;
  const close = (): void => {
    if (descriptor !== null) closeSync(descriptor);
    descriptor = null;
  };
  return {
    write(guard) {
      try {
        descriptor ??= openSync(fileIn(sessionFolder), constants.O_WRONLY | constants.O_CREAT, 0o600);
        const bytes = Buffer.from(JSON.stringify(guard));
        let written = 0;
        while (written < bytes.length) written += writeSync(descriptor, bytes, written, undefined, written);
        ftruncateSync(descriptor, bytes.length);
      } catch {
        // The disk is full, or the session has no folder: the command itself will fail and say so.
      }
    },
    empty() {
      if (descriptor !== null) ftruncateSync(descriptor, 0);
    },
    close,
    remove() {
      close();
      rmSync(fileIn(sessionFolder), { force: true });
    },
    leaveNotes(workspace, notes) {
      try {
        writeFileSync(notesIn(sessionFolder), JSON.stringify({ workspace, notes }), { mode: 0o600 });
      } catch {
        // The disk is full. The files have been moved all the same.
      }
    },
  };
};

const isRecorded = (value: unknown): value is RecordedGuard =>
  typeof value === 'object' &&
  value !== null &&
  'workspace' in value &&
  'known' in value &&
  Array.isArray(value.known) &&
  'bound' in value &&
  Array.isArray(value.bound) &&
  'sinceMs' in value &&
  typeof value.sinceMs === 'number';

/** Null if there is none, or if it was cut when Pawl was killed. Then the commands had not started. */
export const readGuardRecord = (sessionFolder: string): RecordedGuard | null => {
  const value = readJson(fileIn(sessionFolder));
  return isRecorded(value) ? value : null;
};

/** Removes the record of a session whose commands have all been judged. */
export const removeEmptyRecord = (sessionFolder: string): void => {
  if (statusOf(fileIn(sessionFolder))?.size === 0) rmSync(fileIn(sessionFolder), { force: true });
};

/** The notes that a session has left for this workspace. They are gone afterwards. */
export const takeNotes = (sessionFolder: string, workspace: string): readonly string[] => {
  const value = readJson(notesIn(sessionFolder));
  const isOurs =
    typeof value === 'object' && value !== null && 'workspace' in value && value.workspace === workspace;
  if (!isOurs || !('notes' in value) || !Array.isArray(value.notes)) return [];
  rmSync(notesIn(sessionFolder), { force: true });
  return value.notes.filter((note) => typeof note === 'string');
};

/**
 * Moves a file out of the workspace into a folder of the session, so that nothing runs it by accident.
 *
 * Its folder is opened first and its real path is checked, so that a command that exchanges folders for symlinks
 * meanwhile can't get anything else moved.
 */

const FOLDER_ONLY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

const moveBelow = (from: string, to: string): void => {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EXDEV')) throw error;
    cpSync(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    rmSync(from, { recursive: true, force: true });
  }
};

/** The new path; null if the move failed because the file is gone or a folder on the way was exchanged. */
export const setAside = (place: string, folder: string): string | null => {
  const parent = path.dirname(place);
  let descriptor: number | null = null;
  try {
    descriptor = openSync(parent, FOLDER_ONLY);
    if (readlinkSync(`/proc/self/fd/${descriptor}`) !== parent) return null;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const target = path.join(folder, path.basename(place));
    moveBelow(`/proc/self/fd/${descriptor}/${path.basename(place)}`, target);
    return target;
  } catch {
    return null; // it is gone, or may not be moved: the next look finds it again
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
};

/** Restores the old content of a file in place. Throws if it is gone or a symlink. */
const writeBack = (place: string, content: Buffer): void => {
  const descriptor = openSync(place, constants.O_WRONLY | constants.O_NOFOLLOW);
  try {
    ftruncateSync(descriptor);
    writeSync(descriptor, content);
  } finally {
    closeSync(descriptor);
  }
};
