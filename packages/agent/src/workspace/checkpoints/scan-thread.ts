/**
 * Finds what changed in a large workspace, in a thread of its own, which watches its folders. A
 * look is at what the folders reported; where reports may be missing it is at all files. The thread
 * itself is in scan-thread.cjs.
 *
 * Not reported: writes through a mapping, or by a hard link that lies elsewhere. A whole look finds
 * them.
 */

import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

export type ToScanThread =
  /** Names and the known stamp of each, joined by NUL. 'none': no such file; '': look again. */
  | { readonly type: 'stamps'; readonly names: string; readonly stamps: string }
  /** Names to look at, as bytes in latin1, joined by NUL. */
  | { readonly type: 'names'; readonly names: string }
  /** Folders to watch, joined by NUL; '' is the workspace. */
  | { readonly type: 'folders'; readonly folders: string }
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

  /** Sends the stamps of names; null: there is no such file. */
  sendKnown(known: readonly (readonly [name: string, stamp: string | null])[]): void {
    if (known.length === 0) return;
    const names = known.map(([name]) => name).join('\0');
    this.#post({ type: 'stamps', names, stamps: known.map(([, one]) => one ?? 'none').join('\0') });
  }

  /** Sends more names to look at, and all folders to watch. */
  sendNames(names: readonly string[], folders: readonly string[]): void {
    if (names.length > 0) this.#post({ type: 'names', names: names.join('\0') });
    this.#post({ type: 'folders', folders: folders.join('\0') });
  }

  /**
   * Names that differ from what is known of them. Null: the thread has ended. One look at a time.
   */
  look(isWhole: boolean): Promise<ThreadLook | null> {
    if (this.#worker === null) return Promise.resolve(null);
    this.#worker.ref(); // the process must not end while a look is awaited
    return new Promise<ThreadLook | null>((resolve) => {
      this.#answer = resolve;
      this.#post({ type: 'look', isWhole });
    }).finally(() => this.#worker?.unref());
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }
}
