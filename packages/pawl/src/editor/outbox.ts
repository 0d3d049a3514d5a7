/** Sends the updates of one session to the client (`Outbox`). */

import type { SessionUpdate } from '@agentclientprotocol/sdk';
import { attempt } from '@pawl/agent/platform/attempt';

/** An update that is made in its turn; `otherwise` is sent if `make` fails or gives null. */
type LaterUpdate = {
  make(): Promise<SessionUpdate | null>;
  readonly otherwise: SessionUpdate;
};
export type OutboxItem = SessionUpdate | LaterUpdate;

type Chunk = Extract<
  SessionUpdate,
  { readonly sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk' }
>;

const isChunk = (item: OutboxItem | undefined): item is Chunk =>
  item !== undefined &&
  'sessionUpdate' in item &&
  (item.sessionUpdate === 'agent_message_chunk' || item.sessionUpdate === 'agent_thought_chunk');

/** Both chunks as one; null if they belong to different messages. */
const joinChunks = (before: OutboxItem | undefined, after: OutboxItem): Chunk | null => {
  if (!isChunk(before) || !isChunk(after) || before.sessionUpdate !== after.sessionUpdate)
    return null;
  if (before.messageId !== after.messageId) return null;
  if (before.content.type !== 'text' || after.content.type !== 'text') return null;
  return {
    ...before,
    content: { ...before.content, text: before.content.text + after.content.text },
  };
};

const makeLater = async ({ make, otherwise }: LaterUpdate): Promise<SessionUpdate> => {
  const made = await attempt(make);
  return made.kind === 'done' && made.value !== null ? made.value : otherwise;
};

/**
 * Sends the updates of one session in order, one at a time.
 *
 * 1. While it is closed, updates wait: nothing of a session may be sent before the answer that
 *    creates it.
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
    const both = joinChunks(this.#waiting.at(-1), item);
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
    this.#sending = this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    for (let item = this.#waiting.shift(); item !== undefined; item = this.#waiting.shift()) {
      const update = 'make' in item ? await makeLater(item) : item;
      // Sending fails only if the client is gone: then the connection ends, and the journal has
      // everything.
      await attempt(() => this.#send(update));
    }
    this.#sending = null; // in the tick in which nothing waits: a later item begins again
  }
}
