import type { IncomingMessage, ServerResponse } from 'node:http';
import { endsTurns, readFork, readInput, readNewSession } from '../request-shapes.js';
import type { ServedSessions } from '../served-sessions.js';
import { ApiFault } from './api-fault.js';
import type { ServeKey } from './keys.js';
import { readJson } from './request-body.js';

/** The requests of the API. */

export type ApiExchange = {
  readonly key: ServeKey;
  readonly sessionId: string;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
};

export type JsonAnswer = { readonly status: number; readonly body: object };

export type RouteParts = {
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

const bodyOf = ({ incoming, outgoing, key }: ApiExchange): Promise<unknown> =>
  readJson(incoming, outgoing, key.limits.inputBytes);

const ok = (body: object): JsonAnswer => ({ status: 200, body });
const created = (body: object): JsonAnswer => ({ status: 201, body });

const routes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/sessions',
    async answer({ sessions, refuseWhileDraining }, exchange) {
      refuseWhileDraining();
      return created(await sessions.create(exchange.key, readNewSession(await bodyOf(exchange))));
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
      const input = readInput(await bodyOf(exchange));
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
      const { seq } = readFork(await bodyOf(exchange));
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

export type FoundRoute = { readonly route: Route; readonly sessionId: string };

/** The route of a request. Throws an ApiFault if there is none. */
export const findRoute = (method: string, path: string): FoundRoute => {
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
