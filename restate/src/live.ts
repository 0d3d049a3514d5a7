import { timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Entry, type Event, EventParser, eventText } from 'pawl/engine';
import type { ShownText } from './session-records.js';

/**
 * The channel of messages that are not stored: text as it streams, output of running commands,
 * notice of new entries. Lost messages are read from the engine later, so nothing depends on them.
 */
export type LiveMessage =
  | { readonly kind: 'delta'; readonly event: Event }
  | { readonly kind: 'entries'; readonly entries: readonly Entry[] };

type SeeLive = (message: LiveMessage) => void;

/** Finds the text of a reply that streams on this node; null if it does not. */
type FindShown = (sessionId: string, requestId: string) => ShownText | null;

export type LiveChannel = {
  publish(sessionId: string, message: LiveMessage): void;
  /** The returned function ends it. */
  subscribe(sessionId: string, see: SeeLive): () => void;
  /** Asks all nodes for the text of a reply. Null: no node that answers makes it. */
  shownText(sessionId: string, requestId: string): Promise<ShownText | null>;
  /** Answers such questions with what is found here. */
  answer(find: FindShown): void;
  close(): Promise<void>;
};

/** The subscribers of one process. */
class Subscribers {
  readonly #bySession = new Map<string, Set<SeeLive>>();

  add(sessionId: string, see: SeeLive): () => void {
    const all = this.#bySession.get(sessionId) ?? new Set();
    this.#bySession.set(sessionId, all);
    all.add(see);
    return () => {
      all.delete(see);
      if (all.size === 0) this.#bySession.delete(sessionId);
    };
  }

  tell(sessionId: string, message: LiveMessage): void {
    for (const see of this.#bySession.get(sessionId) ?? []) see(message);
  }
}

/** For nodes and users in one process. */
export const localLive = (): LiveChannel => {
  const subscribers = new Subscribers();
  const finders: FindShown[] = [];
  return {
    publish: (sessionId, message) => subscribers.tell(sessionId, message),
    subscribe: (sessionId, see) => subscribers.add(sessionId, see),
    shownText: async (sessionId, requestId) => {
      for (const find of finders) {
        const shown = find(sessionId, requestId);
        if (shown !== null) return shown;
      }
      return null;
    },
    answer: (find) => void finders.push(find),
    close: async () => undefined,
  };
};

// The live channel between processes: each node answers by HTTP, and whoever watches a session
// listens to all nodes.

export type HttpLiveOptions = {
  /** The addresses of the other nodes, for example `http://n2:7401`. */
  readonly peers: readonly string[];
  /** A secret that all processes share. */
  readonly token: string;
  /** Where this node answers. Absent for a process that only watches. */
  readonly listen?: { readonly host?: string; readonly port: number };
};

/**
 * A reader that is this far behind is sent away; it comes again and reads what it missed from the
 * engine.
 */
const BEHIND_MAX = 4_000_000;
const ASK_MS = 250;
const AGAIN_MS = 500;

const isAllowed = ({ headers }: IncomingMessage, token: string): boolean => {
  const header = Buffer.from(headers.authorization ?? '');
  const expected = Buffer.from(`Bearer ${token}`);
  return header.length === expected.length && timingSafeEqual(header, expected);
};

const stream = (response: ServerResponse, subscribers: Subscribers, sessionId: string): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.write(':\n\n');
  const end = subscribers.add(sessionId, (message) => {
    if (response.writableLength > BEHIND_MAX) response.destroy();
    else response.write(eventText(message, {}));
  });
  response.on('close', end);
};

const answerWith = (subscribers: Subscribers, find: FindShown, token: string) => {
  return (request: IncomingMessage, response: ServerResponse): void => {
    if (!isAllowed(request, token)) {
      response.writeHead(401).end('the token is wrong');
      return;
    }
    const [, what, sessionId = '', requestId = ''] = (request.url ?? '')
      .split('/')
      .map(decodeURIComponent);
    if (what === 'live') stream(response, subscribers, sessionId);
    else if (what === 'shown') {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(find(sessionId, requestId)));
    } else response.writeHead(404).end();
  };
};

/** Reads the messages of a stream until it ends. */
const readMessages = async (body: AsyncIterable<Uint8Array>, see: SeeLive): Promise<void> => {
  const parser = new EventParser({
    event(text) {
      see(JSON.parse(text) as LiveMessage); // written by `stream`
      return 'more';
    },
  });
  for await (const bytes of body) parser.add(bytes);
};

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    timer.unref();
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

/**
 * Listens to one node until the signal, again after each interruption. Missed messages are read
 * from the engine.
 */
const listenTo = async (
  peer: string,
  sessionId: string,
  token: string,
  see: SeeLive,
  signal: AbortSignal,
) => {
  while (!signal.aborted) {
    try {
      const url = `${peer}/live/${encodeURIComponent(sessionId)}`;
      const response = await fetch(url, { headers: { authorization: `Bearer ${token}` }, signal });
      if (response.ok && response.body !== null) await readMessages(response.body, see);
    } catch {
      // the node is gone, or the signal came: the loop decides
    }
    await pause(AGAIN_MS, signal);
  }
};

const askPeer = async (peer: string, path: string, token: string): Promise<ShownText | null> => {
  try {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${peer}${path}`, {
      headers,
      signal: AbortSignal.timeout(ASK_MS),
    });
    // written by `answerWith`
    return response.ok ? ((await response.json()) as ShownText | null) : null;
  } catch {
    return null; // a node that is gone shows nothing any more
  }
};

const open = async (
  server: Server,
  { host = '127.0.0.1', port }: NonNullable<HttpLiveOptions['listen']>,
) => {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return (server.address() as AddressInfo).port; // it listens on a port, not on a socket file
};

export type HttpLive = LiveChannel & {
  /** 0 without `listen`. */
  readonly port: number;
};

export const httpLive = async ({ peers, token, listen }: HttpLiveOptions): Promise<HttpLive> => {
  const subscribers = new Subscribers();
  const finders: FindShown[] = [];
  const find: FindShown = (sessionId, requestId) => {
    for (const one of finders) {
      const shown = one(sessionId, requestId);
      if (shown !== null) return shown;
    }
    return null;
  };
  const server = createServer(answerWith(subscribers, find, token));
  const port = listen === undefined ? 0 : await open(server, listen);
  const closing = new AbortController();
  return {
    port,
    publish: (sessionId, message) => subscribers.tell(sessionId, message),
    subscribe(sessionId, see) {
      const ending = new AbortController();
      const signal = AbortSignal.any([ending.signal, closing.signal]);
      const end = subscribers.add(sessionId, see);
      for (const peer of peers) void listenTo(peer, sessionId, token, see, signal);
      return () => {
        end();
        ending.abort();
      };
    },
    async shownText(sessionId, requestId) {
      const here = find(sessionId, requestId);
      if (here !== null) return here;
      const path = `/shown/${encodeURIComponent(sessionId)}/${encodeURIComponent(requestId)}`;
      const answers = await Promise.all(peers.map((peer) => askPeer(peer, path, token)));
      return answers.find((answer) => answer !== null) ?? null;
    },
    answer: (one) => void finders.push(one),
    close: () =>
      new Promise((resolve) => {
        closing.abort();
        server.closeAllConnections();
        if (listen === undefined) resolve();
        else server.close(() => resolve());
      }),
  };
};
