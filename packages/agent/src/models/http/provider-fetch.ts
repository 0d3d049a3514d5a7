import { VERSION } from '../../platform/base/version.js';
import { editEventLines } from './edit-event-lines.js';
import { pageWords, shorten } from './error-page-text.js';
import { LeanReadable } from './lean-streams.js';
import type { LeanFetch, LeanResponse } from './node-fetch.js';
import { type Exchange, exchangeOf } from './request-side-channel.js';
import { watchLines } from './watch-event-lines.js';

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
const LINE_FEED = Uint8Array.of(10);
/** Length of the longest beginning of an event. */
const START_MAX = 8;

type Start = 'unknown' | 'events' | 'odd';

const startOf = (text: string): Start => {
  const begun = text.trimStart();
  if (EVENT_START.test(begun)) return 'events';
  return begun.length < START_MAX && !/^[<{[]/.test(begun) ? 'unknown' : 'odd';
};

/** Passes the body on under rules 2 and 3. A body that ends before its kind is known is left to the package. */
const inspect = (body: LeanReadable<Uint8Array>, told: Exchange | undefined): LeanReadable<Uint8Array> => {
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
        if (endsHalf) controller.enqueue(LINE_FEED);
        return controller.close();
      }
      endsHalf = result.value.length === 0 ? endsHalf : result.value.at(-1) === CARRIAGE_RETURN;
      if (start === 'unknown') {
        text += decoder.decode(result.value, { stream: true });
        start = startOf(text);
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
  return response.ok ? { ...response, body: inspect(response.body, told) } : response;
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
