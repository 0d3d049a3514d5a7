import { timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { attempt, type Entry, type Event, EventParser, eventText } from 'pawl/engine';
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

/** What the nodes tell each other of themselves. */
export type NodeFacts = {
  readonly name: string;
  readonly machineVersion: number;
  /** Its version, as the engine's addresses name it. */
  readonly deployment: string;
  /** The port of what any node of its version can do. */
  readonly sharedPort: number;
};

/** A node that works now. `host`: where the others reach it; null: in this process. */
export type KnownNode = NodeFacts & { readonly host: string | null };

export type LiveChannel = {
  /**
   * Tells the other nodes of this one, and hears of them from now on: `changed` is called whenever
   * one has come or gone. Resolves when each was asked once; the returned function takes leave.
   */
  join(node: NodeFacts, changed: () => void): Promise<() => void>;
  /** The nodes that work now. A node is known as long as its process holds its connection. */
  nodes(): readonly KnownNode[];
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
  const joined = new Set<NodeFacts>();
  return {
    async join(node) {
      joined.add(node);
      return () => void joined.delete(node);
    },
    nodes: () => [...joined].map((node) => ({ ...node, host: null })),
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

const STREAM = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' } as const;

const stream = (response: ServerResponse, subscribers: Subscribers, sessionId: string): void => {
  response.writeHead(200, STREAM);
  response.write(':\n\n');
  const end = subscribers.add(sessionId, (message) => {
    if (response.writableLength > BEHIND_MAX) response.destroy();
    else response.write(eventText(message, {}));
  });
  response.on('close', end);
};

/** A sign of life. A node of which nothing comes for three times as long is gone. */
const ALIVE_MS = 3_000;

/** Who listens for as long as this node is there. */
class Presence {
  readonly #listeners = new Set<ServerResponse>();
  node: NodeFacts | null = null;

  listen(response: ServerResponse): void {
    if (this.node === null) return void response.writeHead(404).end();
    response.writeHead(200, STREAM);
    response.write(eventText(this.node, {}));
    const living = setInterval(() => response.write(':\n\n'), ALIVE_MS);
    this.#listeners.add(response);
    response.on('close', () => {
      clearInterval(living);
      this.#listeners.delete(response);
    });
  }

  leave(): void {
    this.node = null;
    for (const response of this.#listeners) response.destroy();
  }
}

const answerWith = (
  subscribers: Subscribers,
  find: FindShown,
  presence: Presence,
  token: string,
) => {
  return (request: IncomingMessage, response: ServerResponse): void => {
    if (!isAllowed(request, token)) {
      response.writeHead(401).end('the token is wrong');
      return;
    }
    const [, what, sessionId = '', requestId = ''] = (request.url ?? '')
      .split('/')
      .map(decodeURIComponent);
    if (what === 'live') stream(response, subscribers, sessionId);
    else if (what === 'node') presence.listen(response);
    else if (what === 'shown') {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(find(sessionId, requestId)));
    } else response.writeHead(404).end();
  };
};

/** Reads the messages of a stream until it ends. */
const readMessages = async <T>(
  body: AsyncIterable<Uint8Array>,
  see: (message: T) => void,
): Promise<void> => {
  const parser = new EventParser({
    event(text) {
      see(JSON.parse(text) as T); // written by `stream`, or `Presence`
      return 'more';
    },
  });
  for await (const bytes of body) parser.add(bytes);
};

/** Ends early with the signal. Leaves no listener at it, which may live as long as the node. */
const pause = async (ms: number, signal: AbortSignal): Promise<void> => {
  await attempt(() => sleep(ms, null, { signal, ref: false }));
};

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
      if (response.ok && response.body !== null)
        await readMessages<LiveMessage>(response.body, see);
    } catch {
      // the node is gone, or the signal came: the loop decides
    }
    await pause(AGAIN_MS, signal);
  }
};

/** Hears of one node until the signal comes. `see`: gets what it says, and null when it is gone. */
const hearOf = async (
  peer: string,
  token: string,
  see: (node: KnownNode | null) => void,
  signal: AbortSignal,
): Promise<void> => {
  const { hostname } = new URL(peer);
  while (!signal.aborted) {
    const silence = new AbortController();
    const late = setTimeout(() => silence.abort(), 3 * ALIVE_MS).unref();
    try {
      const response = await fetch(`${peer}/node`, {
        headers: { authorization: `Bearer ${token}` },
        signal: AbortSignal.any([signal, silence.signal]),
      });
      const { body } = response;
      if (response.ok && body !== null)
        await readMessages<NodeFacts>(refreshing(body, late), (node) =>
          see({ ...node, host: hostname }),
        );
    } catch {
      // the node is gone, or the signal came: the loop decides
    }
    clearTimeout(late);
    see(null);
    await pause(AGAIN_MS, signal);
  }
};

async function* refreshing(
  body: AsyncIterable<Uint8Array>,
  late: NodeJS.Timeout,
): AsyncGenerator<Uint8Array> {
  for await (const bytes of body) {
    late.refresh();
    yield bytes;
  }
}

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
  const presence = new Presence();
  const others = new Map<string, KnownNode>();
  const server = createServer(answerWith(subscribers, find, presence, token));
  const port = listen === undefined ? 0 : await open(server, listen);
  const closing = new AbortController();
  return {
    port,
    async join(node, changed) {
      presence.node = node;
      const asked = peers.map(
        (peer) =>
          new Promise<void>((resolve) => {
            const see = (known: KnownNode | null): void => {
              const before = others.get(peer)?.deployment;
              if (known === null) others.delete(peer);
              else others.set(peer, known);
              resolve();
              if (known?.deployment !== before) changed();
            };
            void hearOf(peer, token, see, closing.signal);
          }),
      );
      await Promise.all(asked);
      return () => presence.leave();
    },
    nodes: () => [
      ...(presence.node === null ? [] : [{ ...presence.node, host: null }]),
      ...others.values(),
    ],
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
