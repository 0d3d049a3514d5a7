/** One request to a provider: our headers, what counts as an answer, and the lines of its event stream. */

import { VERSION } from '../platform/environment.js';
import type { LeanFetch, LeanResponse } from '../platform/http.js';
import { LeanReadable } from '../platform/web-streams.js';
import { pageWords, shorten } from './errors.js';
import { isObject, type Loose } from './untyped-json.js';

/**
 * The `fetch` that the providers' packages get.
 *
 * 1. It sends our user agent, and asks for an uncompressed answer.
 * 2. A success whose body is no event stream (a login page, JSON) fails with the body's first words. A redirect fails,
 *    too: a key is sent only to the address that the user named.
 * 3. A request has no half characters (lone surrogates): a provider refuses it, and with it every later one of the session.
 * 4. Lines of the stream that packages skip are reported to the exchange of the request (request-side-channel.ts), and
 *    events that its package would refuse are edited.
 */

const USER_AGENT = `pawl/${VERSION}`;

/** Characters of an unexpected body that are read. */
const ODD_BYTES_MAX = 65_536;
/** An answer that is no reply; error-kind-rules.ts reads its `type`. */
const oddAnswer = (message: string): Error => Object.assign(new Error(message), { type: 'odd_answer' });

const failureOf = (text: string): Error => {
  if (text.startsWith('<'))
    return oddAnswer(`it answered with a page: "${pageWords(text)}". Look at the address, and at the proxy`);
  // JSON with an error is classified like the body of a failed request.
  if (/"error"\s*:/.test(text)) return Object.assign(new Error(shorten(text)), { responseBody: text });
  return oddAnswer(`it answered with no stream of events: ${shorten(text)}`);
};

const EVENT_START = /^(?:(?:data|event|id|retry|error)?:|(?:data|event|id|retry)\r?\n)/;
const CARRIAGE_RETURN = 13;
const LINE_FEED_BYTES = Uint8Array.of(10);
/** Length of the longest beginning of an event. */
const START_MAX = 8;

type Start = 'unknown' | 'events' | 'odd';

const classifyStart = (text: string): Start => {
  const begun = text.trimStart();
  if (EVENT_START.test(begun)) return 'events';
  return begun.length < START_MAX && !/^[<{[]/.test(begun) ? 'unknown' : 'odd';
};

/** Passes the body on under rules 2 and 3. A body that ends before its kind is known is left to the package. */
const inspectBody = (
  body: LeanReadable<Uint8Array>,
  told: Exchange | undefined,
): LeanReadable<Uint8Array> => {
  const watch = told === undefined ? null : watchLines(told);
  const edit = told?.editEvent === undefined ? null : editEventLines(told.editEvent);
  const decoder = new TextDecoder();
  let start: Start = 'unknown';
  let text = '';
  /** Whether the last byte is a carriage return, after which the packages wait for a line feed. */
  let endsHalf = false;
  const readOdd = async (): Promise<Error> => {
    for await (const bytes of body) {
      text += decoder.decode(bytes, { stream: true });
      if (text.length > ODD_BYTES_MAX) break;
    }
    return failureOf(text.trimStart());
  };
  return new LeanReadable<Uint8Array>({
    async pull(controller) {
      const result = body.takeNow() ?? (await body.read());
      if (result.done) {
        watch?.(null);
        if (edit !== null) controller.enqueue(edit(null));
        if (endsHalf) controller.enqueue(LINE_FEED_BYTES);
        return controller.close();
      }
      endsHalf = result.value.length === 0 ? endsHalf : result.value.at(-1) === CARRIAGE_RETURN;
      if (start === 'unknown') {
        text += decoder.decode(result.value, { stream: true });
        start = classifyStart(text);
      }
      if (start === 'odd') return controller.error(await readOdd());
      watch?.(result.value);
      controller.enqueue(edit === null ? result.value : edit(result.value));
    },
    cancel: (reason) => body.cancel(reason),
  });
};

const redirected = (status: number, to: string | null): Error =>
  Object.assign(
    new Error(`it redirects (${status}) to ${to ?? 'another place'}. Give that address, if it is right`),
    { type: 'redirected' },
  );

const receive = (response: LeanResponse, told: Exchange | undefined): LeanResponse => {
  const { status, headers } = response;
  if (status >= 300 && status < 400) {
    response.body.cancel().catch(() => undefined); // nobody reads this body, so its failure changes nothing
    throw redirected(status, headers.get('location'));
  }
  return response.ok ? { ...response, body: inspectBody(response.body, told) } : response;
};

/** An escaped surrogate in JSON is a lone one, since JSON.stringify writes pairs as they are. */
const LONE = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/gi;

const wellFormed = (json: string): string => (json.includes('\\ud') ? json.replace(LONE, '$1\\ufffd') : json);

export const providerFetch =
  (fetch: LeanFetch): LeanFetch =>
  async (url, sent = {}) => {
    const told = exchangeOf(sent.signal);
    const { body } = sent;
    const headers = { ...sent.headers, 'user-agent': USER_AGENT, 'accept-encoding': 'identity' };
    const edited = body === undefined || told?.editBody === undefined ? body : told.editBody(body);
    return receive(
      await fetch(url, { ...sent, headers, ...(edited === undefined ? {} : { body: wellFormed(edited) }) }),
      told,
    );
  };

/**
 * A side channel between one request and its connection. The package in between hands its `fetch` nothing of ours but
 * the abort signal, so the signal identifies the request.
 */
type Exchange = {
  /** A comment or another line that is no event came: the server is alive. */
  readonly onAlive: () => void;
  /** `[DONE]` came. */
  readonly onDone: () => void;
  /** A line `error: …` came, which is no event either. */
  readonly onError: (text: string) => void;
  /** Rewrites the body of the request, JSON text. */
  readonly editBody?: (body: string) => string;
  /** Edits each event of the answer before the package reads it. */
  readonly editEvent?: EditEvent;
};

const exchanges = new WeakMap<AbortSignal, Exchange>();

/** Binds the exchange to the request with this signal. A signal stands for one request. */
export const bindExchange = (signal: AbortSignal, exchange: Exchange): void => {
  exchanges.set(signal, exchange);
};

const exchangeOf = (signal: AbortSignal | null | undefined): Exchange | undefined =>
  signal ? exchanges.get(signal) : undefined;

/**
 * Reads the lines of a server-sent event stream that packages skip: comments, by which gateways say that a provider is
 * at work; `data: [DONE]`; and `error: …`, which some servers write instead of an event.
 *
 * 1. Only the beginning of each line is read, so that a long reply costs nothing.
 * 2. A line ends with LF, CR or both. CRLF reads as a line and an empty line, which means nothing.
 */

const LINE_FEED = 10;

const HEAD_MAX = 16;
/** Characters of an `error:` line that are read. */
const ERROR_MAX = 8_192;

/** A byte order mark as latin1. */
const MARK = '\u00ef\u00bb\u00bf';
const withoutMark = (head: string): string => (head.startsWith(MARK) ? head.slice(MARK.length) : head);

const isDone = (head: string): boolean => /^data: ?\[DONE\]/.test(head);

const ERROR = 'error:';

/** Returns a function that takes the bytes of a body in order, and null at its end. */
const watchLines = (told: Exchange): ((bytes: Uint8Array | null) => void) => {
  /** Beginning of the current line. */
  let head = '';
  /** The whole current line, if it may be an error. */
  let pieces: Buffer[] = [];
  const finish = (): void => {
    const begun = withoutMark(head);
    if (begun.startsWith(':')) told.onAlive();
    else if (isDone(begun)) told.onDone();
    else if (begun.startsWith(ERROR)) {
      const text = Buffer.concat(pieces)
        .toString('utf8')
        .replace(/^\ufeff/, '')
        .slice(ERROR.length);
      told.onError(text.slice(0, ERROR_MAX).trim());
    }
    head = '';
    pieces = [];
  };
  const read = (bytes: Buffer): void => {
    if (head.length < HEAD_MAX) head += bytes.toString('latin1', 0, HEAD_MAX - head.length);
    const begun = withoutMark(head);
    if (begun.startsWith(ERROR) || ERROR.startsWith(begun) || MARK.startsWith(head)) pieces.push(bytes);
  };
  return (bytes) => {
    if (bytes === null) return finish();
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const endAt = (byte: number, from: number): number => {
      const found = buffer.indexOf(byte, from);
      return found === -1 ? buffer.length : found;
    };
    let feed = endAt(LINE_FEED, 0);
    let carriage = endAt(CARRIAGE_RETURN, 0);
    for (let start = 0; start < buffer.length; ) {
      if (feed < start) feed = endAt(LINE_FEED, start);
      if (carriage < start) carriage = endAt(CARRIAGE_RETURN, start);
      const end = Math.min(feed, carriage);
      if (end > start) read(buffer.subarray(start, end));
      if (end < buffer.length) finish();
      start = end + 1;
    }
  };
};

/**
 * Edits events of a server-sent event stream before a package reads them, for servers whose events differ from what the
 * package accepts.
 *
 * 1. A line is handed on when its end is there. Bytes of a line that is not edited stay as they are.
 * 2. Only an event whose data is JSON on one line can be edited; any other line stays.
 */

const LINE_FEED_CODE = 10;

const DATA = /^(\ufeff?data: ?)(\{.*\})\s*$/s;

/** Puts an event into the form that its package reads. Returns the same object if nothing changes. */
export type EditEvent = (event: Loose) => Loose;

const editLine = (line: Buffer, edit: EditEvent): Buffer => {
  const [, field, json] = DATA.exec(line.toString('utf8')) ?? [];
  if (field === undefined || json === undefined) return line;
  let event: unknown;
  try {
    event = JSON.parse(json);
  } catch {
    return line; // the package names the fault
  }
  if (!isObject(event)) return line;
  const edited = edit(event);
  return edited === event ? line : Buffer.from(field + JSON.stringify(edited));
};

/** Returns a function that takes the bytes of a body in order, and null at its end, and returns those to hand on. */
const editEventLines = (edit: EditEvent): ((bytes: Uint8Array | null) => Buffer) => {
  /** Beginning of the current line. */
  let pieces: Buffer[] = [];
  const endLine = (): Buffer => {
    const line = pieces.length === 1 ? (pieces[0] ?? Buffer.alloc(0)) : Buffer.concat(pieces);
    pieces = [];
    return editLine(line, edit);
  };
  return (bytes) => {
    if (bytes === null) return endLine();
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = 0; end < buffer.length; end++) {
      const byte = buffer[end];
      if (byte !== LINE_FEED_CODE && byte !== CARRIAGE_RETURN) continue;
      pieces.push(buffer.subarray(start, end));
      lines.push(endLine(), buffer.subarray(end, end + 1));
      start = end + 1;
    }
    if (start < buffer.length) pieces.push(buffer.subarray(start));
    return Buffer.concat(lines);
  };
};
