/**
 * Watches the folders of a large workspace, so that a look costs no more than what has changed.
 *
 * 1. The kernel queues the event of a change before the call that made it returns, and delivers
 *    all events in order. So once a file that was made here is reported, all earlier changes are.
 * 2. Where events may be missing, anything may have changed.
 * 3. Not reported: writes through a mapping, or by a hard link that lies elsewhere. Only a look at
 *    all files finds them.
 */

import {
  closeSync,
  type FSWatcher,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  watch as watchFolder,
} from 'node:fs';
import path from 'node:path';
import { errorCode } from '../../platform/files.js';
import { placeOf, splitName } from './file-entries.js';

/** Folders in which something may have changed, and the names that events had. */
export type Reports = { readonly folders: Set<string>; readonly names: Set<string> };

const noReports = (): Reports => ({ folders: new Set(), names: new Set() });

/** How long to wait for the event of a file that was made here. */
const MARK_MS = 5_000;
const FOLDERS_MAX = 10_000;
/** Share of the watches that the user may have: editors need some too. */
const SHARE_OF_WATCHES = 1 / 4;
/**
 * Types of file systems that are local, and so report all changes: ext, xfs, btrfs, tmpfs, overlay,
 * zfs, f2fs, bcachefs.
 */
const FILE_SYSTEMS = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1, 0xf2f52010, 0xca451a4e,
]);

type WatchedFolder = { readonly inode: bigint; readonly watcher: FSWatcher };

export class FolderWatch {
  readonly #workspace: string;
  readonly #marks: string;
  readonly #watched = new Map<string, WatchedFolder>();
  /** Watched folders that were removed or moved: another one at their place may have their inode. */
  readonly #gone = new Set<string>();
  /** Null: folders can't be watched. `events`: so many are certainly not too many for the queue. */
  #limits: { readonly folders: number; readonly events: number } | null;
  #marksWatcher: FSWatcher | null = null;
  /** What was reported since the last `take`; null: anything may have changed. */
  #reports: Reports | null = noReports();
  #events = 0;
  /** The file whose event is awaited. */
  #mark: { readonly name: string; seen(isInOrder: boolean): void } | null = null;
  #markCount = 0;

  /** `marks`: a folder of its own, outside of the workspace, in which it makes files. */
  constructor(workspace: string, marks: string) {
    this.#workspace = workspace;
    this.#marks = marks;
    this.#limits = this.#begin();
  }

  get isWatching(): boolean {
    return this.#limits !== null;
  }

  #begin() {
    try {
      const read = (name: string): number =>
        Number(readFileSync(`/proc/sys/fs/inotify/${name}`, 'utf8'));
      if (!FILE_SYSTEMS.has(statfsSync(this.#workspace).type)) return null;
      const folders = Math.min(FOLDERS_MAX, read('max_user_watches') * SHARE_OF_WATCHES);
      // a queue that overflowed has delivered all that it held, which is more
      const limits = { folders, events: read('max_queued_events') / 2 };
      mkdirSync(this.#marks, { recursive: true, mode: 0o700 });
      this.#marksWatcher = watchFolder(this.#marks, { persistent: false }, (_, name) => {
        if (name === this.#mark?.name) this.#mark.seen(true);
      });
      this.#marksWatcher.on('error', () => this.#stop());
      return limits;
    } catch {
      return null; // another system, or no watches are left: each look is at everything
    }
  }

  #stop(): void {
    this.#limits = null;
    this.#reports = null;
    this.#marksWatcher?.close();
    for (const { watcher } of this.#watched.values()) watcher.close();
    this.#watched.clear();
    this.#mark?.seen(false);
  }

  /** Watches these folders too. Returns those that are new: what changed in them is unknown. */
  watch(folders: ReadonlySet<string>): ReadonlySet<string> {
    const added = new Set<string>();
    if (this.#limits !== null && folders.size > this.#limits.folders) this.#stop();
    for (const folder of folders) {
      if (this.#limits === null) return added;
      if (this.#watched.has(folder)) continue;
      if (this.#watchOne(folder)) added.add(folder);
    }
    return added;
  }

  #watchOne(folder: string): boolean {
    const identity = this.#identify(folder);
    if (identity === null) return false; // it may come back: it is tried again
    try {
      // another file system may report nothing
      if (identity.dev !== this.#identify('')?.dev) throw new Error('another file system');
      const options = { persistent: false, encoding: 'latin1' } as const;
      const place = placeOf(this.#workspace, folder);
      const [, ownName] = splitName(folder);
      const watcher = watchFolder(place, options, (type, name) => {
        // the event of the folder itself has its own name
        if (type === 'rename' && name === ownName) this.#gone.add(folder);
        this.#note(folder, name);
      });
      watcher.on('error', () => this.#stop());
      this.#gone.delete(folder);
      this.#watched.set(folder, { inode: identity.ino, watcher });
      this.#add(folder, null);
      return true;
    } catch (error) {
      if (!['ENOENT', 'ENOTDIR'].includes(errorCode(error))) this.#stop();
      return false;
    }
  }

  #note(folder: string, name: string | null): void {
    this.#events += 1;
    if (this.#limits !== null && this.#events > this.#limits.events) {
      this.#reports = null;
      this.#mark?.seen(false);
    }
    this.#add(folder, name);
  }

  #add(folder: string, name: string | null): void {
    this.#reports?.folders.add(folder);
    this.#reports?.names.add(folder);
    if (name !== null) this.#reports?.names.add(folder === '' ? name : `${folder}/${name}`);
  }

  /** Which folder is there; exact, unlike a number. Null: none. */
  #identify(folder: string) {
    try {
      const options = { bigint: true, throwIfNoEntry: false } as const;
      const status = lstatSync(placeOf(this.#workspace, folder), options);
      return status?.isDirectory() ? status : null;
    } catch {
      return null; // closed, or a file stands around it
    }
  }

  /** What was reported since the last call. Null: anything may have changed. */
  async take(): Promise<Reports | null> {
    const isInOrder = await this.#drain();
    if (!isInOrder) this.#reports = null;
    const reported = this.#reports?.names ?? [];
    const replaced = (folder: string): boolean => {
      const known = this.#watched.get(folder);
      if (known === undefined) return false;
      return this.#gone.has(folder) || this.#identify(folder)?.ino !== known.inode;
    };
    if (replaced('') || [...reported].some(replaced)) this.#watchAnew(replaced);
    const reports = this.#reports;
    this.#reports = this.#limits === null ? null : noReports();
    this.#events = 0;
    return reports;
  }

  /** Folders that were moved, removed or made anew; what is in them has reported nothing. */
  #watchAnew(isReplaced: (folder: string) => boolean): void {
    this.#reports = null;
    for (const [folder, { watcher }] of [...this.#watched]) {
      if (!isReplaced(folder)) continue;
      watcher.close();
      this.#watched.delete(folder);
      this.#watchOne(folder);
    }
  }

  /** Resolves when all changes until now are reported; false: some may be missing. */
  #drain(): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.#limits === null) return resolve(false);
      const name = `${this.#markCount++}`;
      const file = path.join(this.#marks, name);
      const seen = (isInOrder: boolean): void => {
        if (this.#mark?.seen === seen) this.#mark = null;
        clearTimeout(timer);
        rmSync(file, { force: true });
        resolve(isInOrder);
      };
      const timer = setTimeout(() => seen(false), MARK_MS);
      this.#mark = { name, seen };
      try {
        closeSync(openSync(file, 'w', 0o600));
      } catch {
        seen(false); // a full disk
      }
    });
  }

  close(): void {
    this.#stop();
    rmSync(this.#marks, { recursive: true, force: true });
  }
}
