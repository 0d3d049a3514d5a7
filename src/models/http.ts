import http from 'node:http';
import https from 'node:https';
import { ReadableStream } from 'node:stream/web';
import { type Environment, proxyFor, proxyHeaders, type TunnelSignal, tunnelAgent } from '../net/proxy.js';
import { LeanHeaders } from './headers.js';

/**
 * A `fetch` over Node's http: it starts faster and needs less than Node's own, and proxies work.
 *
 * 1. It follows no redirect, decodes no compression, retries nothing and has no deadline.
 * 2. What goes wrong rejects with Node's error, `code` included, before the headers or through the body.
 * 3. A connection is kept for the next request; none of them keeps the process alive when idle.
 */

export type LeanRequest = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
  readonly signal?: AbortSignal | null;
};

export type LeanResponse = {
  readonly ok: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly headers: LeanHeaders;
  readonly body: ReadableStream<Uint8Array>;
  text(): Promise<string>;
  json(): Promise<unknown>;
};

export type LeanFetch = (url: string | URL, request?: LeanRequest) => Promise<LeanResponse>;

/** How long a body that nobody reads any more may take to end by itself, so that its connection can be kept. */
const LINGER_MS = 500;

const lingerThenDestroy = (incoming: http.IncomingMessage): void => {
  if (incoming.complete) return void incoming.resume();
  const timer = setTimeout(() => incoming.destroy(), LINGER_MS);
  incoming.once('close', () => clearTimeout(timer));
  incoming.resume();
};

/**
 * The body as a stream. Pieces that came with one read of the socket are handed on as one: each hop of a web stream
 * costs more than the copy.
 */
const bodyOf = (incoming: http.IncomingMessage): ReadableStream<Uint8Array> => {
  let open = true;
  let pieces: Buffer[] = [];
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const flush = (): void => {
        if (!open || pieces.length === 0) return;
        controller.enqueue(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces));
        pieces = [];
        if ((controller.desiredSize ?? 0) <= 0) incoming.pause();
      };
      incoming.on('data', (piece: Buffer) => {
        pieces.push(piece);
        if (pieces.length === 1) process.nextTick(flush);
      });
      incoming.once('end', () => {
        flush();
        if (open) controller.close();
        open = false;
      });
      incoming.on('error', (error) => {
        if (open) controller.error(error);
        open = false;
      });
    },
    pull() {
      incoming.resume();
    },
    cancel() {
      open = false;
      lingerThenDestroy(incoming);
    },
  });
};

const readAll = async (body: ReadableStream<Uint8Array>): Promise<string> => {
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of body) text += decoder.decode(piece, { stream: true });
  return text + decoder.decode();
};

const respond = (incoming: http.IncomingMessage): LeanResponse => {
  const status = incoming.statusCode ?? 0;
  const headers = new LeanHeaders();
  for (const [name, value] of Object.entries(incoming.headersDistinct)) {
    if (value !== undefined) headers.set(name, value.join(', '));
  }
  const body = bodyOf(incoming);
  const text = (): Promise<string> => readAll(body);
  return {
    ok: status >= 200 && status < 300,
    status,
    statusText: incoming.statusMessage ?? '',
    headers,
    body,
    text,
    json: async () => JSON.parse(await text()),
  };
};

/** A fetch with its own connections, which goes through the proxies that the environment names. */
export const createFetch = (environment: Environment): LeanFetch => {
  const plain = new http.Agent({ keepAlive: true });
  const secure = new https.Agent({ keepAlive: true });
  const tunnels = new Map<string, https.Agent>();

  const tunnelThrough = (proxy: URL): https.Agent => {
    const agent = tunnels.get(proxy.href) ?? tunnelAgent(proxy);
    tunnels.set(proxy.href, agent);
    return agent;
  };

  const prepare = (url: URL, sent: LeanRequest): http.ClientRequest => {
    const headers = Object.fromEntries(new LeanHeaders(sent.headers));
    if (sent.body !== undefined) headers['content-length'] = String(Buffer.byteLength(sent.body));
    const shared = { method: sent.method ?? 'GET', headers, ...(sent.signal ? { signal: sent.signal } : {}) };
    const proxy = proxyFor(url, environment);
    if (url.protocol === 'https:') {
      if (proxy === null) return https.request(url, { ...shared, agent: secure });
      const tunnelled: https.RequestOptions & TunnelSignal = {
        ...shared,
        agent: tunnelThrough(proxy),
        ...(sent.signal ? { tunnelSignal: sent.signal } : {}),
      };
      return https.request(url, tunnelled);
    }
    if (proxy === null) return http.request(url, { ...shared, agent: plain });
    const throughProxy = { ...headers, ...proxyHeaders(proxy), host: url.host };
    return http.request(proxy, { ...shared, headers: throughProxy, path: url.href, agent: plain });
  };

  return (address, sent = {}) =>
    new Promise((resolve, reject) => {
      const request = prepare(new URL(address), sent);
      request.once('response', (incoming) => resolve(respond(incoming)));
      request.on('error', reject);
      request.end(sent.body);
    });
};
