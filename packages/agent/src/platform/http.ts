/**
 * A `fetch` over Node's http. It starts faster and needs less memory than Node's own, and it uses
 * proxies.
 *
 * 1. It follows no redirect, asks for no compression but undoes it, retries nothing and has no
 *    deadline.
 * 2. A failure rejects with Node's error, `code` included: the call before the headers, the body
 *    after them.
 * 3. A connection is kept for the next request; none of them keeps the process alive when idle.
 *
 * "Lean": like the platform's type of that name, with only the parts that Pawl uses. From top to
 * bottom: the response and its body; `createFetch`; the proxies of the environment; tunnels through
 * them; decompression; what our servers share; and server-sent events.
 */

import type http from 'node:http';
import https from 'node:https';
import { isIP, type ListenOptions, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import tls from 'node:tls';
import { urlToHttpOptions } from 'node:url';
import zlib from 'node:zlib';
import type { ProcessEnvironment } from './environment.js';

export type LeanRequest = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
  readonly signal?: AbortSignal | null;
};

/**
 * The bytes of an answer, read once. Leaving the loop before the end drops the rest, as `discard`
 * does without a loop.
 */
export type LeanBody = AsyncIterable<Uint8Array> & { discard(): void };

export type LeanResponse = {
  readonly ok: boolean;
  readonly status: number;
  readonly statusText: string;
  /** By names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: LeanBody;
  text(): Promise<string>;
  json(): Promise<unknown>;
};

export type LeanFetch = (url: string | URL, request?: LeanRequest) => Promise<LeanResponse>;

/** Grace period for an abandoned body to end by itself, so that its connection can be kept. */
const LINGER_MS = 500;

/** Reads and drops the rest of a body. If that takes too long, ends its connection. */
const lingerThenDestroy = (incoming: http.IncomingMessage): void => {
  if (incoming.complete) return void incoming.resume();
  const timer = setTimeout(() => incoming.destroy(), LINGER_MS);
  incoming.once('close', () => clearTimeout(timer));
  incoming.resume();
};

/** The decompressed body. Errors of the connection become errors of the body. */
const decode = (incoming: http.IncomingMessage): Readable => {
  const coding = (incoming.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (coding === 'identity' || coding === '') return incoming;
  const decoder = createDecoder(coding);
  if (decoder === null) {
    incoming.destroy();
    // models/errors.ts makes a message for the user from the type
    throw Object.assign(
      new Error(`it answered in the compression ${coding}, which was not asked for`),
      {
        type: 'odd_answer',
      },
    );
  }
  incoming.once('error', (error) => decoder.destroy(error));
  return incoming.pipe(decoder);
};

/** Bytes that are buffered for a reader that is slower than the network. */
const AHEAD_BYTES = 65_536;

/**
 * The body, in pieces of what came since the last one. The iterator of Node would drop what came
 * right before the connection failed.
 */
const readBody = (incoming: http.IncomingMessage, source: Readable): LeanBody => {
  let pieces: Buffer[] = [];
  let bytes = 0;
  let end: { readonly error: Error | null } | null = null;
  let wake = (): void => undefined;
  const finish = (error: Error | null): void => {
    end ??= { error };
    wake();
  };
  source.on('data', (piece: Buffer) => {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes >= AHEAD_BYTES) source.pause();
    wake();
  });
  source.once('end', () => finish(null));
  source.on('error', finish);
  const discard = (): void => {
    if (end !== null) return;
    finish(null);
    source.removeAllListeners('data');
    lingerThenDestroy(incoming);
    source.resume();
  };
  return {
    discard,
    async *[Symbol.asyncIterator]() {
      try {
        for (;;) {
          const [first] = pieces;
          if (first !== undefined) {
            const next = pieces.length === 1 ? first : Buffer.concat(pieces);
            [pieces, bytes] = [[], 0];
            source.resume();
            yield next;
          } else if (end === null) {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          } else if (end.error === null) return;
          else throw end.error;
        }
      } finally {
        discard();
      }
    },
  };
};

const readAll = async (body: LeanBody): Promise<string> => {
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of body) text += decoder.decode(piece, { stream: true });
  return text + decoder.decode();
};

const respond = (incoming: http.IncomingMessage): LeanResponse => {
  const status = incoming.statusCode ?? 0;
  const headers = new Map<string, string>();
  for (const [name, value] of Object.entries(incoming.headersDistinct)) {
    if (value !== undefined) headers.set(name, value.join(', '));
  }
  const body = readBody(incoming, decode(incoming));
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

/**
 * A fetch with its own connections, which goes through the proxies that the environment names.
 * `always`: headers of each request; those of a single request win.
 */
export const createFetch = (
  environment: ProcessEnvironment,
  always: Readonly<Record<string, string>> = {},
): LeanFetch => {
  const plain = new nodeHttp.Agent({ keepAlive: true });
  let secure: https.Agent | null = null; // created with the first use: loading TLS takes 5 ms
  const tunnels = new Map<string, https.Agent>();

  const tunnelThrough = (proxy: URL): https.Agent => {
    const agent = tunnels.get(proxy.href) ?? tunnelAgent(proxy);
    tunnels.set(proxy.href, agent);
    return agent;
  };

  const prepare = (url: URL, sent: LeanRequest): http.ClientRequest => {
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries({ ...always, ...sent.headers }))
      if (value !== undefined) headers[name.toLowerCase()] = value;
    if (sent.body !== undefined) headers['content-length'] = String(Buffer.byteLength(sent.body));
    const shared = {
      method: sent.method ?? 'GET',
      headers,
      ...(sent.signal ? { signal: sent.signal } : {}),
    };
    const proxy = proxyFor(url, environment);
    const isSecure = (proxy ?? url).protocol === 'https:';
    if (isSecure) secure ??= new https.Agent({ keepAlive: true });
    const agent = (isSecure ? secure : null) ?? plain;
    if (proxy === null) return requestFor(url)(url, { ...shared, agent });
    if (url.protocol !== 'https:') return requestThroughProxy(proxy, url, { ...shared, agent });
    const tunnelled: https.RequestOptions & TunnelSignal = {
      ...shared,
      agent: tunnelThrough(proxy),
      ...(sent.signal ? { tunnelSignal: sent.signal } : {}),
    };
    return https.request(url, tunnelled);
  };

  return (address, sent = {}) =>
    new Promise((resolve, reject) => {
      const request = prepare(new URL(address), sent);
      request.once('response', (incoming) => {
        try {
          resolve(respond(incoming));
        } catch (error) {
          reject(error); // the answer can't be read
        }
      });
      request.on('error', reject);
      request.end(sent.body);
    });
};

/**
 * `node:http` without the cost of an import: from Node 22 on, an import evaluates all its exports,
 * one of which loads undici, 35-45 ms of a start.
 */
export const nodeHttp: typeof http = process.getBuiltinModule('node:http');

// ---- Proxies ----

const readVariable = (environment: ProcessEnvironment, name: string): string =>
  environment[name.toLowerCase()] || environment[name] || '';

/**
 * True if NO_PROXY covers the host: `*`, a domain with all below it (`.` in front or not), or
 * either with a port.
 */
const isExempt = (url: URL, list: string): boolean =>
  list
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      if (entry === '*') return true;
      const [, name = '', port] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
      const domain = name.replace(/^\*?\./, '').toLowerCase();
      const urlPort = url.port || (url.protocol === 'https:' ? '443' : '80');
      const fits = url.hostname === domain || url.hostname.endsWith(`.${domain}`);
      return fits && (port === undefined || port === urlPort);
    });

const LOOPBACK =
  /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\]|0\.0\.0\.0|\[::\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\])\.?$/;

/** Whether an address is one of this computer. */
export const isLoopback = (address: string | URL): boolean =>
  LOOPBACK.test(new URL(address).hostname);

/** The variables that name a proxy. `ALL_PROXY` counts where the first one is not set. */
export const PROXY_VARIABLES = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY'] as const;

/**
 * The proxy for a URL, or null: its variable and NO_PROXY, lower case first. Unlike curl it reads
 * `HTTP_PROXY` and knows no networks (`10.0.0.0/8`). What this computer serves is never asked
 * through a proxy. Throws if the variable names no HTTP proxy.
 */
export const proxyFor = (url: URL, environment: ProcessEnvironment): URL | null => {
  const scheme = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const name = readVariable(environment, scheme) === '' ? 'ALL_PROXY' : scheme;
  const address = readVariable(environment, name);
  if (address === '' || isLoopback(url) || isExempt(url, readVariable(environment, 'NO_PROXY')))
    return null;
  const whole = address.includes('://') ? address : `http://${address}`;
  const refuse = (why: string): Error =>
    // models/errors.ts makes a message for the user from the type
    Object.assign(new Error(`${why}. Write it as http://HOST:PORT, or unset it.`), {
      type: 'unusable_proxy',
    });
  if (!URL.canParse(whole)) throw refuse(`${name} is no URL: ${address}`);
  const proxy = new URL(whole);
  if (proxy.protocol !== 'http:' && proxy.protocol !== 'https:')
    throw refuse(
      `${name} names a proxy of the kind ${proxy.protocol.slice(0, -1)}, not an HTTP proxy`,
    );
  return proxy;
};

/** The header with the user and the password of the proxy's URL. */
const proxyHeaders = (proxy: URL): Readonly<Record<string, string>> => {
  if (proxy.username === '') return {};
  const user = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(user).toString('base64')}` };
};

/** The function that sends a request to this address. */
export const requestFor = ({ protocol }: URL): typeof https.request =>
  protocol === 'https:' ? https.request : nodeHttp.request;

/** Sends a request to the proxy itself. `host` is the server that the proxy is to reach. */
const askProxy = (
  proxy: URL,
  host: string,
  { headers, ...options }: http.RequestOptions & { readonly headers?: Record<string, string> },
): http.ClientRequest => {
  const { hostname } = urlToHttpOptions(proxy);
  // else Node sends the proxy's user to the server, and expects the certificate of `host`
  const own = { auth: null, servername: isIP(hostname ?? '') === 0 ? proxy.hostname : '' };
  const sent = { ...headers, ...proxyHeaders(proxy), host };
  return requestFor(proxy)(proxy, { ...own, ...options, headers: sent });
};

/** Sends a request of plain http through a proxy, in absolute form. */
export const requestThroughProxy = (
  proxy: URL,
  url: URL,
  options: Parameters<typeof askProxy>[2],
): http.ClientRequest => {
  const { auth = null } = urlToHttpOptions(url);
  return askProxy(proxy, url.host, {
    ...options,
    auth,
    path: `${url.origin}${url.pathname}${url.search}`,
  });
};

/**
 * Opens a connection to `host:port` through a proxy (CONNECT). Rejects if the proxy refuses, or
 * when aborted.
 */
const tunnel = (proxy: URL, authority: string, signal: AbortSignal | undefined): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const asking = askProxy(proxy, authority, {
      method: 'CONNECT',
      path: authority,
      agent: false,
      ...(signal === undefined ? {} : { signal }),
    });
    asking.once('connect', (answer, socket, early: Buffer) => {
      // a TCP or TLS socket
      if (answer.statusCode === 200 && early.length === 0) return resolve(socket as Socket);
      socket.destroy();
      const outcome = answer.statusCode === 200 ? 'spoke first' : `answered ${answer.statusCode}`;
      const failure = new Error(`the proxy ${proxy.host} ${outcome} when asked for ${authority}`);
      reject(Object.assign(failure, { code: 'PROXY_REFUSED' }));
    });
    asking.once('error', reject);
    asking.end();
  });

/**
 * Node does not pass a request's `signal` to its agent, so requests through a tunnel pass it under
 * this name.
 */
type TunnelSignal = { readonly tunnelSignal?: AbortSignal };

/** Called with a connection that is encrypted, or with the reason why there is none. */
type Secured = (error: Error | null, socket?: tls.TLSSocket) => void;

/** An agent for https whose connections go through a proxy. */
export const tunnelAgent = (proxy: URL): https.Agent => {
  const agent = new https.Agent({ keepAlive: true });
  const createConnection = (
    target: tls.ConnectionOptions & TunnelSignal,
    secured: Secured,
  ): undefined => {
    const host = target.host?.includes(':') ? `[${target.host}]` : target.host;
    tunnel(proxy, `${host}:${target.port}`, target.tunnelSignal)
      .then((socket) => secured(null, tls.connect({ ...target, socket })))
      .catch((error: Error) => secured(error));
  };
  // Node calls this method with a callback; the types of Node 20 leave it out.
  return Object.assign(agent, { createConnection });
};

/** Decompresses a `content-encoding`. */
type Decoder = zlib.Gunzip | zlib.BrotliDecompress;

/**
 * Null for an encoding that Node 20 can't decompress. A broken-off body is decompressed up to
 * its last whole piece.
 */
export const createDecoder = (coding: string): Decoder | null => {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip({ flush: zlib.constants.Z_SYNC_FLUSH });
    case 'deflate':
      return zlib.createUnzip({ flush: zlib.constants.Z_SYNC_FLUSH });
    case 'br':
      return zlib.createBrotliDecompress({ flush: zlib.constants.BROTLI_OPERATION_FLUSH });
    default:
      return null;
  }
};

// ---- Servers of ours ----

/** Resolves with the port; 0 for a socket. Rejects if the address can't be used. */
export const listenOn = (server: http.Server, address: ListenOptions): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => {
      server.off('error', reject);
      const bound = server.address();
      resolve(typeof bound === 'object' && bound !== null ? bound.port : 0);
    });
  });

/** The body of a request; null if it has more bytes. The client can still read an answer. */
export const readBytes = async (
  incoming: http.IncomingMessage,
  bytesMax: number,
): Promise<Buffer | null> => {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of incoming.iterator({ destroyOnReturn: false })) {
    pieces.push(piece as Buffer); // a stream without an encoding
    bytes += (piece as Buffer).length; // the same
    if (bytes > bytesMax) return null;
  }
  return Buffer.concat(pieces);
};

/** Resolves when more may be written, or the reader has stopped. */
export const waitForDrain = (outgoing: http.ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    // The event of a closed connection fires only once.
    if (outgoing.closed || outgoing.destroyed) return resolve();
    const end = (): void => {
      outgoing.off('drain', end).off('close', end);
      resolve();
    };
    outgoing.on('drain', end).on('close', end);
  });

// ---- Server-sent events ----

type EventHead = {
  readonly name?: string;
  /** From which a reader that comes again goes on. */
  readonly id?: number;
};

/** An event as it is sent; its data is JSON. */
export const eventText = (data: unknown, { name, id }: EventHead): string =>
  `${id === undefined ? '' : `id: ${id}\n`}${name === undefined ? '' : `event: ${name}\n`}` +
  `data: ${JSON.stringify(data)}\n\n`;

/** What the lines of a stream mean. */
export type EventLines = {
  /** Takes an event: its data, and its name or an empty text. `end`: nothing behind it is read. */
  event(text: string, name: string): 'more' | 'end';
  /** A line of data came, and perhaps more of its event follows. */
  data?(line: string): void;
  /** A comment came: the server is at work. */
  comment?(): void;
  /** A line `error: …` came, which some servers write in place of an event. */
  error?(text: string): void;
};

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/**
 * Splits the bytes of a server-sent event stream into its lines and events.
 *
 * - A line ends with LF, CR or CRLF. How the bytes are cut into chunks changes nothing.
 * - An event whose last line is not followed by an empty one has not come whole, and is none.
 */
export class EventParser {
  readonly #sink: EventLines;
  /** Beginning of the current line. */
  #pieces: Buffer[] = [];
  /** The name and the lines of data of the current event. */
  #name = '';
  #data: string[] = [];
  #isFirstLine = true;
  /** The last byte was a carriage return: a line feed after it ends the same line. */
  #isAfterReturn = false;

  constructor(sink: EventLines) {
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

  /** A line without its end can still be a comment, data or an error. */
  end(): void {
    const line = this.#takeLine();
    if (line !== '') this.#readLine(line);
  }

  #takeLine(): string {
    const line = this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces);
    this.#pieces = [];
    const text = line?.toString('utf8') ?? '';
    const hasByteOrderMark = this.#isFirstLine && text.startsWith('\ufeff');
    this.#isFirstLine = false;
    return hasByteOrderMark ? text.slice(1) : text;
  }

  #readLine(line: string): 'more' | 'end' {
    if (line === '') return this.#endEvent();
    const [field = ''] = line.split(':', 1);
    const value = line.slice(field.length + (line[field.length + 1] === ' ' ? 2 : 1));
    if (field === '') this.#sink.comment?.();
    else if (field === 'event') this.#name = value;
    else if (field === 'error') this.#sink.error?.(value);
    else if (field === 'data') {
      this.#sink.data?.(value);
      this.#data.push(value);
    }
    return 'more';
  }

  #endEvent(): 'more' | 'end' {
    const [lines, name] = [this.#data, this.#name];
    [this.#data, this.#name] = [[], ''];
    return lines.length === 0 ? 'more' : this.#sink.event(lines.join('\n'), name);
  }
}
