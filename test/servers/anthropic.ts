import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { findFault } from './anthropic-strict.js';

/**
 * A local server that speaks Anthropic Messages as a stream, strict about what it is sent.
 *
 * 1. A request that the real one would reject is answered with 400 and takes no reply of the list.
 * 2. Every request is kept as it came, with what it was answered.
 */

export type ReplyPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly text: string; readonly signature: string }
  /** `rawInput` is sent as it is, whether or not it is JSON; `half` leaves the block without its end. */
  | {
      readonly type: 'call';
      readonly id: string;
      readonly name: string;
      readonly input?: object;
      readonly rawInput?: string;
      readonly half?: boolean;
    }
  /** Events as they are, e.g. of kinds that no client knows yet. */
  | { readonly type: 'events'; readonly events: readonly object[] };

/**
 * How a stream ends: `whole`, or after its parts `cut` (the socket is destroyed), `clean` (the response ends without
 * the provider's own end), `unstopped` (stop reason, but no message_stop), `unexplained` (message_stop, but no stop
 * reason), `silent` (nothing more comes), `error` (an error event: overloaded).
 */
export type StreamEnd = 'whole' | 'cut' | 'clean' | 'unstopped' | 'unexplained' | 'silent' | 'error';

export type WireUsage = {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_input_tokens?: number;
  readonly cache_creation_input_tokens?: number;
};

export type ServerReply =
  | {
      readonly type: 'message';
      readonly parts: readonly ReplyPart[];
      readonly stopReason?: string;
      readonly end?: StreamEnd;
      readonly usage?: WireUsage;
      /** Waited before each event. */
      readonly delayMs?: number;
      /** Pings sent before the first part. */
      readonly pings?: number;
    }
  | {
      readonly type: 'error';
      readonly status: number;
      readonly errorType: string;
      readonly message: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** No answer at all: the request is taken and nothing comes. */
  | { readonly type: 'nothing' };

export type WireBody = {
  readonly model: string;
  readonly max_tokens: number;
  readonly system?: readonly { readonly text: string }[];
  readonly tools?: readonly { readonly name: string }[];
  readonly messages: readonly {
    readonly role: 'user' | 'assistant';
    readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
  }[];
};

export type SeenRequest = {
  readonly body: WireBody;
  readonly text: string;
  /** Milliseconds of performance.now() when the whole request was there. */
  readonly arrivedAt: number;
  /** Likewise, when the end of the answer was handed to the system; null while there is none. */
  answeredAt: number | null;
  /** What was wrong with it, or null. */
  readonly fault: string | null;
};

export type Replies =
  | readonly (ServerReply | ((body: WireBody) => ServerReply))[]
  | ((body: WireBody, index: number) => ServerReply);

export type AnthropicServer = {
  /** Without a version, as ANTHROPIC_BASE_URL takes it. */
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  /** How many connections were made, and how many of them are open. */
  connections(): { readonly made: number; readonly open: number };
  close(): Promise<void>;
};

const PIECE_LENGTH = 20;
const cutUp = (text: string): readonly string[] =>
  text.match(new RegExp(`[\\s\\S]{1,${PIECE_LENGTH}}`, 'gu')) ?? [];

const errorOf = (type: string, message: string): object => ({ type: 'error', error: { type, message } });

type Block = Exclude<ReplyPart, { readonly type: 'events' }>;

const startOf = (part: Block): object => {
  if (part.type === 'text') return { type: 'text', text: '' };
  if (part.type === 'thinking') return { type: 'thinking', thinking: '', signature: '' };
  return { type: 'tool_use', id: part.id, name: part.name, input: {} };
};

const deltasOf = (part: Block): readonly object[] => {
  if (part.type === 'text') return cutUp(part.text).map((text) => ({ type: 'text_delta', text }));
  if (part.type === 'thinking') {
    const thoughts = cutUp(part.text).map((thinking) => ({ type: 'thinking_delta', thinking }));
    return [...thoughts, { type: 'signature_delta', signature: part.signature }];
  }
  const input = part.rawInput ?? JSON.stringify(part.input ?? {});
  return ['', ...cutUp(input)].map((text) => ({ type: 'input_json_delta', partial_json: text }));
};

const eventsOf = (part: ReplyPart, index: number): readonly object[] => {
  if (part.type === 'events') return part.events;
  return [
    { type: 'content_block_start', index, content_block: startOf(part) },
    ...deltasOf(part).map((delta) => ({ type: 'content_block_delta', index, delta })),
    ...(part.type === 'call' && part.half ? [] : [{ type: 'content_block_stop', index }]),
  ];
};

type MessageReply = Extract<ServerReply, { readonly type: 'message' }>;

const endingOf = (reply: MessageReply): readonly object[] => {
  const { end = 'whole', parts, usage } = reply;
  const called = parts.some(({ type }) => type === 'call');
  const reason = reply.stopReason ?? (called ? 'tool_use' : 'end_turn');
  const delta = {
    type: 'message_delta',
    delta: { stop_reason: reason, stop_sequence: null },
    usage: { output_tokens: usage?.output_tokens ?? 5 },
  };
  const stop = { type: 'message_stop' };
  if (end === 'whole') return [delta, stop];
  if (end === 'unstopped') return [delta];
  if (end === 'unexplained') return [stop];
  return end === 'error' ? [errorOf('overloaded_error', 'Overloaded')] : [];
};

const messageOf = (reply: MessageReply, model: string, number: number): object => {
  const usage = { ...(reply.usage ?? { input_tokens: 10 }), output_tokens: 1 };
  const fixed = { type: 'message', role: 'assistant', content: [], stop_reason: null, stop_sequence: null };
  return { type: 'message_start', message: { id: `msg_${number}`, model, ...fixed, usage } };
};

const writeStream = async (
  reply: MessageReply,
  model: string,
  number: number,
  out: http.ServerResponse,
): Promise<void> => {
  const events = [
    messageOf(reply, model, number),
    ...Array.from({ length: reply.pings ?? 0 }, () => ({ type: 'ping' })),
    ...reply.parts.flatMap(eventsOf),
    ...endingOf(reply),
  ];
  out.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of events) {
    if (reply.delayMs !== undefined) await delay(reply.delayMs);
    if (out.destroyed) return;
    const { type } = event as { type: string }; // every event above has one
    out.write(`event: ${type}\ndata: ${JSON.stringify(event)}\n\n`);
  }
  if (reply.end === 'silent') return;
  if (reply.end !== 'cut') return void out.end();
  // What was written must arrive before the reset, or a client would see no beginning at all.
  await delay(20);
  out.socket?.destroy();
};

const readText = async (incoming: http.IncomingMessage): Promise<string> => {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
};

const writeError = (out: http.ServerResponse, status: number, body: object, headers: object = {}): void => {
  out.writeHead(status, { 'content-type': 'application/json', ...headers });
  out.end(JSON.stringify(body));
};

/** Starts on a free port of 127.0.0.1. A request after the last reply of a list is answered with 400. */
export const startAnthropicServer = async ({
  replies,
}: {
  readonly replies: Replies;
}): Promise<AnthropicServer> => {
  const requests: SeenRequest[] = [];
  const thoughts = new Map<string, string>();
  let given = 0;

  const pick = (body: WireBody): ServerReply => {
    const index = given++;
    if (typeof replies === 'function') return replies(body, index);
    const reply = replies[index];
    if (typeof reply === 'function') return reply(body);
    const message = `this server has ${replies.length} replies, and one more was asked for`;
    return reply ?? { type: 'error', status: 400, errorType: 'invalid_request_error', message };
  };

  const answer = async (incoming: http.IncomingMessage, out: http.ServerResponse): Promise<void> => {
    const text = await readText(incoming);
    const arrivedAt = performance.now();
    if (incoming.method !== 'POST' || incoming.url !== '/v1/messages') {
      return writeError(out, 404, errorOf('not_found_error', `${incoming.method} ${incoming.url}`));
    }
    if (!incoming.headers['x-api-key']) {
      return writeError(out, 401, errorOf('authentication_error', 'x-api-key header is required'));
    }
    if (incoming.headers['anthropic-version'] === undefined) {
      return writeError(out, 400, errorOf('invalid_request_error', 'anthropic-version: header is required'));
    }
    const body: WireBody = JSON.parse(text);
    const fault = findFault(body, thoughts);
    const seen: SeenRequest = { body, text, arrivedAt, answeredAt: null, fault };
    requests.push(seen);
    out.once('finish', () => {
      seen.answeredAt = performance.now();
    });
    if (fault !== null) return writeError(out, 400, errorOf('invalid_request_error', fault));
    const reply = pick(body);
    if (reply.type === 'nothing') return;
    if (reply.type === 'error') {
      return writeError(out, reply.status, errorOf(reply.errorType, reply.message), reply.headers);
    }
    for (const part of reply.parts) if (part.type === 'thinking') thoughts.set(part.signature, part.text);
    await writeStream(reply, body.model, requests.length, out);
  };

  const server = http.createServer((incoming, out) => {
    answer(incoming, out).catch((error: unknown) => {
      if (!out.headersSent) writeError(out, 400, errorOf('invalid_request_error', String(error)));
      else out.destroy();
    });
  });
  let made = 0;
  let open = 0;
  server.on('connection', (socket) => {
    made++;
    open++;
    socket.once('close', () => {
      open--;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    connections: () => ({ made, open }),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
