/**
 * Looks at the workspace of a session: which names (paths in it) may differ from what is known of
 * them. A small workspace is looked at as a whole. In a large one a thread (scan-thread.ts) watches
 * the folders, and only what they reported is looked at.
 */

import { rm } from 'node:fs/promises';
import type { KnownFiles } from './known-files.js';
import {
  type FileEntry,
  foldersAround,
  inSlices,
  type Listing,
  lookAt,
  lookAtAll,
  type WorkspaceLister,
} from './scan.js';
import type { ScanThread, ThreadLook } from './scan-thread.js';

/** `names`: all that may have changed; `entries`: those of them that are there. */
export type WorkspaceLook = {
  readonly listing: Listing;
  readonly names: readonly string[];
  readonly entries: ReadonlyMap<string, FileEntry>;
};

type Sources = {
  readonly known: KnownFiles;
  /** Files that tools have named, also such that git ignores. */
  readonly named: ReadonlySet<string>;
  readonly lister: WorkspaceLister;
};

/** Smaller workspaces are looked at as a whole, without a thread. */
const SMALL_FILES_MAX = 2_000;
/** How often a list of names may change while it is made, before everything is looked at. */
const LISTINGS_MAX = 5;

/** What git lists, and the folders around it. */
class ListedNames {
  readonly listing: Listing;
  readonly files: ReadonlySet<string>;
  readonly folders: ReadonlySet<string>;

  constructor(listing: Listing) {
    this.listing = listing;
    this.files = listing.names;
    this.folders = new Set(foldersAround([...listing.names]));
  }

  /** Whether the names are the same. */
  isFor(listing: Listing): boolean {
    const { names } = listing;
    if (listing === this.listing) return true;
    return names.size === this.files.size && [...names].every((name) => this.files.has(name));
  }
}

export class WorkspaceLooks {
  readonly #workspace: string;
  /** A folder for the thread. */
  readonly #marks: string;
  readonly #sources: Sources;
  /** Null: there is none, or none any more. */
  #thread: ScanThread | null = null;
  /** The thread could not be started, or has ended. */
  #hasFailed = false;
  /** The names that were sent to the thread. */
  #listed: ListedNames | null = null;
  /** Folders that reported something since git's list was last known to hold; null: any. */
  #reported: Set<string> | null = null;
  #isWatching = false;

  /** `marks`: a folder in which the thread makes files. */
  constructor(workspace: string, marks: string, sources: Sources) {
    this.#workspace = workspace;
    this.#marks = marks;
    this.#sources = sources;
  }

  /** Whether a look costs no more than what changed. */
  areQuick({ names }: Listing): boolean {
    return names.size <= SMALL_FILES_MAX || this.areByReport;
  }

  /** Whether looks rely on what folders report. */
  get areByReport(): boolean {
    return this.#thread !== null && this.#isWatching;
  }

  /**
   * The first scan. Files that equal their blob and have not changed since `listedAtMs` become
   * known, in a large workspace; returns all else that is there. `except`: names that it is to
   * return in any case.
   */
  async scan(
    listing: Listing,
    listedAtMs: number,
    except: ReadonlySet<string>,
  ): Promise<ReadonlyMap<string, FileEntry>> {
    const { clean } = listing;
    const names = [...listing.names];
    const isLarge = names.length > SMALL_FILES_MAX && clean !== null && !this.#hasFailed;
    const thread = isLarge ? await this.#start() : null;
    if (thread === null || clean === null) return lookAtAll(this.#workspace, names);
    const { known, lister } = this.#sources;
    const folders = foldersAround(names);
    thread.sendFolders(lister.folders ?? ['', ...folders]);
    for await (const slice of inSlices(clean.keys()))
      for (const name of slice) if (!known.has(name)) known.table.add(name);
    thread.sendNames(known.table.takeUnsent());
    const found = await thread.scan();
    if (found === null) return lookAtAll(this.#workspace, names);
    this.#note(found);
    const unchanged = new Map<string, string>();
    const others: string[] = [];
    for await (const slice of inSlices(names))
      for (const name of slice) {
        const blob = except.has(name) ? undefined : clean.get(name);
        const changedAtMs = blob === undefined ? 0 : known.table.changedAtMs(name);
        if (blob !== undefined && changedAtMs > 0 && changedAtMs < listedAtMs)
          unchanged.set(name, blob);
        else {
          others.push(name);
          if (!known.has(name)) known.table.put(name, null);
        }
      }
    known.setClean(unchanged);
    return lookAtAll(this.#workspace, others, folders);
  }

  /** `last`: the names at the last look. `isWhole`: also at what has reported nothing. */
  async look(last: Listing | null, isWhole: boolean): Promise<WorkspaceLook> {
    const isLarge = last !== null && last.names.size > SMALL_FILES_MAX && !this.#hasFailed;
    const thread = isLarge ? (this.#thread ?? (await this.#start())) : null;
    const look = thread === null ? null : await this.#lookBy(thread, isWhole);
    if (look !== null) return look;
    const { known, named, lister } = this.#sources;
    const listing = await lister.list(false); // not which files equal git's blobs
    const entries = await lookAtAll(this.#workspace, [...listing.names, ...named]);
    return { listing, entries, names: [...new Set([...known.names(), ...entries.keys()])] };
  }

  /** The names that reports say differ from what is known; null: there are no reports. */
  async reported(): Promise<readonly string[] | null> {
    const thread = this.#thread;
    if (thread === null || !this.#isWatching) return null;
    thread.sendNames(this.#sources.known.table.takeUnsent());
    const look = await thread.look(false);
    if (look === null) return null; // the next look closes it
    this.#note(look);
    return look.changed;
  }

  async #start(): Promise<ScanThread | null> {
    try {
      const { ScanThread } = await import('./scan-thread.js');
      this.#thread = new ScanThread(this.#workspace, this.#marks);
    } catch {
      this.#hasFailed = true; // no thread can be started: looks are at everything
    }
    return this.#thread;
  }

  /** A look with the thread's help. Null: it can't help, so everything has to be looked at. */
  async #lookBy(thread: ScanThread, isWhole: boolean): Promise<WorkspaceLook | null> {
    const { known, lister } = this.#sources;
    for (let time = 0; time < LISTINGS_MAX; time++) {
      thread.sendNames(known.table.takeUnsent());
      const found = await thread.look(isWhole && time === 0);
      if (found === null) {
        await this.close();
        return null;
      }
      this.#note(found);
      const listing = await lister.list(false, this.#reported);
      this.#reported = new Set(); // the list holds now, so only later reports count
      if (this.#listed?.isFor(listing)) return this.#lookAt(listing, found.changed);
      await this.#sendNames(thread, listing);
    }
    return null; // names come and go all the time
  }

  /** Notes which folders reported something. */
  #note({ reported, isWatching }: ThreadLook): void {
    this.#isWatching = isWatching;
    if (reported === null) this.#reported = null;
    else for (const folder of reported) this.#reported?.add(folder);
  }

  /** Sends the names to look at and the folders to watch. */
  async #sendNames(thread: ScanThread, listing: Listing): Promise<void> {
    const { known, named, lister } = this.#sources;
    const listed = new ListedNames(listing);
    this.#listed = listed;
    for (const names of [listed.files, listed.folders, named])
      for await (const slice of inSlices(names))
        for (const name of slice) if (!known.has(name)) known.table.add(name);
    thread.sendNames(known.table.takeUnsent());
    thread.sendFolders(lister.folders ?? ['', ...listed.folders]);
  }

  /** Looks at the names that the thread has found, if a whole look would include them. */
  #lookAt(listing: Listing, changed: readonly string[]): WorkspaceLook {
    const { known, named } = this.#sources;
    const entries = new Map<string, FileEntry>();
    const aroundNamed = new Set(foldersAround([...named]));
    const names = changed.filter((name) => {
      const isFolder = this.#listed?.folders.has(name) || aroundNamed.has(name);
      const isFile = this.#listed?.files.has(name) || named.has(name);
      const entry = isFolder || isFile ? lookAt(this.#workspace, name) : null;
      const isListed = entry?.kind === 'folder' ? isFolder : isFile;
      if (entry !== null && isListed) entries.set(name, entry);
      return entries.has(name) || known.has(name);
    });
    return { listing, names, entries };
  }

  async close(): Promise<void> {
    const thread = this.#thread;
    this.#thread = null;
    this.#hasFailed = true;
    if (thread === null) return;
    await thread.close();
    await rm(this.#marks, { recursive: true, force: true });
  }
}
