import type { Clock, Entry, Journal, Stepped, Watcher } from '../needs.js';
import type { MachineTypes } from '../needs-machine.js';
import { Feed } from './feed.js';
import type { Flow } from './flow.js';
import { Loop, type LoopNeeds } from './loop.js';
import type { Applied, Posted } from './posted.js';
import { attempt, attemptNow } from './wall.js';

export type LifeNeeds<M extends MachineTypes> = Pick<LoopNeeds<M>, 'prepare' | 'perform'> & {
  readonly flow: Flow<M>;
  readonly journal: Journal<M>;
  /** The state that the journal holds. */
  readonly opened: M['state'];
  readonly clock: Clock;
  /** Ends what was begun by actions; resolves when nothing of it runs any more, or nobody can wait longer. */
  stopAll(): Promise<void>;
  /** Told of faults that stop nothing. */
  report(fault: Error): void;
};

/**
 * The life of a journal while it is open in this process, of whatever machine.
 *
 * 1. It ends once: by `end`, or with the error that stopped the loop. Then nothing of it runs any more, and the journal
 *    is closed.
 * 2. A watcher can neither block nor break it: one that throws is reported and not called again.
 */
export class Life<M extends MachineTypes> {
  readonly #needs: LifeNeeds<M>;
  readonly #loop: Loop<M>;
  readonly #watchers = new Set<Watcher<M>>();
  readonly #feeds = new Set<Feed<Entry<M>>>();
  readonly #settle: { resolve(): void; reject(error: Error): void };
  #ending = false;
  /** Resolves when it was ended; rejects with what stopped it otherwise. */
  readonly ended: Promise<void>;

  constructor(needs: LifeNeeds<M>) {
    this.#needs = needs;
    this.#loop = this.#createLoop();
    let settle = { resolve: (): void => undefined, reject: (_error: Error): void => undefined };
    this.ended = new Promise<void>((resolve, reject) => {
      settle = { resolve, reject };
    });
    this.#settle = settle;
    // whoever waits for the end gets the error; a session that nobody waits for must not end the process
    this.ended.catch(() => undefined);
  }

  #createLoop(): Loop<M> {
    const { opened, ...needs } = this.#needs;
    return new Loop<M>({
      ...needs,
      state: opened,
      show: (stepped) => this.#show(stepped),
      entered: (entry) => {
        for (const feed of this.#feeds) feed.push(entry);
      },
      failed: (error) => void this.end(error),
    });
  }

  get state(): M['state'] {
    return this.#loop.state;
  }

  get seq(): number {
    return this.#needs.journal.seq;
  }

  /** Whether it has ended, or is about to. */
  get isOver(): boolean {
    return this.#ending;
  }

  post(event: Posted<M>, applied?: Applied<M>): void {
    this.#loop.post(event, applied);
  }

  /** Resolves when the event is durable and applied; rejects with the journal's error, or if the session has ended. */
  send(event: Posted<M>, applied?: Applied<M>): Promise<{ readonly seq: number }> {
    return this.#loop.send(event, applied);
  }

  /** Calls the watcher with every step from now on; the returned function ends that. */
  watch(watcher: Watcher<M>): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** What the journal holds from `from` on, then what comes, until the session ends. */
  async *read(from: number): AsyncGenerator<Entry<M>> {
    const feed = new Feed<Entry<M>>();
    if (this.#ending) feed.end(null);
    this.#feeds.add(feed);
    try {
      let last = from - 1;
      for await (const entry of this.#needs.journal.read(from)) {
        last = entry.seq;
        yield entry;
      }
      for await (const entry of feed) if (entry.seq > last) yield entry;
    } finally {
      this.#feeds.delete(feed);
    }
  }

  #show(stepped: Stepped<M>): void {
    for (const watcher of this.#watchers) {
      const watched = attemptNow(() => watcher(stepped));
      if (watched.kind === 'done') continue;
      this.#watchers.delete(watcher);
      this.#needs.report(watched.fault);
    }
  }

  /** Rule 1. What is sent later is refused with `error`, or with the fact that it has ended. */
  async end(error: Error | null): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    const { journal, stopAll } = this.#needs;
    await stopAll();
    await this.#loop.finish(error ?? new Error(`session ${journal.header.sessionId} has ended`));
    const closed = await attempt(() => journal.close());
    const fault = error ?? (closed.kind === 'fault' ? closed.fault : null);
    for (const feed of this.#feeds) feed.end(fault);
    if (fault === null) this.#settle.resolve();
    else this.#settle.reject(fault);
  }
}
