/**
 * States of sessions by the number of an entry, kept while they are used. A state follows from the
 * entries before it, so a state in memory decides the same as one that is computed again: nothing
 * depends on whether it is here.
 */

import {
  agentMachine,
  type Entry,
  type Event,
  type Header,
  type MachineUpgrade,
  type Posted,
  type State,
  turnRuns,
  versionIn,
} from 'pawl/engine';
import type { SessionStore } from './session-store.js';

type Fold = {
  readonly header: Header;
  seq: number;
  state: State;
  /** The state one invocation ago: an invocation that is repeated begins there. */
  before: { readonly seq: number; readonly state: State; readonly version: number } | null;
  readonly past: ReturnType<NonNullable<typeof agentMachine.collectPast>>;
  /** Version of the machine that wrote the entries so far. */
  version: number;
  /** Reads a session of an earlier machine beside this one; null for one of this machine. */
  carrier: ReturnType<NonNullable<typeof agentMachine.carry>> | null;
  usedAt: number;
};

/**
 * The entries are of a machine that this one can't follow. The engine tries again, until a node of
 * that version takes the call.
 */
export class OtherMachineError extends Error {
  override readonly name = 'OtherMachineError';
}

type PastFiles = ReturnType<Fold['past']['past']>;

type SessionAt = { readonly header: Header; readonly seq: number; readonly state: State };
/**
 * `upgrade`: what a session of an earlier machine needs to go on here; null for one of this
 * machine.
 */
type ExactSession = SessionAt & { readonly upgrade: MachineUpgrade | null };

const KEPT_MAX = 256;

export const refuseNewer = (sessionId: string, version: number): void => {
  const refusal = explainRefusal(sessionId, version, agentMachine.version);
  if (refusal !== null) throw new OtherMachineError(refusal);
};

/** Notes who wrote the entry. `taken`: whether this machine found its event in its place. */
const passVersion = (sessionId: string, fold: Fold, event: Event, taken: boolean): void => {
  const upgrade = agentMachine.upgradeIn?.(event);
  if (upgrade !== undefined) {
    refuseNewer(sessionId, upgrade);
    fold.version = upgrade;
  }
  fold.carrier?.see(event, taken);
  if (fold.version === agentMachine.version) fold.carrier = null;
};

const exactly = (fold: Fold): ExactSession => {
  const { header, seq, state, version, carrier } = fold;
  if (version === agentMachine.version) return { header, seq, state, upgrade: null };
  const missed = carrier?.missed(seq, state) ?? null;
  const upgrade = { from: version, to: agentMachine.version };
  if (missed === null) return { header, seq, state, upgrade };
  return { header, seq, state: missed.state, upgrade: { ...upgrade, session: missed.session } };
};

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
  async exact(sessionId: string, seq: number, tail: readonly Entry[] = []): Promise<ExactSession> {
    const fold = await this.#fold(sessionId);
    const next = tail[0]?.seq ?? Number.POSITIVE_INFINITY;
    if (fold.seq < seq && next <= fold.seq + 1)
      this.#see(
        fold,
        tail.filter((entry) => entry.seq > fold.seq && entry.seq <= seq),
      );
    if (fold.seq < seq) await this.#catchUp(sessionId, fold, seq);
    if (fold.seq === seq) return exactly(fold);
    const isOwn = fold.before?.version === agentMachine.version;
    if (isOwn && fold.before?.seq === seq)
      return { header: fold.header, seq, state: fold.before.state, upgrade: null };
    const again = await this.#newFold(sessionId);
    await this.#read(sessionId, again, seq);
    return exactly(again);
  }

  /** The state after `seq` or later. */
  async atLeast(sessionId: string, seq: number): Promise<SessionAt & { readonly past: PastFiles }> {
    const fold = await this.#fold(sessionId);
    if (fold.seq < seq) await this.#catchUp(sessionId, fold, seq);
    return { header: fold.header, seq: fold.seq, state: fold.state, past: fold.past.past() };
  }

  /** Takes over entries that were applied here. False: it has them, from an earlier attempt. */
  advance(sessionId: string, entries: readonly Entry[], state: State): boolean {
    const fold = this.#folds.get(sessionId);
    const [first] = entries;
    if (fold === undefined || first === undefined || first.seq !== fold.seq + 1) return false;
    fold.before = { seq: fold.seq, state: fold.state, version: fold.version };
    for (const { event } of entries) {
      fold.past.see(event);
      passVersion(sessionId, fold, event, true);
    }
    fold.state = state;
    fold.seq += entries.length;
    return true;
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
    const version = versionIn(header);
    refuseNewer(sessionId, version);
    const carrier =
      version < agentMachine.version ? (agentMachine.carry?.(header.settings) ?? null) : null;
    return { header, seq: 0, state, before: null, past, version, carrier, usedAt: Date.now() };
  }

  async #fold(sessionId: string): Promise<Fold> {
    const known = this.#folds.get(sessionId) ?? (await this.#newFold(sessionId));
    const fold = this.#folds.get(sessionId) ?? known;
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
      const catching = this.#read(sessionId, fold, seq).finally(() =>
        this.#catching.delete(sessionId),
      );
      this.#catching.set(sessionId, catching);
      await catching;
    }
  }

  async #read(sessionId: string, fold: Fold, seq: number): Promise<void> {
    for await (const entry of this.#store.entries(sessionId, fold.seq + 1, seq))
      this.#see(fold, [entry]);
    if (fold.seq < seq) throw new Error(`session ${sessionId} has no entry ${seq} yet`);
  }

  #see(fold: Fold, entries: readonly Entry[]): void {
    for (const { seq, event } of entries) {
      if (seq !== fold.seq + 1) continue; // somebody else was faster
      const { state, diagnostics } = agentMachine.step(fold.state, event);
      passVersion(fold.header.sessionId, fold, event, diagnostics.length === 0);
      fold.state = state;
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

// A session of an earlier machine on a node of this one.
//
// 1. At rest it is taken over: `Resumed` says so, with all that the present machine can't read from
//    the entries.
// 2. In the middle of a turn that the present machine follows, the turn goes on. The session is
//    taken over at rest.
// 3. A turn that it can't follow ends. Calls that run are asked for their outcome.
// 4. A session of a later machine is refused in words. Nothing that arrives for it is lost: the
//    engine asks again.

/** The events that come before those that arrived. `lastAt`: the time of the last entry. */
export const takeOverEvents = (
  state: State,
  upgrade: MachineUpgrade | null,
  lastAt: number,
): readonly Posted[] => {
  if (upgrade === null) return [];
  const epoch = state.session.epoch + 1;
  const { session } = upgrade;
  if (session === undefined) return turnRuns(state) ? [] : [{ type: 'Resumed', epoch, upgrade }];
  const resumed = { type: 'Resumed', epoch, stoppedAt: lastAt, upgrade } as const;
  return session.work.kind === 'calls' ? [resumed, { type: 'CancelTurn' }] : [resumed];
};

/** Why a session of this version can't be used here; null if it can. */
const explainRefusal = (sessionId: string, version: number, nodeVersion: number): string | null =>
  version <= nodeVersion
    ? null
    : `session ${sessionId} is used by a newer Pawl (state machine of version ${version}, that ` +
      `of this node has version ${nodeVersion}): update this node`;
