/**
 * Looks at the workspace of a session: which names (paths in it) may differ from what is known of
 * them. A small workspace is looked at as a whole. In a large one folders are watched
 * (folder-watch.ts), and only what they reported is looked at.
 */

import { type FileEntry, foldersAround, lookAt, lookAtAll, splitName } from './file-entries.js';
import { FolderWatch, type Reports } from './folder-watch.js';
import type { Differences, KnownFiles } from './known-files.js';
import type { Listing, WorkspaceLister } from './workspace-lister.js';

export type WorkspaceLook = { readonly listing: Listing; readonly changed: Differences };

type Sources = {
  readonly known: KnownFiles;
  /** Files that tools have named, also such that git ignores. */
  readonly named: ReadonlySet<string>;
  readonly lister: WorkspaceLister;
};

/** Smaller workspaces are looked at as a whole. */
const SMALL_FILES_MAX = 2_000;

export class WorkspaceLooks {
  readonly #workspace: string;
  readonly #marks: string;
  readonly #sources: Sources;
  #watch: FolderWatch | null = null;
  /**
   * What was reported since the last look, and names that differed then. Null: anything may have
   * changed.
   */
  #reports: Reports | null = null;
  /** The names at the last look, and the folders around them. */
  #listed: { readonly listing: Listing; readonly folders: ReadonlySet<string> } | null = null;

  /** `marks`: a folder for the watch. */
  constructor(workspace: string, marks: string, sources: Sources) {
    this.#workspace = workspace;
    this.#marks = marks;
    this.#sources = sources;
  }

  /** Whether looks rely on what folders report. */
  get isWatching(): boolean {
    return this.#watch?.isWatching === true;
  }

  /** Whether a look costs no more than what has changed. */
  isQuick({ names }: Listing): boolean {
    return names.size <= SMALL_FILES_MAX || this.isWatching;
  }

  /** The first scan: all names of the listing that are there. */
  async scan(listing: Listing): Promise<ReadonlyMap<string, FileEntry>> {
    this.#watchFolders(listing); // before the look, so that each later change is reported
    const entries = await lookAtAll(this.#workspace, [...listing.names], this.#listed?.folders);
    this.#lookAgain([...entries].flatMap(([name, { stamp }]) => (stamp === '' ? [name] : [])));
    return entries;
  }

  /** `isWhole`: also at what has reported nothing. */
  async look(isWhole: boolean): Promise<WorkspaceLook> {
    await this.#collect();
    const listing = await this.#sources.lister.list(false, this.#reports?.folders ?? null);
    this.#watchFolders(listing);
    const isEverything = isWhole || this.#reports === null;
    const changed = isEverything ? await this.#lookAtAll(listing) : this.#lookAtReported(listing);
    this.#lookAgain(changed.keys()); // until they are known
    return { listing, changed };
  }

  /** The names that reports say may differ from what is known; null: there are no reports. */
  async reported(): Promise<readonly string[] | null> {
    await this.#collect();
    return this.#reports === null ? null : [...this.#reports.names];
  }

  /** After a look: the next one is at these names, and at what is reported from now on. */
  #lookAgain(names: Iterable<string>): void {
    this.#reports = this.isWatching ? { folders: new Set(), names: new Set(names) } : null;
  }

  /** Adds what folders have reported. */
  async #collect(): Promise<void> {
    if (this.#watch === null) return;
    const reports = await this.#watch.take();
    if (reports === null) this.#reports = null;
    for (const folder of reports?.folders ?? []) this.#reports?.folders.add(folder);
    for (const name of reports?.names ?? []) this.#reports?.names.add(name);
  }

  /** Watches the folders of a large workspace. Names that are new count as reported. */
  #watchFolders(listing: Listing): void {
    const last = this.#listed;
    if (listing !== last?.listing)
      this.#listed = { listing, folders: new Set(foldersAround([...listing.names])) };
    if (listing.names.size <= SMALL_FILES_MAX && this.#watch === null) return;
    this.#watch ??= new FolderWatch(this.#workspace, this.#marks);
    const folders = this.#listed?.folders ?? [];
    const added = this.#watch.watch(this.#sources.lister.folders ?? new Set(['', ...folders]));
    if (this.#reports === null || (listing === last?.listing && added.size === 0)) return;
    for (const names of [listing.names, folders])
      for (const name of names)
        if (!last?.listing.names.has(name) || added.has(splitName(name)[0]))
          this.#reports.names.add(name);
  }

  async #lookAtAll({ names }: Listing): Promise<Differences> {
    const { known, named } = this.#sources;
    const folders = [...(this.#listed?.folders ?? []), ...foldersAround([...named])];
    const entries = await lookAtAll(this.#workspace, [...names, ...named], folders);
    const changed = new Map<string, FileEntry | null>();
    for (const [name, entry] of entries) if (known.differs(name, entry)) changed.set(name, entry);
    for (const name of known.names()) if (!entries.has(name)) changed.set(name, null);
    return changed;
  }

  /** Looks at the reported names, if a look at everything would include them. */
  #lookAtReported({ names }: Listing): Differences {
    const { known, named } = this.#sources;
    const changed = new Map<string, FileEntry | null>();
    const aroundNamed = new Set(foldersAround([...named]));
    for (const name of new Set([...(this.#reports?.names ?? []), ...named])) {
      const isFolder = this.#listed?.folders.has(name) || aroundNamed.has(name);
      const isFile = names.has(name) || named.has(name);
      const entry = lookAt(this.#workspace, name);
      if (!known.differs(name, entry)) continue;
      const isListed = entry?.kind === 'folder' ? isFolder : isFile;
      if (isListed || known.has(name)) changed.set(name, isListed ? entry : null);
    }
    return changed;
  }

  close(): void {
    this.#watch?.close();
  }
}
