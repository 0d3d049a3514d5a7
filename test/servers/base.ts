import http from 'node:http';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';

/**
 * What the local servers of all wires have in common.
 *
 * 1. A request that the real one would reject is answered with an error and takes no reply of the list.
 * 2. Every request is kept as it came, with what it was answered.
 * 3. A stream is written in slices that end anywhere, in the middle of a letter too.
 */

/** How a stream ends: properly, or `cut` (the socket is destroyed), or `silent` (nothing more comes). */
export type Tail = 'closed' | 'cut' | 'silent';

export type Answer =
  | {
      readonly type: 'stream';
      readonly frames: readonly string[];
      readonly tail: Tail;
      readonly delayMs?: number;
    }
  | {
      readonly type: 'error';
      readonly status: number;
      readonly body: object | string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** The request is taken and nothing comes. */
  | { readonly type: 'nothing' };

export type SeenRequest<Body> = {
  readonly body: Body;
  readonly text: string;
  readonly headers: http.IncomingHttpHeaders;
  /** Milliseconds of performance.now() when the whole request was there. */
  readonly arrivedAt: number;
  /** Likewise, when the end of the answer was handed to the system; null while there is none. */
  answeredAt: number | null;
  /** What was wrong with it, or null. */
  readonly fault: string | null;
};

export type Replies<Body, Reply> =
  | readonly (Reply | ((body: Body) => Reply))[]
  | ((body: Body, index: number) => Reply);

/** What is particular to one wire. */
export type Speech<Body, Reply> = {
  /** What is wrong with the call as such (place, key), before the body is looked at; null if it is answered. */
  findWrongCall(incoming: http.IncomingMessage): Answer | null;
  findFault(body: Body, incoming: http.IncomingMessage): string | null;
  reject(fault: string): Answer;
  /** `number` counts the requests, from 1. */
  answer(reply: Reply, body: Body, number: number, incoming: http.IncomingMessage): Answer;
};

export type WireServer<Body = unknown> = {
  /** Without a version. */
  readonly url: string;
  readonly requests: readonly SeenRequest<Body>[];
  /** How many connections were made, and how many of them are open. */
  connections(): { readonly made: number; readonly open: number };
  close(): Promise<void>;
};

const SLICE_BYTES = 61;

const writeSlices = async (frame: string, out: http.ServerResponse): Promise<void> => {
  const bytes = Buffer.from(frame);
  for (let start = 0; start < bytes.length && !out.destroyed; start += SLICE_BYTES) {
    out.write(bytes.subarray(start, start + SLICE_BYTES));
    await turn();
  }
};

const writeStream = async (
  { frames, tail, delayMs }: Extract<Answer, { type: 'stream' }>,
  out: http.ServerResponse,
): Promise<void> => {
  out.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const frame of frames) {
    if (delayMs !== undefined) await delay(delayMs);
    if (out.destroyed) return;
    await writeSlices(frame, out);
  }
  if (tail === 'silent') return;
  if (tail === 'closed') return void out.end();
  // What was written must reach the system first, or a client would see no beginning at all.
  while (out.writableLength > 0 || (out.socket?.writableLength ?? 0) > 0) await turn();
  out.socket?.destroy();
};

const readText = async (incoming: http.IncomingMessage): Promise<string> => {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
};

const write = async (answer: Answer, out: http.ServerResponse): Promise<void> => {
  if (answer.type === 'nothing') return;
  if (answer.type === 'stream') return writeStream(answer, out);
  const { status, body, headers } = answer;
  const isPage = typeof body === 'string';
  out.writeHead(status, { 'content-type': isPage ? 'text/html' : 'application/json', ...headers });
  out.end(isPage ? body : JSON.stringify(body));
};

const countConnections = (server: http.Server) => {
  const count = { made: 0, open: 0 };
  server.on('connection', (socket) => {
    count.made++;
    count.open++;
    socket.once('close', () => {
      count.open--;
    });
  });
  return count;
};

/** Starts on a free port of 127.0.0.1. A request after the last reply of a list is rejected. */
export const startServer = async <Body, Reply>(
  speech: Speech<Body, Reply>,
  replies: Replies<Body, Reply>,
): Promise<WireServer<Body>> => {
  const requests: SeenRequest<Body>[] = [];
  let given = 0;

  const pick = (body: Body): Reply | null => {
    const index = given++;
    if (typeof replies === 'function') return replies(body, index);
    const reply = replies[index];
    if (reply === undefined) return null;
    return typeof reply === 'function' ? (reply as (body: Body) => Reply)(body) : reply; // no reply is a function itself
  };

  const answer = async (
    incoming: http.IncomingMessage,
    out: http.ServerResponse,
  ): Promise<Answer> => {
    const text = await readText(incoming);
    const arrivedAt = performance.now();
    const wrong = speech.findWrongCall(incoming);
    if (wrong !== null) return wrong;
    const body: Body = JSON.parse(text);
    const fault = speech.findFault(body, incoming);
    const { headers } = incoming;
    const seen: SeenRequest<Body> = { body, text, headers, arrivedAt, answeredAt: null, fault };
    requests.push(seen);
    out.once('finish', () => {
      seen.answeredAt = performance.now();
    });
    if (fault !== null) return speech.reject(fault);
    const reply = pick(body);
    if (reply === null) return speech.reject(`one reply more than there are was asked for`);
    return speech.answer(reply, body, requests.length, incoming);
  };

  const server = http.createServer((incoming, out) => {
    answer(incoming, out)
      .catch((error: unknown) => speech.reject(String(error)))
      .then((found) => write(found, out))
      .catch(() => out.destroy()); // nobody is there to be told: the client went away
  });
  // on a busy machine a session may be quiet for longer than the 5 s of Node
  server.keepAliveTimeout = 600_000;
  const count = countConnections(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    connections: () => ({ ...count }),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
