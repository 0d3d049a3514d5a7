import type http from 'node:http';
import { findFault, unsigned } from './anthropic-strict.js';
import {
  type Answer,
  type Replies as AnyReplies,
  type SeenRequest as Seen,
  type Speech,
  startServer,
  type WireServer,
} from './base.js';
import type { Habits } from './strict.js';

export type ReplyPart =
  | { readonly type: 'text'; readonly text: string }
  /** `signature`: null where a server signs nothing. */
  | { readonly type: 'thinking'; readonly text: string; readonly signature: string | null }
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
export type StreamEnd =
  | 'whole'
  | 'cut'
  | 'clean'
  | 'unstopped'
  | 'unexplained'
  | 'silent'
  | 'error';

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
  readonly output_config?: { readonly effort?: string };
  readonly system?: readonly { readonly text: string }[];
  readonly tools?: readonly { readonly name: string }[];
  readonly messages: readonly {
    readonly role: 'user' | 'assistant';
    readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
  }[];
};

export type SeenRequest = Seen<WireBody>;
export type Replies = AnyReplies<WireBody, ServerReply>;
export type AnthropicServer = WireServer<WireBody>;

const PIECE_LENGTH = 20;
const cutUp = (text: string): readonly string[] =>
  text.match(new RegExp(`[\\s\\S]{1,${PIECE_LENGTH}}`, 'gu')) ?? [];

const errorOf = (type: string, message: string): object => ({
  type: 'error',
  error: { type, message },
});

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
    const { signature } = part;
    return signature === null ? thoughts : [...thoughts, { type: 'signature_delta', signature }];
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
  const fixed = {
    type: 'message',
    role: 'assistant',
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
  return { type: 'message_start', message: { id: `msg_${number}`, model, ...fixed, usage } };
};

const streamOf = (reply: MessageReply, model: string, number: number): Answer => {
  const events = [
    messageOf(reply, model, number),
    ...Array.from({ length: reply.pings ?? 0 }, () => ({ type: 'ping' })),
    ...reply.parts.flatMap(eventsOf),
    ...endingOf(reply),
  ];
  const frames = events.map((event) => {
    const { type } = event as { type: string }; // every event above has one
    return `event: ${type}\ndata: ${JSON.stringify(event)}\n\n`;
  });
  const tail = reply.end === 'cut' || reply.end === 'silent' ? reply.end : 'closed';
  return {
    type: 'stream',
    frames,
    tail,
    ...(reply.delayMs === undefined ? {} : { delayMs: reply.delayMs }),
  };
};

const failure = (status: number, type: string, message: string, headers = {}): Answer => ({
  type: 'error',
  status,
  body: errorOf(type, message),
  headers,
});

const findWrongCall = ({ method, url, headers }: http.IncomingMessage): Answer | null => {
  if (method !== 'POST' || url !== '/v1/messages')
    return failure(404, 'not_found_error', `${method} ${url}`);
  if (!headers['x-api-key'])
    return failure(401, 'authentication_error', 'x-api-key header is required');
  if (headers['anthropic-version'] !== undefined) return null;
  return failure(400, 'invalid_request_error', 'anthropic-version: header is required');
};

/** Anthropic Messages as a stream, strict about what it is sent. */
export const startAnthropicServer = async ({
  replies,
  habits,
}: {
  readonly replies: Replies;
  readonly habits?: Habits;
}): Promise<AnthropicServer> => {
  /** By model, then by signature: a signature holds for the model that wrote it. */
  const thoughts = new Map<string, Map<string, string>>();
  const speech: Speech<WireBody, ServerReply> = {
    findWrongCall,
    findFault: (body) => findFault(body, thoughts.get(body.model), habits),
    reject: (fault) => failure(400, 'invalid_request_error', fault),
    answer: (reply, body, number) => {
      if (reply.type === 'nothing') return reply;
      if (reply.type === 'error')
        return failure(reply.status, reply.errorType, reply.message, reply.headers);
      const own = thoughts.get(body.model) ?? new Map<string, string>();
      thoughts.set(body.model, own);
      for (const part of reply.parts)
        if (part.type === 'thinking') own.set(part.signature ?? unsigned(part.text), part.text);
      const thought = reply.parts.find((part) => part.type === 'thinking');
      const call = reply.parts.find((part) => part.type === 'call');
      // Where thoughts are not signed, nothing else says that they are missing.
      if (thought?.signature === null && call !== undefined) own.set(call.id, thought.text);
      return streamOf(reply, body.model, number);
    },
  };
  return startServer(speech, replies);
};
