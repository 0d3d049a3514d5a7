import type { Entry } from '../ports/journal.js';
import type { MachineTypes } from '../ports/machine-types.js';
import type { Stepped, Watcher } from '../ports/session-input-output.js';
import { AsyncQueue } from './async-queue.js';
import { attempt, attemptNow } from './attempt.js';

/**
 * The observers of a session: watchers of its steps, readers of its entries. A watcher can neither block nor break the
 * session: if it throws or rejects, the error is reported and the watcher is not called again.
 */
export class Observers<M extends MachineTypes> {
  readonly #report: (fault: Error) => void;
  readonly #watchers = new Set<Watcher<M>>();
  readonly #readers = new Set<AsyncQueue<Entry<M>>>();
  #ended = false;

  constructor(report: (fault: Error) => void) {
    this.#report = report;
  }

  watch(watcher: Watcher<M>): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /**
   * The stored entries from `from` on, then new ones until the session ends. The reader is registered before `readStored`
   * is called, so that no entry is missed between the two.
   */
  async *read(readStored: () => AsyncIterable<Entry<M>>, from: number): AsyncGenerator<Entry<M>> {
    const live = new AsyncQueue<Entry<M>>();
    if (this.#ended) live.end(null);
    this.#readers.add(live);
    try {
      let last = from - 1;
      for await (const entry of readStored()) {
        last = entry.seq;
        yield entry;
      }
      for await (const entry of live) if (entry.seq > last) yield entry;
    } finally {
      this.#readers.delete(live);
    }
  }

  /** Passes a durable entry to the readers. */
  journaled(entry: Entry<M>): void {
    for (const reader of this.#readers) reader.push(entry);
  }

  /** Passes a step to the watchers. */
  stepped(stepped: Stepped<M>): void {
    for (const watcher of this.#watchers) {
      const watched = attemptNow<unknown>(() => watcher(stepped));
      if (watched.kind === 'fault') this.#drop(watcher, watched.fault);
      else if (typeof watched.value === 'object') void this.#await(watcher, watched.value);
    }
  }

  /** Ends all readers, with the error that stopped the session if there is one. */
  end(fault: Error | null): void {
    this.#ended = true;
    for (const reader of this.#readers) reader.end(fault);
  }

  /** Catches the rejection of a watcher that is an async function. */
  async #await(watcher: Watcher<M>, returned: unknown): Promise<void> {
    const watched = await attempt(() => returned);
    if (watched.kind === 'fault') this.#drop(watcher, watched.fault);
  }

  #drop(watcher: Watcher<M>, fault: Error): void {
    if (this.#watchers.delete(watcher)) this.#report(fault);
  }
}
