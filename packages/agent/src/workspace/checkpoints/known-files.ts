/**
 * What is known of each path of the workspace: how it was at the last look, and where its content
 * is. With it changes can be found, and taken back.
 *
 * A name is a path in the workspace, with each byte as one character (manifest.ts). Ways to take
 * over its present state as known: `set`, as given; `learn`, after a call, whose content is stored
 * already; `note`, after a change by others, whose content it stores; `noteClean` and `noteFirst`,
 * at the first scan.
 */

import { appendFile, readFile } from 'node:fs/promises';
import { attempt } from '../../platform/attempt.js';
import {
  FILE_BYTES_MAX,
  type FileEntry,
  lookAt,
  readState,
  TOO_LARGE,
  whyUnknown,
} from './file-entries.js';
import { ABSENT, type FileState } from './manifest.js';
import { type CheckpointStore, replaceFile } from './store.js';

/**
 * Where the content of a file is: in the store, in git, or nowhere. `blob`: the one of the index
 * that a clean file equals; empty for links and folders.
 */
type KnownContent =
  | { readonly kind: 'stored'; readonly sha256: string }
  | { readonly kind: 'git'; readonly blob: string }
  | { readonly kind: 'notKept'; readonly why: string };

/** How a path was at the last look, and where its content is. */
export type Known = {
  readonly entry: FileEntry;
  readonly content: KnownContent;
  /** It may hold text of the user that no commit has. */
  readonly isUsers?: true;
};

/** Reads blobs of the repository; those that are missing are left out. */
export type ReadBlobs = (blobs: readonly string[]) => Promise<ReadonlyMap<string, Buffer>>;

/** Limits of what the first scan copies. */
const COPIES_MAX = 20_000;
const COPIES_BYTES_MAX = 200 * 1024 * 1024;

/** Contents are synced one by one, unless there are more at once. */
const SYNCED_MAX = 16;

/** Of links and folders. */
const NO_CONTENT: KnownContent = { kind: 'git', blob: '' };

/** Where the content of a state is that was read just now. */
const findContent = (state: FileState): KnownContent => {
  if (state.kind === 'file') return { kind: 'stored', sha256: state.sha256 };
  return state.kind === 'notKept' ? state : NO_CONTENT;
};

/** Paths that differ from what is known of them, and how each is now; null: it is not there. */
export type Differences = ReadonlyMap<string, FileEntry | null>;

export class KnownFiles {
  readonly #files = new Map<string, Known>();
  readonly #workspace: string;
  readonly #store: CheckpointStore;
  readonly #copies = { files: 0, bytes: 0 };
  /** Names that have changed since they were written for the next process. */
  readonly unsaved = new Set<string>();

  constructor(workspace: string, store: CheckpointStore) {
    this.#workspace = workspace;
    this.#store = store;
  }

  get size(): number {
    return this.#files.size;
  }

  get(name: string): Known | undefined {
    return this.#files.get(name);
  }

  has(name: string): boolean {
    return this.#files.has(name);
  }

  names(): readonly string[] {
    return [...this.#files.keys()];
  }

  /** Null: it is not there. */
  set(name: string, known: Known | null): void {
    if (known === null) this.#files.delete(name);
    else this.#files.set(name, known);
    this.unsaved.add(name);
  }

  /**
   * Whether a name may differ from what is known. `entry`: how it is now; with an empty stamp it
   * has changed just now, and counts as different.
   */
  differs(name: string, entry: FileEntry | null): boolean {
    const known = this.#files.get(name)?.entry;
    if (entry === null) return known !== undefined;
    return entry.stamp === '' || entry.stamp !== known?.stamp;
  }

  /** Looks at these names. */
  differences(names: Iterable<string>): Differences {
    const changed = new Map<string, FileEntry | null>();
    for (const name of names) {
      const entry = lookAt(this.#workspace, name);
      if (this.differs(name, entry)) changed.set(name, entry);
    }
    return changed;
  }

  /** The contents that are in the store. */
  stored(): readonly string[] {
    return [...this.#files.values()].flatMap(({ content }) =>
      content.kind === 'stored' ? [content.sha256] : [],
    );
  }

  /** The state of a name at the last look. Content in git needs `fetchBlobs` first. */
  state(name: string): FileState {
    const known = this.#files.get(name);
    if (known === undefined) return ABSENT;
    const { entry, content } = known;
    if (entry.kind === 'link') return { kind: 'link', target: entry.target ?? '' };
    if (entry.kind === 'folder') return { kind: 'folder', mode: entry.mode };
    if (content.kind === 'stored')
      return { kind: 'file', sha256: content.sha256, bytes: entry.bytes, mode: entry.mode };
    const why = content.kind === 'git' ? 'git has lost its content' : content.why;
    return { kind: 'notKept', why };
  }

  /** Takes over a state whose content is in the store. */
  learn(name: string, state: FileState): void {
    const entry = lookAt(this.#workspace, name);
    const isUsers = state.kind === 'file' && this.#files.get(name)?.isUsers === true;
    const content = findContent(state);
    const isThere = entry !== null && state.kind !== 'absent';
    this.set(name, isThere ? { entry, content, ...(isUsers ? { isUsers } : {}) } : null);
  }

  /** Notes a name that somebody else may have changed. */
  async note(name: string): Promise<void> {
    const entry = lookAt(this.#workspace, name);
    if (!this.differs(name, entry)) return;
    if (entry !== null)
      this.set(name, await this.#copyUsers(name, entry, (bytes) => this.#store.put(bytes)));
    else if (whyUnknown(this.#workspace, name) === null) this.set(name, null);
  }

  /** At the first scan: a clean file of git, whose content stays there. */
  noteClean(name: string, entry: FileEntry, blob: string): void {
    this.set(name, { entry, content: { kind: 'git', blob } });
  }

  /**
   * At the first scan: any other one, which is copied as long as there is room. `text`: whose it
   * is, if git has the file in other bytes.
   */
  async noteFirst(
    name: string,
    entry: FileEntry,
    text: 'committed' | 'users',
  ): Promise<KnownContent> {
    const copies = this.#copies;
    const isCopied = entry.kind === 'file' && entry.bytes <= FILE_BYTES_MAX;
    let known: Known;
    if (isCopied && !fitsCopies(copies.files + 1, copies.bytes + entry.bytes))
      known = { entry, content: { kind: 'notKept', why: TOO_MANY }, isUsers: true };
    else known = await this.#copyUsers(name, entry, (bytes) => this.#store.putMany(bytes));
    if (known.content.kind === 'stored') {
      copies.files += 1;
      copies.bytes += entry.bytes;
    }
    const { isUsers: _, ...committed } = known;
    this.set(name, text === 'committed' ? committed : known);
    return known.content;
  }

  /** Copies the present content of a file into the store. A link or folder has none. */
  async #copyUsers(
    name: string,
    entry: FileEntry,
    put: (bytes: Buffer) => Promise<string> | string,
  ): Promise<Known> {
    if (entry.kind !== 'file') return { entry, content: NO_CONTENT };
    const state =
      entry.bytes > FILE_BYTES_MAX
        ? ({ kind: 'notKept', why: TOO_LARGE } as const)
        : await readState(this.#workspace, name, put);
    return { entry, content: findContent(state), isUsers: true };
  }

  /** How to store one of so many contents: many are not synced each, which would take minutes. */
  putter(contents: number): (bytes: Buffer) => Promise<string> | string {
    return (bytes) => (contents > SYNCED_MAX ? this.#store.putMany(bytes) : this.#store.put(bytes));
  }

  /** Copies the earlier contents of changed files from git into the store. */
  async fetchBlobs(names: Iterable<string>, readBlobs: ReadBlobs): Promise<void> {
    const blobs = new Map<string, string>();
    for (const name of names) {
      const content = this.#files.get(name)?.content;
      if (content?.kind === 'git' && content.blob !== '') blobs.set(name, content.blob);
    }
    if (blobs.size === 0) return;
    const contents = await readBlobs([...blobs.values()]);
    const put = this.putter(blobs.size);
    for (const [name, blob] of blobs) {
      const bytes = contents.get(blob);
      const known = this.#files.get(name);
      // by a filter, such as for line ends, the file may have another content than the blob
      if (bytes === undefined || known === undefined || bytes.length !== known.entry.bytes)
        continue;
      this.set(name, { ...known, content: { kind: 'stored', sha256: await put(bytes) } });
    }
  }
}

export const TOO_MANY = 'too much was to be copied';

/** Whether the first scan may copy so many files, with so many bytes. */
export const fitsCopies = (files: number, bytes: number): boolean =>
  files <= COPIES_MAX && bytes <= COPIES_BYTES_MAX;

// ---- For the next process ----

/** The first line of the file; each further one is a name and what is known of it. */
const HEAD = '{"version":3}';
/** A scan of more files is not saved. */
const FILES_MAX = 20_000;

/** A name; what is known of it, null: absent; missing: a tool has named it. */
type Line = readonly [name: string, known?: Known | null];

/** What is known, in a file for the next process of the session. */
export class SavedScan {
  readonly #file: string;
  readonly #known: KnownFiles;
  readonly #named: Set<string>;
  /** What the file holds; null: it has to be written as a whole. */
  #saved: { readonly lines: number; readonly named: number } | null = null;

  /** `named`: files that tools have named. */
  constructor(file: string, known: KnownFiles, named: Set<string>) {
    this.#file = file;
    this.#known = known;
    this.#named = named;
  }

  /** Adds what has changed since the last time, or writes the file as a whole. */
  async save(): Promise<void> {
    const known = this.#known;
    const named = this.#named;
    if (known.size > FILES_MAX) {
      if (this.#saved !== null) await this.#remove();
      return;
    }
    const { lines: last, named: lastNamed } = this.#saved ?? { lines: 0, named: 0 };
    const areMany = last + known.unsaved.size > 2 * (known.size + named.size) + 1_000;
    const isWhole = this.#saved === null || areMany;
    const changed = isWhole ? known.names() : [...known.unsaved];
    const lines: Line[] = changed.map((name) => [name, known.get(name) ?? null]);
    for (const name of [...named].slice(isWhole ? 0 : lastNamed)) lines.push([name]);
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    if (isWhole) await replaceFile(this.#file, `${HEAD}\n${text}`);
    else if ((await attempt(() => appendFile(this.#file, text))).kind === 'fault')
      return this.#remove(); // a full disk
    known.unsaved.clear();
    this.#saved = { lines: lines.length + (isWhole ? 0 : last), named: named.size };
  }

  /** Removes the file, which is out of date now. */
  async #remove(): Promise<void> {
    this.#saved = null;
    await replaceFile(this.#file, null);
  }

  /** Reads the scan of an earlier process. False: there is none. */
  async load(): Promise<boolean> {
    try {
      const [head, ...lines] = (await readFile(this.#file, 'utf8')).split('\n');
      if (head !== HEAD || lines.pop() !== '') return false; // cut off, so it is out of date
      // all first: one faulty line, and it is no scan
      const parsed = lines.map((text): Line => JSON.parse(text));
      for (const [name, known] of parsed) {
        if (known === undefined) this.#named.add(name);
        else this.#known.set(name, known);
      }
      this.#known.unsaved.clear();
      this.#saved = { lines: lines.length, named: this.#named.size };
      return true;
    } catch {
      return false; // the first command scans the workspace
    }
  }
}
