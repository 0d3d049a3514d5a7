import type { ServerResponse } from 'node:http';
import type { Entry } from '@pawl/agent/ports/journal';
import { attempt } from '@pawl/agent/session/attempt';
import {
  entryMessage,
  type FeedReader,
  otherMessage,
  type SessionFeed,
  type StreamMessage,
} from './session-feed.js';

/**
 * One reader of a session's events, as server-sent events.
 *
 * 1. Each entry is sent once and in order; its id is its seq. Deltas and states have no id.
 * 2. At most `bufferBytes` and one entry wait for a reader in memory. If more come, they are dropped, and later read from
 *    the journal again, from the first entry that is missing. Deltas and states that come meanwhile are not sent.
 * 3. A reader that takes nothing for `patienceMs` loses the stream.
 * 4. The last event is `end`: why, and the last seq.
 */

export type StreamLimits = {
  readonly bufferBytes: number;
  readonly patienceMs: number;
  /** Time between two comments that keep a quiet connection open. */
  readonly quietMs: number;
};

export const defaultStreamLimits: StreamLimits = {
  bufferBytes: 1024 * 1024,
  patienceMs: 60_000,
  quietMs: 15_000,
};

/** `closed`: the session is not open any more. `failed`: an error stopped it. */
export type StreamEnd = 'closed' | 'failed' | 'draining' | 'tooSlow' | 'gone';

const endWords: Readonly<Record<Exclude<StreamEnd, 'gone'>, string>> = {
  closed: 'The session is not open. An input opens it again.',
  failed: 'An error stopped the session. An input opens it again.',
  draining: 'The node shuts down. Read on from seq when it is there again: Last-Event-ID.',
  tooSlow: 'The stream was read too slowly. Read on from seq: Last-Event-ID.',
};

/** A reader that takes nothing at all is disconnected after this time. */
const LAST_WORD_MS = 2_000;
/** A catch-up is paused at most this long before it begins again, since entries pile up behind it. */
const PAUSE_MAX_MS = 500;

export type StreamSource = {
  /** null: the session is not open on this node. */
  readonly feed: SessionFeed | null;
  /** The last entry of a session that is not open. */
  readonly lastSeq: number;
  read(from: number): AsyncIterable<Entry>;
};

export class EventStream {
  readonly #outgoing: ServerResponse;
  readonly #source: StreamSource;
  readonly #limits: StreamLimits;
  #sent: number;
  /** Whether messages go out as they come; otherwise entries are read from the journal first. */
  #isLive = false;
  #end: StreamEnd | null = null;
  #isDraining = false;
  #wake = (): void => undefined;

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
    const leave = this.#source.feed?.join(this.#reader()) ?? ((): void => undefined);
    const close = (): void => this.end('gone');
    outgoing.once('close', close);
    outgoing.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    outgoing.flushHeaders();
    const beat = setInterval(() => this.#beat(), this.#limits.quietMs).unref();
    try {
      while (this.#end === null) {
        if (!this.#isLive) await this.#catchUp();
        if (this.#end === null && this.#isLive) await this.#woken();
      }
    } catch {
      this.end('failed'); // the journal can't be read: every other request says why
    } finally {
      clearInterval(beat);
      leave();
      outgoing.off('close', close);
    }
    return this.#sayEnd(this.#end ?? 'closed');
  }

  #reader(): FeedReader {
    return {
      offer: (message) => this.#offer(message),
      end: (fault) => this.end(fault === null ? 'closed' : 'failed'),
    };
  }

  #offer(message: StreamMessage): void {
    if (!this.#isLive) return;
    // The answer to an input can be faster than its entry, so a reader may begin after an entry that is still to come.
    if (message.seq !== null && message.seq <= this.#sent) return;
    if (this.#isFull) {
      this.#isLive = false;
      this.#wake();
    } else this.#write(message);
  }

  #write({ seq, text }: StreamMessage): void {
    this.#outgoing.write(text);
    if (seq !== null) this.#sent = seq;
  }

  get #isFull(): boolean {
    return this.#outgoing.writableLength > this.#limits.bufferBytes;
  }

  get #lastSeq(): number {
    return this.#source.feed?.seq ?? this.#source.lastSeq;
  }

  /** Rule 2. Goes live, or ends a stream that nothing more can come for, when all entries are sent. */
  async #catchUp(): Promise<void> {
    while (this.#end === null) {
      if (this.#isFull && !(await this.#drained(this.#limits.patienceMs))) {
        this.end('tooSlow');
        return;
      }
      if (this.#sent >= this.#lastSeq) break;
      const before = this.#sent;
      for await (const entry of this.#source.read(this.#sent + 1)) {
        if (this.#end !== null) return;
        this.#write(entryMessage(entry));
        if (entry.seq >= this.#lastSeq) break;
        if (this.#isFull && !(await this.#drained(PAUSE_MAX_MS))) break;
      }
      if (this.#sent === before) throw new Error('the journal ends before its last entry');
    }
    const { feed } = this.#source;
    if (feed === null) return this.end('closed');
    if (this.#end !== null) return;
    this.#write(otherMessage('state', feed.status));
    this.#isLive = true;
  }

  /** Whether the reader has taken what waits for it, within the time. False also if the stream has ended meanwhile. */
  async #drained(patienceMs: number): Promise<boolean> {
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

  async #woken(): Promise<void> {
    if (this.#end !== null || !this.#isLive) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  #beat(): void {
    if (this.#outgoing.writableLength === 0) this.#outgoing.write(': quiet\n\n');
  }

  async #sayEnd(why: StreamEnd): Promise<StreamEnd> {
    const outgoing = this.#outgoing;
    if (why === 'gone') return why;
    // A reader that is up to date gets the last entries before the word.
    if (why !== 'tooSlow' && !this.#isFull) await attempt(() => this.#sendRest());
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
