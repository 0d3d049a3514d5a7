/**
 * What is known of each name (a path in the workspace): its state at the last look, and where its
 * content is. Clean files of a large repository are kept as rows of numbers: a hundred thousand
 * objects cost more than the look at their files. The thread (scan-thread.ts) shares the rows.
 */

import { describeFile, type FileEntry, type KnownContent } from './scan.js';

/** The state of a name at the last look, and where its content is. */
export type Known = {
  readonly entry: FileEntry;
  readonly content: KnownContent;
  /** It may hold text of the user that no commit has. */
  readonly isUsers?: true;
};

/** Numbers of a row, those of a stamp: mtimeMs, ctimeMs, ino, size, mode. */
const ROW = 5;
const MODE_AT = 4;
const SPARE_ROWS = 1_000;

const allocate = (rows: number): Float64Array<SharedArrayBuffer> =>
  new Float64Array(new SharedArrayBuffer(rows * ROW * Float64Array.BYTES_PER_ELEMENT));

/** What the thread has not received yet. `memory`: of all rows; null: it is the same as before. */
export type UnsentRows = {
  readonly names: readonly string[];
  readonly memory: SharedArrayBuffer | null;
};

/** The stamp of each name, as a row. Mode 0: no such file. NaN: the file has to be read again. */
export class StampTable {
  readonly #rows = new Map<string, number>();
  #numbers = allocate(SPARE_ROWS);
  #unsent: string[] = [];
  #isMoved = true;

  /** Adds a row, of no file, unless there is one. Returns where it begins. */
  add(name: string): number {
    const known = this.#rows.get(name);
    if (known !== undefined) return known * ROW;
    const row = this.#rows.size;
    if ((row + 1) * ROW > this.#numbers.length) {
      const larger = allocate(2 * row + SPARE_ROWS);
      larger.set(this.#numbers);
      this.#numbers = larger;
      this.#isMoved = true;
    }
    this.#rows.set(name, row);
    this.#unsent.push(name);
    return row * ROW;
  }

  /** Null: there is no such file. Empty: it has to be read again. */
  put(name: string, stamp: string | null): void {
    const at = this.add(name);
    if (stamp === '') this.#unsent.push(name); // no event may come that names it
    const row = stamp === null ? [0] : stamp === '' ? [Number.NaN] : stamp.split(' ').map(Number);
    this.#numbers.fill(0, at, at + ROW);
    this.#numbers.set(row, at);
    if (stamp === '') this.#numbers[at + MODE_AT] = 1;
  }

  /** The regular file of a row. */
  entry(name: string): FileEntry {
    const at = this.add(name);
    const [mtimeMs = 0, ctimeMs = 0, ino = 0, size = 0, mode = 0] = this.#numbers.subarray(at);
    return { kind: 'file', ...describeFile({ mtimeMs, ctimeMs, ino, size, mode }) };
  }

  /** When the file of a row changed; 0: there is none. */
  changedAtMs(name: string): number {
    return this.#numbers[this.add(name) + 1] ?? 0;
  }

  takeUnsent(): UnsentRows {
    const unsent = { names: this.#unsent, memory: this.#isMoved ? this.#numbers.buffer : null };
    this.#unsent = [];
    this.#isMoved = false;
    return unsent;
  }
}

export class KnownFiles {
  /** Null: there is no such file, though `#blobs` has the name. */
  readonly #files = new Map<string, Known | null>();
  /** Blobs of clean files, whose entries are rows. */
  #blobs: ReadonlyMap<string, string> = new Map();
  /** Names that have changed since they were written for the next process. */
  readonly unsaved = new Set<string>();
  /** Null: no thread has looked yet. */
  #table: StampTable | null = null;

  /** The rows, for a thread. */
  get table(): StampTable {
    if (this.#table === null) {
      this.#table = new StampTable();
      for (const [name, known] of this.#files) this.#table.put(name, known?.entry.stamp ?? null);
    }
    return this.#table;
  }

  /** Takes over the rows of clean files, but for those names of which more is known. */
  setClean(blobs: ReadonlyMap<string, string>): void {
    this.#blobs = blobs;
  }

  get(name: string): Known | undefined {
    const known = this.#files.get(name);
    if (known !== undefined) return known ?? undefined;
    const blob = this.#blobs.get(name);
    if (blob === undefined) return undefined;
    return { entry: this.table.entry(name), content: { kind: 'git', blob } };
  }

  has(name: string): boolean {
    const known = this.#files.get(name);
    return known === undefined ? this.#blobs.has(name) : known !== null;
  }

  set(name: string, known: Known): void {
    this.#files.set(name, known);
    this.unsaved.add(name);
    this.#table?.put(name, known.entry.stamp);
  }

  delete(name: string): void {
    if (this.#blobs.has(name)) this.#files.set(name, null);
    else this.#files.delete(name);
    this.unsaved.add(name);
    this.#table?.put(name, null);
  }

  /** At least as many names as are known. */
  get sizeMax(): number {
    return this.#files.size + this.#blobs.size;
  }

  names(): readonly string[] {
    const names = new Set([...this.#blobs.keys(), ...this.#files.keys()]);
    return [...names].filter((name) => this.has(name));
  }

  /** The contents that are in the store. */
  stored(): readonly string[] {
    return [...this.#files.values()].flatMap((known) =>
      known?.content.kind === 'stored' ? [known.content.sha256] : [],
    );
  }
}
