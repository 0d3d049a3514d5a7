/** The HTTP face of a node: who may use it, its routes, its bodies and answers. */

import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { attempt } from '@pawl/agent/platform/attempt';
import { foreignHeader, loopbackHosts } from '@pawl/agent/platform/check-host-and-origin';
import { parseBounded } from '@pawl/agent/platform/untrusted-input';
import { ApiFault, toApiFault } from './api-fault.js';
import { findKey, type KeyUse, type ServeKey } from './keys.js';
import { endsTurns, readFork, readInput, readNewSession } from './request-shapes.js';
import type { ServedSessions } from './served-sessions.js';

type HttpOptions = {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** Further values of the header Host. */
  readonly names: readonly string[];
  readonly keys: readonly ServeKey[];
  readonly use: KeyUse;
  readonly routes: RouteParts;
  /** Whether the node takes new work; /health says so. */
  isDraining(): boolean;
  ended(method: string, route: string, status: number, seconds: number): void;
  report(fault: Error): void;
};

type NodeServer = {
  readonly address: string;
  /** Requests that are being answered. */
  readonly active: () => number;
  /** Takes no new connections. Resolves when all requests are answered; after `graceMs` the rest is cut off. */
  close(graceMs: number): Promise<void>;
};

const HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };
/** A client that still sends when it is refused gets this long to read why. */
const REFUSED_MS = 1_000;
const CONNECTIONS_MAX = 10_000;

const sendJson = (
  outgoing: ServerResponse,
  status: number,
  body: object,
  more: Record<string, string> = {},
): void => {
  outgoing.writeHead(status, { ...HEADERS, 'content-type': 'application/json', ...more });
  outgoing.end(`${JSON.stringify(body)}\n`);
};

/** A body that is not read to its end would stand before the next request, so the connection ends. */
const sendFault = (incoming: IncomingMessage, outgoing: ServerResponse, fault: ApiFault): void => {
  const { status, code, message, retryAfter } = fault;
  const isUnread = !incoming.complete;
  sendJson(
    outgoing,
    status,
    { error: { code, message } },
    {
      ...(isUnread ? { connection: 'close' } : {}),
      ...(retryAfter === null ? {} : { 'retry-after': String(retryAfter) }),
      ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    },
  );
  if (!isUnread) return;
  incoming.resume(); // so that the client comes to read the answer
  const cut = setTimeout(() => incoming.destroy(), REFUSED_MS).unref();
  incoming.once('close', () => clearTimeout(cut));
};

class Answers {
  readonly #options: HttpOptions;
  port = 0;
  active = 0;

  constructor(options: HttpOptions) {
    this.#options = options;
  }

  async answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const startedAt = performance.now();
    const { method = 'GET' } = incoming;
    let route = 'none';
    this.active += 1;
    const done = await attempt(() =>
      this.#route(incoming, outgoing, method, (name) => {
        route = name;
      }),
    );
    if (done.kind === 'fault') this.#refuse(incoming, outgoing, done.fault);
    this.active -= 1;
    const seconds = (performance.now() - startedAt) / 1_000;
    this.#options.ended(route === 'none' ? 'other' : method, route, outgoing.statusCode, seconds);
  }

  async #route(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    method: string,
    found: (route: string) => void,
  ): Promise<void> {
    const { host, names, keys, use, routes } = this.#options;
    checkPlace(incoming.headers, { host, port: this.port, names });
    const [path = ''] = (incoming.url ?? '').split('?', 1);
    if (path === '/health') {
      found(path);
      return this.#health(outgoing);
    }
    const key = admitKey(incoming.headers, keys, use);
    const { route, sessionId } = findRoute(method, path);
    found(route.path);
    const answer = await route.answer(routes, { key, sessionId, incoming, outgoing });
    if (answer !== null) sendJson(outgoing, answer.status, answer.body);
  }

  #health(outgoing: ServerResponse): void {
    const isDraining = this.#options.isDraining();
    sendJson(outgoing, isDraining ? 503 : 200, { status: isDraining ? 'draining' : 'ok' });
  }

  #refuse(incoming: IncomingMessage, outgoing: ServerResponse, error: Error): void {
    const fault = toApiFault(error);
    const isOurs = fault === null || fault.code === 'unavailable';
    if (isOurs && !outgoing.destroyed && !incoming.destroyed) this.#options.report(error);
    if (outgoing.headersSent) {
      outgoing.destroy();
      return;
    }
    const internal = 'The node failed to answer; its log says why. Try again, or tell the operator.';
    sendFault(incoming, outgoing, fault ?? new ApiFault('internal', internal));
  }
}

const listen = (server: Server, host: string, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port); // it listens on a port
    });
  });

export const openNodeServer = async (options: HttpOptions): Promise<NodeServer> => {
  const answers = new Answers(options);
  const handle = (incoming: IncomingMessage, outgoing: ServerResponse): void =>
    void answers.answer(incoming, outgoing);
  const server = createServer(handle);
  // Without it, Node tells a client to send its body before its token was looked at.
  server.on('checkContinue', handle);
  server.maxConnections = CONNECTIONS_MAX;
  server.on('error', options.report);
  answers.port = await listen(server, options.host, options.port);
  const { host } = options;
  return {
    address: `http://${host.includes(':') ? `[${host}]` : host}:${answers.port}`,
    active: () => answers.active,
    close: (graceMs) =>
      new Promise((resolve) => {
        const cut = setTimeout(() => server.closeAllConnections(), graceMs);
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
};

/** The requests of the API. */

export type ApiExchange = {
  readonly key: ServeKey;
  readonly sessionId: string;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
};

type JsonAnswer = { readonly status: number; readonly body: object };

type RouteParts = {
  readonly sessions: ServedSessions;
  /** Throws an ApiFault while the node shuts down. */
  refuseWhileDraining(): void;
  /** Answers with a stream until it ends. */
  stream(exchange: ApiExchange): Promise<void>;
  metrics(): string;
};

type Route = {
  readonly method: 'GET' | 'POST';
  /** `ID` stands for the id of a session. */
  readonly path: string;
  /** null: the answer was sent. */
  answer(parts: RouteParts, exchange: ApiExchange): Promise<JsonAnswer | null>;
};

const readBody = ({ incoming, outgoing, key }: ApiExchange): Promise<unknown> =>
  readJson(incoming, outgoing, key.limits.inputBytes);

const ok = (body: object): JsonAnswer => ({ status: 200, body });
const created = (body: object): JsonAnswer => ({ status: 201, body });

const routes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/sessions',
    async answer({ sessions, refuseWhileDraining }, exchange) {
      refuseWhileDraining();
      return created(await sessions.create(exchange.key, readNewSession(await readBody(exchange))));
    },
  },
  {
    method: 'GET',
    path: '/v1/sessions',
    answer: async ({ sessions }, { key }) => ok({ sessions: await sessions.list(key) }),
  },
  {
    method: 'GET',
    path: '/v1/sessions/ID',
    answer: async ({ sessions }, { key, sessionId }) => ok(await sessions.describe(key, sessionId)),
  },
  {
    method: 'POST',
    path: '/v1/sessions/ID/inputs',
    async answer({ sessions, refuseWhileDraining }, exchange) {
      const input = readInput(await readBody(exchange));
      if (!endsTurns(input)) refuseWhileDraining();
      return { status: 202, body: await sessions.send(exchange.key, exchange.sessionId, input) };
    },
  },
  {
    method: 'GET',
    path: '/v1/sessions/ID/events',
    async answer({ stream }, exchange) {
      await stream(exchange);
      return null;
    },
  },
  {
    method: 'POST',
    path: '/v1/sessions/ID/fork',
    async answer({ sessions, refuseWhileDraining }, exchange) {
      refuseWhileDraining();
      const { seq } = readFork(await readBody(exchange));
      return created(await sessions.fork(exchange.key, exchange.sessionId, seq));
    },
  },
  {
    method: 'POST',
    path: '/v1/sessions/ID/close',
    answer: async ({ sessions }, { key, sessionId }) => ok(await sessions.close(key, sessionId)),
  },
  {
    method: 'POST',
    path: '/v1/sessions/ID/move',
    async answer({ sessions, refuseWhileDraining }, { key, sessionId }) {
      refuseWhileDraining();
      return ok(await sessions.move(key, sessionId));
    },
  },
  {
    method: 'GET',
    path: '/metrics',
    async answer({ metrics }, { outgoing }) {
      outgoing.writeHead(200, {
        'content-type': 'application/openmetrics-text; version=1.0.0; charset=utf-8',
      });
      outgoing.end(metrics());
      return null;
    },
  },
];

const SESSION_PATH = /^\/v1\/sessions\/([\w-]{1,100})(\/[a-z]+)?$/;

type FoundRoute = { readonly route: Route; readonly sessionId: string };

/** The route of a request. Throws an ApiFault if there is none. */
const findRoute = (method: string, path: string): FoundRoute => {
  const [, sessionId = '', rest = ''] = SESSION_PATH.exec(path) ?? [];
  const wanted = sessionId === '' ? path : `/v1/sessions/ID${rest}`;
  const fitting = routes.filter((route) => route.path === wanted);
  const route = fitting.find((one) => one.method === method);
  if (route !== undefined) return { route, sessionId };
  const methods = fitting.map((one) => one.method).join(' or ');
  throw fitting.length > 0
    ? new ApiFault('wrongMethod', `This address takes ${methods}.`)
    : new ApiFault('notFound', 'There is nothing at this address. docs/serve.md lists the requests.');
};

/** Reads the JSON body of a request, within the limit of its key. */

const DEPTH_MAX = 100;

const megabytes = (bytes: number): string => `${Math.round((bytes / 1024 / 1024) * 10) / 10} MB`;

const tooLarge = (bytesMax: number): ApiFault =>
  new ApiFault(
    'tooLarge',
    `The body is larger than ${megabytes(bytesMax)}, the limit of this key. Put the text into a file of the workspace, and name the file.`,
  );

const readBytes = async (incoming: IncomingMessage, bytesMax: number): Promise<Buffer> => {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of incoming.iterator({ destroyOnReturn: false })) {
    pieces.push(piece as Buffer); // a stream without an encoding
    bytes += (piece as Buffer).length; // the same
    if (bytes > bytesMax) throw tooLarge(bytesMax);
  }
  return Buffer.concat(pieces);
};

/** The body as JSON; an empty body is an empty object. A client that waits for the word to go on (`Expect`) gets it first. */
const readJson = async (
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  bytesMax: number,
): Promise<unknown> => {
  if (Number(incoming.headers['content-length'] ?? 0) > bytesMax) throw tooLarge(bytesMax);
  if (incoming.headers.expect?.toLowerCase() === '100-continue') outgoing.writeContinue();
  const text = (await readBytes(incoming, bytesMax)).toString('utf8');
  if (text.trim() === '') return {};
  const type = incoming.headers['content-type'] ?? '';
  if (!/^application\/json\s*(;|$)/i.test(type))
    throw new ApiFault('wrongType', 'The body must be JSON. Send the header Content-Type: application/json.');
  const parsed = parseBounded(text, { depthMax: DEPTH_MAX, charactersMax: bytesMax });
  if (parsed.kind === 'ok') return parsed.value;
  const why = parsed.why === 'tooDeep' ? `it nests deeper than ${DEPTH_MAX} levels` : 'it is not JSON';
  throw new ApiFault(
    'badRequest',
    `The body can't be read: ${why}. docs/serve.md has an example of each request.`,
  );
};

/**
 * Who may use the node.
 *
 * 1. Host and Origin must be ours (net/check-host-and-origin.ts).
 * 2. Every request but /health needs the token of a key.
 */

type NodeAddress = {
  /** The address that the server listens on. */
  readonly host: string;
  readonly port: number;
  /** Further values of Host, such as the public name behind a proxy. */
  readonly names: readonly string[];
};

const EVERY_ADDRESS = ['0.0.0.0', '::'];

export const isLoopback = (host: string): boolean => ['127.0.0.1', 'localhost', '::1'].includes(host);

const inAddress = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** The values of Host that are accepted; null accepts any. */
const acceptedHosts = ({ host, port, names }: NodeAddress): readonly string[] | null => {
  if (EVERY_ADDRESS.includes(host) && names.length === 0) return null;
  return [
    ...loopbackHosts(port),
    `${inAddress(host)}:${port}`,
    ...names.flatMap((name) => [name, `${name}:${port}`]),
  ];
};

/** Rule 1. */
const checkPlace = (headers: IncomingHttpHeaders, address: NodeAddress): void => {
  const foreign = foreignHeader(headers, acceptedHosts(address));
  if (foreign === 'host')
    throw new ApiFault(
      'notAllowed',
      'The Host of this request is not a name of this node. Start it with --name for the name that you use.',
    );
  if (foreign === 'origin')
    throw new ApiFault(
      'notAllowed',
      'Requests of web pages are not answered. Send the request from a program.',
    );
};

/** Rule 2, and the key's limit on requests. */
const admitKey = (headers: IncomingHttpHeaders, keys: readonly ServeKey[], use: KeyUse): ServeKey => {
  const key = findKey(keys, headers.authorization);
  if (key === null)
    throw new ApiFault(
      'wrongToken',
      'The token is missing or wrong. Send the header Authorization: Bearer TOKEN.',
    );
  const waitSeconds = use.countRequest(key);
  if (waitSeconds > 0)
    throw new ApiFault(
      'tooManyRequests',
      `The key ${key.name} may send ${key.limits.requestsPerMinute} requests a minute. Try again in ${waitSeconds} s.`,
      waitSeconds,
    );
  return key;
};
