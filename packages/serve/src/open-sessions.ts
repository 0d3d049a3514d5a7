/**
 * The sessions that are open on this node (a process that serves sessions), and how clients read
 * them. An entry is a line of a session's journal: one event, with its number `seq`. Sessions run
 * in this process and end with it, or on an engine, a service that runs them for several nodes.
 *
 * A request that needs the session open calls `open`, one that creates it `attend`, a reader
 * `follow`, and `feed` only looks. What changes whether it is open runs in order (`inOrder`).
 *
 * From top to bottom: `OpenSessions`; `SessionFeed`, the new entries of one session, read from its
 * journal once for all readers; the calls that wait for an approval; and `EventStream`, the HTTP
 * answer by which one client reads a feed.
 */

import type { ServerResponse } from 'node:http';
import type { Event } from '@pawl/agent/machine/event';
import { type State, turnRuns } from '@pawl/agent/machine/state';
import { attempt } from '@pawl/agent/platform/attempt';
import { eventText } from '@pawl/agent/platform/http';
import { type ApprovalDescription, describeQuestion } from '@pawl/agent/policy/approval-question';
import { decide } from '@pawl/agent/policy/decide';
import type { Entry } from '@pawl/agent/ports/journal';
import type { Stepped } from '@pawl/agent/ports/session';
import { agentAdapter } from '@pawl/agent/session/session';
import type { NodeMetrics } from './metrics.js';
import type { NodeRuntime } from './node-runtime.js';
import { questionCode } from './question-code.js';

type OpenSessionsParts = {
  readonly runtime: NodeRuntime;
  readonly metrics: NodeMetrics;
  /** The name of the key whose session it is. */
  findKeyName(sessionId: string): Promise<string>;
  report(fault: Error): void;
};

/**
 * The sessions that are open on this node, each with its feed.
 *
 * A caller takes `feed` to look at a session, `attend` after it created one, `follow` to read one
 * that may run on an engine, and `open` before an input. `open` and `close` run inside `inOrder`;
 * `sweep` closes without it, and `open` waits for that.
 */
export class OpenSessions {
  readonly #parts: OpenSessionsParts;
  readonly #runtime: NodeRuntime;
  readonly #feeds = new Map<string, SessionFeed>();
  /** Sessions that were quiet at the last sweep, and were not used since. */
  readonly #quiet = new Set<string>();
  /** Sessions that are being closed since they rest: beside the order, so `open` waits for them. */
  readonly #leaving = new Map<string, Promise<unknown>>();
  /** Feeds that are being created. */
  readonly #creating = new Map<string, Promise<SessionFeed>>();
  /** The last work on each session that changes whether it is open. */
  readonly #work = new Map<string, Promise<unknown>>();

  constructor(parts: OpenSessionsParts) {
    this.#parts = parts;
    this.#runtime = parts.runtime;
  }

  /** The feed of a session that is followed; null for any other. */
  feed(sessionId: string): SessionFeed | null {
    return this.#feeds.get(sessionId) ?? null;
  }

  /** The feed of a session with which something is done now, so that it is not quiet. */
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

  /** The feed of a session that runs: one just created or opened, or one that runs elsewhere. */
  async attend(sessionId: string): Promise<SessionFeed> {
    const known = this.#use(sessionId) ?? this.#creating.get(sessionId);
    if (known !== undefined) return known;
    const creating = this.#createFeed(sessionId).finally(() => this.#creating.delete(sessionId));
    this.#creating.set(sessionId, creating);
    return creating;
  }

  /** The feed of a session that its client has not closed; null if it does not run anywhere. */
  async follow(sessionId: string): Promise<SessionFeed | null> {
    const known = this.#use(sessionId);
    if (known !== null || this.#runtime.endsWithNode) return known;
    // The session runs on an engine and went on while this node was away.
    const { state } = await this.#runtime.state(sessionId);
    return state.name === 'ShuttingDown' ? null : this.attend(sessionId);
  }

  async #createFeed(sessionId: string): Promise<SessionFeed> {
    const { metrics, findKeyName, report } = this.#parts;
    const key = await findKeyName(sessionId);
    const early: Stepped[] = [];
    const unwatch = this.#runtime.watch(sessionId, (stepped) => void early.push(stepped));
    const { seq, state } = await this.#runtime.state(sessionId).catch((fault: unknown) => {
      unwatch();
      throw fault;
    });
    let before = state;
    const see = ({ event, state }: Stepped): void => {
      if (this.#runtime.isCounted !== 'yes')
        metrics.applied(key, { before, events: [event], state });
      before = state;
    };
    const feed = new SessionFeed(this.#runtime, sessionId, { seq, state }, see);
    unwatch();
    feed.seeLater(early);
    this.#feeds.set(sessionId, feed);
    void feed.ended.then((fault) => {
      if (this.#feeds.get(sessionId) === feed) this.#feeds.delete(sessionId);
      if (fault !== null) report(new Error(`session ${sessionId} was stopped: ${fault.message}`));
    });
    return feed;
  }

  /** Opens a stored session and follows it. */
  async open(sessionId: string, key: string): Promise<SessionFeed> {
    await this.#leaving.get(sessionId);
    const known = this.#use(sessionId);
    if (known !== null) return known;
    await this.#runtime.open(sessionId, key);
    return this.attend(sessionId);
  }

  /**
   * Lets go of sessions that rest and that nobody reads: each costs memory and processes here, or
   * requests to the engine. Those of this process are closed until their next input; of others,
   * that go on without this node, the feed is dropped. Called from time to time; a session that is
   * quiet at two calls is let go of.
   */
  sweep(): void {
    for (const [sessionId, feed] of this.#feeds) {
      if (!feed.isQuiet) this.#quiet.delete(sessionId);
      else if (!this.#quiet.has(sessionId)) this.#quiet.add(sessionId);
      else if (!this.#runtime.endsWithNode) {
        this.#quiet.delete(sessionId);
        this.#feeds.delete(sessionId);
        feed.leave();
      } else if (this.#runtime.mayRest?.(sessionId) === true) {
        this.#quiet.delete(sessionId);
        // A fault is reported when its feed ends.
        const left = attempt(() => this.close(sessionId));
        this.#leaving.set(sessionId, left);
        void left.then(() => this.#leaving.delete(sessionId));
      }
    }
  }

  /** Closes the session if it runs, and resolves when its work has stopped. */
  async close(sessionId: string): Promise<void> {
    const feed = await this.follow(sessionId);
    if (feed === null) return;
    await this.#runtime.close(sessionId);
    await feed.ended;
  }
}

// ---- The feed of a session ----

/**
 * One message of a stream as it is sent. `seq`: of a journaled entry; null for deltas (pieces of a
 * reply that is streaming) and states.
 */
type StreamMessage = { readonly seq: number | null; readonly text: string };

type FeedReader = {
  offer(message: StreamMessage): void;
  /** The session has ended; `fault` is what stopped it. */
  end(fault: Error | null): void;
};

/** What a step without an entry brought, and the entry before it. */
type Delta = { readonly event: Event; readonly seq: number };

/** `seq`: the entry that it follows. */
type HeldMessage = {
  readonly name: 'delta' | 'state';
  readonly content: unknown;
  readonly seq: number;
};

type SessionStatus = {
  readonly seq: number;
  readonly state: State['name'];
  readonly approvals: readonly Approval[];
};

const entryMessage = (entry: Entry): StreamMessage => ({
  seq: entry.seq,
  text: eventText(entry, { name: 'entry', id: entry.seq }),
});
const otherMessage = (
  name: 'delta' | 'pending' | 'state' | 'end',
  value: unknown,
): StreamMessage => ({ seq: null, text: eventText(value, { name }) });

/** Whether the session works: a turn runs, and does not only wait for answers of a user. */
export const isBusyIn = (state: State, approvals: readonly Approval[]): boolean => {
  if (!turnRuns(state)) return false;
  if (state.name !== 'ExecutingTools' || approvals.length === 0) return true;
  return state.calls.some(({ status }) => status === 'starting' || status === 'running');
};

/**
 * One open session as its readers see it: its new entries, read once for all of them, and what is
 * not journaled.
 *
 * 1. A reader can't hold the session or another reader: it is offered everything and keeps nothing
 *    here.
 * 2. A delta is offered after the entry that it follows: entries are read from the journal, which
 *    can take longer than the next piece of a reply.
 * 3. It ends with the session.
 */
class SessionFeed {
  readonly #sessionId: string;
  readonly #readers = new Set<FeedReader>();
  /** Called with every step. */
  readonly #see: (stepped: Stepped) => void;
  /** The previews of calls that wait for an approval, by batch and call. */
  readonly #diffs = new Map<string, string>();
  #state: State;
  #seq: number;
  /** The last entry that a step named; it is offered once it is read from the journal. */
  #lastSeq: number;
  #approvals: readonly Approval[] = [];
  /** The text of the reply that is not journaled yet. */
  #pending: Delta | null = null;
  /** Deltas and states whose entry has not been offered yet. */
  readonly #held: HeldMessage[] = [];
  #unwatch = (): void => undefined;
  readonly #entries: AsyncIterator<Entry>;
  /** Resolves when the session has ended, with the error that stopped it. */
  readonly ended: Promise<Error | null>;

  constructor(
    runtime: NodeRuntime,
    sessionId: string,
    opened: { readonly seq: number; readonly state: State },
    see: (stepped: Stepped) => void,
  ) {
    this.#sessionId = sessionId;
    this.#state = opened.state;
    this.#seq = opened.seq;
    this.#lastSeq = opened.seq;
    this.#see = see;
    this.#approvals = approvalsIn(sessionId, opened.state, this.#diffs);
    this.#unwatch = runtime.watch(sessionId, (stepped) => this.#watch(stepped));
    this.#entries = runtime.read(sessionId, opened.seq + 1)[Symbol.asyncIterator]();
    this.ended = this.#follow();
  }

  /** The last entry that was offered. */
  get seq(): number {
    return this.#seq;
  }

  get isBusy(): boolean {
    return isBusyIn(this.#state, this.#approvals);
  }

  get status(): SessionStatus {
    return { seq: this.#seq, state: this.#state.name, approvals: this.#approvals };
  }

  /** What a reader of all offered entries lacks of the reply that is streaming; null if nothing. */
  get pending(): Delta | null {
    return this.#pending !== null && this.#pending.seq <= this.#seq ? this.#pending : null;
  }

  /** Nobody reads it, and no turn runs. */
  get isQuiet(): boolean {
    return this.#readers.size === 0 && !turnRuns(this.#state);
  }

  /** Takes the steps that came while the state at which it begins was read. */
  seeLater(steps: readonly Stepped[]): void {
    const known = steps.findLastIndex(({ seq }) => seq !== null && seq <= this.#lastSeq);
    for (const step of steps.slice(known + 1)) this.#watch(step);
  }

  /** Lets go of a session that goes on elsewhere. */
  leave(): void {
    this.#unwatch();
    // Nobody reads the entries any more, so a fault concerns nobody.
    void attempt(async () => this.#entries.return?.());
  }

  /** Offers all further messages to the reader, until the returned function is called. */
  join(reader: FeedReader): () => void {
    this.#readers.add(reader);
    return () => void this.#readers.delete(reader);
  }

  /** Resolves when the session is no longer busy, or has ended. */
  async rest(): Promise<void> {
    if (!this.isBusy) return;
    let leave = (): void => undefined; // stops listening for messages: each may be the last one
    await Promise.race([
      this.ended,
      new Promise<void>((resolve) => {
        leave = this.join({ offer: () => this.isBusy || resolve(), end: () => resolve() });
      }),
    ]);
    leave();
  }

  /** Offers each new entry, until the session ends. */
  async #follow(): Promise<Error | null> {
    const entries = { [Symbol.asyncIterator]: () => this.#entries };
    const followed = await attempt(async () => {
      for await (const entry of entries) {
        this.#seq = entry.seq;
        this.#offer(entryMessage(entry));
        this.#offerHeld();
      }
    });
    this.#unwatch();
    const fault = followed.kind === 'fault' ? followed.fault : null;
    for (const reader of this.#readers) reader.end(fault);
    this.#readers.clear();
    return fault;
  }

  /** Offers what a step changed besides its entry: a delta, or another state. */
  #watch(stepped: Stepped): void {
    const { seq, event, state, actions } = stepped;
    const before = this.#state;
    this.#state = state;
    this.#see(stepped);
    this.#keepPending(stepped);
    if (seq === null) this.#hold('delta', event);
    for (const action of actions)
      if (action.type === 'RequestApproval' && action.diff !== undefined)
        this.#diffs.set(`${action.batchId} ${action.call.callId}`, action.diff);
    // A delta changes nothing but the text of the reply so far.
    if (state === before || (seq === null && state.name === before.name)) return;
    const approvals = approvalsIn(this.#sessionId, state, this.#diffs);
    if (approvals.length === 0) this.#diffs.clear();
    const isNew = state.name !== before.name || codesIn(approvals) !== codesIn(this.#approvals);
    this.#approvals = approvals;
    if (isNew) this.#hold('state', { ...this.status, seq: this.#lastSeq });
  }

  /** Offers it once the last entry, which may not have been read from the journal yet, has been. */
  #hold(name: HeldMessage['name'], content: unknown): void {
    this.#held.push({ name, content, seq: this.#lastSeq });
    this.#offerHeld();
  }

  /** Offers the deltas and states whose entry has been offered. */
  #offerHeld(): void {
    const early = this.#held.findIndex(({ seq }) => seq > this.#seq);
    const due = this.#held.splice(0, early === -1 ? this.#held.length : early);
    if (this.#readers.size === 0) return;
    for (const { name, content } of due) this.#offer(otherMessage(name, content));
  }

  /** Joins deltas to one event, until the entry of their reply is in the journal. */
  #keepPending({ seq, event }: Stepped): void {
    if (seq !== null) {
      this.#lastSeq = seq;
      this.#pending = null;
      return;
    }
    // Only texts of the reply are joined; other deltas leave what there is.
    const merged = agentAdapter.merge(this.#pending?.event ?? null, event);
    this.#pending = merged === null ? null : { event: merged, seq: this.#lastSeq };
  }

  #offer(message: StreamMessage): void {
    for (const reader of this.#readers) reader.offer(message);
  }
}

// ---- Calls that wait for an approval ----

const codesIn = (approvals: readonly Approval[]): string =>
  approvals.map(({ code }) => code).join('\n');

/** A call that waits for the answer of a user, described completely. */
export type Approval = ApprovalDescription & {
  readonly batchId: string;
  readonly callId: string;
  /** Its `questionCode`. It changes with whatever is shown. */
  readonly code: string;
};

/** The calls that wait in this state. `diffs`: the previews that are known, by batch and call. */
export const approvalsIn = (
  sessionId: string,
  state: State,
  diffs: ReadonlyMap<string, string>,
): readonly Approval[] => {
  if (state.name !== 'ExecutingTools') return [];
  const { batchId, calls, session } = state;
  return calls.flatMap(({ status, judged: call, requestedAt }) => {
    if (status !== 'awaitingApproval') return [];
    // Asks the policy again for the reason and the grants to offer.
    const { why, grantable } = decide(session.settings, session.grants, call);
    const diff = diffs.get(`${batchId} ${call.callId}`);
    const description = describeQuestion(
      {
        type: 'RequestApproval',
        batchId,
        call,
        why,
        ...(diff === undefined ? {} : { diff }),
        ...(grantable === 'any' ? {} : { grantable }),
      },
      session.settings.workspace,
    );
    const question = { batchId, callId: call.callId, ...description };
    return [{ ...question, code: questionCode([sessionId, requestedAt, question]) }];
  });
};

// ---- The stream of one reader ----

export type StreamLimits = {
  /** Bytes that may wait in memory for a reader. */
  readonly bufferBytes: number;
  /** A reader that takes nothing for so long loses the stream. */
  readonly patienceMs: number;
  /** Time between two comments that keep a quiet connection open. */
  readonly quietMs: number;
};

export const defaultStreamLimits: StreamLimits = {
  bufferBytes: 1024 * 1024,
  patienceMs: 60_000,
  quietMs: 15_000,
};

/**
 * `closed`: the session is not open any more. `failed`: an error stopped it, or the reading of its
 * journal. `draining`: the node shuts down. `tooSlow`: the reader takes too little. `revoked`: the
 * key is there no more. `gone`: the client closed the connection.
 */
type StreamEnd = 'closed' | 'failed' | 'draining' | 'tooSlow' | 'revoked' | 'gone';

const endWords: Readonly<Record<Exclude<StreamEnd, 'gone'>, string>> = {
  closed: 'The session is not open. An input opens it again.',
  failed: 'The session, or the reading of its journal, failed. An input opens it again.',
  draining: 'The node shuts down. Read on from seq when it is there again: Last-Event-ID.',
  revoked: 'The operator removed this key, or gave it another token.',
  tooSlow: 'The stream was read too slowly. Read on from seq: Last-Event-ID.',
};

/** After its last event, a reader that takes nothing is disconnected in this time. */
const LAST_WORD_MS = 2_000;
/**
 * A catch-up is paused at most this long before it begins again, since entries pile up behind it.
 */
const PAUSE_MAX_MS = 500;

export type StreamSource = {
  /** null: the session is not open on this node. */
  readonly feed: SessionFeed | null;
  /** The last entry of a session that is not open. */
  readonly lastSeq: number;
  read(from: number): AsyncIterable<Entry>;
};

/**
 * One reader of a session's events, as server-sent events.
 *
 * 1. Each entry is sent once and in order; its id is its seq. Deltas and states have no id.
 * 2. At most `bufferBytes` and one entry wait for a reader in memory. If more come, they are
 *    dropped, and later read from the journal again, from the first entry that is missing. Deltas
 *    and states that come meanwhile are not sent.
 * 3. A reader that takes nothing of what waits for it for `patienceMs` loses the stream.
 * 4. The last event is `end`: why, and the last seq.
 *
 * `run` catches up from the journal until nothing is missing, then is live until the buffer is
 * full, and so on until it has an end. It waits in one place at a time, and `#wake` ends that wait.
 */
export class EventStream {
  readonly #outgoing: ServerResponse;
  readonly #source: StreamSource;
  readonly #limits: StreamLimits;
  /** The last entry that was sent. */
  #sent: number;
  /** Whether messages go out as they come; otherwise entries are read from the journal first. */
  #isLive = false;
  #end: StreamEnd | null = null;
  #isDraining = false;
  /** Ends the one wait that there is: that of `#waitForChange` or of `#hasDrained`. */
  #wake = (): void => undefined;
  /** When the reader last took a message, or one began to wait; of `performance.now()`. */
  #takenAt = 0;

  /** `after`: the last entry that the reader has. */
  constructor(outgoing: ServerResponse, source: StreamSource, after: number, limits: StreamLimits) {
    this.#outgoing = outgoing;
    this.#source = source;
    this.#sent = after;
    this.#limits = limits;
  }

  /** Ends the stream; the first reason counts. */
  end(why: StreamEnd): void {
    this.#end ??= this.#isDraining && why === 'closed' ? 'draining' : why;
    this.#wake();
  }

  /** From now on its session is closed because the node shuts down. */
  expectDrain(): void {
    this.#isDraining = true;
  }

  get bufferedBytes(): number {
    return this.#outgoing.writableLength;
  }

  /** Resolves when the stream has ended, with the reason. */
  async run(): Promise<StreamEnd> {
    const outgoing = this.#outgoing;
    if (outgoing.destroyed) return 'gone'; // before anybody listened for its end
    const leave = this.#source.feed?.join({
      offer: (message) => this.#offer(message),
      end: (fault) => this.end(fault === null ? 'closed' : 'failed'),
    });
    const close = (): void => this.end('gone');
    outgoing.once('close', close);
    outgoing.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    outgoing.flushHeaders();
    const quiet = setInterval(() => this.#checkReader(), this.#limits.quietMs).unref();
    try {
      while (this.#end === null) {
        if (!this.#isLive) await this.#catchUp();
        if (this.#end === null && this.#isLive) await this.#waitForChange();
      }
    } catch {
      this.end('failed'); // the journal can't be read: every other request says why
    } finally {
      clearInterval(quiet);
      leave?.();
      outgoing.off('close', close);
    }
    return this.#sayEnd(this.#end ?? 'closed');
  }

  #offer(message: StreamMessage): void {
    if (!this.#isLive) return;
    // The answer to an input can be faster than its entry, so a reader may begin after an entry
    // that is still to come.
    if (message.seq !== null && message.seq <= this.#sent) return;
    if (this.#isFull) {
      this.#isLive = false;
      this.#wake();
    } else this.#write(message);
  }

  #write({ seq, text }: StreamMessage): void {
    const take = (): void => {
      this.#takenAt = performance.now();
    };
    if (this.#outgoing.writableLength === 0) take();
    this.#outgoing.write(text, take);
    if (seq !== null) this.#sent = seq;
  }

  get #isFull(): boolean {
    return this.#outgoing.writableLength > this.#limits.bufferBytes;
  }

  get #lastSeq(): number {
    return this.#source.feed?.seq ?? this.#source.lastSeq;
  }

  /**
   * Sends what is missing from the journal. Goes live, or ends a stream that nothing more can come
   * for, when all entries are sent.
   */
  async #catchUp(): Promise<void> {
    while (this.#end === null) {
      if (this.#isFull && !(await this.#hasDrained(this.#limits.patienceMs))) {
        if (this.#isStuck) this.end('tooSlow');
        continue;
      }
      if (this.#sent >= this.#lastSeq) break;
      const before = this.#sent;
      for await (const entry of this.#source.read(this.#sent + 1)) {
        if (this.#end !== null) return;
        this.#write(entryMessage(entry));
        if (entry.seq >= this.#lastSeq) break;
        if (this.#isFull && !(await this.#hasDrained(PAUSE_MAX_MS))) break;
      }
      if (this.#sent === before) throw new Error('the journal ends before its last entry');
    }
    const { feed } = this.#source;
    if (feed === null) return this.end('closed');
    if (this.#end !== null) return;
    this.#write(otherMessage('state', feed.status));
    if (feed.pending !== null) this.#write(otherMessage('pending', feed.pending));
    this.#isLive = true;
  }

  /**
   * Waits until the reader has taken what waits for it. False if it has not within `patienceMs`, or
   * if the stream has ended meanwhile.
   */
  async #hasDrained(patienceMs: number): Promise<boolean> {
    const outgoing = this.#outgoing;
    if (!outgoing.writableNeedDrain) return true;
    let settle = (_isDrained: boolean): void => undefined;
    const drain = (): void => settle(true);
    const timer = setTimeout(() => settle(false), patienceMs);
    outgoing.once('drain', drain);
    const isDrained = await new Promise<boolean>((resolve) => {
      settle = resolve;
      this.#wake = () => resolve(false);
    });
    outgoing.off('drain', drain);
    clearTimeout(timer);
    return isDrained;
  }

  /** Waits, while messages go out as they come, until the buffer is full or the stream ends. */
  async #waitForChange(): Promise<void> {
    if (this.#end !== null || !this.#isLive) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  get #isStuck(): boolean {
    const { writableLength } = this.#outgoing;
    return writableLength > 0 && performance.now() - this.#takenAt >= this.#limits.patienceMs;
  }

  /** Keeps a quiet connection open, and ends one whose reader takes nothing. */
  #checkReader(): void {
    if (this.#outgoing.writableLength === 0) this.#outgoing.write(': quiet\n\n');
    else if (this.#isStuck) this.end('tooSlow');
  }

  /** Sends the event `end`, with the reason. */
  async #sayEnd(why: StreamEnd): Promise<StreamEnd> {
    const outgoing = this.#outgoing;
    if (why === 'gone') return why;
    // A reader that is up to date gets the last entries before the end.
    if (why !== 'tooSlow' && why !== 'revoked' && !this.#isFull)
      await attempt(() => this.#sendRest());
    const seq = this.#sent;
    outgoing.end(otherMessage('end', { reason: why, seq, message: endWords[why] }).text);
    const giveUp = setTimeout(() => outgoing.destroy(), LAST_WORD_MS).unref();
    outgoing.once('close', () => clearTimeout(giveUp));
    return why;
  }

  /** The entries that were journaled before the end and are not sent yet, as far as they fit. */
  async #sendRest(): Promise<void> {
    if (this.#sent >= this.#lastSeq) return;
    for await (const entry of this.#source.read(this.#sent + 1)) {
      this.#write(entryMessage(entry));
      if (entry.seq >= this.#lastSeq || this.#isFull) return;
    }
  }
}
