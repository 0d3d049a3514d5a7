import type http from 'node:http';
import { type Answer, type Replies, type Speech, startServer, type WireServer } from './base.js';
import { type ChatHabits, findFault, type Said, saidNothing } from './chat-strict.js';
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

type Thought = Extract<WirePart, { readonly type: 'thinking' }>;

/** A thought in the form of the server; a signature comes with the first call. */
const thoughtFrames = ({ text, secret }: Thought, habits: ChatHabits): readonly string[] => {
  const form = habits.thoughts ?? 'reasoning_content';
  const detail = { type: 'reasoning.text', index: 0 };
  switch (form) {
    case 'extra_content':
      return [];
    case 'content':
      return cutUp(text).map((piece) =>
        choice({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: piece }] }] }),
      );
    case 'reasoning_details':
      return [
        ...cutUp(text).map((piece) =>
          choice({ reasoning: piece, reasoning_details: [{ ...detail, text: piece }] }),
        ),
        choice({ reasoning_details: [{ ...detail, signature: secret }] }),
      ];
    case 'reasoning':
    case 'reasoning_content':
      return cutUp(text).map((piece) => choice({ [form]: piece }));
    default:
      return form satisfies never;
  }
};

type Framed = {
  readonly habits: ChatHabits;
  /** Number of the call; -1 for other parts. */
  readonly index: number;
  /** The thought of the reply. */
  readonly thought: Thought | undefined;
};

const framesOf = (part: WirePart, { habits, index, thought }: Framed): readonly string[] => {
  switch (part.type) {
    case 'text':
      return cutUp(part.text).map((content) => choice({ content }));
    case 'refusal':
      return cutUp(part.text).map((refusal) => choice({ refusal }));
    case 'thinking':
      return thoughtFrames(part, habits);
    case 'call': {
      const isSigned = habits.thoughts === 'extra_content' && thought !== undefined && index === 0;
      const call = {
        ...(isSigned ? { extra_content: { google: { thought_signature: thought.secret } } } : {}),
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

const streamOf = (reply: MessageReply, habits: ChatHabits): Answer => {
  const calls = reply.parts.filter(({ type }) => type === 'call');
  const thought = reply.parts.find((part) => part.type === 'thinking');
  const frames = reply.parts.flatMap((part) =>
    framesOf(part, { habits, index: calls.indexOf(part), thought }),
  );
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
  picture: { status: 500, message: 'image input is not supported - hint: provide the mmproj' },
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
  readonly habits?: ChatHabits;
};

/** Keeps what the reply says as the model. */
const remember = ({ parts }: MessageReply, { thoughts, secrets }: Said): void => {
  const thought = parts.find((part) => part.type === 'thinking');
  const call = parts.find((part) => part.type === 'call');
  for (const part of parts) if (part.type === 'thinking') thoughts.add(part.text);
  if (thought !== undefined && call !== undefined) secrets.set(call.id, thought);
};

const findWrongCall = (
  incoming: http.IncomingMessage,
  { key, listed }: ChatOptions,
): Answer | null => {
  const isRefused = key !== undefined && incoming.headers.authorization !== `Bearer ${key}`;
  if (incoming.url === '/v1/models' && listed !== undefined)
    return isRefused ? fail(FAILURES.auth) : { type: 'error', status: 200, body: { data: listed } };
  if (incoming.method !== 'POST' || incoming.url !== '/v1/chat/completions')
    return fail({ status: 404, message: `${incoming.method} ${incoming.url}` });
  return isRefused ? fail(FAILURES.auth) : null;
};

export const startChatServer = (
  replies: Replies<ChatBody, WireReply>,
  options: ChatOptions = {},
): Promise<WireServer<ChatBody>> => {
  const { habits = {} } = options;
  /** By model. */
  const said = new Map<string, Said>();
  const speech: Speech<ChatBody, WireReply> = {
    findWrongCall: (incoming) => findWrongCall(incoming, options),
    findFault: (body) => findFault(body, said.get(body.model), habits),
    reject: (message) => fail({ status: 400, type: 'invalid_request_error', message }),
    answer: (reply, { model }) => {
      if (reply.type === 'nothing') return reply;
      if (reply.type === 'failure')
        return reply.failure === 'page'
          ? { type: 'error', status: 502, body: PAGE }
          : fail(FAILURES[reply.failure], reply.retryAfterS);
      const own = said.get(model) ?? saidNothing();
      said.set(model, own);
      remember(reply, own);
      return streamOf(reply, habits);
    },
  };
  return startServer(speech, replies);
};
