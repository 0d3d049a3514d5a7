import { fdatasync, fdatasyncSync, writeSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { cannotWrite, closed } from '../journal-error.js';

/** The file operations that the writer needs. */
export type WriteTarget = Pick<FileHandle, 'datasync' | 'truncate' | 'close'> & {
  /** Writes synchronously; returns the number of bytes written. */
  write(bytes: Buffer, offset: number, length: number, position: number): number;
};

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
export const targetOf = (handle: FileHandle): WriteTarget => {
  let tookMs = 0;
  return {
    write: (bytes, offset, length, position) => writeSync(handle.fd, bytes, offset, length, position),
    async datasync() {
      const startedAtMs = performance.now();
      if (tookMs > promptMs) await syncElsewhere(handle.fd);
      else fdatasyncSync(handle.fd);
      tookMs = performance.now() - startedAtMs;
    },
    truncate: (size) => handle.truncate(size),
    close: () => handle.close(),
  };
};

type Waiting = {
  readonly bytes: Buffer;
  readonly done: () => void;
  readonly refuse: (error: Error) => void;
};

/**
 * Appends to a file, durably and in groups.
 *
 * 1. Lines that arrive while a group is being written form the next group: one write and one fdatasync for all.
 * 2. Groups are written in order, never two at once; a `write` resolves when its bytes are durable.
 * 3. After a failure nothing more is written, since the content of the disk is unknown until the file is read again. The
 *    file is truncated to the last durable byte, so that no complete line ever follows half a group.
 */
export class GroupWriter {
  readonly #handle: WriteTarget;
  readonly #path: string;
  #size: number;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | null = null;
  #refusal: Error | null = null;

  constructor(handle: WriteTarget, path: string, size: number) {
    this.#handle = handle;
    this.#path = path;
    this.#size = size;
  }

  /** Number of durable bytes. */
  get size(): number {
    return this.#size;
  }

  /** Resolves when `bytes` are durable; rejects with `cannotWrite`. */
  write(bytes: Buffer): Promise<void> {
    if (this.#refusal !== null) return Promise.reject(this.#refusal);
    return new Promise((done, refuse) => {
      this.#waiting.push({ bytes, done, refuse });
      this.#writing ??= this.#writeGroups();
    });
  }

  /** Refuses further writes, and closes the file after the pending ones. */
  async close(): Promise<void> {
    this.#refusal ??= closed(this.#path);
    await this.#writing;
    await this.#handle.close();
  }

  async #writeGroups(): Promise<void> {
    // Waits so that everything appended in the same tick joins the group.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      try {
        await this.#writeDurably(Buffer.concat(group.map(({ bytes }) => bytes)));
      } catch (error) {
        await this.#fail([...group, ...this.#waiting], cannotWrite(this.#path, error));
        break;
      }
      for (const { done } of group) done();
    }
    this.#writing = null;
  }

  async #writeDurably(bytes: Buffer): Promise<void> {
    for (let written = 0; written < bytes.length; ) {
      const rest = bytes.length - written;
      written += this.#handle.write(bytes, written, rest, this.#size + written);
    }
    await this.#handle.datasync();
    this.#size += bytes.length;
  }

  async #fail(group: readonly Waiting[], error: Error): Promise<void> {
    this.#refusal = error;
    this.#waiting = [];
    try {
      await this.#handle.truncate(this.#size);
      await this.#handle.datasync();
    } catch {
      // No durable byte is lost: the next opening verifies the bytes after the last durable one.
    }
    for (const { refuse } of group) refuse(error);
  }
}
