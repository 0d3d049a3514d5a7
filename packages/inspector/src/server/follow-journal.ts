/**
 * Follows a journal that a process may be writing to, without its lock and without changing
 * anything. A journal has one entry a line, numbered by `seq`.
 *
 * 1. Yields only entries whose lines are whole and verified, each once, in order.
 * 2. An incomplete last line is read again later: its writer may be at work, or dead. So are zeros
 *    that a power loss left behind the last acknowledged entry, which the mark beside the journal
 *    names.
 * 3. The file is read when it changes, and from time to time, since not every file system reports
 *    changes.
 */

import { watch } from 'node:fs';
import { type FileHandle, lstat } from 'node:fs/promises';
import { cannotRead } from '@pawl/agent/journal/journal-error';
import { JournalScan, type ScanPoint } from '@pawl/agent/journal/reader';
import { readMark } from '@pawl/agent/journal/state-folder';
import { openRegular } from '@pawl/agent/platform/files';
import type { AgentTypes } from '@pawl/agent/ports/journal';
import type { FeedPiece } from '../page-data-types.js';

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
    // Another file stands in its place, or it is shorter: earlier entries may differ, so the reader
    // starts again. (A process that takes a session over copies its journal to a new file.)
    seen.seq = 0;
    yield { kind: 'restart' };
  }
}

/** The entries of one file until it is replaced. `seen`: the last entry; this updates it. */
async function* followFile(
  path: string,
  seen: { seq: number },
  signal: AbortSignal,
): AsyncGenerator<FeedPiece, undefined> {
  const fileWatch = new FileWatch(path, signal);
  const { file, status } = await openRegular(path).catch((error: unknown) => {
    fileWatch.close();
    throw error;
  });
  try {
    let point: Point | null = null;
    let size = -1;
    while (!signal.aborted) {
      const mark = await readMark(path); // before the size: the writer may be at work
      const now = await file.stat();
      if (now.size !== size) {
        const scan: JournalScan<AgentTypes> = await beginScan(file, path, now.size, point);
        for await (const records of scan.records()) {
          const entries = records.map(({ entry }) => entry).filter(({ seq }) => seq > seen.seq);
          if (entries.length === 0) continue;
          seen.seq = entries.at(-1)?.seq ?? seen.seq;
          yield { kind: 'entries', entries, caughtUp: false };
        }
        yield { kind: 'entries', entries: [], caughtUp: true };
        scan.compare(mark);
        const { ending, header, seq, crc, sum } = scan;
        if (ending.kind === 'damaged') {
          // the mark may be that of another file, which stands in its place by now
          if (!(await isSameFile(path, status.ino, now.size))) return;
          yield { kind: 'damaged', why: ending.error.message };
          return;
        }
        // If the line feed of the last entry is still to come, it is read again.
        if (ending.kind !== 'unended') point = { header, seq, crc, size: scan.size, sum };
        size = now.size;
      }
      await fileWatch.next();
      if (!signal.aborted && !(await isSameFile(path, status.ino, size))) return;
    }
  } finally {
    fileWatch.close();
    await file.close();
  }
}

const isSameFile = async (path: string, inode: number, size: number): Promise<boolean> => {
  const status = await lstat(path);
  return status.ino === inode && status.size >= size;
};

type Point = ScanPoint<AgentTypes>;

/** Scans the lines that were added since `from`. */
const beginScan = async (
  file: FileHandle,
  path: string,
  size: number,
  from: Point | null,
): Promise<JournalScan<AgentTypes>> =>
  from === null
    ? JournalScan.beginOf<AgentTypes>('agent', file, path, size)
    : JournalScan.after<AgentTypes>(file, path, size, from);

/** Time until the next reading if no change is reported. */
const LOOK_AGAIN_MS = 1_000;
/** The least time between two readings: one costs the agent's process 0.5 ms. */
const REST_MS = 125;

/** Reports when a file may have changed. Create it before the first reading, to miss no change. */
class FileWatch {
  readonly #watcher: ReturnType<typeof watch> | null;
  #hasChanged = false;
  #wake = (): void => undefined;

  constructor(path: string, signal: AbortSignal) {
    const report = (): void => {
      this.#hasChanged = true;
      this.#wake();
    };
    this.#watcher = FileWatch.#watch(path, report);
    signal.addEventListener('abort', report, { once: true });
  }

  static #watch(path: string, report: () => void): ReturnType<typeof watch> | null {
    try {
      return watch(path, { persistent: false }, report).on('error', report);
    } catch {
      return null; // the file is gone or can't be watched: the timer looks again
    }
  }

  /** Resolves once the file may have changed since the last call, or after `LOOK_AGAIN_MS`. */
  async next(): Promise<void> {
    if (!this.#hasChanged) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, LOOK_AGAIN_MS).unref();
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    await new Promise((resolve) => setTimeout(resolve, REST_MS).unref());
    this.#hasChanged = false;
  }

  close(): void {
    this.#watcher?.close();
  }
}
