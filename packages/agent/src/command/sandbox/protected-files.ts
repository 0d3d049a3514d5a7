/**
 * Keeps the protected paths of a workspace as they are while fenced commands (those in the sandbox)
 * run. A protected path is one that somebody obeys or runs later without a question, such as a hook
 * of git or the settings of an editor.
 *
 * From top to bottom: what is remembered of a path before a command; `ProtectedFiles`, which
 * judges what has changed, and sets aside or restores; and the record of this guard on disk, with
 * which a later process finishes the work of one that was killed. protected-scan.ts finds the
 * paths, workspace-mounts.ts makes them read-only.
 */

import { readFileSync, readlinkSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { ProcessEnvironment } from '../../platform/environment.js';
import {
  createFile,
  createLink,
  entryStatus,
  isWithin,
  readRegularSync,
  replaceFile,
  setAside,
  writeBack,
  writePrivateSync,
} from '../../platform/files.js';
import { findProtection } from '../../policy/paths.js';
import {
  type CleanedConfig,
  cleanConfig,
  isHarmlessInWorktree,
  isInWorktreeFolder,
  leadsInside,
} from './git-folders.js';
import {
  BackgroundWalk,
  listGitCode,
  type ProtectedPath,
  ProtectedScan,
  protectedPathAt,
  readInside,
  type Scan,
  type WalkEnd,
} from './protected-scan.js';
import { protectedRecord } from './session-folders.js';
import { shellWords } from './shell-text.js';

/** Ends a line for the model about a file that was set aside or restored. */
const ADVICE =
  'if that was on purpose, change it with the tool write or edit, or ask again with ' +
  'needs: "outside"';

const OF_USER = 'it is your own configuration, or your credentials';

/** A running command that may write, and what it can't write to. */
export type Writer = {
  /** Paths that are read-only for it. */
  readonly bound: ReadonlySet<string>;
  /** Git folders in which it can't change anything. */
  readonly closed: readonly string[];
};

export type ProtectedFilesOptions = {
  readonly workspace: string;
  /** The user's places in the workspace, such as configuration that a link leads to. */
  readonly userPlaces: readonly string[];
  /** Those that no command sees. What is in them changes without a command. */
  readonly hidden: readonly string[];
  /** Receives the files that are set aside. */
  readonly folder: string;
  /** Pawl's environment, which says where the user's git configuration lies. */
  readonly environment: ProcessEnvironment;
  readonly record: GuardRecord;
  /** The records of sessions that were killed while their commands ran. */
  readonly interrupted: readonly InterruptedGuard[];
  /** Lines of earlier sessions that nobody has read. */
  readonly notes: readonly string[];
  /** Tells the user what was moved, restored or changed by somebody else. */
  tellUser(text: string): void;
};

/** How many names a line has. */
const NAMED_MAX = 3;

/** In bytes. The content of a longer file is not remembered. */
const CONTENT_MAX = 1024 * 1024;

/** The target of a link, the bytes of a file, a print of what lies in a folder. */
type Content = string | Buffer;

/** What is remembered of a path that was there before the running commands. */
type Known = ProtectedPath & {
  /** Null: unknown, as of what is long, closed to us or hidden from commands, and of `.git`. */
  readonly content: Content | null;
};

const readTarget = (link: string): string | null => {
  try {
    return readlinkSync(link);
  } catch {
    return null; // gone meanwhile
  }
};

/** Whether it is a folder, as a `.git` may be too. */
const isFolder = ({ kind, path: place }: ProtectedPath): boolean =>
  kind === 'folder' || (kind === 'repository' && entryStatus(place)?.isDirectory() === true);

const readContent = (one: ProtectedPath): Content | null => {
  if (one.kind === 'link') return readTarget(one.path);
  if (isFolder(one)) return one.kind === 'folder' ? readInside(one.path).fingerprint : null;
  const loaded = readRegularSync(one.path, CONTENT_MAX, { follow: 'none' });
  return loaded.kind === 'file' ? loaded.bytes : null;
};

const isSameContent = (one: Content, other: Content | null): boolean =>
  Buffer.isBuffer(one) ? Buffer.isBuffer(other) && one.equals(other) : one === other;

/** Whether a path is unchanged. A folder without a print of its contents counts as unchanged. */
const isSame = (one: Known, other: ProtectedPath): boolean =>
  one.ino === other.ino &&
  one.dev === other.dev &&
  (isFolder(other)
    ? one.content === null || one.content === readContent(other)
    : one.changedMs === other.changedMs && one.size === other.size);

/**
 * The guard of a workspace. It is asked before and after each command.
 *
 * A protected path that is there is mounted read-only for each command (workspace-mounts.ts). While
 * no command runs, changes are the user's and are accepted. While commands run, a path is
 *
 * - **known**: it was there before, and is compared with what is remembered of it, also if it was
 *   read-only for all of them: then a change is somebody else's, which is said, and stays;
 * - **new**: it is set aside, unless it may stay (`#rest`), or no command can have made it;
 * - **changed**: a command could write to it, so what was remembered is restored, or what is new in
 *   it is set aside;
 * - **gone**: a link or a small file is restored;
 * - **moved** along with its folder: it may stay if no command could write to it;
 * - one that **came with a repository**: it may stay as long as the repository does.
 *
 * A repository that a command makes stays, but is cleaned: of its configuration only harmless keys
 * stay, hooks and all else by which git runs programs are set aside. So a repository that git is
 * still writing is not torn apart. What it tracks may stay with it if the command created its
 * folder too, as `git clone` does, and only as long as the repository is there.
 *
 * What the quick scan leaves out is walked through beside other work after each command, at the
 * latest before the session ends. By the times of files, which nobody can set back, it is known
 * what was there before the command.
 *
 * While commands run, a record says what was there. If Pawl is killed, the next session in the
 * workspace goes on with it.
 */
export class ProtectedFiles {
  readonly #options: ProtectedFilesOptions;
  readonly #workspace: string;
  readonly #record: GuardRecord;
  readonly #scan;
  readonly #walk = new BackgroundWalk((end) => this.#judgeWalk(end));
  /** What was there before the running commands, or was accepted since. */
  #known = new Map<string, Known>();
  /** Paths that were known and no longer exist. */
  #gone: readonly Known[] = [];
  readonly #running = new Set<Writer>();
  /** Commands of killed sessions that still run. */
  #interrupted: readonly { readonly command: Writer; readonly guard: InterruptedGuard }[] = [];
  /** Paths whose next content is accepted. */
  readonly #allowed = new Set<string>();
  /** Folders with a repository that a command of this session created. */
  readonly #created = new Set<string>();
  /** Folders that were there before the running commands; null if that is unknown. */
  #foldersBefore: Pick<ReadonlySet<string>, 'has'> | null = null;
  /** The git folder of the workspace if it lies elsewhere. */
  #repository: string | null = null;
  /** Lines for the model that nobody has read yet. */
  #notes: string[];
  /** Number of paths that were set aside. */
  #count = 0;

  constructor(options: ProtectedFilesOptions) {
    const { workspace, userPlaces, environment, record, interrupted, notes } = options;
    this.#options = options;
    this.#workspace = workspace;
    this.#record = record;
    this.#notes = [...notes];
    this.#scan = new ProtectedScan(workspace, userPlaces, environment);
    for (const guard of interrupted) this.#goOnWith(guard);
    if (interrupted.length > 0) this.#writeRecord();
  }

  /**
   * Scans the workspace before a command starts. `repository`, here and below: the git folder of
   * the workspace if it lies elsewhere.
   */
  scanBefore(repository: string | null): Scan {
    this.#repository = repository;
    this.#releaseInterrupted();
    if (!this.#isIdle) this.#judge(true);
    const scan = this.#isIdle ? this.acceptAll() : this.#scan.look(this.#repository);
    this.#foldersBefore = scan.folders;
    // The frontier: folders that the quick scan does not enter.
    if (this.#isIdle) this.#walk.walkFirst(scan.frontier);
    return scan;
  }

  /** A command starts that may write. */
  begin(running: Writer): void {
    this.#running.add(running);
    this.#walk.begin();
    this.#writeRecord();
  }

  /** A command has ended. Returns lines about everything set aside since the last call. */
  end(running: Writer): readonly string[] {
    const { frontier } = this.#judge(true);
    this.#running.delete(running);
    this.#writeRecord();
    this.#walk.walkAfter(frontier, this.#isIdle);
    return this.#takeNotes();
  }

  /**
   * While commands run, sets new protected paths aside, except what they may be cloning. If none of
   * them may write, changes are the user's.
   */
  sweep(): void {
    this.#releaseInterrupted();
    const { frontier } = this.#isIdle ? this.acceptAll() : this.#judge(false);
    this.#walk.walkDuring(frontier, this.#isIdle);
  }

  /**
   * Judges the changes of a killed session if its commands have ended. Returns lines about
   * everything set aside since the last call.
   */
  judgeInterrupted(repository: string | null): readonly string[] {
    this.#repository = repository;
    this.#releaseInterrupted();
    return this.#takeNotes();
  }

  /** Whether commands of a killed session still run. */
  isInterrupted(): boolean {
    return this.#interrupted.length > 0;
  }

  /** Judges all pending changes. */
  close(): void {
    this.#releaseInterrupted();
    if (this.#walk.isPending) {
      if (!this.#isIdle) this.#judge(true);
      this.#walk.walkAtOnce(() => this.#scan.look(this.#repository).frontier, this.#isIdle);
    }
    if (this.#notes.length > 0) this.#record.leaveNotes(this.#workspace, this.#takeNotes());
    // What an interrupted command still makes is judged by the next session.
    this.#running.clear();
    for (const { command } of this.#interrupted) this.#running.add(command);
    this.#writeRecord();
    if (this.#isIdle) this.#record.remove();
  }

  /**
   * Folders with a harmless repository that a command of this session created: git may configure
   * it.
   */
  createdRepositories(): readonly string[] {
    return [...this.#created].filter(
      (top) =>
        top !== this.#workspace &&
        this.#scan.listCode(path.join(top, '.git')).every((one) => this.#isHarmless(one)),
    );
  }

  /** The user allowed writing to this path: its next content is accepted. */
  allowWriting(place: string): void {
    this.#allowed.add(place);
  }

  /** Accepts everything as it is: what the user's own commands made. */
  acceptAll(): Scan {
    const scan = this.#scan.look(this.#repository);
    const known = new Map<string, Known>();
    for (const one of scan.protectedPaths.values()) {
      const before = this.#known.get(one.path);
      const isKnown = before !== undefined && isSame(before, one);
      known.set(one.path, isKnown ? before : this.#remember(one));
    }
    this.#known = known;
    for (const top of this.#created)
      if (!known.has(path.join(top, '.git'))) this.#created.delete(top);
    return scan;
  }

  /**
   * Accepts new paths while fenced commands run: they come from an unfenced command that the user
   * allowed.
   */
  acceptNewPaths(): void {
    for (const one of this.#scan.look(this.#repository).protectedPaths.values()) {
      if (!this.#known.has(one.path)) this.#known.set(one.path, this.#remember(one));
    }
  }

  /** No command runs that may write. */
  get #isIdle(): boolean {
    return this.#running.size === 0;
  }

  #remember(one: ProtectedPath): Known {
    return { ...one, content: this.#options.hidden.includes(one.path) ? null : readContent(one) };
  }

  #takeNotes(): readonly string[] {
    const notes = this.#notes;
    this.#notes = [];
    return notes;
  }

  /**
   * Scans, and judges all differences from what is known. `isEnd`: a command has ended. Before that
   * it may still be cloning, and git tracks files only after it has written them.
   */
  #judge(isEnd: boolean): Scan {
    const scan = this.#scan.look(this.#repository);
    this.#judgeGone(scan);
    const count = this.#count;
    this.#judgeEach(scan, isOfGit, isEnd);
    // A file that only a configuration named is left alone once that configuration is gone.
    const present = count === this.#count ? scan : this.#scan.look(this.#repository);
    this.#judgeEach(present, (one) => !isOfGit(one), isEnd);
    for (const top of this.#created) this.#judgeOrphans(top);
    return present;
  }

  #judgeGone({ protectedPaths }: Scan): void {
    this.#gone = [...this.#known.values()].filter((one) => !protectedPaths.has(one.path));
    for (const one of this.#gone) {
      this.#known.delete(one.path);
      this.#restore(one);
      const wasMoved = [...protectedPaths.values()].some(
        ({ dev, ino }) => dev === one.dev && ino === one.ino,
      );
      const isFirm = !this.#isIdle && this.#isBound(one.path) && this.#isPinned(one.path);
      if (!wasMoved && isFirm) this.#noteForeign('was removed', one, null);
    }
  }

  #judgeEach(scan: Scan, isJudged: (one: ProtectedPath) => boolean, isEnd: boolean): void {
    for (const one of scan.protectedPaths.values()) {
      if (!isJudged(one)) continue;
      const before = this.#known.get(one.path);
      if (before === undefined) this.#judgeNew(one, isEnd, null);
      else if (!isSame(before, one)) this.#judgeChanged(before, one, isEnd);
    }
  }

  /** A path is not what was remembered of it: accepts, restores or sets aside. */
  #judgeChanged(before: Known, now: ProtectedPath, isEnd: boolean): void {
    const { content } = before;
    const isSameFile = before.kind === 'file' && before.ino === now.ino;
    if (isSameFile && before.links > 1 && Buffer.isBuffer(content)) {
      this.#judgeContent(content, now);
      return;
    }
    // No command could write to it, nor exchange a folder above it.
    const isFirm = this.#isBound(now.path) && (before.ino === now.ino || this.#isPinned(now.path));
    if (isFirm || this.#isIdle) this.#acceptForeign('was changed', now, before);
    else if (isFolder(now) && before.ino === now.ino && typeof content === 'string')
      this.#judgeInside(content, now);
    else this.#judgeNew(now, isEnd, before);
  }

  /** A folder that was there before: only what is new in it is set aside. */
  #judgeInside(before: string, now: ProtectedPath): void {
    if (this.#rest(now) !== 'all') {
      const known = new Set(before.split('\n'));
      for (const line of readInside(now.path).fingerprint.split('\n')) {
        const [place = ''] = line.split('\0');
        const status = entryStatus(place);
        if (known.has(line) || status === null || status.isDirectory()) continue;
        this.#putAway(place, null);
      }
    }
    this.#known.set(now.path, this.#remember(now));
  }

  /** Restores a file that was changed through another of its hard links. */
  #judgeContent(content: Buffer, now: ProtectedPath): void {
    if (isSameContent(content, readContent(now))) {
      this.#known.set(now.path, { ...now, content });
      return;
    }
    // If it no longer exists or is a symlink by now, the next scan sees that.
    if (writeBack(now.path, content))
      this.#note(
        `${this.#shown(now.path)} was changed through another of its names (a hard link), so ` +
          'its old content was restored',
      );
    this.#known.delete(now.path);
    const again = protectedPathAt(now.path, now);
    if (again !== null) this.#known.set(now.path, this.#remember(again));
  }

  /**
   * Accepts a new path, or sets aside what may not stay of it. `before`: what was remembered of
   * another file there.
   */
  #judgeNew(one: ProtectedPath, isEnd: boolean, before: Known | null): void {
    const clone = isByName(one) ? this.#newRepositoryAround(one.path) : null;
    if (clone !== null && !isEnd) return;
    const rest = this.#rest(one, clone);
    if (rest === 'all') {
      this.#accept(one, before);
    } else {
      this.#putAway(one.path, one.namedBy, rest, before === null);
      if (before !== null && !this.#restore(before) && rest !== null)
        createFile(one.path, rest.text);
    }
  }

  /** Accepts a new path, whose content may stay. */
  #accept(one: ProtectedPath, before: Known | null): void {
    const wasMoved = this.#wasMoved(one);
    const isOfOthers = this.#cameFromElsewhere(one) && !wasMoved;
    if (one.kind === 'repository' && before === null && !wasMoved)
      this.#created.add(path.dirname(one.path));
    // worktrees of others come and go
    if (isOfOthers && !isInWorktreeFolder(one.path) && !this.#isHarmless(one))
      this.#acceptForeign(before === null ? 'appeared' : 'was changed', one, before);
    else this.#known.set(one.path, this.#remember(one));
  }

  /**
   * What of a new or changed path may stay, see the cases of the class. Null: nothing. `clone`: the
   * folder of a new repository around it.
   */
  #rest(one: ProtectedPath, clone: string | null = null): 'all' | CleanedConfig | null {
    const { path: place } = one;
    if (this.#allowed.has(place) || this.#wasMoved(one) || this.#cameFromElsewhere(one))
      return 'all';
    if (one.kind === 'link') return null;
    if (one.kind === 'repository') return leadsInside(place, this.#workspace) ? 'all' : null;
    if (one.inGit) return this.#isHarmless(one) ? 'all' : this.#cleanConfig(one);
    const came = clone !== null && filesIn(one).every((file) => this.#scan.isTracked(clone, file));
    return came ? 'all' : null;
  }

  /** Whether git runs no program by a path in a git folder. */
  #isHarmless(one: ProtectedPath): boolean {
    if (one.kind === 'link') return false;
    if (isFolder(one)) return readInside(one.path).fingerprint === '';
    return isInWorktreeFolder(one.path)
      ? isHarmlessInWorktree(one.path, this.#workspace)
      : this.#cleanConfig(one)?.isSame === true;
  }

  /** What may stay of a configuration of git; null: nothing, or it is none. */
  #cleanConfig({ path: place }: ProtectedPath): CleanedConfig | null {
    const isConfig = path.basename(place) === 'config' && !isInWorktreeFolder(place);
    return isConfig ? cleanConfig(place, this.#workspace) : null;
  }

  /** Whether no running command can write to a path where it is. */
  #isBound(place: string): boolean {
    return [...this.#running].every(({ bound }) => bound.has(place));
  }

  /** Accepts what no running command can have changed. */
  #acceptForeign(what: string, now: ProtectedPath, before: Known | null): void {
    const known = this.#remember(now);
    this.#known.set(now.path, known);
    this.#noteForeign(what, before ?? known, before === null ? null : known);
  }

  /**
   * Says what somebody else did to a protected path while commands ran. `now`: null if there is
   * nothing to compare. Silent if the content is the same, or unknown from before.
   */
  #noteForeign(what: string, before: Known, now: Known | null): void {
    const old = before.content;
    const present = now?.content ?? null;
    if (old === null || isSameContent(old, present)) return;
    const places =
      before.kind === 'folder' && typeof old === 'string' && typeof present === 'string'
        ? changedPlaces(old, present)
        : [before.path];
    const names = places
      .filter((place) => !this.#allowed.has(place))
      .map((one) => this.#shown(one));
    if (names.length === 0) return;
    this.#note(
      `${firstOf(names)} ${what} while a command ran in the sandbox, ` +
        'in which it was read-only: by another program or by a fault of the sandbox; it was left ' +
        'as it is',
      'Look at it if that was not you.',
    );
  }

  /**
   * Whether no running command can have made this: its git folder was read-only for all of them,
   * and they could not exchange it. The user or another session has made it, as `git worktree add`
   * does.
   */
  #cameFromElsewhere({ inGit, path: place }: ProtectedPath): boolean {
    const isFixed = (folder: string): boolean =>
      !isWithin(folder, this.#workspace) || path.dirname(folder) === this.#workspace;
    const isClosedFor = ({ closed }: Writer): boolean =>
      closed.some((folder) => isWithin(place, folder) && isFixed(folder));
    return inGit && this.#running.size > 0 && [...this.#running].every(isClosedFor);
  }

  /** A folder that the running command created, with a repository that it created too. */
  #newRepositoryAround(place: string): string | null {
    for (let top = path.dirname(place); isWithin(top, this.#workspace); top = path.dirname(top)) {
      if (top === this.#workspace) return null;
      if (entryStatus(path.join(top, '.git')) === null) continue;
      return this.#isNewFolder(top) ? top : null;
    }
    return null;
  }

  #isNewFolder(folder: string): boolean {
    if (this.#foldersBefore === null || this.#foldersBefore.has(folder) || this.#walk.has(folder))
      return false;
    const madeMs = entryStatus(folder)?.birthtimeMs ?? 0;
    return madeMs === 0 || madeMs >= (this.#walk.sinceMs ?? 0);
  }

  /** What came with a repository goes with it. */
  #judgeOrphans(top: string): void {
    if (entryStatus(path.join(top, '.git')) !== null) return;
    this.#created.delete(top);
    for (const known of this.#known.values()) {
      if (!isWithin(known.path, top) || !isByName(known)) continue;
      this.#known.delete(known.path);
      this.#putAway(known.path, null);
    }
  }

  /** Whether a path was moved along with its folder, and no command could write to it. */
  #wasMoved(one: ProtectedPath): boolean {
    if (one.kind === 'link') return false;
    const isUntouched = (known: Known, now: ProtectedPath): boolean =>
      known.dev === now.dev && known.ino === now.ino && this.#isBound(known.path);
    if (!isOfGit(one))
      return [...this.#known.values(), ...this.#gone].some(
        (known) => known.links === one.links && isUntouched(known, one),
      );
    // A part of a repository counts as moved only together with it: moved alone, git may obey it
    // only now.
    const [, folder = '', inner = ''] =
      one.kind === 'repository' ? ['', one.path] : (/^(.*\/\.git)(\/.*)$/.exec(one.path) ?? []);
    const now = protectedPathAt(folder);
    const old = this.#gone.find(
      (known) => known.kind === 'repository' && now !== null && isUntouched(known, now),
    );
    const before = old === undefined ? null : old.path + inner;
    return this.#gone.some((known) => known.path === before && isUntouched(known, one));
  }

  /**
   * Whether a path can't be renamed: mount points can't, nor can the folders above them up to the
   * next mount point. Pinned are `.envrc` and `.git` at the top of the workspace, `config` in that
   * `.git`, and `.github/workflows`, but not `sub/.envrc`.
   */
  #isPinned(place: string): boolean {
    if (this.#options.userPlaces.includes(place)) return true; // with all folders above
    const parent = path.dirname(place);
    // A part of a folder like `.github`, which is a mount itself.
    const isPart =
      path.basename(parent).startsWith('.') && path.dirname(parent) === this.#workspace;
    if (parent === this.#workspace || isPart) return true;
    return this.#repositories().some(
      (folder) => path.dirname(folder) === this.#workspace && isWithin(place, folder),
    );
  }

  #repositories(): readonly string[] {
    return [...this.#known.values()]
      .filter(({ kind }) => kind === 'repository')
      .map((one) => one.path);
  }

  /** A place that is known is judged by the quick scan, which follows it. */
  #judgeWalk({ folders, isCut, places, sinceMs, isEnd }: WalkEnd): void {
    if (isCut)
      this.#notes.push(
        `the workspace has more than ${folders} folders: not all were looked through`,
      );
    /**
     * A protected name is protected everywhere, so it does not matter whether a folder above was
     * moved: only the file times of the place itself count, and of what lies in it.
     */
    const judge = (one: ProtectedPath): void => {
      if (this.#known.has(one.path)) return;
      const isOld =
        one.changedMs < sinceMs &&
        (one.kind !== 'folder' || readInside(one.path).newestMs < sinceMs);
      if (isOld) this.#known.set(one.path, this.#remember(one));
      else this.#judgeNew(one, isEnd, null);
    };
    for (const { path: place, isGitFolder: isBare } of places) {
      const one = isBare ? null : protectedPathAt(place);
      if (one !== null) judge(one);
      for (const code of isBare ? listGitCode(place) : this.#scan.listCode(place)) judge(code);
      // From now on the quick scan looks there, too.
      if (entryStatus(place) !== null) this.#scan.follow(place, isBare);
    }
  }

  /** Takes the guard of a killed session over: its commands count as one that runs. */
  #goOnWith(guard: InterruptedGuard): void {
    const command = { bound: new Set(guard.bound), closed: guard.closed ?? [] };
    this.#running.add(command);
    this.#interrupted = [...this.#interrupted, { command, guard }];
    this.#walk.cover(guard.sinceMs); // the next walk judges what has changed since then
    for (const { target, ...one } of guard.known)
      this.#known.set(one.path, { ...one, content: target });
  }

  /** Judges the changes of interrupted commands once they have ended. */
  #releaseInterrupted(): void {
    const ended = this.#interrupted.filter(({ guard }) => !guard.isAlive());
    if (ended.length === 0) return;
    this.#judge(true);
    for (const { command } of ended) this.#running.delete(command);
    this.#interrupted = this.#interrupted.filter((one) => !ended.includes(one));
    this.#writeRecord();
  }

  #writeRecord(): void {
    if (this.#isIdle) {
      this.#record.remove();
      return;
    }
    const running = [...this.#running];
    const known = [...this.#known.values()].map(({ content, ...one }): RecordedPath => {
      const target = one.kind === 'link' && typeof content === 'string' ? content : null;
      return { ...one, target };
    });
    // One list for all commands: only what none of them can write to.
    const bound = [...(running[0]?.bound ?? [])].filter((place) =>
      running.every((command) => command.bound.has(place)),
    );
    const closed = (running[0]?.closed ?? []).filter((folder) =>
      running.every((command) => command.closed.includes(folder)),
    );
    this.#record.write({
      workspace: this.#workspace,
      known,
      bound,
      closed,
      sinceMs: this.#walk.sinceMs ?? 0,
    });
  }

  /**
   * `namedBy`: see ProtectedPath. `rest`: the part of a configuration that may stay; `keepsRest`:
   * it is written in its place. If only the form of the configuration was changed, nothing is told.
   */
  #putAway(
    place: string,
    namedBy: string | null,
    rest: CleanedConfig | null = null,
    keepsRest = false,
  ): void {
    this.#count += 1;
    const folder = path.join(this.#options.folder, String(this.#count));
    const replaced = keepsRest && rest !== null ? replaceFile(place, rest.text, folder) : null;
    const moved = replaced ?? setAside(place, folder);
    if (moved === null || rest?.removed.length === 0) return;
    const byName = (): string =>
      findProtection(path.relative(this.#workspace, place))?.why ?? 'git obeys it';
    const byItself = this.#options.userPlaces.some((one) => isWithin(place, one))
      ? OF_USER
      : byName();
    const why = namedBy === null ? byItself : `git's configuration names it: ${namedBy}`;
    const taken =
      rest === null
        ? 'what appeared there while a command ran was moved away'
        : `of what a command wrote there, ${firstOf([...new Set(rest.removed)])} was taken out`;
    this.#note(
      `${this.#shown(place)} is protected (${why}); ${taken}`,
      `If you made it, move it back when no command runs: mv ${shellWords([moved, place])}`,
      ADVICE,
    );
  }

  /** Restores a symlink, or a small file that was not read-only for a command. Returns whether. */
  #restore({ kind, path: place, content, links }: Known): boolean {
    if (this.#allowed.has(place)) return false; // its removal was allowed
    // If its folder is gone as well, or something else stands there, that is judged by itself.
    const isOwn = [...this.#created].some((top) => isWithin(place, top));
    const isExposed = !this.#isBound(place);
    let restored: string | null = null;
    if (kind === 'file' && Buffer.isBuffer(content) && links < 2 && isExposed && !isOwn)
      restored = createFile(place, content) ? 'its old content' : null;
    else if (kind === 'link' && typeof content === 'string')
      restored = createLink(place, content) ? 'the symlink' : null;
    if (restored !== null)
      this.#note(
        `${this.#shown(place)} is protected, so ${restored} was restored`,
        'It was changed or removed while a command ran.',
        ADVICE,
      );
    return restored !== null;
  }

  /** A line for the model, and one for the user at once, since nobody else may read it. */
  #note(line: string, forUser = '', forModel = ''): void {
    this.#notes.push(forModel === '' ? line : `${line}; ${forModel}`);
    this.#options.tellUser(`the sandbox: ${line}. ${forUser}`.trim());
  }

  #shown(place: string): string {
    return isWithin(place, this.#workspace) ? path.relative(this.#workspace, place) : place;
  }
}

/** The first of some names, and how many more there are. */
const firstOf = (names: readonly string[]): string => {
  const more = names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : '';
  return `${names.slice(0, NAMED_MAX).join(', ')}${more}`;
};

/** Whether it is a repository, or what git obeys of one. */
const isOfGit = ({ kind, inGit }: ProtectedPath): boolean => inGit || kind === 'repository';

/** Whether a path is protected by its own name, and no part of git. */
const isByName = ({ kind, inGit, namedBy }: ProtectedPath): boolean =>
  !inGit && namedBy === null && (kind === 'file' || kind === 'folder');

/** Paths with other lines in one print of a folder than in the other; folders only if alone. */
const changedPlaces = (before: string, now: string): readonly string[] => {
  const old = new Set(before.split('\n'));
  const present = new Set(now.split('\n'));
  const lines = [...present].filter((line) => !old.has(line));
  lines.push(...[...old].filter((line) => !present.has(line)));
  const places = [...new Set(lines.map((line) => line.split('\0')[0] ?? ''))];
  const leaves = places.filter((place) => entryStatus(place)?.isDirectory() !== true);
  return leaves.length > 0 ? leaves : places;
};

/** The files of a protected path: itself, or all that lie in it. */
const filesIn = (one: ProtectedPath): readonly string[] =>
  isFolder(one)
    ? readInside(one.path)
        .fingerprint.split('\n')
        .map((line) => line.split('\0')[0] ?? '')
        .filter((place) => entryStatus(place)?.isDirectory() === false)
    : [one.path];

// ---- The record of a guard, for a later process ----

export type RecordedPath = ProtectedPath & {
  /** The target of a symlink; null for anything else. */
  readonly target: string | null;
};

/**
 * The protected paths that there were before the commands that run now, in a file of the session.
 * The file is there while fenced commands run that may write. If Pawl was killed, it stays, and the
 * next session in the workspace judges what came since.
 */
export type RecordedGuard = {
  readonly workspace: string;
  readonly known: readonly RecordedPath[];
  /** Paths that were read-only for every running command. */
  readonly bound: readonly string[];
  /** Git folders in which no running command could change anything. Earlier versions lack it. */
  readonly closed?: readonly string[];
  /** When the first of the commands started, in ms. */
  readonly sinceMs: number;
};

export type InterruptedGuard = RecordedGuard & {
  /** Whether one of the commands still runs. */
  isAlive(): boolean;
};

export type GuardRecord = {
  write(guard: RecordedGuard): void;
  /** No command runs. */
  remove(): void;
  /**
   * Keeps lines that nobody has read when the session ends: the next session in the workspace tells
   * them.
   */
  leaveNotes(workspace: string, notes: readonly string[]): void;
};

type LeftNotes = { readonly workspace: string; readonly notes: readonly string[] };

/** The record in the folder of a process. */
export const guardRecordIn = (sessionFolder: string): GuardRecord => ({
  write(guard) {
    try {
      writePrivateSync(protectedRecord(sessionFolder), JSON.stringify(guard));
    } catch {
      // The disk is full, or the session has no folder: the command itself will fail and say so.
    }
  },
  remove() {
    rmSync(protectedRecord(sessionFolder), { force: true });
  },
  leaveNotes(workspace, notes) {
    try {
      const left: LeftNotes = { workspace, notes };
      writePrivateSync(notesIn(sessionFolder), JSON.stringify(left));
    } catch {
      // The disk is full. The files have been moved all the same.
    }
  },
});

const notesIn = (sessionFolder: string): string => path.join(sessionFolder, 'notes.json');

/** Null if it is not there. Earlier versions may have left it empty or cut. */
const readRecord = <T>(file: string): T | null => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T; // only we write to it
  } catch {
    return null;
  }
};

/** Null if there is none: then no command ran that may write. */
export const readGuardRecord = (sessionFolder: string): RecordedGuard | null =>
  readRecord<RecordedGuard>(protectedRecord(sessionFolder));

/** Takes the notes of a session for this workspace; they are gone afterwards. */
export const takeNotes = (sessionFolder: string, workspace: string): readonly string[] => {
  const left = readRecord<LeftNotes>(notesIn(sessionFolder));
  if (left?.workspace !== workspace) return [];
  rmSync(notesIn(sessionFolder), { force: true });
  return left.notes;
};
