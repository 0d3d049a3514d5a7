/**
 * The `fetch` of the MCP SDK ("the package"), over our HTTP client, which knows the proxies of the
 * environment.
 *
 * A server may answer with a stream of events, of which one is the answer to the request. If the
 * stream is cut off before, the package resumes it, or waits for ever: that is repaired here. Each
 * answer gets a form that the package takes (server-messages.ts).
 *
 * From top to bottom: `mcpFetch`; bodies and answers; `EventStreams`, the streams that were cut
 * off; and what is known of a request whose answer does not come.
 */

import type { FetchLike } from '@modelcontextprotocol/client';
import { attempt, attemptNow } from '../../platform/attempt.js';
import type { ProcessEnvironment } from '../../platform/environment.js';
import { errorCode } from '../../platform/files.js';
import { createFetch, type LeanBody, type LeanResponse } from '../../platform/http.js';
import { isTable } from '../../platform/untrusted-input.js';
import type { ServerMessages } from './server-messages.js';

/**
 * Longest answer that is read at once: a list of tools, or the metadata of a login. A stream of
 * events has no limit, but each event that may be an answer.
 */
const ANSWER_BYTES_MAX = 16 << 20;
const TOO_LONG = `its answer is longer than ${ANSWER_BYTES_MAX / (1 << 20)} MB`;

/**
 * Lets Node notice which connections the server has ended. A request over one of those would fail,
 * and it would be unknown whether the server has begun it. The second turn is sure to look.
 */
const noticeEnds = async (): Promise<void> => {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** A fetch for the connections to one server. `messages`: gives its answers a known form. */
export const mcpFetch = (
  environment: ProcessEnvironment,
  messages: ServerMessages | null = null,
): FetchLike => {
  const send = createFetch(environment);
  const streams = new EventStreams(messages);
  return async (url, init = {}) => {
    const requestHeaders = new Headers(init.headers);
    const interrupted = streams.interruptedRequest(requestHeaders.get('last-event-id'));
    const request = parseRequest(init.body);
    messages?.sent(request);
    await noticeEnds();
    const sent = await attempt(() => sendWith(send, url, init));
    if (sent.kind === 'fault') {
      const { fault } = sent;
      // Only a fault of the network has a code.
      if (init.signal?.aborted === true || !('code' in fault)) throw fault;
      if (interrupted !== null && streams.giveUpAfter(interrupted, String(fault.code)))
        return lostAnswer(String(url), interrupted.id);
      throw lostConnection(fault, String(fault.code));
    }
    const response = sent.value;
    const { ok, status, statusText, headers } = response;
    const type = headers.get('content-type')?.toLowerCase();
    const isEvents = type?.startsWith('text/event-stream') === true;
    if (
      interrupted !== null &&
      (status >= 400 || !isEvents) &&
      streams.giveUpAfter(interrupted, status)
    ) {
      response.body.discard();
      return lostAnswer(String(url), interrupted.id);
    }
    if (status >= 400) {
      const text = await readAtMost(response);
      if (
        request !== null &&
        requestHeaders.has('mcp-session-id') &&
        isForgotten(status, text, request.id)
      )
        throw new NotDelivered('it has forgotten the session');
      // The package reads errors of logins only from a real Response.
      return failedAnswer(response, text);
    }
    const ending = isEvents ? streams.follow(interrupted?.id ?? request?.id ?? null) : null;
    return asResponse({
      ok,
      status,
      statusText,
      headers: new Headers([...headers]),
      url: String(url),
      // Taken only when the package asks for it: `text` and `json` read the same body.
      get body() {
        return bodyStream(response.body, ending);
      },
      text: () => readAtMost(response),
      async json(): Promise<unknown> {
        const answer: unknown = JSON.parse(await readAtMost(response));
        return messages?.read(answer) ?? answer;
      },
    });
  };
};

// ---- Bodies and answers ----

/** A body for the package. `ending`: changes its pieces, and may add a last one. */
const bodyStream = (body: LeanBody, ending: EventsEnding | null): ReadableStream<Uint8Array> => {
  const reader = body[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = await attempt(() => reader.next());
      if (read.kind === 'fault' && ending === null) throw read.fault;
      if (read.kind === 'done' && read.value.done !== true) {
        const { value } = read.value;
        const passed = ending === null ? value : ending.pass(value);
        if (passed !== null) return controller.enqueue(passed);
        body.discard();
      }
      const last = ending?.finish() ?? null;
      if (last !== null) controller.enqueue(last);
      controller.close();
    },
    cancel: () => body.discard(),
  });
};

/** Headers of a failed answer that mean something to the package. */
const READ_FROM_ERRORS = ['content-type', 'www-authenticate', 'dpop-nonce', 'retry-after'];

/** It has the parts of a Response that the package uses. */
const asResponse = (answer: object): Response => answer as unknown as Response;

/** Code of the answer that takes the place of one that never came. Servers use other codes. */
const LOST_CODE = -32_097;
const LOST_TEXT = 'the connection ended before it had answered';

/** The event that tells a request that its answer will not come. */
const errorEvent = (id: RequestId, code: number, message: string): Uint8Array => {
  const error = { jsonrpc: '2.0', id, error: { code, message } };
  return Buffer.from(`\n\nevent: message\ndata: ${JSON.stringify(error)}\n\n`);
};

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
        controller.enqueue(errorEvent(id, LOST_CODE, LOST_TEXT));
        controller.close();
      },
    }),
  });

/**
 * Reads a whole answer. Rejects if it is longer than ANSWER_BYTES_MAX, and with ConnectionLost if
 * the connection ends before its end.
 */
const readAtMost = async ({ body }: LeanResponse): Promise<string> => {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const piece of body) {
      bytes += piece.length;
      if (bytes > ANSWER_BYTES_MAX) throw new Error(TOO_LONG);
      pieces.push(piece);
    }
  } catch (error) {
    // Only a fault of the network has a code.
    throw errorCode(error) === '' ? error : new ConnectionLost(LOST_TEXT, { cause: error });
  }
  return Buffer.concat(pieces).toString('utf8');
};

/** An answer with an error status, and its text. */
const failedAnswer = ({ status, statusText, headers }: LeanResponse, text: string): Response => {
  const named = READ_FROM_ERRORS.map((name) => [name, headers.get(name) ?? ''] as const);
  const responseHeaders = Object.fromEntries(named.filter(([, value]) => value !== ''));
  return new Response(text, { status, statusText, headers: responseHeaders });
};

type Send = ReturnType<typeof createFetch>;

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

/** Streams that were cut off, of one connection. The oldest are forgotten. */
const CUT_MAX = 100;

/** Failures that pass: the package may try again. */
const PASSING_STATUS: ReadonlySet<number> = new Set([401, 403, 408, 429, 500, 502, 503, 504]);

/** A line with the id of an event. */
const EVENT_ID = /^id: ?(.+)$/;
/** A line with data of an event. */
const EVENT_DATA = /^data(?:: ?(.*))?$/s;

/**
 * Ends requests over HTTP whose answer can't come any more.
 *
 * 1. The package waits for an answer for ever if a server ends the stream before it. Here an error
 *    takes its place. If the answer was there, the package drops the error.
 * 2. The package resumes a stream of which it got a whole event with an id and data: it asks for
 *    the rest, and names the last such id. If the server refuses that, or is gone, the request gets
 *    its error then. Other failures may pass, so the package tries once more.
 */
class EventStreams {
  readonly #messages: ServerMessages | null;
  /** Requests whose streams were cut off, by the id that the package will name. */
  readonly #cut = new Map<string, RequestId>();
  /** Those of which one attempt to resume the stream has failed. */
  readonly #failedOnce = new Set<RequestId>();

  constructor(messages: ServerMessages | null) {
    this.#messages = messages;
  }

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

  /** Follows the stream that answers the request `id`. Null if it answers none. */
  follow(id: RequestId | null): EventsEnding | null {
    if (id === null) return null;
    const decoder = new TextDecoder();
    /** The last line so far, which the next piece may go on with. */
    let unfinished = '';
    /** The last piece ended with `\r`, so a `\n` that begins the next one belongs to it. */
    let isAfterReturn = false;
    /** The lines of the event so far, and their length. */
    let event: string[] = [];
    let eventLength = 0;
    let isTooLong = false;
    /** The id that the package names to resume the stream; null: it does not resume it. */
    let resumeId: string | null = null;
    this.#failedOnce.delete(id);
    return {
      pass: (piece) => {
        const text = decoder.decode(piece, { stream: true });
        const [first = '', ...more] = (
          isAfterReturn && text.startsWith('\n') ? text.slice(1) : text
        ).split(/\r\n|\n|\r/);
        if (text !== '') isAfterReturn = text.endsWith('\r');
        const lines = [unfinished + first, ...more];
        unfinished = lines.pop() ?? '';
        const passed: string[] = [];
        for (const line of lines) {
          event.push(line);
          eventLength += line.length;
          if (line !== '') continue;
          resumeId = resumableId(event) ?? resumeId;
          passed.push(this.#readEvent(event));
          event = [];
          eventLength = 0;
        }
        isTooLong = eventLength + unfinished.length > ANSWER_BYTES_MAX;
        return isTooLong ? null : Buffer.from(passed.join(''));
      },
      finish: () => {
        if (isTooLong) return errorEvent(id, -32_603, TOO_LONG); // an internal error
        if (resumeId !== null) {
          this.#remember(resumeId, id);
          return null;
        }
        return Buffer.concat([
          Buffer.from(this.#readEvent([...event, unfinished, ''])),
          errorEvent(id, LOST_CODE, LOST_TEXT),
        ]);
      },
    };
  }

  /** An event as the package takes it. `lines`: to the empty one at its end. */
  #readEvent(lines: readonly string[]): string {
    const whole = `${lines.join('\n')}\n`;
    const data = lines.flatMap((line) => EVENT_DATA.exec(line)?.[1] ?? []);
    const parsed = attemptNow((): unknown => JSON.parse(data.join('\n')));
    if (this.#messages === null || parsed.kind === 'fault') return whole;
    const others = lines.filter((line) => line !== '' && !EVENT_DATA.test(line));
    return [...others, `data: ${JSON.stringify(this.#messages.read(parsed.value))}`, '', ''].join(
      '\n',
    );
  }

  #remember(eventId: string, id: RequestId): void {
    this.#cut.delete(eventId);
    this.#cut.set(eventId, id);
    const [oldest] = this.#cut.keys();
    if (this.#cut.size > CUT_MAX && oldest !== undefined) this.#cut.delete(oldest);
  }
}

/** The id of an event that the package takes: it has data. */
const resumableId = (lines: readonly string[]): string | null => {
  const ids = lines.flatMap((line) => EVENT_ID.exec(line)?.[1] ?? []);
  return lines.some((line) => EVENT_DATA.test(line)) ? (ids.at(-1) ?? null) : null;
};

/** What is done with the pieces of an answer that is a stream of events, and at its end. */
type EventsEnding = {
  /** The events that end in the piece, as the package takes them. Null: one is too long. */
  pass(piece: Uint8Array): Uint8Array | null;
  /** The stream has ended: remembers how to resume it. Returns what to add to it, or null. */
  finish(): Uint8Array | null;
};

/** A request whose answer was cut off, and which the package resumes. */
type InterruptedRequest = { readonly id: RequestId; readonly eventId: string };

type SentRequest = { readonly id: RequestId; readonly method: unknown };

/** A request from its body; null for other messages. */
const parseRequest = (body: unknown): SentRequest | null => {
  if (typeof body !== 'string') return null;
  const parsed = attemptNow((): unknown => JSON.parse(body));
  const message = parsed.kind === 'done' && isTable(parsed.value) ? parsed.value : {};
  const { id, method } = message;
  const isRequest = (typeof id === 'string' || typeof id === 'number') && method !== undefined;
  return isRequest ? { ...message, id, method } : null;
};

// ---- Requests whose answer does not come ----

/** The connection to a server ended before the answer. Whether it has begun is not known. */
class ConnectionLost extends Error {}

/**
 * A request that its server has not begun: it may be sent again. This is known where there was no
 * connection (it was refused, or the stdin of the server is closed), and where the server has
 * refused the request since it does not know the session any more.
 */
export class NotDelivered extends ConnectionLost {}

/** Errors without a system call (of several addresses) that come before there is a connection. */
const BEFORE_CONNECTION: ReadonlySet<string> = new Set(
  'ECONNREFUSED ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH EHOSTDOWN ENETDOWN'.split(' '),
);

const lostConnection = (fault: Error, code: string): ConnectionLost => {
  const syscall: unknown = Reflect.get(fault, 'syscall');
  const isBefore =
    syscall === undefined
      ? BEFORE_CONNECTION.has(code)
      : syscall === 'connect' || syscall === 'getaddrinfo';
  const message = fault.message || code;
  const cause = { cause: fault };
  return isBefore ? new NotDelivered(message, cause) : new ConnectionLost(message, cause);
};

/**
 * Whether a server has refused a request since it does not know its session.
 *
 * 1. 404: the specification says so, and asks for a new session. 410 says the same.
 * 2. 400 and 422: many servers answer so. It may also be what the method itself answers; then the
 *    error has the id of the request, and does not speak of a session.
 */
const isForgotten = (status: number, text: string, id: RequestId): boolean => {
  if (status === 404 || status === 410) return true;
  if (status !== 400 && status !== 422) return false;
  const parsed = attemptNow((): unknown => JSON.parse(text));
  const isOfRequest = parsed.kind === 'done' && isTable(parsed.value) && parsed.value.id === id;
  return !isOfRequest || /session|initiali[sz]e/i.test(text);
};

/** Whether the connection ended before the answer, so that a new one is needed. */
export const isLost = (error: Error): boolean =>
  error instanceof ConnectionLost || ('code' in error && error.code === LOST_CODE);
