/**
 * Node's functions on files for a simulated disk, which node-files.ts puts in the place of the
 * real ones. From top to bottom: open files and their options; `DiskCalls`, the functions
 * themselves; and `SimulatedHandle`, a file handle of `fs/promises`.
 */

import { constants } from 'node:fs';
import { type Disk, type DiskNode, type FileNode, type FolderNode, systemError } from './disk.js';

/** An open file or folder. */
export type Descriptor = {
  readonly node: DiskNode;
  readonly appends: boolean;
  /** Where the next read or write without a position happens. */
  position: number;
};

type Names = readonly string[];
type Data = string | Uint8Array;

const UID = process.getuid?.() ?? 0;

const FLAGS: Readonly<Record<string, number>> = {
  r: constants.O_RDONLY,
  'r+': constants.O_RDWR,
  w: constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC,
  wx: constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL,
  'w+': constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC,
  'wx+': constants.O_RDWR | constants.O_CREAT | constants.O_EXCL,
  a: constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND,
  ax: constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_EXCL,
  'a+': constants.O_RDWR | constants.O_CREAT | constants.O_APPEND,
};

const toBytes = (written: Data): Uint8Array =>
  typeof written === 'string' ? Buffer.from(written) : written;

const getFlag = (options: unknown): string | undefined =>
  typeof options === 'object' &&
  options !== null &&
  'flag' in options &&
  typeof options.flag === 'string'
    ? options.flag
    : undefined;

/** Whether an option has this value. */
const isSet = (
  options: unknown,
  name: 'recursive' | 'force' | 'withFileTypes' | 'throwIfNoEntry',
  to = true,
): boolean => typeof options === 'object' && options !== null && Reflect.get(options, name) === to;

/** What `stat` tells of a file or folder. */
class NodeStatus {
  readonly dev = 1;
  readonly ino: number;
  readonly nlink: number;
  readonly mode: number;
  readonly uid = UID;
  readonly gid = 0;
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;

  constructor(node: DiskNode) {
    this.ino = node.ino;
    this.nlink = node.kind === 'file' ? node.links : 1;
    this.mode = node.kind === 'file' ? 0o100600 : 0o40700;
    this.size = node.kind === 'file' ? node.content.length : 0;
    this.mtimeMs = node.changedAt;
    this.ctimeMs = node.changedAt;
  }

  get mtime(): Date {
    return new Date(this.mtimeMs);
  }

  isFile(): boolean {
    return this.mode === 0o100600;
  }

  isDirectory(): boolean {
    return !this.isFile();
  }

  isSymbolicLink(): boolean {
    return false;
  }
}

/**
 * What Node's functions on files mean on a simulated disk: without waiting, faults and crashes (see
 * node-files.ts).
 */
export class DiskCalls {
  readonly #disk: Disk;
  readonly #now: () => number;

  constructor(disk: Disk, now: () => number) {
    this.#disk = disk;
    this.#now = now;
  }

  open(names: Names, mode: string | number = 'r'): Descriptor {
    const flags = typeof mode === 'number' ? mode : FLAGS[mode];
    if (flags === undefined) throw new Error(`opening with ${mode} is not simulated`);
    const existing = this.#disk.find(names);
    if (existing !== undefined && (flags & constants.O_EXCL) !== 0)
      throw systemError('EEXIST', names.join('/'));
    if (existing === undefined && (flags & constants.O_CREAT) === 0)
      throw systemError('ENOENT', names.join('/'));
    const node = existing ?? this.#disk.createFile(names, this.#now());
    if (node.kind === 'file' && (flags & constants.O_TRUNC) !== 0)
      this.#disk.truncate(node, 0, this.#now());
    return { node, appends: (flags & constants.O_APPEND) !== 0, position: 0 };
  }

  /** Opens again what is open, as a path below /proc/self/fd does. */
  reopen({ node }: Descriptor): Descriptor {
    return { node, appends: false, position: 0 };
  }

  read(
    descriptor: Descriptor,
    into: Uint8Array,
    offset = 0,
    length = into.length - offset,
    position: number | null = null,
  ) {
    const from = position ?? descriptor.position;
    const bytesRead = getFile(descriptor).content.copyTo(into, offset, from, from + length);
    if (position === null) descriptor.position += bytesRead;
    return bytesRead;
  }

  /** `place`: of a text its position; of bytes the offset and length in them, and the position. */
  write(descriptor: Descriptor, written: Data, ...place: readonly unknown[]): number {
    const numbers = place.map((one) => (typeof one === 'number' ? one : undefined));
    const [offset, length, at] =
      typeof written === 'string' ? [undefined, undefined, numbers[0]] : numbers;
    const all = toBytes(written);
    const start = offset ?? 0;
    const isWhole = start === 0 && (length === undefined || length === all.length);
    const bytes = isWhole
      ? all
      : all.subarray(start, length === undefined ? undefined : start + length);
    const file = getFile(descriptor);
    const position = descriptor.appends ? file.content.length : (at ?? descriptor.position);
    this.#disk.write(file, bytes, position, this.#now());
    if (at === undefined) descriptor.position = position + bytes.length;
    return bytes.length;
  }

  truncate(descriptor: Descriptor, size = 0): void {
    this.#disk.truncate(getFile(descriptor), size, this.#now());
  }

  sync({ node }: Descriptor): void {
    this.#disk.sync(node);
  }

  statNode({ node }: Pick<Descriptor, 'node'>): NodeStatus {
    return new NodeStatus(node);
  }

  stat(names: Names, options?: unknown) {
    const node = this.#disk.find(names);
    if (node !== undefined) return this.statNode({ node });
    if (isSet(options, 'throwIfNoEntry', false)) return undefined;
    throw systemError('ENOENT', names.join('/'));
  }

  /** Creates a folder whose name begins so; returns the rest of the name. */
  mkdtemp(names: Names): string {
    for (let number = 100_000; ; number++) {
      const name = [...names.slice(0, -1), `${names.at(-1) ?? ''}${number}`];
      if (this.exists(name)) continue;
      this.#disk.createFolder(name, this.#now());
      return String(number);
    }
  }

  exists(names: Names): boolean {
    return this.#disk.find(names) !== undefined;
  }

  /** `recursive`: the missing folders above, too; an existing folder is no error then. */
  mkdir(names: Names, options?: unknown): void {
    const isRecursive = isSet(options, 'recursive');
    for (let depth = isRecursive ? 1 : names.length; depth <= names.length; depth++) {
      const folder = names.slice(0, depth);
      const node = isRecursive ? this.#disk.find(folder) : undefined;
      const isThere = node !== undefined && (node.kind === 'folder' || depth < names.length);
      if (!isThere) this.#disk.createFolder(folder, this.#now());
    }
  }

  rename(from: Names, to: Names): void {
    const node = this.#get(from);
    if (this.#disk.find(to) === node) return; // one file: both names stay
    const [source, target] = [this.#disk.getFolder(from), this.#disk.getFolder(to)];
    const put = { name: to.at(-1) ?? '', node };
    const take = { name: from.at(-1) ?? '', node: null };
    this.#disk.setNames(target, source === target ? [put, take] : [put], this.#now());
    if (source !== target) this.#disk.setNames(source, [take], this.#now());
  }

  link(existing: Names, fresh: Names): void {
    if (this.exists(fresh)) throw systemError('EEXIST', fresh.join('/'));
    this.#disk.setNames(
      this.#disk.getFolder(fresh),
      [{ name: fresh.at(-1) ?? '', node: this.#get(existing) }],
      this.#now(),
    );
  }

  unlink(names: Names): void {
    this.#get(names);
    this.#disk.setNames(
      this.#disk.getFolder(names),
      [{ name: names.at(-1) ?? '', node: null }],
      this.#now(),
    );
  }

  rm(names: Names, options?: unknown): void {
    if (this.exists(names) || !isSet(options, 'force')) this.unlink(names);
  }

  readdir(names: Names, options?: unknown) {
    const folder = this.#get(names);
    if (folder.kind !== 'folder') throw systemError('ENOTDIR', names.join('/'));
    if (!isSet(options, 'withFileTypes')) return [...folder.entries.keys()].sort();
    return [...folder.entries].map(([name, node]) =>
      Object.assign(this.statNode({ node }), { name, parentPath: names.join('/') }),
    );
  }

  readAll({ node }: Pick<Descriptor, 'node'>, options?: unknown): string | Buffer {
    const bytes = Buffer.from(getFile({ node }).content.view());
    const named =
      typeof options === 'string' ||
      (typeof options === 'object' && options !== null && 'encoding' in options);
    return named ? bytes.toString('utf8') : bytes;
  }

  readFile(names: Names, options?: unknown): string | Buffer {
    return this.readAll({ node: this.#get(names) }, options);
  }

  writeFile(names: Names, written: Data, options?: unknown): void {
    this.write(this.open(names, getFlag(options) ?? 'w'), written);
  }

  appendFile(names: Names, written: Data): void {
    this.write(this.open(names, 'a'), written);
  }

  #get(names: Names): FileNode | FolderNode {
    const node = this.#disk.find(names);
    if (node === undefined) throw systemError('ENOENT', names.join('/'));
    return node;
  }
}

const getFile = ({ node }: Pick<Descriptor, 'node'>): FileNode => {
  if (node.kind !== 'file') throw systemError('EISDIR', 'it is a folder');
  return node;
};

/** Calls a function on an open file, by its name and its further arguments. */
type Call = (fd: number, name: string, ...args: readonly unknown[]) => Promise<unknown>;

type Range = { readonly start?: number; readonly end?: number };

const BLOCK_BYTES = 64 * 1024;

/** The bytes of a range, both ends included, as a stream gives them. */
async function* readBlocks(
  fd: number,
  call: Call,
  { start = 0, end = Number.POSITIVE_INFINITY }: Range,
): AsyncGenerator<Buffer> {
  for (let position = start; position <= end; ) {
    const block = Buffer.alloc(Math.min(BLOCK_BYTES, end - position + 1));
    const bytesRead = Number(await call(fd, 'read', block, 0, block.length, position));
    if (bytesRead === 0) return;
    yield block.subarray(0, bytesRead);
    position += bytesRead;
  }
}

/** A file handle as `fs/promises` gives it, over a descriptor of a simulated disk. */
export class SimulatedHandle {
  readonly fd: number;
  readonly #call: Call;

  constructor(fd: number, call: Call) {
    this.fd = fd;
    this.#call = call;
  }

  stat(): Promise<unknown> {
    return this.#call(this.fd, 'fstat');
  }

  sync(): Promise<unknown> {
    return this.#call(this.fd, 'fsync');
  }

  datasync(): Promise<unknown> {
    return this.#call(this.fd, 'fdatasync');
  }

  truncate(size?: number): Promise<unknown> {
    return this.#call(this.fd, 'ftruncate', size);
  }

  close(): Promise<unknown> {
    return this.#call(this.fd, 'close');
  }

  chmod(): Promise<unknown> {
    return this.#call(this.fd, 'fchmod');
  }

  utimes(): Promise<unknown> {
    return this.#call(this.fd, 'futimes');
  }

  readFile(options?: unknown): Promise<unknown> {
    return this.#call(this.fd, 'readFile', options);
  }

  writeFile(written: unknown): Promise<unknown> {
    return this.#call(this.fd, 'writeFile', written);
  }

  appendFile(written: unknown): Promise<unknown> {
    return this.#call(this.fd, 'appendFile', written);
  }

  createReadStream(range: Range): AsyncGenerator<Buffer> {
    return readBlocks(this.fd, this.#call, range);
  }

  read(buffer: Uint8Array, ...place: readonly unknown[]): Promise<unknown> {
    return this.#call(this.fd, 'read', buffer, ...place).then((bytesRead) => ({
      bytesRead,
      buffer,
    }));
  }

  write(written: unknown, ...place: readonly unknown[]): Promise<unknown> {
    return this.#call(this.fd, 'write', written, ...place).then((bytesWritten) => ({
      bytesWritten,
      buffer: written,
    }));
  }
}
