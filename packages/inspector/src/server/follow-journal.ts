/**
 * Follows a journal that a process may be writing to, without its lock and without changing
 * anything.
 *
 * 1. Yields only entries whose lines are whole and verified, each once, in order.
 * 2. An incomplete last line is read again later: its writer may be at work, or dead.
 * 3. The file is looked at when it changes, and from time to time, since not every file system
 *    tells of changes.
 */

import { watch } from 'node:fs';
import { type FileHandle, lstat } from 'node:fs/promises';
import { cannotRead } from '@pawl/agent/journal/journal-error';
import { JournalScan, type ScanPoint } from '@pawl/agent/journal/reader';
import { openRegular } from '@pawl/agent/platform/files';
import type { AgentTypes, Entry, Header } from '@pawl/agent/ports/journal';
import type { FeedPiece } from '../page-data-types.js';

/**
 * Time between two looks if nothing tells of changes, and the least time between two: a look costs
 * an agent's process 0.5 ms.
 */
const LOOK_AGAIN_MS = 1_000;
const REST_MS = 125;

type Point = ScanPoint<AgentTypes>;

/** One pass over the lines that were added since `from`. */
class Pass {
  readonly #scan: JournalScan<AgentTypes>;

  constructor(scan: JournalScan<AgentTypes>) {
    this.#scan = scan;
  }

  static async begin(file: FileHandle, path: string, from: Point | null): Promise<Pass> {
    const { size } = await file.stat();
    if (from === null)
      return new Pass(await JournalScan.beginOf<AgentTypes>('agent', file, path, size));
    return new Pass(JournalScan.after<AgentTypes>(file, path, size, from));
  }

  get header(): Header {
    return this.#scan.header;
  }

  async *entriesAfter(seq: number): AsyncGenerator<readonly Entry[], undefined> {
    for await (const records of this.#scan.records()) {
      const entries = records.map(({ entry }) => entry).filter((entry) => entry.seq > seq);
      if (entries.length > 0) yield entries;
    }
  }

  /** The start of the next pass; null if the line feed of the last entry is still to come. */
  get point(): Point | null {
    const { header, seq, crc, size, sum, ending } = this.#scan;
    return ending.kind === 'unended' ? null : { header, seq, crc, size, sum };
  }

  get damage(): string | null {
    const { ending } = this.#scan;
    return ending.kind === 'damaged' ? ending.error.message : null;
  }
}

/** Tells when a file may have changed. Start it before the first look, to miss no change. */
class ChangeBell {
  readonly #watcher: ReturnType<typeof watch> | null;
  #rung = false;
  #wake = (): void => undefined;

  constructor(path: string, signal: AbortSignal) {
    const ring = (): void => {
      this.#rung = true;
      this.#wake();
    };
    this.#watcher = ChangeBell.#watch(path, ring);
    signal.addEventListener('abort', ring, { once: true });
  }

  static #watch(path: string, ring: () => void): ReturnType<typeof watch> | null {
    try {
      return watch(path, { persistent: false }, ring).on('error', ring);
    } catch {
      return null; // the file is gone or can't be watched: the timer looks again
    }
  }

  async next(): Promise<void> {
    if (!this.#rung) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, LOOK_AGAIN_MS).unref();
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    await new Promise((resolve) => setTimeout(resolve, REST_MS).unref());
    this.#rung = false;
  }

  close(): void {
    this.#watcher?.close();
  }
}

const isSameFile = async (path: string, inode: number, size: number): Promise<boolean> => {
  const status = await lstat(path);
  return status.ino === inode && status.size >= size;
};

/** Gives the entries of one file until it is replaced. */
async function* followFile(
  path: string,
  seen: { seq: number },
  signal: AbortSignal,
): AsyncGenerator<FeedPiece, undefined> {
  const bell = new ChangeBell(path, signal);
  const { file, status } = await openRegular(path).catch((error: unknown) => {
    bell.close();
    throw error;
  });
  try {
    let point: Point | null = null;
    let size = -1;
    while (!signal.aborted) {
      const now = await file.stat();
      if (now.size !== size) {
        const pass: Pass = await Pass.begin(file, path, point);
        for await (const entries of pass.entriesAfter(seen.seq)) {
          seen.seq = entries.at(-1)?.seq ?? seen.seq;
          yield { kind: 'entries', entries, caughtUp: false };
        }
        yield { kind: 'entries', entries: [], caughtUp: true };
        if (pass.damage !== null) {
          yield { kind: 'damaged', why: pass.damage };
          return;
        }
        point = pass.point ?? point;
        size = now.size;
      }
      await bell.next();
      if (!signal.aborted && !(await isSameFile(path, status.ino, size))) return;
    }
  } finally {
    bell.close();
    await file.close();
  }
}

/**
 * The entries after `seq` of the journal at `path`, then each one that is added, until `signal`
 * aborts. Rejects if the file can't be read at all.
 */
export async function* followJournal(
  path: string,
  seq: number,
  signal: AbortSignal,
): AsyncGenerator<FeedPiece, undefined> {
  const seen = { seq };
  let damaged = false;
  while (!signal.aborted && !damaged) {
    try {
      for await (const piece of followFile(path, seen, signal)) {
        damaged = piece.kind === 'damaged';
        yield piece;
      }
    } catch (error) {
      if (!signal.aborted) throw cannotRead(path, error);
    }
    if (signal.aborted || damaged) return;
    // Another file stands in its place. A process that takes a session over copies its journal:
    // then only new lines differ.
    seen.seq = 0;
    yield { kind: 'restart' };
  }
}
