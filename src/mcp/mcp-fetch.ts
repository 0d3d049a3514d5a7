import type { FetchLike } from '@modelcontextprotocol/client';
import type { ProcessEnvironment } from '../base/process-environment.js';
import type { LeanReadable } from '../models/http/lean-streams.js';
import { createFetch } from '../models/http/node-fetch.js';

/**
 * The package's `fetch`, over our own client, which knows the proxies of the environment. In the bundle the streams are
 * ours; from source they are Node's, which don't take ours.
 */

const bodyOf = (body: LeanReadable<Uint8Array>): ReadableStream<Uint8Array> => {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
};

/** Headers of a failed answer that mean something to the package. */
const READ_FROM_ERRORS = ['content-type', 'www-authenticate', 'dpop-nonce', 'retry-after'];

export const mcpFetch = (environment: ProcessEnvironment): FetchLike => {
  const send = createFetch(environment);
  return async (url, init = {}) => {
    const { method, body, signal } = init;
    const response = await send(url, {
      ...(method === undefined ? {} : { method }),
      headers: Object.fromEntries(new Headers(init.headers)),
      ...(body === undefined || body === null ? {} : { body: String(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
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
        return bodyOf(response.body);
      },
      text: () => response.text(),
      json: () => response.json(),
    };
    // It has the parts of a Response that the package uses.
    return answer as unknown as Response;
  };
};
