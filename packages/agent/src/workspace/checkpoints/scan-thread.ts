/**
 * Finds what changed in a large workspace, in a separate thread, which watches its folders. The
 * first look is at each file, once they are watched. A later one is at what the folders reported;
 * where reports may be missing it is at all files. The thread itself is in scan-thread.cjs.
 *
 * Not reported: writes through a mapping, or by a hard link that lies elsewhere. A whole look finds
 * them.
 */

import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { UnsentRows } from './known-files.js';

export type ToScanThread =
  /**
   * Names to look at, as bytes in latin1, joined by NUL: new ones, whose rows follow those before,
   * and such as are to be read again. `memory`: the rows (known-files.ts), if it is another one.
   */
  | { readonly type: 'names'; readonly names: string; readonly memory: SharedArrayBuffer | null }
  /** Folders to watch, joined by NUL; '' is the workspace. */
  | { readonly type: 'folders'; readonly folders: string }
  /** Fills the rows of which nothing is known. */
  | { readonly type: 'scan' }
  | { readonly type: 'look'; readonly isWhole: boolean };

/**
 * `changed`: names that differ from what is known. `reported`: folders in which something may have
 * changed; null: in any. `isWatching`: whether the next look need not be at everything.
 */
export type ThreadLook = {
  readonly changed: readonly string[];
  readonly reported: readonly string[] | null;
  readonly isWatching: boolean;
};

const PROGRAM = readFileSync(new URL('./scan-thread.cjs', import.meta.url), 'utf8');

export class ScanThread {
  #worker: Worker | null;
  /** Resolves the look that waits; null: none does. */
  #answer: ((look: ThreadLook | null) => void) | null = null;

  /**
   * `marks`: a folder of its own, in which it makes files. Once such a file is reported, all
   * earlier changes are.
   */
  constructor(workspace: string, marks: string) {
    const workerData = { workspace, marks };
    const options = { eval: true, name: 'scan', workerData, env: {}, execArgv: [] };
    this.#worker = new Worker(PROGRAM, options);
    this.#worker.unref();
    this.#worker.on('message', (look: ThreadLook) => this.#resolveLook(look));
    // null: the caller looks at everything then
    this.#worker.on('error', () => this.#resolveLook(null));
    this.#worker.on('exit', () => {
      this.#worker = null;
      this.#resolveLook(null);
    });
  }

  #resolveLook(look: ThreadLook | null): void {
    const answer = this.#answer;
    this.#answer = null;
    answer?.(look);
  }

  #post(message: ToScanThread): void {
    this.#worker?.postMessage(message);
  }

  sendNames({ names, memory }: UnsentRows): void {
    if (names.length > 0 || memory !== null)
      this.#post({ type: 'names', names: names.join('\0'), memory });
  }

  /** Sends all folders to watch. */
  sendFolders(folders: Iterable<string>): void {
    this.#post({ type: 'folders', folders: [...folders].join('\0') });
  }

  /** The first look: fills the rows of names of which nothing is known. Null: the thread has ended. */
  scan(): Promise<ThreadLook | null> {
    return this.#ask({ type: 'scan' });
  }

  /**
   * Names that differ from what is known of them. Null: the thread has ended. One look at a time.
   */
  look(isWhole: boolean): Promise<ThreadLook | null> {
    return this.#ask({ type: 'look', isWhole });
  }

  #ask(message: ToScanThread): Promise<ThreadLook | null> {
    if (this.#worker === null) return Promise.resolve(null);
    this.#worker.ref(); // the process must not end while a look is awaited
    return new Promise<ThreadLook | null>((resolve) => {
      this.#answer = resolve;
      this.#post(message);
    }).finally(() => this.#worker?.unref());
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }
}
