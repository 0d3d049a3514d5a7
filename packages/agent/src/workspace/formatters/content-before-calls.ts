import { lstat } from 'node:fs/promises';
import type { JudgedCall } from '../../machine/call.js';
import { loadFile } from '../../tools/files/file-text.js';
import { isFormattable } from './formatter-choice.js';

/** The content of a file before a batch. */
export type ContentBefore =
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unknown' };

export const FORMATTED_BYTES_MAX = 1024 * 1024;
const KEPT_BYTES_MAX = 16 * 1024 * 1024;
const KEPT_CALLS_MAX = 200;

type Kept = { readonly files: ReadonlyMap<string, ContentBefore>; readonly bytes: number };

const readContent = async (file: string): Promise<ContentBefore> => {
  const status = await lstat(file).catch(() => null); // null: it does not exist
  if (status === null) return { kind: 'absent' };
  if (!status.isFile() || status.size > FORMATTED_BYTES_MAX) return { kind: 'unknown' };
  const loaded = await loadFile(file);
  return loaded.kind === 'file' ? { kind: 'bytes', bytes: loaded.bytes } : { kind: 'unknown' };
};

/**
 * Remembers the content of files before the calls of a batch. Its size is bounded, since not every batch is reported.
 */
export class EarlierContent {
  readonly #calls = new Map<string, Kept>();
  readonly #carried = new Set<string>();
  #bytes = 0;

  /** Remembers the files that a call names. */
  async keep({ callId, facts }: JudgedCall): Promise<void> {
    const files = new Map<string, ContentBefore>();
    let bytes = 0;
    for (const file of facts.paths.filter(isFormattable)) {
      const found = await readContent(file);
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

  /** Counts the call to the next batch, since its own gets no report. */
  carryOver({ callId }: JudgedCall): void {
    this.#carried.add(callId);
  }

  /** The content before the first call that names the file, among these calls and those carried over. */
  of(file: string, calls: readonly JudgedCall[]): ContentBefore {
    const own = new Set(calls.map(({ callId }) => callId));
    for (const [callId, { files }] of this.#calls) {
      const found = own.has(callId) || this.#carried.has(callId) ? files.get(file) : undefined;
      if (found !== undefined) return found;
    }
    return { kind: 'unknown' };
  }

  clear(): void {
    this.#calls.clear();
    this.#carried.clear();
    this.#bytes = 0;
  }

  #drop(callId: string): void {
    this.#bytes -= this.#calls.get(callId)?.bytes ?? 0;
    this.#calls.delete(callId);
  }
}
