import type { FetchLike } from '@modelcontextprotocol/client';
import type { ProcessEnvironment } from '../base/process-environment-type.js';
import type { LeanReadable } from '../models/http/lean-streams.js';
import { createFetch } from '../models/http/node-fetch.js';
import { attempt } from '../runtime/attempt.js';
import { ConnectionLost } from './connection-lost.js';
import { EventStreams, type EventsEnding, lostEvent } from './end-lost-requests.js';

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

const failedAnswer = async (response: LeanResponse): Promise<Response> => {
  const { status, statusText, headers } = response;
  const named = READ_FROM_ERRORS.map((name) => [name, headers.get(name) ?? ''] as const);
  const given = Object.fromEntries(named.filter(([, value]) => value !== ''));
  return new Response(await response.text(), { status, statusText, headers: given });
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

export const mcpFetch = (environment: ProcessEnvironment): FetchLike => {
  const send = createFetch(environment);
  const streams = new EventStreams();
  return async (url, init = {}) => {
    const cut = streams.cutRequest(new Headers(init.headers).get('last-event-id'));
    const sent = await attempt(() => sendWith(send, url, init));
    if (sent.kind === 'fault') {
      const { fault } = sent;
      if (init.signal?.aborted === true || !('code' in fault)) throw fault;
      if (cut !== null && streams.isOver(cut, String(fault.code))) return lostAnswer(String(url), cut.id);
      throw new ConnectionLost(fault.message || String(fault.code), { cause: fault });
    }
    const response = sent.value;
    const { ok, status, statusText, headers } = response;
    const isEvents = headers.get('content-type')?.startsWith('text/event-stream') === true;
    if (cut !== null && (status >= 400 || !isEvents) && streams.isOver(cut, status)) {
      await attempt(() => response.body.cancel()); // nobody reads it
      return lostAnswer(String(url), cut.id);
    }
    // The package reads errors of logins only from a real Response.
    if (status >= 400) return failedAnswer(response);
    const ending = isEvents ? streams.follow(cut, init.body) : null;
    return asResponse({
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
    });
  };
};
