import type { FetchLike } from '@modelcontextprotocol/client';
import type { LeanReadable } from '../../models/http/lean-streams.js';
import { createFetch } from '../../models/http/node-fetch.js';
import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import { attempt } from '../../session/attempt.js';
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

const failedAnswer = async (response: LeanResponse, bytesMax: number): Promise<Response> => {
  const { status, statusText, headers } = response;
  const named = READ_FROM_ERRORS.map((name) => [name, headers.get(name) ?? ''] as const);
  const given = Object.fromEntries(named.filter(([, value]) => value !== ''));
  return new Response(await readAtMost(response, bytesMax), { status, statusText, headers: given });
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

/** Longest answer that is read at once: a list of tools, or the metadata of a login. Streams of events have no limit. */
const ANSWER_BYTES_MAX = 16 << 20;

export const mcpFetch = (environment: ProcessEnvironment, bytesMax = ANSWER_BYTES_MAX): FetchLike => {
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
    if (status >= 400) return failedAnswer(response, bytesMax);
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
      text: () => readAtMost(response, bytesMax),
      json: async (): Promise<unknown> => JSON.parse(await readAtMost(response, bytesMax)),
    });
  };
};
