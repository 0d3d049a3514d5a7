/**
 * Undoes changes of the protected paths of a workspace by fenced commands (those in the sandbox). A
 * protected path is one that other programs obey or run later without a question, such as a hook of
 * git or the settings of an editor.
 *
 * To set a path aside is to move it into a folder of the session. protected-scan.ts finds the
 * paths, workspace-mounts.ts makes them read-only.
 *
 * From top to bottom: the content of a path before a command; `ProtectedFiles`, which judges
 * changes, and sets aside or restores; and the record on disk, with which a later process finishes
 * the work of a killed one.
 */

import { readFileSync, readlinkSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { ProcessEnvironment } from '../../platform/environment.js';
import {
  entryStatus,
  isWithin,
  readRawName,
  readRegularSync,
  systemPath,
  writePrivateSync,
} from '../../platform/files.js';
import {
  createFile,
  createLink,
  replaceKeepingCopy,
  setAside,
  writeBack,
} from '../../platform/replaceable-files.js';
import { firstOf } from '../../policy/decide.js';
import { findProtection } from '../../policy/paths.js';
import { gitFoldersAt, isInWorktreeFolder, type RepositoryPaths } from './git-folders.js';
import {
  type CleanedConfig,
  cleanConfig,
  isHarmlessInWorktree,
  leadsInside,
} from './new-repository.js';
import {
  BackgroundWalk,
  type ProtectedPath,
  ProtectedScan,
  protectedPathAt,
  readInside,
  readMarks,
  type Scan,
  type WalkEnd,
} from './protected-scan.js';
import { protectedRecord } from './session-folders.js';
import { shellWords } from './shell-text.js';

/** Ends a line for the model about a file that was set aside or restored. */
const ADVICE =
  'if that was on purpose, change it with the tool write or edit, or ask again with ' +
  'needs: "outside"';

const USER_PLACE = 'it is your own configuration, or your credentials';

/** A running command that may write, and the paths that it can't write to. */
export type Writer = {
  /** Paths that it can't replace. All but `.git` are read-only for it. */
  readonly bound: ReadonlySet<string>;
  /** Git folders in which it can't change anything. */
  readonly closed: readonly string[];
};

export type ProtectedFilesOptions = {
  readonly workspace: string;
  /** The user's places in the workspace, such as configuration that a link leads to. */
  readonly userPlaces: readonly string[];
  /** Those of `userPlaces` that commands don't see. Only other programs change them. */
  readonly hidden: readonly string[];
  /** Receives the files that are set aside. */
  readonly folder: string;
  /** Pawl's environment, which says where the user's git configuration lies. */
  readonly environment: ProcessEnvironment;
  readonly record: GuardRecord;
  /** The records of sessions that were killed while their commands ran. */
  readonly interrupted: readonly InterruptedGuard[];
  /** Unread lines of earlier sessions. */
  readonly notes: readonly string[];
  /** Tells the user about paths that were moved, restored, or changed by another program. */
  tellUser(text: string): void;
};

/**
 * New repositories whose files a scan leaves to a later one, since git tracks files only after it
 * has written them: all, those that git is writing at present, or none.
 */
type Spared = 'all' | 'unfinished' | 'none';

/** Most names in a line. */
const NAMED_MAX = 3;

/** Most bytes of a file whose content is remembered. */
const CONTENT_MAX = 1024 * 1024;

/** The target of a link, the bytes of a file, the fingerprint of a folder's content. */
type Content = string | Buffer;

/** A path that existed before the running commands. */
type KnownPath = ProtectedPath & {
  /** Null: unknown, for long, unreadable and hidden files, and for `.git`. */
  readonly content: Content | null;
};

const readTarget = (link: string): string | null => {
  try {
    return readRawName(readlinkSync(systemPath(link), 'buffer'));
  } catch {
    return null; // gone meanwhile
  }
};

/** Whether it is a folder, as a `.git` may be too. */
const isFolderLike = ({ kind, path: place }: ProtectedPath): boolean =>
  kind === 'folder' || (kind === 'repository' && entryStatus(place)?.isDirectory() === true);

const readContent = (one: ProtectedPath): Content | null => {
  if (one.kind === 'link') return readTarget(one.path);
  if (isFolderLike(one)) return one.kind === 'folder' ? readInside(one.path).fingerprint : null;
  const loaded = readRegularSync(one.path, CONTENT_MAX, { follow: 'none' });
  return loaded.kind === 'file' ? loaded.bytes : null;
};

const isSameContent = (one: Content, other: Content | null): boolean =>
  Buffer.isBuffer(one) ? Buffer.isBuffer(other) && one.equals(other) : one === other;

/** Whether a path is unchanged. A folder without a fingerprint counts as unchanged. */
const isUnchanged = (one: KnownPath, other: ProtectedPath): boolean =>
  one.ino === other.ino &&
  one.dev === other.dev &&
  (isFolderLike(other)
    ? one.content === null || one.content === readContent(other)
    : one.changedMs === other.changedMs && one.size === other.size);

/**
 * The guard of a workspace. Call it before and after each command.
 *
 * An existing protected path is mounted read-only for each command (workspace-mounts.ts). While no
 * command runs, changes are the user's and are accepted. While commands run, a path that
 *
 * - **existed and changed** is accepted and reported if it was read-only for all commands: another
 *   program changed it. Otherwise it is restored, or new files in it are set aside;
 * - **existed and is missing** is restored, if it is a link or a small file;
 * - **is new** is set aside, unless it is allowed (`#allowedPart`), or no command can have made it;
 * - **moved** along with its folder is accepted if no command could write to it;
 * - **came with a new repository** is accepted as long as the repository exists.
 *
 * A repository that a command makes stays, but is cleaned: its configuration loses all but harmless
 * keys; hooks and everything else by which git runs programs are set aside. So a repository that
 * git is still writing stays whole. Files that it tracks stay with it if the command created its
 * folder too, as `git clone` does.
 *
 * A background walk searches the folders that the quick scan skips, after each command and at the
 * latest before the session ends. The change times of files, which no program can set back, show
 * which paths existed before the command.
 *
 * While commands run, a record has the known paths. If Pawl is killed, the next session in the
 * workspace takes it over.
 */
export class ProtectedFiles {
  readonly #options: ProtectedFilesOptions;
  readonly #workspace: string;
  readonly #record: GuardRecord;
  readonly #scan;
  readonly #walk = new BackgroundWalk((end) => this.#judgeWalk(end));
  /** Paths that existed before the running commands, or were accepted since. */
  #known = new Map<string, KnownPath>();
  /** Known paths that no longer exist. */
  #removed: readonly KnownPath[] = [];
  readonly #running = new Set<Writer>();
  /** Commands of killed sessions that still run. */
  #interrupted: readonly { readonly command: Writer; readonly guard: InterruptedGuard }[] = [];
  /** Files that a running command or a tool may write: the user allowed that. */
  readonly #allowed = new Set<readonly string[]>();
  /** Folders with a repository that a command of this session created. */
  readonly #newRepositories = new Set<string>();
  /** Those that running commands have made with their folder, and in which git tracks nothing yet. */
  readonly #unfinished = new Set<string>();
  /** What could not be moved away, with the time of its change in ms: it is not accepted. */
  readonly #unmoved = new Map<string, number>();
  /** Folders that existed before the first of the running commands; null: unknown. */
  #foldersBefore: Pick<ReadonlySet<string>, 'has'> | null = null;
  /** That of the workspace if its git folder lies elsewhere. */
  #repository: RepositoryPaths | null = null;
  /** Unread lines for the model. */
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
    for (const guard of interrupted) this.#takeOver(guard);
    if (interrupted.length > 0) this.#writeRecord();
  }

  /**
   * Scans the workspace before a command starts. `repository`, here and below: that of the
   * workspace if its git folder lies elsewhere.
   */
  scanBefore(repository: RepositoryPaths | null): Scan {
    this.#repository = repository;
    this.#releaseInterrupted();
    if (!this.#isIdle) {
      this.#judge('unfinished');
      const scan = this.#scan.look(this.#repository);
      this.#foldersBefore ??= scan.folders; // of a killed session nothing is known
      return scan;
    }
    const scan = this.acceptAll();
    this.#foldersBefore = scan.folders;
    // The frontier: folders that the quick scan does not enter.
    this.#walk.walkFirst(scan.frontier);
    return scan;
  }

  /** Call it when a command that may write starts. */
  begin(running: Writer): void {
    this.#running.add(running);
    this.#walk.begin();
    this.#writeRecord();
  }

  /**
   * Call it when a command has ended. Returns lines about the paths set aside since the last call.
   */
  end(running: Writer): readonly string[] {
    const { frontier } = this.#judge(this.#running.size > 1 ? 'unfinished' : 'none');
    this.#running.delete(running);
    this.#writeRecord();
    if (this.#isIdle) for (const files of this.#allowed) this.#disallow(files);
    this.#walk.walkAfter(frontier, this.#isIdle);
    return this.#takeNotes();
  }

  /**
   * While commands run, sets new protected paths aside, except those of an unfinished clone. If no
   * command may write, changes are the user's.
   */
  sweep(): void {
    this.#releaseInterrupted();
    const { frontier } = this.#isIdle ? this.acceptAll() : this.#judge('all');
    this.#walk.walkDuring(frontier, this.#isIdle);
  }

  /**
   * Judges the changes of a killed session if its commands have ended. Returns lines about the
   * paths set aside since the last call.
   */
  judgeInterrupted(repository: RepositoryPaths | null): readonly string[] {
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
      if (!this.#isIdle) this.#judge('none');
      this.#walk.walkAtOnce(() => this.#scan.look(this.#repository).frontier, this.#isIdle);
    }
    if (this.#notes.length > 0) this.#record.leaveNotes(this.#workspace, this.#takeNotes());
    // the next session judges later changes of interrupted commands
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
    return [...this.#newRepositories].filter(
      (top) =>
        top !== this.#workspace &&
        this.#scan.listCode(path.join(top, '.git')).every((one) => this.#isHarmless(one)),
    );
  }

  /**
   * The user allowed writing to these files, until the returned function is called, or no command
   * runs: a formatter may follow a tool.
   */
  allowWriting(files: readonly string[]): () => void {
    this.#allowed.add(files);
    return () => {
      this.#judge('all');
      this.#disallow(files);
    };
  }

  /** Accepts all present paths, as changes of the user. */
  acceptAll(): Scan {
    const scan = this.#scan.look(this.#repository);
    const known = new Map<string, KnownPath>();
    for (const one of scan.protectedPaths.values()) {
      if (this.#unmoved.get(one.path) === one.changedMs) continue;
      const before = this.#known.get(one.path);
      const isKnown = before !== undefined && isUnchanged(before, one);
      known.set(one.path, isKnown ? before : this.#remember(one));
    }
    this.#known = known;
    this.#unfinished.clear();
    for (const top of this.#newRepositories)
      if (!known.has(path.join(top, '.git'))) this.#newRepositories.delete(top);
    return scan;
  }

  /**
   * Accepts new paths while fenced commands run, as changes of an unfenced command that the user
   * allowed.
   */
  acceptNewPaths(): void {
    for (const one of this.#scan.look(this.#repository).protectedPaths.values()) {
      if (!this.#known.has(one.path)) this.#known.set(one.path, this.#remember(one));
    }
  }

  /** Whether no command that may write runs. */
  get #isIdle(): boolean {
    return this.#running.size === 0;
  }

  #remember(one: ProtectedPath): KnownPath {
    return { ...one, content: this.#options.hidden.includes(one.path) ? null : readContent(one) };
  }

  #isAllowed(place: string): boolean {
    return [...this.#allowed].flat().some((file) => isWithin(place, file));
  }

  #holdsAllowed(folder: string): boolean {
    return [...this.#allowed].flat().some((file) => isWithin(file, folder));
  }

  /** From now on they are judged. The quick scan is to know those in folders that it leaves out. */
  #disallow(files: readonly string[]): void {
    this.#allowed.delete(files);
    for (const file of files) {
      if ([...this.#known.keys()].some((one) => isWithin(file, one))) continue;
      let place = file;
      for (let above = file; isWithin(above, this.#workspace); above = path.dirname(above))
        if (findProtection(path.relative(this.#workspace, above)) !== null) place = above;
      const one = protectedPathAt(place);
      if (one === null) continue;
      this.#scan.follow(place, false);
      this.#known.set(place, this.#remember(one));
    }
  }

  #takeNotes(): readonly string[] {
    const notes = this.#notes;
    this.#notes = [];
    return notes;
  }

  /** Scans, and judges all differences from the known paths. */
  #judge(spared: Spared): Scan {
    const finished = [...this.#unfinished].filter((top) => !isUnfinished(top));
    const scan = this.#scan.look(this.#repository);
    this.#judgeRemoved(scan);
    const count = this.#count;
    this.#judgeEach(scan, isGitPath, spared);
    // scans again: a path may have been protected only by a configuration that was set aside
    const present = count === this.#count ? scan : this.#scan.look(this.#repository);
    this.#judgeEach(present, (one) => !isGitPath(one), spared);
    for (const top of this.#newRepositories) this.#judgeOrphans(top);
    for (const top of finished) this.#unfinished.delete(top);
    return present;
  }

  #judgeRemoved({ protectedPaths }: Scan): void {
    this.#removed = [...this.#known.values()].filter((one) => !protectedPaths.has(one.path));
    for (const one of this.#removed) {
      this.#known.delete(one.path);
      this.#restore(one);
      const wasMoved = [...protectedPaths.values()].some(
        ({ dev, ino }) => dev === one.dev && ino === one.ino,
      );
      const isOutOfReach = this.#isReadOnlyForAll(one.path) && this.#isUnmovable(one.path);
      if (!wasMoved && isOutOfReach) this.#noteOthers('was removed', one, null);
    }
  }

  #judgeEach(scan: Scan, isJudged: (one: ProtectedPath) => boolean, spared: Spared): void {
    for (const one of scan.protectedPaths.values()) {
      if (!isJudged(one)) continue;
      const before = this.#known.get(one.path);
      if (before === undefined) this.#judgeNew(one, spared, null);
      else if (!isUnchanged(before, one)) this.#judgeChanged(before, one, spared);
    }
  }

  /** Accepts, restores or sets aside a changed path. */
  #judgeChanged(before: KnownPath, now: ProtectedPath, spared: Spared): void {
    const { content } = before;
    const isSameFile =
      before.kind === 'file' && before.ino === now.ino && !this.#isAllowed(now.path);
    if (isSameFile && before.links > 1 && Buffer.isBuffer(content)) {
      this.#judgeContent(content, now);
      return;
    }
    // no command could write to it, or replace a folder above it
    const isOutOfReach =
      this.#isReadOnlyForAll(now.path) && (before.ino === now.ino || this.#isUnmovable(now.path));
    if (isOutOfReach) this.#acceptOthers('was changed', now, before);
    else if (isFolderLike(now) && before.ino === now.ino && typeof content === 'string')
      this.#judgeInside(content, now);
    else this.#judgeNew(now, spared, before);
  }

  /** Sets aside the new files in a folder that existed before. */
  #judgeInside(before: string, now: ProtectedPath): void {
    if (this.#allowedPart(now) !== 'all') {
      const known = readMarks(before);
      for (const [place, mark] of readInside(now.path).marks) {
        const isNew = known.get(place) !== mark && entryStatus(place)?.isDirectory() === false;
        if (isNew && !this.#isAllowed(place)) this.#setAside(place, null);
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
    // If it no longer exists or is a symlink by now, the next scan judges it.
    const copy = writeBack(now.path, content, this.#nextFolder());
    if (copy !== null)
      this.#note(
        `${this.#shown(now.path)} was changed through another of its names (a hard link), so ` +
          'its old content was restored',
        `What was written: ${copy}`,
      );
    else this.#noteUnmoved(now.path);
    this.#known.delete(now.path);
    const again = protectedPathAt(now.path, now);
    if (again !== null) this.#known.set(now.path, this.#remember(again));
  }

  /**
   * Accepts a new path, or sets aside its forbidden parts. `before`: an earlier file at this path.
   */
  #judgeNew(one: ProtectedPath, spared: Spared, before: KnownPath | null): void {
    const clone = isNamePath(one) ? this.#newRepositoryAround(one.path) : null;
    const isSpared =
      spared === 'all' || (spared === 'unfinished' && clone !== null && isLocked(clone));
    if (clone !== null && isSpared) return;
    const allowedPart = this.#allowedPart(one, clone);
    if (allowedPart === 'all') {
      this.#accept(one, before);
    } else if (one.kind === 'folder' && this.#holdsAllowed(one.path)) {
      this.#judgeInside(NO_MARKS, one);
    } else {
      this.#setAside(one.path, one.namedBy, allowedPart, before === null);
      if (before !== null && !this.#restore(before) && allowedPart !== null)
        createFile(one.path, allowedPart.bytes, one.mode);
    }
  }

  /** Accepts a new path with allowed content. */
  #accept(one: ProtectedPath, before: KnownPath | null): void {
    const wasMoved = this.#wasMoved(one);
    const isByOthers = this.#isMadeByOthers(one) && !wasMoved;
    if (one.kind === 'repository' && before === null && !wasMoved) {
      const top = path.dirname(one.path);
      this.#newRepositories.add(top);
      if (this.#isNewFolder(top)) this.#unfinished.add(top);
    }
    // worktrees of others come and go
    if (isByOthers && !isInWorktreeFolder(one.path) && !this.#isHarmless(one))
      this.#acceptOthers(before === null ? 'appeared' : 'was changed', one, before);
    else this.#known.set(one.path, this.#remember(one));
  }

  /**
   * The part of a new or changed path that may stay, see the table of the class. Null: none.
   * `clone`: the folder of a new repository around it.
   */
  #allowedPart(one: ProtectedPath, clone: string | null = null): 'all' | CleanedConfig | null {
    const { path: place } = one;
    if (this.#isAllowed(place) || this.#wasMoved(one) || this.#isMadeByOthers(one)) return 'all';
    if (one.kind === 'link') return null;
    if (one.kind === 'repository') return leadsInside(place, this.#workspace) ? 'all' : null;
    if (one.inGit) return this.#isHarmless(one) ? 'all' : this.#cleanConfig(one);
    const isFromClone =
      clone !== null && filesIn(one).every((file) => this.#scan.isTracked(clone, file));
    return isFromClone ? 'all' : null;
  }

  /** Whether git runs no program because of a path in a git folder. */
  #isHarmless(one: ProtectedPath): boolean {
    if (one.kind === 'link') return false;
    if (isFolderLike(one)) return readInside(one.path).marks.size === 0;
    return isInWorktreeFolder(one.path)
      ? isHarmlessInWorktree(one.path, this.#workspace)
      : this.#cleanConfig(one)?.isSame === true;
  }

  /** The allowed part of a configuration of git; null: none, or not a configuration. */
  #cleanConfig({ path: place }: ProtectedPath): CleanedConfig | null {
    const isConfig = path.basename(place) === 'config' && !isInWorktreeFolder(place);
    return isConfig ? cleanConfig(place, this.#workspace) : null;
  }

  /** Whether a path is read-only for all running commands, of which there is at least one. */
  #isReadOnlyForAll(place: string): boolean {
    return !this.#isIdle && [...this.#running].every(({ bound }) => bound.has(place));
  }

  /** Accepts a path that no running command can have changed. */
  #acceptOthers(what: string, now: ProtectedPath, before: KnownPath | null): void {
    const known = this.#remember(now);
    this.#known.set(now.path, known);
    this.#noteOthers(what, before ?? known, before === null ? null : known);
  }

  /**
   * Reports a change of a protected path by another program while commands ran. `now`: null if
   * there is no content to compare. No report if the content is the same, or was unknown.
   */
  #noteOthers(what: string, before: KnownPath, now: KnownPath | null): void {
    const oldContent = before.content;
    const present = now?.content ?? null;
    if (oldContent === null || isSameContent(oldContent, present)) return;
    const places =
      before.kind === 'folder' && typeof oldContent === 'string' && typeof present === 'string'
        ? changedPlaces(oldContent, present)
        : [before.path];
    const names = places.filter((place) => !this.#isAllowed(place)).map((one) => this.#shown(one));
    if (names.length === 0) return;
    this.#note(
      `${firstOf(names, NAMED_MAX)} ${what} while a command ran in the sandbox, ` +
        'in which it was read-only: by another program or by a fault of the sandbox; it was left ' +
        'as it is',
      'Look at it if that was not you.',
    );
  }

  /**
   * Whether no running command can have made a path: its git folder was read-only for all of them,
   * and they could not replace it. The user or another session has made it, for example with
   * `git worktree add`.
   */
  #isMadeByOthers({ inGit, path: place }: ProtectedPath): boolean {
    const isFixed = (folder: string): boolean =>
      !isWithin(folder, this.#workspace) || path.dirname(folder) === this.#workspace;
    const isClosedFor = ({ closed }: Writer): boolean =>
      closed.some((folder) => isWithin(place, folder) && isFixed(folder));
    return inGit && this.#running.size > 0 && [...this.#running].every(isClosedFor);
  }

  /**
   * The new folder of a new repository around a path, both made by a running command; else null.
   */
  #newRepositoryAround(place: string): string | null {
    for (let top = path.dirname(place); isWithin(top, this.#workspace); top = path.dirname(top)) {
      if (top === this.#workspace) return null;
      if (entryStatus(path.join(top, '.git')) === null) continue;
      return this.#isNewFolder(top) ? top : null;
    }
    return null;
  }

  #isNewFolder(folder: string): boolean {
    if (this.#unfinished.has(folder)) return true;
    if (this.#foldersBefore === null || this.#foldersBefore.has(folder) || this.#walk.has(folder))
      return false;
    const madeMs = entryStatus(folder)?.birthtimeMs ?? 0;
    return madeMs === 0 || madeMs >= (this.#walk.sinceMs ?? 0);
  }

  /** Sets aside the paths that came with a repository which no longer exists. */
  #judgeOrphans(top: string): void {
    if (entryStatus(path.join(top, '.git')) !== null) return;
    this.#newRepositories.delete(top);
    for (const known of this.#known.values()) {
      if (!isWithin(known.path, top) || !isNamePath(known)) continue;
      this.#known.delete(known.path);
      this.#setAside(known.path, null);
    }
  }

  /** Whether a path was moved along with its folder, and no command could write to it. */
  #wasMoved(one: ProtectedPath): boolean {
    if (one.kind === 'link') return false;
    const isUntouched = (known: KnownPath, now: ProtectedPath): boolean =>
      known.dev === now.dev && known.ino === now.ino && this.#isReadOnlyForAll(known.path);
    if (!isGitPath(one))
      return [...this.#known.values(), ...this.#removed].some(
        (known) => known.links === one.links && isUntouched(known, one),
      );
    // A part of a repository counts as moved only together with it: alone, git might not have
    // obeyed it before.
    const [, folder = '', inner = ''] =
      one.kind === 'repository' ? ['', one.path] : (/^(.*\/\.git)(\/.*)$/.exec(one.path) ?? []);
    const now = protectedPathAt(folder);
    const oldFolder = this.#removed.find(
      (known) => known.kind === 'repository' && now !== null && isUntouched(known, now),
    );
    const before = oldFolder === undefined ? null : oldFolder.path + inner;
    return this.#removed.some((known) => known.path === before && isUntouched(known, one));
  }

  /**
   * Whether a command can't rename a path: mount points can't be renamed, nor can the folders above
   * them up to the next mount point. True for `.envrc` and `.git` at the top of the workspace,
   * `config` in that `.git`, and `.github/workflows`; false for `sub/.envrc`.
   */
  #isUnmovable(place: string): boolean {
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

  /** Judges the paths of a background walk. Known ones are judged by the quick scan. */
  #judgeWalk({ folders, isCut, places, sinceMs, isEnd }: WalkEnd): void {
    const spared = !isEnd ? 'all' : this.#isIdle ? 'none' : 'unfinished';
    if (isCut)
      this.#notes.push(
        `the workspace has more than ${folders} folders: not all were looked through`,
      );
    // A protected name is protected everywhere, so only the change times of the path itself and of
    // its content count, whether or not a folder above was moved.
    const judge = (one: ProtectedPath): void => {
      if (this.#known.has(one.path)) return;
      const isOld =
        one.changedMs < sinceMs &&
        (one.kind !== 'folder' || readInside(one.path).newestMs < sinceMs);
      if (isOld) this.#known.set(one.path, this.#remember(one));
      else this.#judgeNew(one, spared, null);
    };
    for (const { path: place, isGitFolder: isBare } of places) {
      const one = isBare ? null : protectedPathAt(place);
      if (one !== null) judge(one);
      for (const code of this.#scan.listCode(place, isBare ? true : undefined)) judge(code);
      // from now on the quick scan includes it
      if (entryStatus(place) !== null) this.#scan.follow(place, isBare);
    }
  }

  /** Takes over the guard of a killed session. Its commands count as one running command. */
  #takeOver(guard: InterruptedGuard): void {
    const command = { bound: new Set(guard.bound), closed: guard.closed ?? [] };
    this.#running.add(command);
    this.#interrupted = [...this.#interrupted, { command, guard }];
    this.#walk.cover(guard.sinceMs); // the next walk judges what has changed since then
    for (const { target, ...one } of guard.known)
      this.#known.set(one.path, { mode: 0o644, ...one, content: target });
  }

  /** Judges the changes of interrupted commands once they have ended. */
  #releaseInterrupted(): void {
    const ended = this.#interrupted.filter(({ guard }) => !guard.isAlive());
    if (ended.length === 0) return;
    this.#judge(this.#running.size > ended.length ? 'unfinished' : 'none');
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
      return { ...one, target: typeof content === 'string' ? content : null };
    });
    // one list for all commands: paths to which none of them can write
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
      commandsOf: this.#interrupted.flatMap(({ guard }) => guard.commandsOf ?? []),
    });
  }

  /**
   * Sets a path aside, and reports it. `namedBy`: see ProtectedPath. `allowedPart`: of a
   * configuration; `inPlace`: it is written in place of the whole. Without a report if only the
   * form of the configuration was changed.
   */
  #setAside(
    place: string,
    namedBy: string | null,
    allowedPart: CleanedConfig | null = null,
    inPlace = false,
  ): void {
    if (
      ![this.#workspace, this.#repository?.common ?? this.#workspace].some((one) =>
        isWithin(place, one),
      )
    )
      return;
    const folder = this.#nextFolder();
    const replaced =
      inPlace && allowedPart !== null ? replaceKeepingCopy(place, allowedPart.bytes, folder) : null;
    const moved = replaced ?? setAside(place, folder);
    if (moved === null) this.#noteUnmoved(place);
    if (moved === null || allowedPart?.removed.length === 0) return;
    const byName = (): string =>
      findProtection(path.relative(this.#workspace, place))?.why ?? 'git obeys it';
    const ownReason = this.#options.userPlaces.some((one) => isWithin(place, one))
      ? USER_PLACE
      : byName();
    const why = namedBy === null ? ownReason : `git's configuration names it: ${namedBy}`;
    const action =
      allowedPart === null
        ? 'what appeared there while a command ran was moved away'
        : `of what a command wrote there, ${firstOf([...new Set(allowedPart.removed)], NAMED_MAX)} was taken out`;
    this.#note(
      `${this.#shown(place)} is protected (${why}); ${action}`,
      `If you made it, move it back when no command runs: mv ${shellWords([moved, place])}`,
      ADVICE,
    );
  }

  /** A new folder for what is set aside. */
  #nextFolder(): string {
    this.#count += 1;
    return path.join(this.#options.folder, String(this.#count));
  }

  /** Reports once that a path could not be moved away. */
  #noteUnmoved(place: string): void {
    const changedMs = entryStatus(place)?.ctimeMs;
    if (changedMs === undefined || this.#unmoved.get(place) === changedMs) return;
    this.#unmoved.set(place, changedMs);
    this.#note(
      `${this.#shown(place)} is protected; what a command made there could not be moved away`,
      'Look at it before you use the folder.',
      'remove it',
    );
  }

  /** Restores a symlink, or a small file that was writable for a command. True if it did. */
  #restore({ kind, path: place, content, links, mode }: KnownPath): boolean {
    if (this.#isAllowed(place)) return false; // its removal was allowed
    // creation fails if the folder is missing or the path is in use: those are judged separately
    const isInNewRepository = [...this.#newRepositories].some((top) => isWithin(place, top));
    const isExposed = !this.#isReadOnlyForAll(place);
    let restored: string | null = null;
    if (kind === 'file' && Buffer.isBuffer(content) && links < 2 && isExposed && !isInNewRepository)
      restored = createFile(place, content, mode) ? 'its old content' : null;
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

  /** Adds a line for the model, and tells the user at once, in case the model never reads it. */
  #note(line: string, forUser = '', forModel = ''): void {
    this.#notes.push(forModel === '' ? line : `${line}; ${forModel}`);
    this.#options.tellUser(`the sandbox: ${line}. ${forUser}`.trim());
  }

  #shown(place: string): string {
    return isWithin(place, this.#workspace) ? path.relative(this.#workspace, place) : place;
  }
}

/** The fingerprint of an empty folder. */
const NO_MARKS = '[]';

const findIndex = (top: string): string | null => {
  const folders = gitFoldersAt(path.join(top, '.git'));
  return folders === null ? null : path.join(folders.folder, 'index');
};

/** Whether git is writing the files of a repository, as until the end of a clone. */
const isLocked = (top: string): boolean => entryStatus(`${findIndex(top)}.lock`) !== null;

/** Whether git tracks nothing in a repository yet. */
const isUnfinished = (top: string): boolean => {
  const index = findIndex(top);
  return index !== null && (isLocked(top) || entryStatus(index) === null);
};

/** Whether it is a repository, or a file of one that git obeys. */
const isGitPath = ({ kind, inGit }: ProtectedPath): boolean => inGit || kind === 'repository';

/** Whether a path outside of git folders is protected by its own name. */
const isNamePath = ({ kind, inGit, namedBy }: ProtectedPath): boolean =>
  !inGit && namedBy === null && (kind === 'file' || kind === 'folder');

/** Paths that differ between two fingerprints of a folder; folders only if no file does. */
const changedPlaces = (before: string, now: string): readonly string[] => {
  const [old, present] = [readMarks(before), readMarks(now)];
  const places = [...new Set([...present.keys(), ...old.keys()])].filter(
    (place) => old.get(place) !== present.get(place),
  );
  const leaves = places.filter((place) => entryStatus(place)?.isDirectory() !== true);
  return leaves.length > 0 ? leaves : places;
};

/** The files of a protected path: itself, or all files in it. */
const filesIn = (one: ProtectedPath): readonly string[] =>
  isFolderLike(one)
    ? [...readInside(one.path).marks.keys()].filter(
        (place) => entryStatus(place)?.isDirectory() === false,
      )
    : [one.path];

// ---- The record of a guard, for a later process ----

export type RecordedPath = Omit<ProtectedPath, 'mode'> & {
  /** Earlier versions lack it. */
  readonly mode?: number;
  /** The target of a symlink, the fingerprint of a folder; null for anything else. */
  readonly target: string | null;
};

/**
 * The protected paths before the running commands, in a file of the session. The file exists while
 * fenced commands that may write run. If Pawl was killed, it stays, and the next session in the
 * workspace judges later changes.
 */
export type RecordedGuard = {
  readonly workspace: string;
  readonly known: readonly RecordedPath[];
  /** Paths that were read-only for every running command. */
  readonly bound: readonly string[];
  /** Git folders in which no running command could change anything. Earlier versions lack it. */
  readonly closed?: readonly string[];
  /** Start of the first command, in ms. */
  readonly sinceMs: number;
  /**
   * Folders of other killed processes whose commands are among the running ones. Earlier versions
   * lack it.
   */
  readonly commandsOf?: readonly string[];
};

export type InterruptedGuard = RecordedGuard & {
  /** Whether one of the commands still runs. */
  isAlive(): boolean;
};

export type GuardRecord = {
  write(guard: RecordedGuard): void;
  /** Call it when no command runs. */
  remove(): void;
  /** Stores unread lines at the end of the session, for the next session in the workspace. */
  leaveNotes(workspace: string, notes: readonly string[]): void;
};

type LeftNotes = { readonly workspace: string; readonly notes: readonly string[] };

/** The record in the folder of a process. */
export const guardRecordIn = (sessionFolder: string): GuardRecord => ({
  write(guard) {
    try {
      writePrivateSync(protectedRecord(sessionFolder), JSON.stringify(guard));
    } catch {
      // The disk is full, or the session has no folder: the command itself will fail with a reason.
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

/** Null if it is missing. Earlier versions may have left it empty or cut. */
const readRecord = <T>(file: string): T | null => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T; // only we write to it
  } catch {
    return null;
  }
};

/** Null if there is none: then no command that may write was running. */
export const readGuardRecord = (sessionFolder: string): RecordedGuard | null =>
  readRecord<RecordedGuard>(protectedRecord(sessionFolder));

/** Reads and removes the notes of a session for this workspace. */
export const takeNotes = (sessionFolder: string, workspace: string): readonly string[] => {
  const left = readRecord<LeftNotes>(notesIn(sessionFolder));
  if (left?.workspace !== workspace) return [];
  rmSync(notesIn(sessionFolder), { force: true });
  return left.notes;
};
