/**
 * A file system in memory that tracks durable data: what would still be there after a power cut.
 *
 * 1. A change of a file is durable after a sync of the file; a change of names after a sync of
 *    their folder.
 * 2. A power cut keeps any number of the first changes since then. It tears the next one: cuts it
 *    anywhere, and may replace sectors by zeros. Files and folders lose independently.
 * 3. A killed process loses none of its writes.
 *
 * From top to bottom: files and folders; torn writes; the disk; the process that calls it;
 * contents of files, which share memory since most of them are zeros; and paths.
 */

import type { Choices } from './random-choices.js';

type Change =
  | { readonly kind: 'write'; readonly bytes: Buffer; readonly position: number }
  | { readonly kind: 'truncate'; readonly size: number };

export type FileNode = {
  readonly kind: 'file';
  readonly ino: number;
  /** What programs read, and what is there after a power cut that loses every change. */
  content: GrowingBytes;
  durable: GrowingBytes;
  pending: Change[];
  changedAt: number;
  /** Names that lead to it. */
  links: number;
};

type NameChange = { readonly name: string; readonly node: DiskNode | null };

export type FolderNode = {
  readonly kind: 'folder';
  readonly ino: number;
  entries: Map<string, DiskNode>;
  durable: Map<string, DiskNode>;
  /** Changes of one list happen together, as those of a rename do. */
  pending: (readonly NameChange[])[];
  changedAt: number;
};

export type DiskNode = FileNode | FolderNode;

const SECTOR_BYTES = 512;

/** An error as Node reports one of the operating system: with a `code`. */
export const systemError = (code: string, what: string): Error => {
  const error: Error & { code?: string } = new Error(`${code}: simulated, ${what}`);
  error.code = code;
  return error;
};

const applyChange = (bytes: GrowingBytes, change: Change): void => {
  if (change.kind === 'write') bytes.write(change.bytes, change.position);
  else bytes.truncate(change.size);
};

const countLink = (node: DiskNode | null | undefined, by: number): void => {
  if (node?.kind === 'file') node.links += by;
};

const applyNames = (entries: Map<string, DiskNode>, changes: readonly NameChange[]): void => {
  for (const { name, node } of changes) {
    if (node === null) entries.delete(name);
    else entries.set(name, node);
  }
};

type Write = Extract<Change, { readonly kind: 'write' }>;

/** Zeros in place of lost bytes after a power cut. `hole`: before bytes of the same write. */
export type Zeros = 'none' | 'atEnd' | 'hole';

/** Writes a part of the bytes, as a power cut in the middle of a write does. */
const tear = (
  file: GrowingBytes,
  { bytes, position }: Write,
  choices: Choices,
  mayHaveHoles: boolean,
): Zeros => {
  const survivingBytes = choices.chance(0.3)
    ? Math.max(0, bytes.length - 1)
    : choices.below(bytes.length + 1);
  file.write(bytes.subarray(0, survivingBytes), position);
  if (!choices.chance(0.3) || survivingBytes === bytes.length) return 'none';
  // the size was extended, but not every sector got its data
  let hasHole = false;
  for (let start = survivingBytes; start < bytes.length; start += SECTOR_BYTES) {
    const sector = bytes.subarray(start, start + SECTOR_BYTES);
    const isKept = mayHaveHoles && start > survivingBytes && choices.chance(0.5);
    hasHole ||= isKept;
    file.write(isKept ? sector : new Uint8Array(sector.length), position + start);
  }
  return hasHole ? 'hole' : 'atEnd';
};

export class Disk {
  readonly root: FolderNode;
  #inodes = 1;

  constructor() {
    this.root = this.#newFolder(0);
    // Synced, so that it is there after any power cut.
    this.createFolder(['home'], 0);
    this.sync(this.root);
  }

  #newFolder(changedAt: number): FolderNode {
    return {
      kind: 'folder',
      ino: this.#inodes++,
      entries: new Map(),
      durable: new Map(),
      pending: [],
      changedAt,
    };
  }

  /** The entry at a path below the root, as a list of names; undefined if there is none. */
  find(names: readonly string[]): DiskNode | undefined {
    let node: DiskNode = this.root;
    for (const name of names) {
      if (node.kind !== 'folder') throw systemError('ENOTDIR', names.join('/'));
      const next = node.entries.get(name);
      if (next === undefined) return undefined;
      node = next;
    }
    return node;
  }

  getFolder(names: readonly string[]): FolderNode {
    const folder = this.find(names.slice(0, -1));
    if (folder === undefined) throw systemError('ENOENT', names.join('/'));
    if (folder.kind !== 'folder') throw systemError('ENOTDIR', names.join('/'));
    return folder;
  }

  setNames(folder: FolderNode, changes: readonly NameChange[], at: number): void {
    for (const { name, node } of changes) {
      countLink(folder.entries.get(name), -1);
      countLink(node, 1);
    }
    applyNames(folder.entries, changes);
    folder.pending.push(changes);
    folder.changedAt = at;
  }

  createFile(names: readonly string[], at: number): FileNode {
    const file: FileNode = {
      kind: 'file',
      ino: this.#inodes++,
      content: new GrowingBytes(),
      durable: new GrowingBytes(),
      pending: [],
      changedAt: at,
      links: 0,
    };
    this.setNames(this.getFolder(names), [{ name: names.at(-1) ?? '', node: file }], at);
    return file;
  }

  createFolder(names: readonly string[], at: number): void {
    const folder = this.getFolder(names);
    const name = names.at(-1) ?? '';
    if (folder.entries.has(name)) throw systemError('EEXIST', names.join('/'));
    this.setNames(folder, [{ name, node: this.#newFolder(at) }], at);
  }

  write(file: FileNode, bytes: Uint8Array, position: number, at: number): void {
    const change: Change = { kind: 'write', bytes: copyBytes(bytes), position };
    file.pending.push(change);
    applyChange(file.content, change);
    file.changedAt = at;
  }

  truncate(file: FileNode, size: number, at: number): void {
    const change: Change = { kind: 'truncate', size };
    file.pending.push(change);
    applyChange(file.content, change);
    file.changedAt = at;
  }

  sync(node: DiskNode): void {
    if (node.kind === 'file') for (const change of node.pending) applyChange(node.durable, change);
    else for (const changes of node.pending) applyNames(node.durable, changes);
    node.pending = [];
  }

  /** Whether a power cut would lose anything. */
  hasPending(): boolean {
    const visit = (node: DiskNode): boolean =>
      node.pending.length > 0 || (node.kind === 'folder' && [...node.entries.values()].some(visit));
    return visit(this.root);
  }

  /**
   * Keeps the first changes and tears the next one. Returns the worst zeros: only file systems that
   * write sizes before data have any.
   */
  cutPower(choices: Choices, mayHaveHoles: boolean): Zeros {
    const zeros: Zeros[] = [];
    const lose = (node: DiskNode): void => {
      const survivors = node.pending.length === 0 ? 0 : choices.below(node.pending.length + 1);
      if (node.kind === 'folder') this.#loseNames(node, survivors);
      else zeros.push(this.#loseContent(node, survivors, choices, mayHaveHoles));
      if (node.kind === 'folder') for (const entry of node.entries.values()) lose(entry);
    };
    lose(this.root);
    this.#countLinks();
    if (zeros.includes('hole')) return 'hole';
    return zeros.includes('atEnd') ? 'atEnd' : 'none';
  }

  #countLinks(): void {
    const files: FileNode[] = [];
    const visit = (node: DiskNode): void => {
      if (node.kind === 'file') files.push(node);
      else for (const entry of node.entries.values()) visit(entry);
    };
    visit(this.root);
    for (const file of files) file.links = files.filter((other) => other === file).length;
  }

  #loseNames(folder: FolderNode, survivors: number): void {
    for (const changes of folder.pending.slice(0, survivors)) applyNames(folder.durable, changes);
    folder.entries = new Map(folder.durable);
    folder.pending = [];
  }

  #loseContent(file: FileNode, survivors: number, choices: Choices, mayHaveHoles: boolean): Zeros {
    if (file.pending.length === 0) return 'none';
    for (const change of file.pending.slice(0, survivors)) applyChange(file.durable, change);
    const next = file.pending[survivors];
    const zeros = next?.kind === 'write' ? tear(file.durable, next, choices, mayHaveHoles) : 'none';
    file.content = file.durable.copy();
    file.pending = [];
    return zeros;
  }
}

/** The process that calls the disk: it may crash or wait at each call. */
export type Caller = {
  readonly disk: Disk;
  readonly isDead: boolean;
  /** Called before each operation; returns an error code, or null. May end the process. */
  enter(operation: string, isBlocking: boolean): string | null;
  /** Time that an operation takes if the caller blocks. */
  block(): void;
  /** Runs `run` after an operation in another thread; never if the process has ended. */
  later(run: () => void): void;
  /** Whether a write takes only a part of its bytes and returns their number. */
  writesShort(): boolean;
  /** Wall clock. */
  now(): number;
};

// ---- Contents of files ----

/** Zeros of any content, shared: space that is only reserved is never copied. */
const ZEROS = Buffer.alloc(256 * 1024);
/** Shorter ones are copied like other bytes. */
const ZEROS_MIN = 4_096;
const EMPTY = Buffer.alloc(0);

/** Contents are allocated in zeroed slabs: one large block is cheaper than many small ones. */
const SLAB_BYTES = 256 * 1024;
/** Larger contents get a separate block. */
const PIECE_MAX = 16 * 1024;
let slab = EMPTY;
let taken = 0;

const allocateZeros = (bytes: number): Buffer => {
  if (bytes > PIECE_MAX) return Buffer.alloc(bytes);
  if (taken + bytes > slab.length) {
    slab = Buffer.alloc(SLAB_BYTES);
    taken = 0;
  }
  taken += bytes;
  return slab.subarray(taken - bytes, taken);
};

/** Copies the bytes; long zeros become a view of the shared ones. */
const copyBytes = (bytes: Uint8Array): Buffer => {
  const { length } = bytes;
  const areZeros =
    length >= ZEROS_MIN &&
    length <= ZEROS.length &&
    ZEROS.compare(bytes, 0, length, 0, length) === 0;
  return areZeros ? ZEROS.subarray(0, length) : Buffer.from(bytes);
};

/** The content of a file: bytes that can be written anywhere, and cut. A hole reads as zeros. */
export class GrowingBytes {
  #bytes: Buffer;
  /** Bytes that are stored; those after them, up to `length`, are zeros. */
  #stored = 0;
  length = 0;

  constructor(content: Uint8Array = EMPTY) {
    this.#bytes = content.length === 0 ? EMPTY : Buffer.from(content);
    this.#stored = content.length;
    this.length = content.length;
  }

  /** An independent copy. */
  copy(): GrowingBytes {
    const same = new GrowingBytes(this.#bytes.subarray(0, this.#stored));
    same.length = this.length;
    return same;
  }

  write(bytes: Uint8Array, at: number): void {
    const end = at + bytes.length;
    // Zeros behind all stored bytes need not be stored: a hole reads as zeros.
    const isHole = bytes.buffer === ZEROS.buffer && at >= this.#stored;
    if (!isHole) {
      this.#store(end);
      this.#bytes.set(bytes, at);
    }
    this.length = Math.max(this.length, end);
  }

  truncate(size: number): void {
    if (size < this.#stored) this.#bytes.fill(0, size, this.#stored);
    this.#stored = Math.min(this.#stored, size);
    this.length = size;
  }

  /** Copies the bytes from `from` to `to` into a buffer at `offset`; returns how many there are. */
  copyTo(into: Uint8Array, offset: number, from: number, to: number): number {
    const end = Math.min(to, this.length);
    this.#store(end);
    return from >= end ? 0 : this.#bytes.copy(into, offset, from, end);
  }

  /** A view, valid until the next change. */
  view(from = 0, to = this.length): Buffer {
    const end = Math.min(to, this.length);
    this.#store(end);
    return this.#bytes.subarray(Math.min(from, this.length), end);
  }

  #store(end: number): void {
    if (end > this.#bytes.length) {
      const larger = allocateZeros(Math.max(end, this.#bytes.length * 2, 1_024));
      this.#bytes.copy(larger, 0, 0, this.#stored);
      this.#bytes = larger;
    }
    this.#stored = Math.max(this.#stored, end);
  }
}

/** The names of folders, by their paths: most files stand in a few folders. */
const folders = new Map<string, readonly string[]>();
const FOLDERS_MAX = 1_000;

/** The names in a path, from outside to inside. */
export const splitPath = (path: string): readonly string[] => {
  const last = path.lastIndexOf('/');
  if (last === path.length - 1) return path.split('/').filter((name) => name !== '');
  const folder = path.slice(0, last);
  let names = folders.get(folder);
  if (names === undefined) {
    names = folder.split('/').filter((name) => name !== '');
    if (folders.size < FOLDERS_MAX) folders.set(folder, names);
  }
  return [...names, path.slice(last + 1)];
};
