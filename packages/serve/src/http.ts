/**
 * The HTTP interface of a node, a process that serves sessions.
 *
 * From top to bottom: the server and its answers; the routes; bodies of requests; and who is
 * admitted: each request but /health needs the token of a key.
 */

import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { attempt } from '@pawl/agent/platform/attempt';
import { foreignHeader, loopbackHosts } from '@pawl/agent/platform/check-host-and-origin';
import { listenOn, readBytes } from '@pawl/agent/platform/http';
import { parseBounded } from '@pawl/agent/platform/untrusted-input';
import * as v from 'valibot';
import { ApiFault, toApiFault } from './api-fault.js';
import { type AuditedRequest, type AuditLog, auditedInput } from './audit-log.js';
import { findKey, type KeyUse, type ServeKey } from './keys.js';
import type { DescribedRoute } from './open-api.js';
import {
  afterSchema,
  endsTurns,
  forkSchema,
  inputSchema,
  newSessionSchema,
  pageSchema,
  readInput,
  readRequestId,
  readShape,
} from './request-shapes.js';
import type { ServedSessions } from './served-sessions.js';

type HttpOptions = {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** Listens on this Unix socket instead. */
  readonly socketPath?: string;
  /** Further values of the header Host. */
  readonly names: readonly string[];
  /** The keys as they are now. */
  keys(): readonly ServeKey[];
  readonly audit: AuditLog;
  /** Counts the requests of each key. */
  readonly use: KeyUse;
  readonly routes: RouteParts;
  /** Whether the node shuts down and takes no new work; /health says so. */
  isDraining(): boolean;
  /** A request was answered. */
  ended(method: string, route: string, status: number, seconds: number): void;
  report(fault: Error): void;
};

type NodeServer = {
  readonly address: string;
  /** Requests that are being answered. */
  readonly active: () => number;
  /**
   * Takes no new connections. Resolves when all requests are answered; after `graceMs` the rest is
   * cut off.
   */
  close(graceMs: number): Promise<void>;
};

/** Listens. Rejects if the address can't be used. */
export const openNodeServer = async (options: HttpOptions): Promise<NodeServer> => {
  const answers = new Answers(options);
  const handle = (incoming: IncomingMessage, outgoing: ServerResponse): void =>
    void answers.answer(incoming, outgoing);
  const server = createServer(handle);
  // Without it, Node tells a client to send its body before its token was looked at.
  server.on('checkContinue', handle);
  server.maxConnections = CONNECTIONS_MAX;
  server.on('error', options.report);
  const { host, port, socketPath } = options;
  answers.port = await listenOn(
    server,
    socketPath === undefined ? { host, port } : { path: socketPath },
  );
  return {
    address: `http://${inAddress(host)}:${answers.port}`,
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

/**
 * A body that is not read to its end would stand before the next request, so the connection ends.
 */
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

/** Answers requests, and counts those that are being answered. */
class Answers {
  readonly #options: HttpOptions;
  /** The port that the server listens on; known once it listens. */
  port = 0;
  active = 0;

  constructor(options: HttpOptions) {
    this.#options = options;
  }

  /** Answers a request, and reports its route and duration. */
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
    // Without a route the method can be any text: it would be a name of its own among the figures.
    this.#options.ended(route === 'none' ? 'other' : method, route, outgoing.statusCode, seconds);
  }

  /** Checks who asks, and runs the route. `setRoute` gets its name once there is one. */
  async #route(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    method: string,
    setRoute: (route: string) => void,
  ): Promise<void> {
    const { host, names, keys, audit, use, routes } = this.#options;
    checkHostAndOrigin(incoming.headers, { host, port: this.port, names });
    const [path = '', ...search] = (incoming.url ?? '').split('?');
    if (path === '/health') {
      setRoute(path);
      return this.#health(outgoing);
    }
    const key = admitKey(incoming.headers, keys(), use);
    const { route, path: template, sessionId } = findRoute(method, path);
    setRoute(template);
    const query = readQuery(search.join('?'), Object.keys(route.query?.entries ?? {}));
    const requestId = method === 'POST' ? readRequestId(incoming.headers['idempotency-key']) : null;
    const body = route.body === undefined ? null : await readBody(incoming, outgoing, key);
    const exchange = { key, sessionId, query, requestId, body, incoming, outgoing };
    const answering = async () => {
      if (route.beginsWork === 'yes') routes.refuseWhileDraining();
      return route.answer(routes, exchange);
    };
    const { status } = route;
    const answer =
      method === 'POST'
        ? await audit.around(auditedRequest(template, exchange), answering, status)
        : await answering();
    if (answer !== null) sendJson(outgoing, status, answer);
  }

  #health(outgoing: ServerResponse): void {
    const isDraining = this.#options.isDraining();
    sendJson(outgoing, isDraining ? 503 : 200, { status: isDraining ? 'draining' : 'ok' });
  }

  /** Answers with the fault; reports it if it is the node's own. */
  #refuse(incoming: IncomingMessage, outgoing: ServerResponse, error: Error): void {
    const fault = toApiFault(error);
    const isNodesFault =
      fault === null || fault.code === 'unavailable' || fault.code === 'unreadable';
    if (isNodesFault && !outgoing.destroyed) this.#options.report(error);
    if (outgoing.headersSent) {
      outgoing.destroy();
      return;
    }
    const internal =
      'The node failed to answer; its log says why. Try again, or tell the operator.';
    sendFault(incoming, outgoing, fault ?? new ApiFault('internal', internal));
  }
}

// ---- The requests of the API ----

export type ApiExchange = {
  readonly key: ServeKey;
  readonly sessionId: string;
  /** The parameters of the address, which are among those that the route knows. */
  readonly query: Readonly<Record<string, string>>;
  /** The header `Idempotency-Key` of a POST: it counts once, however often it is sent. */
  readonly requestId: string | null;
  /** null: the route takes none. */
  readonly body: unknown;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
};

/** A request that changes something, for the audit log: what is done, without its texts. */
const auditedRequest = (
  template: string,
  { key, sessionId, requestId, body }: Omit<ApiExchange, 'incoming' | 'outgoing'>,
): AuditedRequest => ({
  key: key.name,
  ...(template.endsWith('/inputs')
    ? auditedInput(body)
    : { action: template === '/v1/sessions' ? 'create' : (template.split('/').at(-1) ?? '') }),
  ...(sessionId === '' ? {} : { sessionId }),
  ...(requestId === null ? {} : { idempotencyKey: requestId }),
});

type RouteParts = {
  readonly sessions: ServedSessions;
  /** Throws an ApiFault while the node shuts down. */
  refuseWhileDraining(): void;
  /** Answers with a stream until it ends. */
  stream(exchange: ApiExchange): Promise<void>;
  metrics(): string;
};

type Route = DescribedRoute & {
  /** It is refused while the node shuts down. */
  readonly beginsWork?: 'yes';
  /** The body of the answer; null: it was sent. */
  answer(parts: RouteParts, exchange: ApiExchange): Promise<object | null>;
};

/** By method and path; `ID` stands for the id of a session. */
export const routes: Readonly<Record<string, Route>> = {
  'POST /v1/sessions': {
    about: 'Creates a session in a workspace.',
    status: 201,
    body: newSessionSchema,
    beginsWork: 'yes',
    answer: async ({ sessions }, { key, body, requestId }) =>
      sessions.create(key, readShape(newSessionSchema, body), requestId),
  },
  'GET /v1/sessions': {
    about: 'Lists the sessions of the key in pages, the newest first.',
    status: 200,
    query: pageSchema,
    answer: async ({ sessions }, { key, query }) =>
      sessions.list(key, readShape(pageSchema, query)),
  },
  'GET /v1/sessions/ID': {
    about: 'Tells where a session stands, what it cost, and what it waits for.',
    status: 200,
    answer: ({ sessions }, { key, sessionId }) => sessions.describe(key, sessionId),
  },
  'POST /v1/sessions/ID/inputs': {
    about: 'Sends an input. When it is answered, the input is durable and applied.',
    status: 202,
    body: inputSchema,
    async answer({ sessions, refuseWhileDraining }, { key, sessionId, body, requestId }) {
      const { input, code } = readInput(body, key);
      if (!endsTurns(input)) refuseWhileDraining();
      const once = requestId === null ? input : { ...input, clientRequestId: requestId };
      return sessions.send(key, sessionId, once, code);
    },
  },
  'GET /v1/sessions/ID/events': {
    about: 'Streams all that happens, from an entry on.',
    status: 200,
    answerType: 'text/event-stream',
    query: afterSchema,
    async answer({ stream }, exchange) {
      await stream(exchange);
      return null;
    },
  },
  'POST /v1/sessions/ID/fork': {
    about: 'Creates a session with the conversation up to an entry.',
    status: 201,
    body: forkSchema,
    beginsWork: 'yes',
    answer: async ({ sessions }, { key, sessionId, body, requestId }) =>
      sessions.fork(key, sessionId, readShape(forkSchema, body).seq, requestId),
  },
  'POST /v1/sessions/ID/close': {
    about: 'Closes a session, and removes its worktree if nothing is lost by it.',
    status: 200,
    answer: ({ sessions }, { key, sessionId }) => sessions.close(key, sessionId),
  },
  'POST /v1/sessions/ID/move': {
    about: 'Gives a session whose worktree is gone a fresh one.',
    status: 200,
    beginsWork: 'yes',
    answer: ({ sessions }, { key, sessionId }) => sessions.move(key, sessionId),
  },
  'POST /v1/sessions/ID/own': {
    about: 'Answers what only the owner of a detached session asks.',
    status: 200,
    body: v.unknown(),
    answer: ({ sessions }, { key, sessionId, body }) => sessions.own(key, sessionId, body),
  },
  'GET /v1/openapi.json': {
    about: 'This description.',
    status: 200,
    answer: async () => (await import('./open-api.js')).openApi(routes),
  },
  'GET /metrics': {
    about: 'Figures of the node and of its keys, for the key of an operator.',
    status: 200,
    answerType: 'application/openmetrics-text',
    async answer({ metrics }, { key, outgoing }) {
      if (key.isOperator !== 'yes')
        throw new ApiFault(
          'notAllowed',
          `The figures are for an operator: write "operator": true to the key ${key.name} in ` +
            'the file of keys.',
        );
      const type = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
      outgoing.writeHead(200, { 'content-type': type }).end(metrics());
      return null;
    },
  },
};

/** The parameters of an address. Throws an ApiFault for one that is unknown or stands twice. */
const readQuery = (search: string, known: readonly string[]): Readonly<Record<string, string>> => {
  const query = new URLSearchParams(search);
  const names = [...query.keys()];
  const unknown = names.find((name) => !known.includes(name));
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (unknown === undefined && twice !== undefined)
    throw new ApiFault('badRequest', `The parameter ${twice} stands twice. Name it once.`);
  if (unknown === undefined) return Object.fromEntries(query);
  const takes = known.length === 0 ? 'no parameters' : known.join(', ');
  throw new ApiFault('badRequest', `This address takes ${takes}; not ${unknown.slice(0, 50)}.`);
};

const SESSION_PATH = /^\/v1\/sessions\/([\w-]{1,100})(\/[a-z]+)?$/;

type RouteMatch = { readonly route: Route; readonly path: string; readonly sessionId: string };

/** The route of a request. Throws an ApiFault if there is none. */
const findRoute = (method: string, requestPath: string): RouteMatch => {
  const [, sessionId = '', rest = ''] = SESSION_PATH.exec(requestPath) ?? [];
  const path = sessionId === '' ? requestPath : `/v1/sessions/ID${rest}`;
  const route = Object.entries(routes).find(([name]) => name === `${method} ${path}`)?.[1];
  if (route !== undefined) return { route, path, sessionId };
  const methods = ['POST', 'GET'].filter((one) => Object.hasOwn(routes, `${one} ${path}`));
  throw methods.length > 0
    ? new ApiFault('wrongMethod', `This address takes ${methods.join(' or ')}.`)
    : new ApiFault(
        'notFound',
        'There is nothing at this address. docs/build/serve.md lists the requests.',
      );
};

// ---- Bodies ----

/** A body that nests deeper is refused. */
const DEPTH_MAX = 100;

const tooLarge = (bytesMax: number): ApiFault => {
  const megabytes = Math.round((bytesMax / 1024 / 1024) * 10) / 10;
  return new ApiFault(
    'tooLarge',
    `The body is larger than ${megabytes} MB, the limit of this key. Put the text into a ` +
      'file of the workspace, and name the file.',
  );
};

/**
 * The body as JSON, within the limit of the key; an empty body is an empty object. A client that
 * waits for the word to go on (`Expect`) gets it first.
 */
const readBody = async (
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { limits: { inputBytes: bytesMax } }: ServeKey,
): Promise<unknown> => {
  const { headers } = incoming;
  if (Number(headers['content-length'] ?? 0) > bytesMax) throw tooLarge(bytesMax);
  if (headers.expect?.toLowerCase() === '100-continue') outgoing.writeContinue();
  const bytes = await readBytes(incoming, bytesMax);
  if (bytes === null) throw tooLarge(bytesMax);
  const text = bytes.toString('utf8');
  if (text.trim() === '') return {};
  if (!/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? ''))
    throw new ApiFault(
      'wrongType',
      'The body must be JSON. Send the header Content-Type: application/json.',
    );
  const parsed = parseBounded(text, { depthMax: DEPTH_MAX, charactersMax: bytesMax });
  if (parsed.kind === 'ok') return parsed.value;
  const why =
    parsed.why === 'tooDeep' ? `it nests deeper than ${DEPTH_MAX} levels` : 'it is not JSON';
  throw new ApiFault(
    'badRequest',
    `The body can't be read: ${why}. docs/build/serve.md has an example of each request.`,
  );
};

// ---- Who is admitted ----

/**
 * Host and Origin must be ours: no web page reaches the node under a foreign name or from a
 * browser.
 */
const checkHostAndOrigin = (headers: IncomingHttpHeaders, address: NodeAddress): void => {
  const foreign = foreignHeader(headers, acceptedHosts(address));
  if (foreign === 'host')
    throw new ApiFault(
      'notAllowed',
      'The Host of this request is not a name of this node. Start it with --name for the ' +
        'name that you use.',
    );
  if (foreign === 'origin')
    throw new ApiFault(
      'notAllowed',
      'Requests of web pages are not answered. Send the request from a program.',
    );
};

/** Every request but /health needs the token of a key, and stays within its limit on requests. */
const admitKey = (
  headers: IncomingHttpHeaders,
  keys: readonly ServeKey[],
  use: KeyUse,
): ServeKey => {
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
      `The key ${key.name} may send ${key.limits.requestsPerMinute} requests a minute. Try ` +
        `again in ${waitSeconds} s.`,
      waitSeconds,
    );
  return key;
};

type NodeAddress = Pick<HttpOptions, 'host' | 'port' | 'names'>;

const EVERY_ADDRESS = ['0.0.0.0', '::'];

/** Whether only this computer reaches the host. */
export const isLoopback = (host: string): boolean =>
  /^(localhost|::1|127(\.\d{1,3}){3})$/.test(host);

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
