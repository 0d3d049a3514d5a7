import assert from 'node:assert/strict';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import type { Entry } from '../../../packages/agent/src/ports/journal.js';

/** A client of a node, as a program of another language would be: plain HTTP. */

/** The fields of the answers that the tests look at. */
export type AnswerBody = {
  readonly error?: { readonly code: string; readonly message: string };
  readonly sessionId?: string;
  readonly seq?: number;
  readonly isOpen?: boolean;
  readonly busy?: boolean;
  readonly state?: string;
  readonly approvals?: readonly {
    readonly batchId: string;
    readonly callId: string;
    readonly code: string;
    readonly why: string;
  }[];
  readonly sessions?: readonly {
    readonly sessionId: string;
    readonly isOpen: boolean;
    readonly title: string;
  }[];
  /** Of a list: where the next page begins. */
  readonly next?: string | null;
  readonly workspace?: Readonly<Record<string, string | boolean>>;
  readonly parent?: { readonly sessionId: string; readonly seq: number } | null;
  readonly lost?: readonly string[];
  readonly notice?: string;
  readonly status?: string;
  readonly labels?: Readonly<Record<string, string>>;
};

export type Answered = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: AnswerBody;
};

export type StreamedMessage = {
  readonly id: string | null;
  readonly event: string;
  readonly content: Readonly<Record<string, unknown>>;
};

const DEADLINE_MS = 60_000;

const parseMessage = (block: string): StreamedMessage | null => {
  const lines = block.split('\n').filter((line) => !line.startsWith(':'));
  const field = (name: string): string | null =>
    lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? null;
  const json = field('data');
  return json === null
    ? null
    : { id: field('id'), event: field('event') ?? 'message', content: JSON.parse(json) };
};

/** Reads a stream of events. */
export class EventReader {
  readonly messages: StreamedMessage[] = [];
  readonly #incoming: IncomingMessage;
  readonly #lookers = new Set<() => void>();
  #rest = '';
  isOver = false;

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming;
    incoming.setEncoding('utf8');
    incoming.on('data', (piece: string) => this.#read(piece));
    incoming.on('error', () => undefined); // it was closed by us, or cut off by the node
    incoming.once('close', () => {
      this.isOver = true;
      for (const look of this.#lookers) look();
    });
  }

  #read(piece: string): void {
    const isWhole = piece.includes('\n\n') || (this.#rest.endsWith('\n') && piece.startsWith('\n'));
    if (!isWhole) {
      this.#rest += piece;
      return;
    }
    const blocks = (this.#rest + piece).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const message = parseMessage(block);
      if (message !== null) this.messages.push(message);
    }
    for (const look of this.#lookers) look();
  }

  /** The first message that fits, past or future. */
  async until(what: string, fits: (message: StreamedMessage) => boolean): Promise<StreamedMessage> {
    return this.#when(what, () => this.messages.find(fits));
  }

  /** The session waits for its user, this entry or a later one was its last. */
  async untilRestAfter(seq: number): Promise<void> {
    await this.until(
      `a rest after entry ${seq}`,
      ({ event, content }) =>
        event === 'state' && content.state === 'WaitingForUserInput' && Number(content.seq) >= seq,
    );
  }

  async over(): Promise<void> {
    await this.#when('the end of the stream', () => (this.isOver ? true : undefined));
  }

  async #when<T>(what: string, look: () => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        const found = look();
        if (found === undefined) return;
        clearTimeout(timer);
        this.#lookers.delete(check);
        resolve(found);
      };
      const seen = (): string =>
        this.messages.map(({ event, id }) => `${event} ${id ?? ''}`).join('; ');
      const timer = setTimeout(
        () => reject(new Error(`${what} did not come after: ${seen()}`)),
        DEADLINE_MS,
      );
      this.#lookers.add(check);
      check();
    });
  }

  get entries(): readonly Entry[] {
    return this.messages.flatMap(({ event, content }) =>
      event === 'entry' ? [content as Entry] : [],
    ); // as the node writes it
  }

  /** Takes nothing more from the network. */
  pause(): void {
    this.#incoming.pause();
  }

  resume(): void {
    this.#incoming.resume();
  }

  close(): void {
    this.#incoming.destroy();
  }
}

export class NodeClient {
  readonly address: string;
  readonly #token: string | null;

  constructor(address: string, token: string | null) {
    this.address = address;
    this.#token = token;
  }

  #headers(more: Record<string, string>): Record<string, string> {
    return { ...(this.#token === null ? {} : { authorization: `Bearer ${this.#token}` }), ...more };
  }

  /** `body`: an object is sent as JSON, a text as it is. */
  ask(
    method: string,
    path: string,
    body?: object | string | Buffer,
    headers: Record<string, string> = {},
  ): Promise<Answered> {
    const bytes =
      typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body ?? {});
    return new Promise((resolve, reject) => {
      const sent = request(`${this.address}${path}`, {
        method,
        headers: this.#headers({ 'content-type': 'application/json', ...headers }),
      });
      let isAnswered = false;
      sent.once('response', (incoming) => {
        isAnswered = true;
        let text = '';
        incoming.setEncoding('utf8').on('data', (piece: string) => {
          text += piece;
        });
        incoming.once('error', reject);
        incoming.once('end', () => {
          const isJson = incoming.headers['content-type']?.startsWith('application/json') === true;
          const answer: AnswerBody = isJson ? JSON.parse(text) : {};
          resolve({
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            text,
            body: answer,
          });
        });
      });
      // A node that refuses a body cuts the connection after its answer.
      sent.on('error', (error) => (isAnswered ? undefined : reject(error)));
      if (method === 'GET') sent.end();
      else sent.end(bytes);
    });
  }

  async create(workspace: string, more: object = {}): Promise<string> {
    const { status, body, text } = await this.ask('POST', '/v1/sessions', {
      workspace: { folder: workspace },
      ...more,
    });
    assert.equal(status, 201, text);
    return body.sessionId ?? '';
  }

  async send(sessionId: string, input: object): Promise<number> {
    const { status, body, text } = await this.ask(
      'POST',
      `/v1/sessions/${sessionId}/inputs`,
      input,
    );
    assert.equal(status, 202, text);
    return body.seq ?? 0;
  }

  async describe(sessionId: string): Promise<AnswerBody> {
    const { status, body, text } = await this.ask('GET', `/v1/sessions/${sessionId}`);
    assert.equal(status, 200, text);
    return body;
  }

  /** `after`: the last entry that the reader has. */
  events(sessionId: string, after = 0): Promise<EventReader> {
    return new Promise((resolve, reject) => {
      const headers = this.#headers({ 'last-event-id': String(after) });
      const sent = request(`${this.address}/v1/sessions/${sessionId}/events`, { headers });
      sent.on('error', reject);
      sent.once('response', (incoming) => {
        if (incoming.statusCode === 200) resolve(new EventReader(incoming));
        else reject(new Error(`the stream was refused: ${incoming.statusCode}`));
      });
      sent.end();
    });
  }
}

/** A piece of a reply: as it comes, or for a reader that was still catching up. */
export const isPiece = ({ event }: StreamedMessage): boolean =>
  event === 'delta' || event === 'pending';

export const isEntry =
  (type: string) =>
  ({ event, content }: StreamedMessage): boolean =>
    event === 'entry' && (content as Entry).event.type === type; // as the node writes it
