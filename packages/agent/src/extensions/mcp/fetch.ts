/**
 * The `fetch` of the MCP SDK ("the package"), over our HTTP client, which knows the proxies of the
 * environment. The bundle replaces Node's web streams by small ones (platform/web-streams.ts), so a
 * body is copied from stream to stream, whichever kind each of them is.
 *
 * A server may answer with a stream of events, of which one is the answer to the request. If the
 * stream is cut off before, the package resumes it, or waits for ever: that is repaired here.
 *
 * From top to bottom: `mcpFetch`; bodies and answers; and `EventStreams`, the streams that were cut
 * off.
 */

import type { FetchLike } from '@modelcontextprotocol/client';
import { attempt, attemptNow } from '../../platform/attempt.js';
import type { ProcessEnvironment } from '../../platform/environment.js';
import { createFetch } from '../../platform/http.js';
import type { LeanReadable } from '../../platform/web-streams.js';

/**
 * Longest answer that is read at once: a list of tools, or the metadata of a login. Streams of
 * events have no limit.
 */
const ANSWER_BYTES_MAX = 16 << 20;

/** A fetch for the connections to one server. */
export const mcpFetch = (
  environment: ProcessEnvironment,
  bytesMax = ANSWER_BYTES_MAX,
): FetchLike => {
  const send = createFetch(environment);
  const streams = new EventStreams();
  return async (url, init = {}) => {
    const interrupted = streams.interruptedRequest(new Headers(init.headers).get('last-event-id'));
    const sent = await attempt(() => sendWith(send, url, init));
    if (sent.kind === 'fault') {
      const { fault } = sent;
      // Only a fault of the network has a code.
      if (init.signal?.aborted === true || !('code' in fault)) throw fault;
      if (interrupted !== null && streams.giveUpAfter(interrupted, String(fault.code)))
        return lostAnswer(String(url), interrupted.id);
      throw new ConnectionLost(fault.message || String(fault.code), { cause: fault });
    }
    const response = sent.value;
    const { ok, status, statusText, headers } = response;
    const isEvents = headers.get('content-type')?.startsWith('text/event-stream') === true;
    if (
      interrupted !== null &&
      (status >= 400 || !isEvents) &&
      streams.giveUpAfter(interrupted, status)
    ) {
      await attempt(() => response.body.cancel()); // nobody reads it
      return lostAnswer(String(url), interrupted.id);
    }
    // The package reads errors of logins only from a real Response.
    if (status >= 400) return failedAnswer(response, bytesMax);
    const ending = isEvents ? streams.follow(interrupted, init.body) : null;
    return asResponse({
      ok,
      status,
      statusText,
      headers,
      url: String(url),
      // Taken only when the package asks for it: `text` and `json` read the same body.
      get body() {
        return bodyStream(response.body, ending);
      },
      text: () => readAtMost(response, bytesMax),
      json: async (): Promise<unknown> => JSON.parse(await readAtMost(response, bytesMax)),
    });
  };
};

// ---- Bodies and answers ----

/** A body for the package. `ending`: scans its pieces for ids, and may add a last piece. */
const bodyStream = (
  body: LeanReadable<Uint8Array>,
  ending: EventsEnding | null,
): ReadableStream<Uint8Array> => {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = await attempt(() => reader.read());
      if (read.kind === 'fault' && ending === null) throw read.fault;
      if (read.kind === 'done' && !read.value.done) {
        ending?.scan(read.value.value);
        controller.enqueue(read.value.value);
        return;
      }
      const last = ending?.finish() ?? null;
      if (last !== null) controller.enqueue(last);
      controller.close();
    },
    cancel: (reason) => reader.cancel(reason),
  });
};

/** Headers of a failed answer that mean something to the package. */
const READ_FROM_ERRORS = ['content-type', 'www-authenticate', 'dpop-nonce', 'retry-after'];

/** It has the parts of a Response that the package uses. */
const asResponse = (answer: object): Response => answer as unknown as Response;

/** An answer with one event: the answer of the request will not come. */
const lostAnswer = (url: string, id: string | number): Response =>
  asResponse({
    ok: true,
    status: 200,
    statusText: 'OK',
    headers: new Headers({ 'content-type': 'text/event-stream' }),
    url,
    body: new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(lostEvent(id));
        controller.close();
      },
    }),
  });

/** Reads a whole answer. Rejects if it is longer than that. */
const readAtMost = async ({ body }: LeanResponse, bytesMax: number): Promise<string> => {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(pieces).toString('utf8');
    bytes += value.length;
    if (bytes > bytesMax) {
      await attempt(() => reader.cancel()); // the reason below is the one to report
      throw new Error(`its answer is longer than ${bytesMax / (1 << 20)} MB`);
    }
    pieces.push(value);
  }
};

/** An answer with an error status, read as a whole. */
const failedAnswer = async (response: LeanResponse, bytesMax: number): Promise<Response> => {
  const { status, statusText, headers } = response;
  const named = READ_FROM_ERRORS.map((name) => [name, headers.get(name) ?? ''] as const);
  const responseHeaders = Object.fromEntries(named.filter(([, value]) => value !== ''));
  return new Response(await readAtMost(response, bytesMax), {
    status,
    statusText,
    headers: responseHeaders,
  });
};

type Send = ReturnType<typeof createFetch>;
type LeanResponse = Awaited<ReturnType<Send>>;

const sendWith = (send: Send, url: string | URL, init: RequestInit): Promise<LeanResponse> => {
  const { method, body, signal } = init;
  return send(url, {
    ...(method === undefined ? {} : { method }),
    headers: Object.fromEntries(new Headers(init.headers)),
    ...(body === undefined || body === null ? {} : { body: String(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
};

// ---- Streams that were cut off ----

type RequestId = string | number;

/**
 * Ends requests over HTTP whose answer can't come any more.
 *
 * 1. The package waits for an answer for ever if a server ends the stream before it. Here an error
 *    takes its place. If the answer was there, the package drops the error.
 * 2. A stream whose events have ids can be resumed: the package asks for the rest of it, and names
 *    the last id. If the server refuses that, or is gone, the request gets its error then. Other
 *    failures may pass, so the package tries once more.
 */
class EventStreams {
  /** Requests whose streams were cut off, by the ids of their last events. */
  readonly #cut = new Map<string, RequestId>();
  /** Those of which one attempt to resume the stream has failed. */
  readonly #failedOnce = new Set<RequestId>();

  /** The request whose stream is asked for again; null if it is another one. */
  interruptedRequest(lastEventId: string | null): InterruptedRequest | null {
    const id = lastEventId === null ? undefined : this.#cut.get(lastEventId);
    return lastEventId === null || id === undefined ? null : { id, eventId: lastEventId };
  }

  /**
   * Call it when the attempt to resume a request has failed. Returns whether the request is given
   * up: the next attempt would fail too, or has failed. `failure`: a status, or an error's code.
   */
  giveUpAfter({ id, eventId }: InterruptedRequest, failure: number | string): boolean {
    const mayPass =
      typeof failure === 'number' ? PASSING_STATUS.has(failure) : failure !== 'ECONNREFUSED';
    const givesUp = !mayPass || this.#failedOnce.has(id);
    if (givesUp) this.#cut.delete(eventId);
    else this.#failedOnce.add(id);
    return givesUp;
  }

  /**
   * Follows the stream that answers a request: the interrupted one, or the one in `body`. Null if
   * it answers none.
   */
  follow(interrupted: InterruptedRequest | null, body: unknown): EventsEnding | null {
    const id = interrupted?.id ?? (typeof body === 'string' ? parseRequestId(body) : null);
    if (id === null) return null;
    const decoder = new TextDecoder();
    /** The last line so far, which the next piece may go on with. */
    let unfinished = '';
    /** The ids of the last two events. */
    let ids: readonly string[] = [];
    this.#failedOnce.delete(id);
    return {
      scan(piece) {
        const [first = '', ...more] = decoder.decode(piece, { stream: true }).split(/\r\n|\n|\r/);
        const lines = [unfinished + first, ...more];
        unfinished = lines.pop() ?? '';
        for (const line of lines) {
          const [, eventId] = EVENT_ID.exec(line) ?? [];
          // Two are remembered: the last may belong to an event that is cut off, and then the
          // package names the one before.
          if (eventId !== undefined) ids = [...ids.slice(-1), eventId];
        }
      },
      finish: () => {
        for (const eventId of ids) this.#remember(eventId, id);
        // With an id the package resumes the stream. Without one it would wait for ever.
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

/** What follows the last piece of an answer that is a stream of events. */
type EventsEnding = {
  /** Remembers the last ids of events in the piece. */
  scan(piece: Uint8Array): void;
  /** The stream has ended: remembers how to resume it. Returns what to add to it, or null. */
  finish(): Uint8Array | null;
};

/** A request whose answer was cut off, and which the package resumes. */
type InterruptedRequest = { readonly id: RequestId; readonly eventId: string };

/** Streams that were cut off, of one connection. The oldest are forgotten. */
const CUT_MAX = 100;

/** Failures that pass: the package may try again. */
const PASSING_STATUS: ReadonlySet<number> = new Set([401, 403, 408, 429, 500, 502, 503, 504]);

/** The id of a request; null for other messages. */
const parseRequestId = (body: string): RequestId | null => {
  const parsed = attemptNow((): unknown => JSON.parse(body));
  const message = parsed.kind === 'done' ? parsed.value : null;
  if (
    typeof message !== 'object' ||
    message === null ||
    !('id' in message) ||
    !('method' in message)
  )
    return null;
  return typeof message.id === 'string' || typeof message.id === 'number' ? message.id : null;
};

/** A line with the id of an event. */
const EVENT_ID = /^id: ?(.+)$/;

/** The event that tells a request that its answer will not come. */
const lostEvent = (id: RequestId): Uint8Array => {
  const error = { jsonrpc: '2.0', id, error: { code: LOST_CODE, message: LOST_TEXT } };
  return Buffer.from(`\n\nevent: message\ndata: ${JSON.stringify(error)}\n\n`);
};

/** The connection to a server over HTTP ended before the answer. */
class ConnectionLost extends Error {}

/** Code of the answer that takes the place of one that never came. Servers use other codes. */
const LOST_CODE = -32_097;
const LOST_TEXT = 'the connection ended before it had answered';

/** Whether the connection ended before the answer, so that a new one is needed. */
export const isLost = (error: Error): boolean =>
  error instanceof ConnectionLost || ('code' in error && error.code === LOST_CODE);
