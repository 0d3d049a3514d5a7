import type { SessionUpdate } from '@agentclientprotocol/sdk';
import { attempt } from '@pawl/agent/session/attempt';

/** An update, or how to make one when its turn comes; null: nothing is sent. */
export type OutboxItem = SessionUpdate | (() => Promise<SessionUpdate | null>);

type Chunk = Extract<
  SessionUpdate,
  { readonly sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk' }
>;

const isChunk = (item: OutboxItem | undefined): item is Chunk =>
  typeof item === 'object' &&
  (item.sessionUpdate === 'agent_message_chunk' || item.sessionUpdate === 'agent_thought_chunk');

/** Both chunks as one; null if they belong to different messages. */
const joined = (before: OutboxItem | undefined, after: OutboxItem): Chunk | null => {
  if (!isChunk(before) || !isChunk(after) || before.sessionUpdate !== after.sessionUpdate) return null;
  if (before.messageId !== after.messageId) return null;
  if (before.content.type !== 'text' || after.content.type !== 'text') return null;
  return { ...before, content: { ...before.content, text: before.content.text + after.content.text } };
};

/**
 * Sends the updates of one session in order, one at a time.
 *
 * 1. While it is closed, updates wait: nothing of a session may be sent before the answer that creates it.
 * 2. While a slow client reads, streamed text that waits becomes one chunk.
 */
export class Outbox {
  readonly #send: (update: SessionUpdate) => Promise<void>;
  #waiting: OutboxItem[] = [];
  #isOpen = false;
  #sending: Promise<void> | null = null;
  #open: () => void = () => undefined;
  readonly #opened = new Promise<void>((resolve) => {
    this.#open = resolve;
  });

  constructor(send: (update: SessionUpdate) => Promise<void>) {
    this.#send = send;
  }

  push(item: OutboxItem): void {
    const both = joined(this.#waiting.at(-1), item);
    if (both === null) this.#waiting.push(item);
    else this.#waiting[this.#waiting.length - 1] = both;
    this.#start();
  }

  open(): void {
    this.#isOpen = true;
    this.#open();
    this.#start();
  }

  /** Resolves when it is open and everything that was pushed is written. */
  async flushed(): Promise<void> {
    await this.#opened;
    while (this.#sending !== null) await this.#sending;
  }

  #start(): void {
    if (!this.#isOpen || this.#sending !== null || this.#waiting.length === 0) return;
    this.#sending = this.#sendAll().finally(() => {
      this.#sending = null;
    });
  }

  async #sendAll(): Promise<void> {
    for (let item = this.#waiting.shift(); item !== undefined; item = this.#waiting.shift()) {
      const next = item;
      // Sending fails only if the client is gone: then the connection ends, and the journal has everything.
      await attempt(async () => {
        const update = typeof next === 'function' ? await next() : next;
        if (update !== null) await this.#send(update);
      });
    }
  }
}
