import { VERSION } from '../platform/environment.js';
import type { LeanFetch, LeanResponse } from '../platform/http.js';
import { isObject, type Loose } from '../platform/untrusted-input.js';
import type { LeanReadable } from '../platform/web-streams.js';
import { pageWords, shorten } from './errors.js';

/**
 * One request to a provider, and the events of its answer.
 *
 * - It sends our user agent, and asks for an uncompressed answer.
 * - A success whose body is no event stream (a login page, JSON) fails with the body's first words.
 *   A redirect fails, too: a key is sent only to the address that the user named.
 * - A request has no half characters (lone surrogates): a provider refuses it, and with it every
 *   later one of the session.
 */

export type WireRequest = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
};

/** What the lines of an answer mean. */
export type EventSink = {
  /** Takes an event. `end`: nothing behind it is read. */
  event(event: Loose): 'more' | 'end';
  /** A comment came, by which gateways say that a provider is at work. */
  alive(): void;
  /** `[DONE]` came. */
  done(): void;
  /** A line `error: …` came, which some servers write in place of an event. */
  errorLine(text: string): void;
};

const USER_AGENT = `pawl/${VERSION}`;

/**
 * Sends a request and reads the events of its answer. Rejects if the answer is none, or breaks off.
 */
export const readEvents = async (
  fetch: LeanFetch,
  { url, headers, body }: WireRequest,
  signal: AbortSignal,
  sink: EventSink,
): Promise<void> => {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...headers,
      'user-agent': USER_AGENT,
      'accept-encoding': 'identity',
    },
    body: wellFormed(JSON.stringify(body)),
    signal,
  });
  if (!response.ok) throw await failedAnswer(response);
  await readBody(response.body, sink);
};

/** An escaped surrogate in JSON is a lone one, since JSON.stringify writes pairs as they are. */
const LONE = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/gi;

const wellFormed = (json: string): string =>
  json.includes('\\ud') ? json.replace(LONE, '$1\\ufffd') : json;

/** The error of an answer that is no success; errors.ts reads its fields. */
const failedAnswer = async (response: LeanResponse): Promise<Error> => {
  const { status, statusText, headers } = response;
  if (status >= 300 && status < 400) {
    // nobody reads this body, so its failure changes nothing
    response.body.cancel().catch(() => undefined);
    const place = headers.get('location') ?? 'another place';
    const message = `it redirects (${status}) to ${place}. Give that address, if it is right`;
    return Object.assign(new Error(message), { type: 'redirected' });
  }
  // a body that breaks off: its status says what failed
  const responseBody = await response.text().catch(() => '');
  return Object.assign(new Error(statusText), {
    statusCode: status,
    responseHeaders: Object.fromEntries(headers),
    responseBody,
  });
};

/** Characters of an unexpected body that are read. */
const ODD_BYTES_MAX = 65_536;

const readBody = async (body: LeanReadable<Uint8Array>, sink: EventSink): Promise<void> => {
  const parser = new EventParser(sink);
  const decoder = new TextDecoder();
  let start: Start = 'unknown';
  let text = '';
  try {
    for (;;) {
      const { done, value } = body.takeNow() ?? (await body.read());
      if (done) return parser.end();
      if (start === 'unknown') {
        text += decoder.decode(value, { stream: true });
        start = classifyStart(text);
      }
      if (start === 'odd') {
        for await (const bytes of body) {
          text += decoder.decode(bytes, { stream: true });
          if (text.length > ODD_BYTES_MAX) break;
        }
        throw oddAnswer(text.trimStart());
      }
      if (parser.add(value) === 'end') return;
    }
  } finally {
    body.cancel().catch(() => undefined); // nobody reads the rest, so its failure changes nothing
  }
};

const EVENT_START = /^(?:(?:data|event|id|retry|error)?:|(?:data|event|id|retry)\r?\n)/;
/** Length of the longest beginning of an event. */
const START_MAX = 8;

type Start = 'unknown' | 'events' | 'odd';

const classifyStart = (text: string): Start => {
  const trimmed = text.trimStart();
  if (EVENT_START.test(trimmed)) return 'events';
  return trimmed.length < START_MAX && !/^[<{[]/.test(trimmed) ? 'unknown' : 'odd';
};

/** The error of an answer that is no stream of events; errors.ts reads its `type`. */
const oddAnswer = (text: string): Error => {
  // JSON with an error is classified like the body of a failed request.
  if (!text.startsWith('<') && /"error"\s*:/.test(text))
    return Object.assign(new Error(shorten(text)), { statusCode: 200, responseBody: text });
  const message = text.startsWith('<')
    ? `it answered with a page: "${pageWords(text)}". Look at the address, and at the proxy`
    : `it answered with no stream of events: ${shorten(text)}`;
  return Object.assign(new Error(message), { type: 'odd_answer' });
};

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
/** Characters of an `error:` line that are read. */
const ERROR_LINE_MAX = 8_192;

/**
 * Splits the bytes of a server-sent event stream into its lines and events.
 *
 * - A line ends with LF, CR or CRLF. How the bytes are cut into chunks changes nothing.
 * - An event whose last line is not followed by an empty one has not come whole, and is none.
 */
class EventParser {
  readonly #sink: EventSink;
  /** Beginning of the current line. */
  #pieces: Buffer[] = [];
  /** The lines of data of the current event. */
  #data: string[] = [];
  #isFirstLine = true;
  /** The last byte was a carriage return: a line feed after it ends the same line. */
  #isAfterReturn = false;

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  add(bytes: Uint8Array): 'more' | 'end' {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (buffer.length === 0) return 'more';
    let start = this.#isAfterReturn && buffer[0] === LINE_FEED ? 1 : 0;
    this.#isAfterReturn = false;
    const find = (byte: number): number => {
      const index = buffer.indexOf(byte, start);
      return index === -1 ? buffer.length : index;
    };
    let [feed, carriage] = [find(LINE_FEED), find(CARRIAGE_RETURN)];
    while (start < buffer.length) {
      if (feed < start) feed = find(LINE_FEED);
      if (carriage < start) carriage = find(CARRIAGE_RETURN);
      const end = Math.min(feed, carriage);
      this.#pieces.push(buffer.subarray(start, end));
      if (end === buffer.length) return 'more';
      const isPair = carriage === end && feed === end + 1;
      this.#isAfterReturn = carriage === end && end + 1 === buffer.length;
      start = end + (isPair ? 2 : 1);
      if (this.#readLine(this.#takeLine()) === 'end') return 'end';
    }
    return 'more';
  }

  /** A line without its end can still be a comment, `[DONE]` or an error. */
  end(): void {
    const line = this.#takeLine();
    if (line !== '') this.#readLine(line);
  }

  #takeLine(): string {
    const line = this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces);
    this.#pieces = [];
    const text = line?.toString('utf8') ?? '';
    const isMarked = this.#isFirstLine && text.startsWith('\ufeff');
    this.#isFirstLine = false;
    return isMarked ? text.slice(1) : text;
  }

  #readLine(line: string): 'more' | 'end' {
    if (line === '') return this.#endEvent();
    if (line.startsWith(':')) this.#sink.alive();
    else if (line.startsWith('data:')) {
      const value = line.slice(line[5] === ' ' ? 6 : 5);
      if (value.startsWith('[DONE]')) this.#sink.done();
      this.#data.push(value);
    } else if (line === 'data') this.#data.push('');
    else if (line.startsWith('error:'))
      this.#sink.errorLine(line.slice('error:'.length, 'error:'.length + ERROR_LINE_MAX).trim());
    return 'more';
  }

  #endEvent(): 'more' | 'end' {
    const lines = this.#data;
    this.#data = [];
    const text = lines.length === 1 ? (lines[0] ?? '') : lines.join('\n');
    return lines.length === 0 || text === '[DONE]' ? 'more' : this.#sink.event(parseEvent(text));
  }
}

const parseEvent = (text: string): Loose => {
  let event: unknown;
  try {
    event = JSON.parse(text);
  } catch {
    // the connection has damaged it; errors.ts reads the type
    throw Object.assign(new Error('a part of its reply is no JSON'), { type: 'damaged_frame' });
  }
  if (!isObject(event) || Array.isArray(event)) throw new Error('a part of its reply is no object');
  return event;
};
