import type { Settings } from '../agent/settings.js';
import type { State } from '../agent/state.js';
import type { Entry, Input, Journal, Stepped, Watcher } from '../needs.js';
import { createCompactions } from './compaction.js';
import type { Equipment } from './equipment.js';
import { Feed } from './feed.js';
import { Loop } from './loop.js';
import { ModelCalls } from './model-call.js';
import { type Performers, perform, prepare } from './perform.js';
import type { Post } from './posted.js';
import { interruptedHook, recoverCalls, runningCalls } from './recovery.js';
import { createTimers } from './timers.js';
import { ToolRuns } from './tool-run.js';
import { attempt, attemptNow } from './wall.js';

/**
 * One session while it is open in this process.
 *
 * 1. It ends once: after the machine's Shutdown, or with the error that stopped the loop. Then nothing of it runs any
 *    more, and the journal is closed.
 * 2. A watcher can neither block nor break it: one that throws is reported and not called again.
 */
export class LiveSession {
  readonly #journal: Journal;
  readonly #opened: State;
  readonly #equipment: Equipment;
  readonly #report: (fault: Error) => void;
  readonly #performers: Performers;
  readonly #loop: Loop;
  readonly #watchers = new Set<Watcher>();
  readonly #feeds = new Set<Feed<Entry>>();
  readonly #settle: { resolve(): void; reject(error: Error): void };
  #ending = false;
  /** Resolves when the session was shut down; rejects with what stopped it otherwise. */
  readonly ended: Promise<void>;

  constructor(journal: Journal, opened: State, equipment: Equipment, report: (fault: Error) => void) {
    this.#journal = journal;
    this.#opened = opened;
    this.#equipment = equipment;
    this.#report = report;
    const post: Post = (event, applied) => this.#loop.post(event, applied);
    const shutDown = (): void => void this.#tearDown(null);
    this.#performers = {
      models: new ModelCalls(equipment, post),
      compactions: createCompactions(equipment, post),
      tools: new ToolRuns(equipment, journal.blobs, () => this.state.session.settings, post),
      timers: createTimers(equipment.clock, post),
      post,
      shutDown,
    };
    this.#loop = this.#createLoop();
    let settle = { resolve: (): void => undefined, reject: (_error: Error): void => undefined };
    this.ended = new Promise<void>((resolve, reject) => {
      settle = { resolve, reject };
    });
    this.#settle = settle;
    // whoever waits for the end gets the error; a session that nobody waits for must not end the process
    this.ended.catch(() => undefined);
  }

  #createLoop(): Loop {
    const performers = this.#performers;
    return new Loop({
      journal: this.#journal,
      state: this.#opened,
      clock: this.#equipment.clock,
      prepare: (action) => prepare(action, performers),
      perform: (action, state) => perform(action, state, performers),
      show: (stepped) => this.#show(stepped),
      entered: (entry) => {
        for (const feed of this.#feeds) feed.push(entry);
      },
      failed: (error) => void this.#tearDown(error),
    });
  }

  get state(): State {
    return this.#loop.state;
  }

  get seq(): number {
    return this.#journal.seq;
  }

  send(input: Input): Promise<{ readonly seq: number }> {
    return this.#loop.send(input);
  }

  /**
   * Goes on with a session that was opened again. New settings come first, so that nothing starts under the old ones;
   * after a clean end nothing starts, and settings can't change before the session is open.
   */
  async resume(patch: Partial<Settings>): Promise<void> {
    const epoch = this.#opened.session.epoch + 1;
    const wasClosed = this.#opened.name === 'ShuttingDown';
    const change = (): void => {
      if (Object.keys(patch).length > 0) this.#loop.post({ type: 'SettingsChanged', patch });
    };
    if (!wasClosed) change();
    const resumed = this.#loop.send({ type: 'Resumed', epoch }, ({ state }) => this.#recover(state));
    if (wasClosed) change();
    await resumed;
  }

  #recover(resumed: State): void {
    recoverCalls(runningCalls(this.#opened, resumed), this.#journal, this.#performers.tools);
    const hookId = interruptedHook(resumed);
    if (hookId !== null) this.#loop.post({ type: 'HookFailed', hookId, message: 'interrupted' });
  }

  /** Calls the watcher with every step from now on; the returned function ends that. */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** What the journal holds from `from` on, then what comes, until the session ends. */
  async *read(from: number): AsyncGenerator<Entry> {
    const feed = new Feed<Entry>();
    if (this.#ending) feed.end(null);
    this.#feeds.add(feed);
    try {
      let last = from - 1;
      for await (const entry of this.#journal.read(from)) {
        last = entry.seq;
        yield entry;
      }
      for await (const entry of feed) if (entry.seq > last) yield entry;
    } finally {
      this.#feeds.delete(feed);
    }
  }

  /** Shuts the session down if it still runs; resolves when it has ended. */
  async close(): Promise<void> {
    if (!this.#ending) await this.send({ type: 'ShutdownRequested' });
    await this.ended;
  }

  #show(stepped: Stepped): void {
    for (const watcher of this.#watchers) {
      const watched = attemptNow(() => watcher(stepped));
      if (watched.kind === 'done') continue;
      this.#watchers.delete(watcher);
      this.#report(watched.fault);
    }
  }

  /** Rule 1. */
  async #tearDown(error: Error | null): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    await this.#stopAll();
    await this.#loop.finish(error ?? new Error(`session ${this.#journal.header.sessionId} has ended`));
    const closed = await attempt(() => this.#journal.close());
    const fault = error ?? (closed.kind === 'fault' ? closed.fault : null);
    for (const feed of this.#feeds) feed.end(fault);
    if (fault === null) this.#settle.resolve();
    else this.#settle.reject(fault);
  }

  /**
   * Waits at most a grace time: for tools, which were ended by force, and for replies that were cut off, whose usage is
   * still to be journaled.
   */
  async #stopAll(): Promise<void> {
    const { models, compactions, timers, tools } = this.#performers;
    timers.cancelAll();
    const { clock, jobs } = this.#equipment;
    let cancel = (): void => undefined;
    const timeIsUp = new Promise<void>((resolve) => {
      cancel = clock.after(this.state.session.settings.graceMs, resolve);
    });
    const stopped = Promise.all([models.stopAll(), compactions.stopAll(), tools.stopAll()]);
    await Promise.race([stopped, timeIsUp]);
    cancel();
    for (const job of jobs.list()) {
      const killed = await attempt(() => job.kill());
      if (killed.kind === 'fault') this.#report(killed.fault);
    }
  }
}
