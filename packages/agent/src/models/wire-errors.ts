/** The errors that every wire tells, with the fields by which errors.ts classifies them. */

import type { LeanResponse } from '../platform/http.js';
import type { Loose } from '../platform/untrusted-input.js';
import { pageWords, REPORTED } from './errors.js';

/**
 * The error of a stream without the provider's own end, which looks whole to a client and is not.
 */
export const brokenOff = (): Error =>
  Object.assign(new Error('the reply broke off before its end'), { type: 'broken_off' });

/**
 * The error of a reply that the provider itself could not read: it is useless, a retry may succeed.
 */
export const malformedReply = (reason: string): Error =>
  Object.assign(new Error(`the model wrote what its provider could not read (${reason})`), {
    type: 'malformed_call',
  });

/** The error of a reply that its provider broke off for want of machines. */
export const overloaded = (reason: string): Error =>
  Object.assign(new Error(`the reply broke off before its end (${reason})`), {
    type: 'overloaded_error',
  });

/**
 * The error of a reply that reached the end of the model's window: only a shorter conversation
 * helps.
 */
export const windowFull = (): Error =>
  Object.assign(new Error('the reply reached the end of the context window'), {
    type: 'model_context_window_exceeded',
  });

/** The error of an event that we know, but not like this. */
export const oddEvent = (what: string): Error =>
  new Error(`a part of its reply could not be read: ${what}`);

/**
 * The error that an event of the stream reports, as errors.ts reads it. `statusCode` where it is to
 * count as a status.
 */
export const eventError = (event: Loose, statusCode?: number): Error =>
  Object.assign(new Error('an error without a message'), {
    type: REPORTED,
    responseBody: JSON.stringify(event),
    ...(statusCode === undefined ? {} : { statusCode }),
  });

/** The error of an answer that is no success; errors.ts reads its fields. */
export const failedAnswer = async (response: LeanResponse): Promise<Error> => {
  const { status, statusText, headers } = response;
  if (status >= 300 && status < 400) {
    response.body.discard();
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

/** The error of an answer that is no stream of events; errors.ts reads its `type`. */
export const oddAnswer = (text: string): Error => {
  // JSON with an error is classified like the body of a failed request.
  if (!text.startsWith('<') && /"error"\s*:/.test(text))
    return Object.assign(new Error(text), { statusCode: 200, responseBody: text });
  const message = text.startsWith('<')
    ? `it answered with a page. Look at the address, and at the proxy. The page: ${pageWords(text)}`
    : `it answered with no stream of events: ${text}`;
  return Object.assign(new Error(message), { type: 'odd_answer' });
};
