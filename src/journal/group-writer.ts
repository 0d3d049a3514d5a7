import { fdatasync, fdatasyncSync, writeSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { cannotWrite, closed } from './error.js';

/** What the writer does to its file. */
export type Target = Pick<FileHandle, 'datasync' | 'truncate' | 'close'> & {
  /** Hands bytes to the system at once, and says how many it took. */
  write(bytes: Buffer, offset: number, length: number, position: number): number;
};

/** A disk that took longer the last time is waited for in another thread. */
const promptMs = 1;

const syncElsewhere = (fd: number): Promise<void> =>
  new Promise((resolve, reject) => {
    fdatasync(fd, (error) => (error === null ? resolve() : reject(error)));
  });

/**
 * A file as the writer wants it. The way to another thread and back takes longer than writing to the system's cache,
 * and as long as waiting for a prompt disk: both are done here as long as the disk is prompt, so that a slow one
 * blocks the loop once and not again.
 */
export const targetOf = (handle: FileHandle): Target => {
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
 * 1. What waits while a group is on its way goes with the next one: one write and one fdatasync for all of it.
 * 2. Groups are written in order, never two at once; a `write` resolves when its bytes are durable.
 * 3. After a failure nothing is written any more: what the disk holds is unknown until the file is read again. The
 *    file is cut back to the last durable byte, so that half a group never stands before something whole.
 */
export class GroupWriter {
  readonly #handle: Target;
  readonly #path: string;
  #size: number;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | null = null;
  #refusal: Error | null = null;

  constructor(handle: Target, path: string, size: number) {
    this.#handle = handle;
    this.#path = path;
    this.#size = size;
  }

  /** Bytes that are durable. */
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

  /** Refuses further writes, and closes the file when those under way have ended. */
  async close(): Promise<void> {
    this.#refusal ??= closed(this.#path);
    await this.#writing;
    await this.#handle.close();
  }

  async #writeGroups(): Promise<void> {
    // Lets everything that is appended in the same turn of the loop come along.
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
      // Nothing durable is lost: what stays behind the last durable byte is judged again on the next opening.
    }
    for (const { refuse } of group) refuse(error);
  }
}
