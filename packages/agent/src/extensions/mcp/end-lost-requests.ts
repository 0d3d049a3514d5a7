import { attemptNow } from '../../session/attempt.js';
import { LOST_CODE, LOST_TEXT } from './connection-lost.js';

/**
 * Ends requests over HTTP whose answer can't come any more.
 *
 * 1. The package waits for an answer for ever if a server ends the stream before it. Here an error takes its place. If
 *    the answer was there, the package drops the error.
 * 2. A stream whose events have ids can be resumed: the package asks for the rest of it, and names the last id. If the
 *    server refuses that, or is gone, the request gets its error then. Other failures may pass, so the package tries
 *    once more.
 */

type RequestId = string | number;

/** What follows the last piece of an answer that is a stream of events. */
export type EventsEnding = {
  see(piece: Uint8Array): void;
  /** Null: nothing. */
  last(): Uint8Array | null;
};

/** A request whose answer was cut off, and which the package resumes. */
export type CutRequest = { readonly id: RequestId; readonly eventId: string };

/** Streams that were cut off, of one connection. The oldest are forgotten. */
const CUT_MAX = 100;

/** Failures that pass: the package may try again. */
const PASSING_STATUS: ReadonlySet<number> = new Set([401, 403, 408, 429, 500, 502, 503, 504]);

/** The id of a request; null for other messages. */
const requestIdOf = (body: string): RequestId | null => {
  const parsed = attemptNow((): unknown => JSON.parse(body));
  const message = parsed.kind === 'done' ? parsed.value : null;
  if (typeof message !== 'object' || message === null || !('id' in message) || !('method' in message))
    return null;
  return typeof message.id === 'string' || typeof message.id === 'number' ? message.id : null;
};

const EVENT_ID = /^id: ?(.+)$/;

/** The event that tells a request that its answer will not come. */
export const lostEvent = (id: RequestId): Uint8Array => {
  const error = { jsonrpc: '2.0', id, error: { code: LOST_CODE, message: LOST_TEXT } };
  return Buffer.from(`\n\nevent: message\ndata: ${JSON.stringify(error)}\n\n`);
};

export class EventStreams {
  /** By the last ids that they had. */
  readonly #cut = new Map<string, RequestId>();
  readonly #failedOnce = new Set<RequestId>();

  /** The request whose stream is asked for again; null if it is another one. */
  cutRequest(lastEventId: string | null): CutRequest | null {
    const id = lastEventId === null ? undefined : this.#cut.get(lastEventId);
    return lastEventId === null || id === undefined ? null : { id, eventId: lastEventId };
  }

  /** Whether a request is over, after the attempt to resume it has failed. `failure`: a status, or an error's code. */
  isOver({ id, eventId }: CutRequest, failure: number | string): boolean {
    const mayPass = typeof failure === 'number' ? PASSING_STATUS.has(failure) : failure !== 'ECONNREFUSED';
    const isOver = !mayPass || this.#failedOnce.has(id);
    if (!isOver) this.#failedOnce.add(id);
    if (isOver) this.#cut.delete(eventId);
    return isOver;
  }

  /** Follows the stream that answers a request: `cut`, or the one in `body`. Null if it answers none. */
  follow(cut: CutRequest | null, body: unknown): EventsEnding | null {
    const id = cut?.id ?? (typeof body === 'string' ? requestIdOf(body) : null);
    if (id === null) return null;
    const decoder = new TextDecoder();
    let line = '';
    let ids: readonly string[] = [];
    this.#failedOnce.delete(id);
    return {
      see(piece) {
        const [first = '', ...more] = decoder.decode(piece, { stream: true }).split(/\r\n|\n|\r/);
        for (const next of [line + first, ...more].slice(0, more.length)) {
          const [, eventId] = EVENT_ID.exec(next) ?? [];
          // The last one may belong to an event that is cut off. Then the package names the one before.
          if (eventId !== undefined) ids = [...ids.slice(-1), eventId];
        }
        line = more.at(-1) ?? line + first;
      },
      last: () => {
        for (const eventId of ids) this.#remember(eventId, id);
        return ids.length > 0 ? null : lostEvent(id);
      },
    };
  }

  #remember(eventId: string, id: RequestId): void {
    this.#cut.delete(eventId);
    this.#cut.set(eventId, id);
    const [oldest] = this.#cut.keys();
    if (this.#cut.size > CUT_MAX && oldest !== undefined) this.#cut.delete(oldest);
  }
}
