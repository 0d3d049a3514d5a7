import type { FetchLike } from '@modelcontextprotocol/client';
import type { ProcessEnvironment } from '../base/process-environment.js';
import type { LeanReadable } from '../models/http/lean-streams.js';
import { createFetch } from '../models/http/node-fetch.js';
import { attempt, attemptNow } from '../runtime/attempt.js';
import { ConnectionLost, LOST_CODE, LOST_TEXT } from './connection-lost.js';

/**
 * The package's `fetch`, over our own client, which knows the proxies of the environment. In the bundle the streams are
 * ours; from source they are Node's, which don't take ours.
 */

const bodyOf = (body: LeanReadable<Uint8Array>, ending: EventsEnding | null): ReadableStream<Uint8Array> => {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = await attempt(() => reader.read());
      if (read.kind === 'fault' && ending === null) throw read.fault;
      if (read.kind === 'done' && !read.value.done) {
        ending?.see(read.value.value);
        controller.enqueue(read.value.value);
        return;
      }
      const last = ending?.last() ?? null;
      if (last !== null) controller.enqueue(last);
      controller.close();
    },
    cancel: (reason) => reader.cancel(reason),
  });
};

/** What follows the last piece of an answer that is a stream of events. */
type EventsEnding = {
  see(piece: Uint8Array): void;
  /** Null: nothing. */
  last(): Uint8Array | null;
};

/** The id of a request; null for other messages. */
const requestIdOf = (body: string): string | number | null => {
  const parsed = attemptNow((): unknown => JSON.parse(body));
  const message = parsed.kind === 'done' ? parsed.value : null;
  if (typeof message !== 'object' || message === null || !('id' in message) || !('method' in message))
    return null;
  return typeof message.id === 'string' || typeof message.id === 'number' ? message.id : null;
};

const EVENT_ID = /(?:^|\n)id:/;

/**
 * The package waits for an answer for ever if a server ends the stream before it: here an error takes its place. If the
 * answer was there, the package drops the error. A stream whose events have ids is left alone, since the package resumes it.
 */
const endEvents = (body: string): EventsEnding | null => {
  const id = requestIdOf(body);
  if (id === null) return null;
  let tail = '';
  let isResumed = false;
  return {
    see(piece) {
      if (isResumed) return;
      const text = Buffer.from(piece).toString('latin1');
      isResumed = EVENT_ID.test(tail + text);
      tail = `\n${text}`.slice(-4);
    },
    last() {
      if (isResumed) return null;
      const error = { jsonrpc: '2.0', id, error: { code: LOST_CODE, message: LOST_TEXT } };
      return Buffer.from(`\n\nevent: message\ndata: ${JSON.stringify(error)}\n\n`);
    },
  };
};

/** Headers of a failed answer that mean something to the package. */
const READ_FROM_ERRORS = ['content-type', 'www-authenticate', 'dpop-nonce', 'retry-after'];

export const mcpFetch = (environment: ProcessEnvironment): FetchLike => {
  const send = createFetch(environment);
  return async (url, init = {}) => {
    const { method, body, signal } = init;
    const sent = await attempt(() =>
      send(url, {
        ...(method === undefined ? {} : { method }),
        headers: Object.fromEntries(new Headers(init.headers)),
        ...(body === undefined || body === null ? {} : { body: String(body) }),
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    if (sent.kind === 'fault')
      throw signal?.aborted === true || !('code' in sent.fault)
        ? sent.fault
        : new ConnectionLost(sent.fault.message || String(sent.fault.code), { cause: sent.fault });
    const response = sent.value;
    const isEvents = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    const ending = isEvents && typeof body === 'string' ? endEvents(body) : null;
    const { ok, status, statusText, headers } = response;
    // The package reads errors of logins only from a real Response.
    if (status >= 400) {
      const named = READ_FROM_ERRORS.map((name) => [name, headers.get(name) ?? ''] as const);
      const given = Object.fromEntries(named.filter(([, value]) => value !== ''));
      return new Response(await response.text(), { status, statusText, headers: given });
    }
    const answer = {
      ok,
      status,
      statusText,
      headers,
      url: String(url),
      get body() {
        return bodyOf(response.body, ending);
      },
      text: () => response.text(),
      json: () => response.json(),
    };
    // It has the parts of a Response that the package uses.
    return answer as unknown as Response;
  };
};
