import { agentMachine, type Entry, type Header, type State } from 'pawl/engine';
import type { SessionStore } from './session-store.js';

/**
 * States of sessions by the number of an entry, kept while they are used. A state follows from the entries before it, so
 * a state in memory decides the same as one that is computed again: nothing depends on whether it is here.
 */

type Fold = {
  readonly header: Header;
  seq: number;
  state: State;
  /** The state one invocation ago: an invocation that is repeated begins there. */
  before: { readonly seq: number; readonly state: State } | null;
  readonly past: ReturnType<NonNullable<typeof agentMachine.collectPast>>;
  usedAt: number;
};

export type PastFiles = ReturnType<Fold['past']['past']>;

export type SessionAt = { readonly header: Header; readonly seq: number; readonly state: State };

const KEPT_MAX = 256;

export class SessionStates {
  readonly #store: SessionStore;
  readonly #folds = new Map<string, Fold>();
  readonly #catching = new Map<string, Promise<void>>();
  readonly #idleMs: number;
  readonly #sweeping: NodeJS.Timeout;

  /** `idleMs`: how long a state stays that nobody asks for. */
  constructor(store: SessionStore, idleMs: number) {
    this.#store = store;
    this.#idleMs = idleMs;
    this.#sweeping = setInterval(() => this.#sweep(), idleMs / 2);
    this.#sweeping.unref();
  }

  /** How many sessions are in memory. */
  get size(): number {
    return this.#folds.size;
  }

  /** The state after exactly `seq`. `tail`: the last entries, if they are known already. */
  async exact(sessionId: string, seq: number, tail: readonly Entry[]): Promise<SessionAt> {
    const fold = await this.#fold(sessionId);
    const next = tail[0]?.seq ?? Number.POSITIVE_INFINITY;
    if (fold.seq < seq && next <= fold.seq + 1)
      this.#see(
        fold,
        tail.filter((entry) => entry.seq > fold.seq && entry.seq <= seq),
      );
    if (fold.seq < seq) await this.#catchUp(sessionId, fold, seq);
    if (fold.seq === seq) return { header: fold.header, seq, state: fold.state };
    if (fold.before?.seq === seq) return { header: fold.header, seq, state: fold.before.state };
    const again = await this.#newFold(sessionId);
    await this.#read(sessionId, again, seq);
    return { header: again.header, seq, state: again.state };
  }

  /** The state after `seq` or later. */
  async atLeast(sessionId: string, seq: number): Promise<SessionAt & { readonly past: PastFiles }> {
    const fold = await this.#fold(sessionId);
    if (fold.seq < seq) await this.#catchUp(sessionId, fold, seq);
    return { header: fold.header, seq: fold.seq, state: fold.state, past: fold.past.past() };
  }

  /** Takes over entries that were applied here. */
  advance(sessionId: string, entries: readonly Entry[], state: State): void {
    const fold = this.#folds.get(sessionId);
    const [first] = entries;
    if (fold === undefined || first === undefined || first.seq !== fold.seq + 1) return;
    fold.before = { seq: fold.seq, state: fold.state };
    for (const { event } of entries) fold.past.see(event);
    fold.state = state;
    fold.seq += entries.length;
  }

  stop(): void {
    clearInterval(this.#sweeping);
    this.#folds.clear();
  }

  async #newFold(sessionId: string): Promise<Fold> {
    const header = await this.#store.header(sessionId);
    const past = agentMachine.collectPast?.();
    if (past === undefined) throw new Error('the agent collects what its events tell of files');
    const state = agentMachine.initialState(header.settings);
    return { header, seq: 0, state, before: null, past, usedAt: Date.now() };
  }

  async #fold(sessionId: string): Promise<Fold> {
    const kept = this.#folds.get(sessionId) ?? (await this.#newFold(sessionId));
    const fold = this.#folds.get(sessionId) ?? kept;
    fold.usedAt = Date.now();
    this.#folds.delete(sessionId); // to the end of the order, so that the oldest is the first
    this.#folds.set(sessionId, fold);
    const [oldest] = this.#folds.keys();
    if (this.#folds.size > KEPT_MAX && oldest !== undefined) this.#folds.delete(oldest);
    return fold;
  }

  /** One at a time: two that fold at once would apply entries twice. */
  async #catchUp(sessionId: string, fold: Fold, seq: number): Promise<void> {
    while (fold.seq < seq) {
      const running = this.#catching.get(sessionId);
      if (running !== undefined) {
        await running;
        continue;
      }
      const catching = this.#read(sessionId, fold, seq).finally(() => this.#catching.delete(sessionId));
      this.#catching.set(sessionId, catching);
      await catching;
    }
  }

  async #read(sessionId: string, fold: Fold, seq: number): Promise<void> {
    for await (const entry of this.#store.entries(sessionId, fold.seq + 1, seq)) this.#see(fold, [entry]);
    if (fold.seq < seq) throw new Error(`session ${sessionId} has no entry ${seq} yet`);
  }

  #see(fold: Fold, entries: readonly Entry[]): void {
    for (const { seq, event } of entries) {
      if (seq !== fold.seq + 1) continue; // somebody else was faster
      fold.state = agentMachine.step(fold.state, event).state;
      fold.past.see(event);
      fold.seq = seq;
      fold.before = null;
    }
  }

  #sweep(): void {
    for (const [sessionId, { usedAt }] of this.#folds) {
      if (Date.now() - usedAt <= this.#idleMs) continue;
      this.#folds.delete(sessionId);
      this.#store.forgetHeader(sessionId);
    }
  }
}
