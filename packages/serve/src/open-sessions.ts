import { turnRuns } from '@pawl/agent/machine/values/turn-running';
import type { Stepped } from '@pawl/agent/ports/session-input-output';
import type { NodeRuntime } from './adapt-runtime-to-node.js';
import type { NodeMetrics } from './metrics.js';
import { SessionFeed } from './streams/session-feed.js';

/** The sessions that are open on this node, each with its feed. */
export class OpenSessions {
  readonly #runtime: NodeRuntime;
  readonly #metrics: NodeMetrics;
  readonly #report: (fault: Error) => void;
  readonly #feeds = new Map<string, SessionFeed>();
  /** Those that were quiet at the last sweep, and were not used since. */
  readonly #quiet = new Set<string>();
  readonly #attending = new Map<string, Promise<SessionFeed>>();
  /** The last work on each session that changes whether it is open. */
  readonly #work = new Map<string, Promise<unknown>>();

  constructor(runtime: NodeRuntime, metrics: NodeMetrics, report: (fault: Error) => void) {
    this.#runtime = runtime;
    this.#metrics = metrics;
    this.#report = report;
  }

  feed(sessionId: string): SessionFeed | null {
    return this.#feeds.get(sessionId) ?? null;
  }

  /** The feed of a session with which something is done now. */
  #use(sessionId: string): SessionFeed | null {
    this.#quiet.delete(sessionId);
    return this.feed(sessionId);
  }

  ids(): readonly string[] {
    return [...this.#feeds.keys()];
  }

  get count(): { readonly open: number; readonly busy: number } {
    const feeds = [...this.#feeds.values()];
    return { open: feeds.length, busy: feeds.filter(({ isBusy }) => isBusy).length };
  }

  /** Runs `work` after all earlier work on this session. */
  async inOrder<T>(sessionId: string, work: () => Promise<T>): Promise<T> {
    const before = this.#work.get(sessionId) ?? Promise.resolve();
    const now = before.then(work, work);
    this.#work.set(sessionId, now);
    try {
      return await now;
    } finally {
      if (this.#work.get(sessionId) === now) this.#work.delete(sessionId);
    }
  }

  /** Follows a session that has just been created or opened. */
  async attend(sessionId: string): Promise<SessionFeed> {
    const known = this.#use(sessionId) ?? this.#attending.get(sessionId);
    if (known !== undefined) return known;
    const attending = this.#attend(sessionId).finally(() => this.#attending.delete(sessionId));
    this.#attending.set(sessionId, attending);
    return attending;
  }

  /** The feed of a session that its client has not closed; null if it does not run anywhere. */
  async follow(sessionId: string): Promise<SessionFeed | null> {
    const known = this.#use(sessionId);
    if (known !== null || this.#runtime.endsWithNode) return known;
    // It went on while this node was away.
    const { state } = await this.#runtime.state(sessionId);
    return state.name === 'ShuttingDown' ? null : this.attend(sessionId);
  }

  async #attend(sessionId: string): Promise<SessionFeed> {
    const { seq, state } = await this.#runtime.state(sessionId);
    let wasRunning = turnRuns(state);
    const see = (stepped: Stepped): void => {
      this.#metrics.stepped(stepped, wasRunning);
      wasRunning = turnRuns(stepped.state);
    };
    const feed = new SessionFeed(this.#runtime, sessionId, { seq, state }, see);
    this.#feeds.set(sessionId, feed);
    void feed.ended.then((fault) => {
      if (this.#feeds.get(sessionId) === feed) this.#feeds.delete(sessionId);
      if (fault !== null) this.#report(new Error(`session ${sessionId} was stopped: ${fault.message}`));
    });
    return feed;
  }

  /** Opens a stored session and follows it. Call it in order. */
  async open(sessionId: string): Promise<SessionFeed> {
    const known = this.#use(sessionId);
    if (known !== null) return known;
    await this.#runtime.open(sessionId);
    return this.attend(sessionId);
  }

  /**
   * Lets go of sessions that rest and that nobody reads, if they go on without this node: one that is followed costs
   * memory here, and questions to the engine. Called from time to time; one that is quiet at two calls is left.
   */
  sweep(): void {
    if (this.#runtime.endsWithNode) return;
    for (const [sessionId, feed] of this.#feeds) {
      if (!feed.isQuiet) this.#quiet.delete(sessionId);
      else if (!this.#quiet.has(sessionId)) this.#quiet.add(sessionId);
      else {
        this.#quiet.delete(sessionId);
        this.#feeds.delete(sessionId);
        feed.leave();
      }
    }
  }

  /** Closes the session if it runs, and resolves when its work has stopped. Call it in order. */
  async close(sessionId: string): Promise<void> {
    const feed = await this.follow(sessionId);
    if (feed === null) return;
    await this.#runtime.close(sessionId);
    await feed.ended;
  }
}
