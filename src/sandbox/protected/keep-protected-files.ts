import { readFileSync, readlinkSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { protectionOf } from '../../agent/policy/paths/protected-paths.js';
import { isWithin } from '../../files/is-within.js';
import {
  areHarmlessHooks,
  isHarmlessConfig,
  isHarmlessRepository,
  isHarmlessWorktree,
} from './harmless-repository.js';
import { createProtectedScan, type ProtectedPath, type Scan } from './protected-scan.js';
import { setAside, writeBack } from './set-file-aside.js';

/**
 * Keeps the protected paths of a workspace as they are while fenced commands run.
 *
 * 1. Existing protected paths are mounted read-only for each command (protected-mounts.ts). New ones are set aside.
 * 2. While no command runs, changes are the user's own and are accepted.
 * 3. A repository that a command makes may stay, with its contents, if nothing in it runs a program.
 */

/** One running command, with the paths that are read-only for it. */
export type WritingCommand = { readonly bound: ReadonlySet<string> };

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
};

/** In bytes. The content of longer files with several names is not kept for restoring. */
const COPY_MAX = 1024 * 1024;

type Known = ProtectedPath & {
  /** The target of a symlink; `content` of a file with several names. */
  readonly target: string | null;
  readonly content: Buffer | null;
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
});

const isSame = (one: ProtectedPath, other: ProtectedPath): boolean =>
  one.ino === other.ino &&
  one.dev === other.dev &&
  (one.kind === 'folder' ||
    one.kind === 'repository' ||
    (one.changedMs === other.changedMs && one.size === other.size));

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

class ProtectedFilesKeeper implements ProtectedFiles {
  readonly #workspace: string;
  readonly #folder: string;
  readonly #scan;
  #known = new Map<string, Known>();
  /** Paths that were known and no longer exist. */
  #gone: readonly Known[] = [];
  readonly #running = new Set<WritingCommand>();
  readonly #allowed = new Set<string>();
  /** Folders with a repository that a command of this session made. */
  readonly #made = new Set<string>();
  #notes: string[] = [];
  #count = 0;

  constructor(workspace: string, folder: string) {
    this.#workspace = workspace;
    this.#folder = folder;
    this.#scan = createProtectedScan(workspace);
  }

  look(repository: string | null): Scan {
    if (this.#running.size === 0) return this.#take(repository);
    this.#judge(repository, true);
    return this.#scan.look(repository);
  }

  begin(running: WritingCommand): void {
    this.#running.add(running);
  }

  end(running: WritingCommand, repository: string | null): readonly string[] {
    this.#judge(repository, true);
    this.#running.delete(running);
    const notes = this.#notes;
    this.#notes = [];
    return notes;
  }

  sweep(repository: string | null): void {
    this.#judge(repository, false);
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

  #take(repository: string | null): Scan {
    const scan = this.#scan.look(repository);
    const known = new Map<string, Known>();
    for (const one of scan.found.values()) {
      const before = this.#known.get(one.path);
      known.set(one.path, before !== undefined && isSame(before, one) ? before : knownOf(one));
    }
    this.#known = known;
    return scan;
  }

  acceptNew(repository: string | null): void {
    for (const one of this.#scan.look(repository).found.values()) {
      if (!this.#known.has(one.path)) this.#known.set(one.path, knownOf(one));
    }
  }

  #judge(repository: string | null, isEnd: boolean): void {
    const { found } = this.#scan.look(repository);
    this.#gone = [...this.#known.values()].filter((one) => !found.has(one.path));
    for (const one of this.#gone) {
      this.#known.delete(one.path);
      this.#restore(one);
    }
    for (const one of found.values()) {
      const before = this.#known.get(one.path);
      if (before === undefined) this.#judgeNew(one, isEnd, null);
      else if (!isSame(before, one)) this.#judgeChanged(before, one, isEnd);
    }
  }

  #judgeChanged(before: Known, now: ProtectedPath, isEnd: boolean): void {
    if (before.content !== null && before.ino === now.ino) {
      this.#judgeContent(before, now);
      return;
    }
    const isExposed = [...this.#running].some(
      ({ bound }) => !bound.has(now.path) || (before.ino !== now.ino && !this.#isPinned(now.path)),
    );
    if (isExposed) this.#judgeNew(now, isEnd, before);
    else this.#known.set(now.path, knownOf(now));
  }

  /** Restores a file that was changed through another of its hard links. */
  #judgeContent(before: Known, now: ProtectedPath): void {
    const content = before.content;
    if (content === null || contentOf({ ...now, links: 2 })?.equals(content) === true) {
      this.#known.set(now.path, { ...now, target: null, content });
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
    const { found } = this.#scan.look(null);
    const again = found.get(now.path);
    if (again !== undefined) this.#known.set(now.path, knownOf(again));
  }

  #judgeNew(one: ProtectedPath, isEnd: boolean, before: Known | null): void {
    if (this.#mayStay(one)) {
      if (one.kind === 'repository' && before === null && isEnd) this.#made.add(path.dirname(one.path));
      if (isEnd || !this.#isBeingMade(one)) this.#known.set(one.path, knownOf(one));
      return;
    }
    if (!isEnd && this.#isBeingMade(one)) return;
    this.#putAway(one);
    if (before !== null) this.#restore(before);
  }

  /** Whether a clone may be under way: git writes its configuration step by step. */
  #isBeingMade(one: ProtectedPath): boolean {
    if (one.kind === 'repository') return true;
    return one.inGit && !this.#repositories().some((folder) => isWithin(one.path, folder));
  }

  #mayStay(one: ProtectedPath): boolean {
    const place = one.path;
    if (this.#allowed.has(place) || this.#wasMoved(one)) return true;
    if (one.kind === 'repository') return isHarmlessRepository(place, this.#workspace, this.#repositories());
    if (one.inGit) return one.kind !== 'link' && isHarmlessCode(place, this.#workspace);
    return [...this.#made].some((top) => top !== this.#workspace && isWithin(place, top));
  }

  /** Whether a path was moved along with its folder, and no command could write to it. */
  #wasMoved(one: ProtectedPath): boolean {
    if (one.inGit || one.kind === 'link') return false;
    return [...this.#known.values(), ...this.#gone].some(
      (known) =>
        known.dev === one.dev &&
        known.ino === one.ino &&
        known.links === one.links &&
        [...this.#running].every(({ bound }) => bound.has(known.path)),
    );
  }

  /** Whether a path can't be renamed: mount points can't, nor can the folders above them up to the next mount point. */
  #isPinned(place: string): boolean {
    const parent = path.dirname(place);
    const isPart = path.basename(parent).startsWith('.') && path.dirname(parent) === this.#workspace;
    if (parent === this.#workspace || isPart) return true;
    return this.#repositories().some((folder) => isWithin(place, folder));
  }

  #repositories(): readonly string[] {
    return [...this.#known.values()].filter(({ kind }) => kind === 'repository').map((one) => one.path);
  }

  #putAway(one: ProtectedPath): void {
    this.#count += 1;
    const moved = setAside(one.path, path.join(this.#folder, String(this.#count)));
    if (moved === null) return;
    const why = protectionOf(path.relative(this.#workspace, one.path))?.why ?? 'git obeys it';
    this.#notes.push(
      `${this.#shown(one.path)} is protected (${why}); what the command put there was moved to ${moved}`,
    );
  }

  #restore(gone: Known): void {
    if (gone.kind !== 'link' || gone.target === null) return;
    try {
      symlinkSync(gone.target, gone.path);
      this.#notes.push(`${this.#shown(gone.path)} is protected, so the symlink was restored`);
    } catch {
      // Its folder is gone as well, or something else stands there, which is judged by itself.
    }
  }

  #shown(place: string): string {
    return isWithin(place, this.#workspace) ? path.relative(this.#workspace, place) : place;
  }
}

/** `folder` receives the files that are set aside. */
export const createProtectedFiles = (workspace: string, folder: string): ProtectedFiles =>
  new ProtectedFilesKeeper(workspace, folder);
