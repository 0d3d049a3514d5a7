import { lstat } from 'node:fs/promises';
import type { JudgedCall } from '../agent/call.js';
import { loadFile } from '../tools/file-text.js';
import { isFormattable } from './formatter-choice.js';

/** What a file held before a batch, or that it was not there. */
export type Earlier =
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unknown' };

export const FORMATTED_BYTES_MAX = 1024 * 1024;
const KEPT_BYTES_MAX = 16 * 1024 * 1024;
const KEPT_CALLS_MAX = 200;

type Kept = { readonly files: ReadonlyMap<string, Earlier>; readonly bytes: number };

const look = async (file: string): Promise<Earlier> => {
  const status = await lstat(file).catch(() => null); // null: nothing is there, which is an answer
  if (status === null) return { kind: 'absent' };
  if (!status.isFile() || status.size > FORMATTED_BYTES_MAX) return { kind: 'unknown' };
  const loaded = await loadFile(file);
  return loaded.kind === 'file' ? { kind: 'bytes', bytes: loaded.bytes } : { kind: 'unknown' };
};

/** The memory of what files held before the calls of a batch; bounded, since not every batch ends with a question. */
export class EarlierContent {
  readonly #calls = new Map<string, Kept>();
  #bytes = 0;

  /** Keeps the files that a call names. */
  async keep({ callId, facts }: JudgedCall): Promise<void> {
    const files = new Map<string, Earlier>();
    let bytes = 0;
    for (const file of facts.paths.filter(isFormattable)) {
      const found = await look(file);
      files.set(file, found);
      if (found.kind === 'bytes') bytes += found.bytes.length;
    }
    if (files.size === 0) return;
    this.#drop(callId);
    this.#calls.set(callId, { files, bytes });
    this.#bytes += bytes;
    for (const [oldest] of this.#calls) {
      if (this.#bytes <= KEPT_BYTES_MAX && this.#calls.size <= KEPT_CALLS_MAX) break;
      this.#drop(oldest);
    }
  }

  /** Before the first of these calls that names the file. */
  of(file: string, calls: readonly JudgedCall[]): Earlier {
    for (const { callId } of calls) {
      const found = this.#calls.get(callId)?.files.get(file);
      if (found !== undefined) return found;
    }
    return { kind: 'unknown' };
  }

  clear(): void {
    this.#calls.clear();
    this.#bytes = 0;
  }

  #drop(callId: string): void {
    this.#bytes -= this.#calls.get(callId)?.bytes ?? 0;
    this.#calls.delete(callId);
  }
}
