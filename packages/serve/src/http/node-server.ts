import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { attempt } from '@pawl/agent/session/attempt';
import { admitKey, checkPlace } from './admission.js';
import { ApiFault, apiFaultOf } from './api-fault.js';
import type { KeyUse } from './key-rate-limits.js';
import type { ServeKey } from './keys.js';
import { findRoute, type RouteParts } from './routes.js';

/** The HTTP server of a node: admission, routes, answers. It knows nothing of sessions. */

export type HttpOptions = {
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

export type NodeServer = {
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
    const fault = apiFaultOf(error);
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
