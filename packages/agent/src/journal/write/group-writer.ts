import { fdatasync, fdatasyncSync, ftruncateSync, writeSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { joinLines } from '../format/join-lines.js';
import { cannotWrite, closed, codeOf, JournalError } from '../journal-error.js';

/** The file operations that the writer needs. */
export type FileTarget = Pick<FileHandle, 'datasync' | 'truncate' | 'close'> & {
  /** Writes synchronously; returns the number of bytes written. */
  write(bytes: Buffer, offset: number, length: number, position: number): number;
};

/** Decides whether the file still belongs to the writer. */
export type Ownership = {
  /** Looks before a write. Rejects if the file is not the writer's own, or is not `size` bytes long. */
  before(size: number): Promise<void>;
  /** Looks again once the bytes are on disk, before anybody is told so. Throws in the same cases. */
  after(size: number): void;
  /** The error for what a look has thrown; saves what it can of the file, and of the lines that were not written. */
  explain(error: unknown, size: number, unwritten: Buffer): Promise<unknown>;
};

/** Space on a full disk; `freeSpace` is false if there is none. */
export type Surroundings = Ownership & { freeSpace(): boolean };

/** If the last sync took longer than this, the next one runs in another thread. */
const promptMs = 1;

const syncElsewhere = (fd: number): Promise<void> =>
  new Promise((resolve, reject) => {
    fdatasync(fd, (error) => (error === null ? resolve() : reject(error)));
  });

/**
 * Wraps a file handle for the writer. A round trip to another thread takes longer than a write to the system's cache,
 * and as long as a sync to a fast disk. So both run synchronously while the disk is fast; a slow disk blocks the event
 * loop only once.
 */
export const targetOf = (handle: FileHandle): FileTarget => {
  let tookMs = 0;
  return {
    write: (bytes, offset, length, position) => writeSync(handle.fd, bytes, offset, length, position),
    async datasync() {
      const startedAtMs = performance.now();
      if (tookMs > promptMs) await syncElsewhere(handle.fd);
      else fdatasyncSync(handle.fd);
      tookMs = performance.now() - startedAtMs;
    },
    // at once: what another program appends in between would be cut off, and nobody would notice it
    truncate: async (size) => ftruncateSync(handle.fd, size),
    close: () => handle.close(),
  };
};

type Waiting = {
  readonly bytes: Buffer;
  readonly done: () => void;
  readonly refuse: (error: Error) => void;
};

const bytesOf = (group: readonly Waiting[]): Buffer => joinLines(group.map(({ bytes }) => bytes));

const isFull = (error: unknown): boolean => codeOf(error) === 'ENOSPC' || codeOf(error) === 'EDQUOT';

/** True if the file belongs to somebody else, who must find it unchanged. */
const isNotOurs = (error: Error): boolean =>
  error instanceof JournalError && (error.kind === 'foreignChange' || error.kind === 'takenOver');

/**
 * Appends to a file, durably and in groups.
 *
 * 1. Lines that arrive while a group is being written form the next group: one write and one fdatasync for all.
 * 2. Groups are written in order, never two at once; a `write` resolves when its bytes are durable.
 * 3. After a failure nothing more is written, since the content of the disk is unknown until the file is read again. The
 *    file is truncated to the last durable byte, so that no complete line ever follows half a group.
 * 4. When the disk is full, reserved space is freed once, and the group is written again.
 * 5. A file that no longer belongs to the writer is not changed any more. A group counts as durable only if the file
 *    belonged to the writer after its sync, too.
 */
export class GroupWriter {
  readonly #handle: FileTarget;
  readonly #ownership: Surroundings;
  readonly #path: string;
  #size: number;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | null = null;
  #refusal: Error | null = null;
  #full: Error | null = null;

  constructor(handle: FileTarget, ownership: Surroundings, path: string, size: number) {
    this.#handle = handle;
    this.#ownership = ownership;
    this.#path = path;
    this.#size = size;
  }

  /** Number of durable bytes. */
  get size(): number {
    return this.#size;
  }

  /** Resolves once nothing is being written. */
  async idle(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
  }

  /** The refusal of a full disk, since which reserved space is used. */
  get full(): Error | null {
    return this.#full;
  }

  /** Resolves when `bytes` are durable; rejects with `cannotWrite`. */
  write(bytes: Buffer): Promise<void> {
    if (this.#refusal !== null) return Promise.reject(this.#refusal);
    return new Promise((done, refuse) => {
      this.#waiting.push({ bytes, done, refuse });
      this.#writing ??= this.#writeGroups();
    });
  }

  /** Refuses further writes, and closes the file after the pending ones. Rejects if the file is not the writer's own. */
  async close(): Promise<void> {
    const isGood = this.#refusal === null;
    this.#refusal ??= closed(this.#path);
    await this.#writing;
    try {
      if (isGood) await this.#ownership.before(this.#size);
    } catch (error) {
      throw await this.#ownership.explain(error, this.#size, Buffer.alloc(0));
    } finally {
      await this.#handle.close();
    }
  }

  async #writeGroups(): Promise<void> {
    // Waits so that everything appended in the same tick joins the group.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      try {
        await this.#writeDurably(bytesOf(group));
      } catch (error) {
        await this.#fail(group, error);
        break;
      }
      for (const { done } of group) done();
    }
    this.#writing = null;
  }

  async #writeDurably(bytes: Buffer): Promise<void> {
    await this.#ownership.before(this.#size);
    try {
      await this.#writeSynced(bytes);
    } catch (error) {
      if (!isFull(error) || !this.#ownership.freeSpace()) throw error;
      this.#full = cannotWrite(this.#path, error);
      await this.#handle.truncate(this.#size);
      await this.#writeSynced(bytes);
    }
    this.#ownership.after(this.#size + bytes.length);
    this.#size += bytes.length;
  }

  async #writeSynced(bytes: Buffer): Promise<void> {
    for (let written = 0; written < bytes.length; ) {
      const rest = bytes.length - written;
      written += this.#handle.write(bytes, written, rest, this.#size + written);
    }
    await this.#handle.datasync();
  }

  async #fail(group: readonly Waiting[], fault: unknown): Promise<void> {
    const refused = [...group, ...this.#waiting];
    this.#waiting = [];
    const unwritten = bytesOf(refused);
    const error = cannotWrite(this.#path, await this.#ownership.explain(fault, this.#size, unwritten));
    this.#refusal = error;
    if (!isNotOurs(error)) await this.#cutBack();
    for (const { refuse } of refused) refuse(error);
  }

  async #cutBack(): Promise<void> {
    try {
      await this.#handle.truncate(this.#size);
      await this.#handle.datasync();
    } catch {
      // No durable byte is lost: the next opening verifies the bytes after the last durable one.
    }
  }
}
