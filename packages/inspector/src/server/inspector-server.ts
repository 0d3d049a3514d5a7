/**
 * The server behind the inspector's page: on this computer only.
 *
 * It writes nothing. It passes answers to questions of detached sessions (each in a process of its
 * own) to these processes.
 */

import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { isSessionId } from '@pawl/agent/journal/state-folder';
import { foreignHeader, loopbackHosts } from '@pawl/agent/platform/check-host-and-origin';
import { eventText, listenOn, readBytes, waitForDrain } from '@pawl/agent/platform/http';
import { isSameSecret } from '@pawl/agent/platform/untrusted-input';
import type { LiveSessions } from '../page-data-types.js';
import { InspectedSessions, type InspectorPlace } from './inspected-sessions.js';
import { readPolicy } from './page-html.js';

export type Inspector = {
  /** The address of the list of sessions, with its token. */
  readonly address: string;
  addressOf(sessionId: string): string;
  close(): Promise<void>;
};

type InspectorOptions = InspectorPlace & {
  /** Absent: the page shows no sessions of other processes. */
  readonly live?: LiveSessions;
  /** The built page. */
  readonly page: string;
};

/** Starts the server. It keeps no process alive by itself. */
export const startInspector = async (options: InspectorOptions): Promise<Inspector> => {
  const token = randomBytes(24).toString('base64url');
  const pages = new InspectorPages(options);
  let port = 0;
  const server = createServer((request, response) => {
    const admission = admit(request, port, token);
    if (admission.kind === 'refused') {
      const { status, why } = admission;
      return send(response, { status, type: 'text/plain', text: `${why}\n` }, NO_PAGE);
    }
    // Nothing is lost: the page shows the failure, and every answer can be asked for again.
    return void pages.answer(admission.path, request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else {
        const message = error instanceof Error ? error.message : String(error);
        const text = `${options.redactor.clean(message)}\n`;
        send(response, { status: 422, type: 'text/plain', text }, NO_PAGE);
      }
    });
  });
  port = await listenOn(server, { host: '127.0.0.1', port: 0 });
  server.unref();
  const address = `http://127.0.0.1:${port}/${token}/`;
  return {
    address,
    addressOf: (sessionId) => `${address}session/${sessionId}`,
    close: () =>
      new Promise((resolve) => {
        pages.close();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

// ---- The pages and the data ----

const HEADERS = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
};

type Answer = {
  readonly status: number;
  readonly type: 'text/html' | 'text/plain' | 'application/json';
  readonly text: string;
};

const json = (value: unknown): Answer => ({
  status: 200,
  type: 'application/json',
  text: JSON.stringify(value),
});
const NOT_FOUND: Answer = {
  status: 404,
  type: 'text/plain',
  text: 'There is nothing at this address.\n',
};

const send = (response: ServerResponse, { status, type, text }: Answer, policy: string): void => {
  response.writeHead(status, {
    ...HEADERS,
    'content-type': `${type}; charset=utf-8`,
    'content-security-policy': policy,
  });
  response.end(text);
};

/** The policy of data: it allows nothing. */
const NO_PAGE = "default-src 'none'; frame-ancestors 'none'";

/** The reader's last seq after a broken connection. */
const readSeq = ({ headers }: IncomingMessage): number => {
  const seq = Number(headers['last-event-id'] ?? 0);
  return Number.isSafeInteger(seq) && seq > 0 ? seq : 0;
};

/** Answers the requests that were admitted. */
class InspectorPages {
  readonly #sessions: InspectedSessions;
  readonly #page: Answer;
  readonly #policy: string;
  readonly #live: LiveSessions | null;
  readonly #closing = new AbortController();

  constructor({ page, live, ...place }: InspectorOptions) {
    this.#live = live ?? null;
    this.#sessions = new InspectedSessions(place);
    this.#page = { status: 200, type: 'text/html', text: page };
    this.#policy = `${readPolicy(page)}; frame-ancestors 'none'`;
  }

  /** Ends all feeds. */
  close(): void {
    this.#closing.abort();
  }

  async answer(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, first = '', sessionId = '', part = ''] = path.split('/');
    if (first === '' || first === 'session') return send(response, this.#page, this.#policy);
    if (first === 'sessions') return send(response, json(await this.#sessions.list()), NO_PAGE);
    if (first === 'live') return send(response, await this.#answerLive(path, request), NO_PAGE);
    if (first !== 'data' || !isSessionId(sessionId)) return send(response, NOT_FOUND, NO_PAGE);
    switch (part) {
      case 'session':
        return send(response, json(await this.#sessions.session(sessionId)), NO_PAGE);
      case 'summary':
        return send(response, json(await this.#sessions.summary(sessionId)), NO_PAGE);
      case 'feed':
        return this.#feed(sessionId, request, response);
      default:
        return send(response, NOT_FOUND, NO_PAGE);
    }
  }

  /** GET: the list. POST /live/ID: an answer to a question of a session. */
  async #answerLive(path: string, request: IncomingMessage): Promise<Answer> {
    const [, , sessionId = ''] = path.split('/');
    const isAnswer = request.method === 'POST';
    if (!isAnswer) return json(this.#sessions.clean((await this.#live?.list()) ?? []));
    if (this.#live === null || !isSessionId(sessionId)) return NOT_FOUND;
    await this.#live.answer(sessionId, await readJson(request));
    return json({});
  }

  /** Server-sent events: each message holds some entries, and its id is the seq of the last one. */
  async #feed(
    sessionId: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, this.#closing.signal]);
    let seq = readSeq(request);
    response.writeHead(200, {
      ...HEADERS,
      'content-type': 'text/event-stream; charset=utf-8',
      'content-security-policy': NO_PAGE,
    });
    response.flushHeaders();
    for await (const piece of this.#sessions.feed(sessionId, seq, signal)) {
      if (piece.kind === 'restart') seq = 0;
      if (piece.kind === 'entries') seq = piece.entries.at(-1)?.seq ?? seq;
      const flowing = response.write(eventText(piece, { id: seq }));
      if (!flowing) await waitForDrain(response);
    }
    response.end();
  }
}

const BODY_BYTES_MAX = 10_000;

const readJson = async (request: IncomingMessage): Promise<unknown> => {
  const bytes = await readBytes(request, BODY_BYTES_MAX);
  if (bytes === null) throw new Error('The answer is too long.');
  return JSON.parse(bytes.toString('utf8'));
};

// ---- Who is admitted ----

/** `path`: what follows the token, beginning with a slash. */
type RequestAdmission =
  | { readonly kind: 'admitted'; readonly path: string }
  | { readonly kind: 'refused'; readonly status: 403 | 405; readonly why: string };

const refused = (why: string, status: 403 | 405 = 403): RequestAdmission => ({
  kind: 'refused',
  status,
  why,
});

/**
 * Admits only readers who have the address with its token.
 *
 * 1. Host and Origin must be ours, so that no web page reads sessions through the user's browser.
 * 2. The path begins with the token.
 * 3. Only an answer to a question is sent with POST, as JSON, by our own page.
 */
const admit = (
  { method, url = '', headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>,
  port: number,
  token: string,
): RequestAdmission => {
  const [, secret = '', ...rest] = (url.split('?', 1)[0] ?? '').split('/');
  const isAnswer = method === 'POST' && rest[0] === 'live' && rest[1] !== undefined;
  if (method !== 'GET' && !isAnswer)
    return refused('Use GET. Only an answer to a question is sent with POST, to live/ID.', 405);
  const foreign = foreignHeader(headers, loopbackHosts(port));
  if (foreign === 'host') return refused('The host of this address is not this computer.');
  if (foreign === 'origin') return refused('Pages of other servers may not read the inspector.');
  const isOurs = headers.origin !== undefined && headers['content-type'] === 'application/json';
  if (isAnswer && !isOurs) return refused('Only the page of the inspector sends answers.');
  if (!isSameSecret(secret, token))
    return refused('The token in the address is wrong. Use the address that pawl inspect printed.');
  return { kind: 'admitted', path: `/${rest.join('/')}` };
};
