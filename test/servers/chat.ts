import type http from 'node:http';
import { type Answer, type Replies, type Speech, startServer, type WireServer } from './base.js';
import { findFault } from './chat-strict.js';
import {
  cutUp,
  DEFAULT_TOKENS,
  frame,
  inputOf,
  type MessageReply,
  PAGE,
  stopOf,
  type WireFailure,
  type WirePart,
  type WireReply,
} from './reply.js';

/** A local server that speaks Chat Completions, as Ollama, LM Studio, llama.cpp, vLLM and OpenRouter do. */

export type ChatBody = { readonly model: string; readonly messages: readonly object[] };

const choice = (delta: object, reason: string | null = null): string =>
  frame({
    id: 'chat-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: reason }],
  });

const framesOf = (part: WirePart, index: number): readonly string[] => {
  switch (part.type) {
    case 'text':
      return cutUp(part.text).map((content) => choice({ content }));
    case 'refusal':
      return cutUp(part.text).map((refusal) => choice({ refusal }));
    case 'thinking':
      return cutUp(part.text).map((text) => choice({ reasoning_content: text }));
    case 'call': {
      const call = {
        index,
        id: part.id,
        type: 'function',
        function: { name: part.name, arguments: '' },
      };
      const pieces = cutUp(inputOf(part)).map((text) =>
        choice({ tool_calls: [{ index, function: { arguments: text } }] }),
      );
      return [choice({ tool_calls: [call] }), ...pieces];
    }
    default:
      return part satisfies never;
  }
};

const REASONS = {
  end: 'stop',
  toolUse: 'tool_calls',
  maxTokens: 'length',
  filter: 'content_filter',
  refusal: 'stop',
  unknown: 'moon_phase',
  malformedCall: 'error',
} as const;

const endOf = (reply: MessageReply): readonly string[] => {
  const { end = 'whole', tokens = DEFAULT_TOKENS } = reply;
  if (end === 'error')
    return [frame({ error: { message: 'the provider is overloaded', code: 503 } })];
  if (end !== 'whole') return [];
  const usage = {
    prompt_tokens: tokens.input,
    completion_tokens: tokens.output,
    prompt_tokens_details: { cached_tokens: tokens.cached },
  };
  return [
    choice({}, REASONS[stopOf(reply)]),
    frame({ id: 'chat-1', choices: [], usage }),
    'data: [DONE]\n\n',
  ];
};

const streamOf = (reply: MessageReply): Answer => {
  const calls = reply.parts.filter(({ type }) => type === 'call');
  const frames = reply.parts.flatMap((part) => framesOf(part, calls.indexOf(part)));
  const tail = reply.end === 'cut' || reply.end === 'silent' ? reply.end : 'closed';
  return {
    type: 'stream',
    frames: [choice({ role: 'assistant', content: '' }), ...frames, ...endOf(reply)],
    tail,
  };
};

type Told = {
  readonly status: number;
  readonly type?: string;
  readonly code?: string | number;
  readonly message: string;
};

const FAILURES: Readonly<Record<Exclude<WireFailure, 'page'>, Told>> = {
  rateLimit: { status: 429, code: 429, message: 'Rate limit exceeded: free-models-per-min' },
  quota: {
    status: 402,
    code: 402,
    message: 'This request requires more credits, or fewer max_tokens.',
  },
  auth: { status: 401, code: 401, message: 'No auth credentials found' },
  overloaded: { status: 503, code: 503, message: 'No instances available' },
  broken: { status: 500, type: 'api_error', message: 'llama runner process has terminated' },
  tooLong: {
    status: 400,
    type: 'exceed_context_size_error',
    code: 400,
    message: 'the request exceeds the available context size, try increasing it',
  },
  badRequest: { status: 400, type: 'BadRequestError', code: 400, message: 'no such parameter' },
  filtered: { status: 400, code: 'content_filter', message: 'the prompt was filtered' },
};

const fail = ({ status, ...error }: Told, retryAfterS?: number): Answer => ({
  type: 'error',
  status,
  body: { error: { param: null, ...error } },
  ...(retryAfterS === undefined ? {} : { headers: { 'retry-after': String(retryAfterS) } }),
});

type ChatOptions = {
  /** A request without it is refused. */
  readonly key?: string;
  /** What is said of the models that are asked for; nothing, if not given. */
  readonly listed?: readonly object[];
};

const findWrongCall = (
  incoming: http.IncomingMessage,
  { key, listed }: ChatOptions,
): Answer | null => {
  if (incoming.url === '/v1/models' && listed !== undefined)
    return { type: 'error', status: 200, body: { data: listed } };
  if (incoming.method !== 'POST' || incoming.url !== '/v1/chat/completions')
    return fail({ status: 404, message: `${incoming.method} ${incoming.url}` });
  if (key === undefined || incoming.headers.authorization === `Bearer ${key}`) return null;
  return fail(FAILURES.auth);
};

export const startChatServer = (
  replies: Replies<ChatBody, WireReply>,
  options: ChatOptions = {},
): Promise<WireServer<ChatBody>> => {
  /** By model. */
  const thoughts = new Map<string, Set<string>>();
  const speech: Speech<ChatBody, WireReply> = {
    findWrongCall: (incoming) => findWrongCall(incoming, options),
    findFault: (body) => findFault(body, thoughts.get(body.model)),
    reject: (message) => fail({ status: 400, type: 'invalid_request_error', message }),
    answer: (reply, { model }) => {
      if (reply.type === 'nothing') return reply;
      if (reply.type === 'failure')
        return reply.failure === 'page'
          ? { type: 'error', status: 502, body: PAGE }
          : fail(FAILURES[reply.failure], reply.retryAfterS);
      const own = thoughts.get(model) ?? new Set<string>();
      thoughts.set(model, own);
      for (const part of reply.parts) if (part.type === 'thinking') own.add(part.text);
      return streamOf(reply);
    },
  };
  return startServer(speech, replies);
};
