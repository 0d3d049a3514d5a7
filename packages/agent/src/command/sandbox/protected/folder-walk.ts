import { lstatSync, type Stats } from 'node:fs';
import { type FolderContents, isStill, readFolder } from './read-folder.js';

/**
 * Walks the folders that the quick scan leaves out, in slices beside other work.
 *
 * No folder is skipped and none is too deep. A folder is read again only if it has changed, so at rest a walk costs a
 * few microseconds a folder.
 */

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

export type FolderWalk = {
  /** Starts at these folders, unless a walk is under way. */
  start(frontier: readonly Frontier[]): void;
  /** Reads so many folders at most. Returns whether the walk has ended. */
  step(foldersMax: number): boolean;
  readonly isRunning: boolean;
  /** Number of folders of the last complete walk. */
  readonly folders: number;
  /** Folders that the last complete walk did not reach, since there are too many. */
  readonly isCut: boolean;
  /** Whether an earlier walk than the last one has seen this folder. */
  has(folder: string): boolean;
  /** Protected places of the last complete walk. */
  readonly places: readonly WalkedPlace[];
};

const FOLDERS_MAX = 300_000;

type Visit = { readonly contents: FolderContents; readonly firstRound: number; round: number };

const folderStatus = (folder: string): Stats | null => {
  try {
    const status = lstatSync(folder, { throwIfNoEntry: false });
    return status?.isDirectory() ? status : null;
  } catch {
    return null; // closed to us, so to commands as well
  }
};

class Walk implements FolderWalk {
  readonly #known = new Map<string, Visit>();
  #open: Frontier[] = [];
  #found: WalkedPlace[] = [];
  #round = 0;
  #count = 0;
  isRunning = false;
  isCut = false;
  folders = 0;
  places: readonly WalkedPlace[] = [];

  start(frontier: readonly Frontier[]): void {
    if (this.isRunning) return;
    this.isRunning = true;
    this.#round += 1;
    this.#count = 0;
    this.#found = [];
    this.#open = [...frontier];
  }

  has(folder: string): boolean {
    const visit = this.#known.get(folder);
    return visit !== undefined && visit.firstRound < this.#round;
  }

  step(foldersMax: number): boolean {
    if (!this.isRunning) return true;
    for (let left = foldersMax; left > 0; left--) {
      const next = this.#open.pop();
      if (next === undefined || this.#count >= FOLDERS_MAX) {
        this.#end(next !== undefined);
        return true;
      }
      this.#visit(next);
    }
    return false;
  }

  #end(isCut: boolean): void {
    this.isRunning = false;
    this.isCut = isCut;
    this.folders = this.#count;
    this.places = this.#found;
    this.#open = [];
    if (this.#known.size === this.#count) return;
    for (const [folder, { round }] of this.#known) if (round !== this.#round) this.#known.delete(folder);
  }

  #visit(at: Frontier): void {
    const status = folderStatus(at.folder);
    if (status === null) return;
    this.#count += 1;
    const contents = this.#read(at, status);
    const { isInPackages } = at;
    for (const folder of contents.packages) this.#open.push({ folder, isInPackages: true });
    for (const folder of contents.results) this.#open.push({ folder, isInPackages });
    for (const folder of contents.folders) this.#open.push({ folder, isInPackages });
    for (const place of contents.found) this.#found.push({ path: place, isGitFolder: false });
    if (contents.isGitFolder) this.#found.push({ path: at.folder, isGitFolder: true });
  }

  #read({ folder, isInPackages }: Frontier, status: Stats): FolderContents {
    const before = this.#known.get(folder);
    if (before !== undefined && isStill(before.contents, status)) {
      before.round = this.#round;
      return before.contents;
    }
    const contents = readFolder(folder, status, isInPackages ? 'inPackages' : 'everywhere');
    const firstRound = before?.firstRound ?? this.#round;
    this.#known.set(folder, { contents, firstRound, round: this.#round });
    return contents;
  }
}

export const createFolderWalk = (): FolderWalk => new Walk();
