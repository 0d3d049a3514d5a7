import type http from 'node:http';
import { type Answer, type Replies, type Speech, startServer, type WireServer } from './base.js';
import { findFault, type ResponsesHabits } from './openai-strict.js';
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

/** A local server that speaks OpenAI's Responses API as a stream. */

export type ResponsesBody = { readonly model: string; readonly input: readonly object[] };

/** A message of one part, whose text comes in pieces. */
const eventsOfMessage = (
  { text }: { readonly text: string },
  id: string,
  index: number,
  { pieces, part }: { readonly pieces: string; readonly part: object },
): readonly object[] => {
  const item = { type: 'message', id, role: 'assistant', status: 'in_progress', content: [] };
  return [
    { type: 'response.output_item.added', output_index: index, item },
    ...cutUp(text).map((delta) => ({
      type: pieces,
      item_id: id,
      output_index: index,
      content_index: 0,
      delta,
    })),
    {
      type: 'response.output_item.done',
      output_index: index,
      item: { ...item, status: 'completed', content: [part] },
    },
  ];
};

const eventsOfThought = (
  part: Extract<WirePart, { readonly type: 'thinking' }>,
  id: string,
  index: number,
): readonly object[] => {
  const item = { type: 'reasoning', id, summary: [], encrypted_content: null };
  const place = { item_id: id, output_index: index, summary_index: 0 };
  return [
    { type: 'response.output_item.added', output_index: index, item },
    {
      type: 'response.reasoning_summary_part.added',
      ...place,
      part: { type: 'summary_text', text: '' },
    },
    ...cutUp(part.text).map((delta) => ({
      type: 'response.reasoning_summary_text.delta',
      ...place,
      delta,
    })),
    {
      type: 'response.reasoning_summary_part.done',
      ...place,
      part: { type: 'summary_text', text: part.text },
    },
    {
      type: 'response.output_item.done',
      output_index: index,
      item: {
        ...item,
        summary: [{ type: 'summary_text', text: part.text }],
        encrypted_content: part.secret,
      },
    },
  ];
};

/** As servers other than OpenAI's stream them. */
const eventsOfWords = (part: { readonly text: string }, id: string, index: number) => {
  const item = { type: 'reasoning', id, summary: [] };
  const content = [{ type: 'reasoning_text', text: part.text }];
  return [
    { type: 'response.output_item.added', output_index: index, item },
    ...cutUp(part.text).map((delta) => ({
      type: 'response.reasoning_text.delta',
      item_id: id,
      output_index: index,
      content_index: 0,
      delta,
    })),
    { type: 'response.output_item.done', output_index: index, item: { ...item, content } },
  ];
};

const eventsOfCall = (
  part: Extract<WirePart, { readonly type: 'call' }>,
  id: string,
  index: number,
): readonly object[] => {
  const input = inputOf(part);
  const item = { type: 'function_call', id, call_id: part.id, name: part.name, arguments: '' };
  const done = { ...item, arguments: input, status: 'completed' };
  return [
    { type: 'response.output_item.added', output_index: index, item },
    ...cutUp(input).map((delta) => ({
      type: 'response.function_call_arguments.delta',
      item_id: id,
      output_index: index,
      delta,
    })),
    ...(part.half === true
      ? []
      : [{ type: 'response.output_item.done', output_index: index, item: done }]),
  ];
};

const eventsOf = (
  part: WirePart,
  number: number,
  index: number,
  { thoughts }: ResponsesHabits,
): readonly object[] => {
  const id = `${number}_${index}`;
  switch (part.type) {
    case 'text':
      return eventsOfMessage(part, `msg_${id}`, index, {
        pieces: 'response.output_text.delta',
        part: { type: 'output_text', text: part.text, annotations: [] },
      });
    case 'refusal':
      return eventsOfMessage(part, `msg_${id}`, index, {
        pieces: 'response.refusal.delta',
        part: { type: 'refusal', refusal: part.text },
      });
    case 'thinking':
      return thoughts === 'words'
        ? eventsOfWords(part, `rs_${id}`, index)
        : eventsOfThought(part, `rs_${id}`, index);
    case 'call':
      return eventsOfCall(part, `fc_${id}`, index);
    default:
      return part satisfies never;
  }
};

const INCOMPLETE: Readonly<Record<string, string>> = {
  maxTokens: 'max_output_tokens',
  filter: 'content_filter',
  unknown: 'moon_phase',
};

const endOf = (reply: MessageReply): readonly object[] => {
  const { end = 'whole', tokens = DEFAULT_TOKENS } = reply;
  if (end === 'error') {
    const error = { code: 'server_is_overloaded', message: 'Our servers are overloaded.' };
    return [{ type: 'response.failed', sequence_number: 9, response: { error, usage: null } }];
  }
  if (end !== 'whole') return [];
  const usage = {
    input_tokens: tokens.input,
    input_tokens_details: { cached_tokens: tokens.cached },
    output_tokens: tokens.output,
    output_tokens_details: { reasoning_tokens: 0 },
  };
  const reason = INCOMPLETE[stopOf(reply)];
  const response = { incomplete_details: reason === undefined ? null : { reason }, usage };
  return [{ type: reason === undefined ? 'response.completed' : 'response.incomplete', response }];
};

const streamOf = (
  reply: MessageReply,
  model: string,
  number: number,
  habits: ResponsesHabits,
): Answer => {
  const created = { id: `resp_${number}`, created_at: 1, model, service_tier: null };
  const events = [
    { type: 'response.created', response: created },
    { type: 'response.in_progress', response: created },
    { type: 'moon.phase', phase: 'full' },
    ...reply.parts.flatMap((part, index) => eventsOf(part, number, index, habits)),
    ...endOf(reply),
  ];
  const tail = reply.end === 'cut' || reply.end === 'silent' ? reply.end : 'closed';
  return { type: 'stream', frames: events.map(frame), tail };
};

type Told = {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly message: string;
};

const FAILURES: Readonly<Record<Exclude<WireFailure, 'page'>, Told>> = {
  rateLimit: {
    status: 429,
    type: 'tokens',
    code: 'rate_limit_exceeded',
    message: 'Rate limit reached for gpt in organization org on tokens per min (TPM).',
  },
  quota: {
    status: 429,
    type: 'insufficient_quota',
    code: 'insufficient_quota',
    message: 'You exceeded your current quota, please check your plan and billing details.',
  },
  auth: {
    status: 401,
    type: 'invalid_request_error',
    code: 'invalid_api_key',
    message: 'Incorrect API key provided: key.',
  },
  overloaded: {
    status: 503,
    type: 'server_error',
    code: 'server_is_overloaded',
    message: 'Overloaded.',
  },
  broken: { status: 500, type: 'server_error', code: null, message: 'The server had an error.' },
  tooLong: {
    status: 400,
    type: 'invalid_request_error',
    code: 'context_length_exceeded',
    message: 'Your input exceeds the context window of this model.',
  },
  badRequest: {
    status: 400,
    type: 'invalid_request_error',
    code: null,
    message: 'Unknown parameter.',
  },
  picture: {
    status: 400,
    type: 'invalid_request_error',
    code: 'image_parse_error',
    message: 'You uploaded an unsupported image.',
  },
  filtered: {
    status: 400,
    type: 'invalid_request_error',
    code: 'invalid_prompt',
    message: 'Invalid prompt: your prompt was flagged as potentially violating our usage policy.',
  },
};

const fail = ({ status, ...error }: Told, retryAfterS?: number): Answer => ({
  type: 'error',
  status,
  body: { error: { param: null, ...error } },
  ...(retryAfterS === undefined ? {} : { headers: { 'retry-after': String(retryAfterS) } }),
});

const reject = (message: string): Answer =>
  fail({ status: 400, type: 'invalid_request_error', code: null, message });

const findWrongCall = ({ method, url, headers }: http.IncomingMessage): Answer | null => {
  if (method !== 'POST' || url !== '/v1/responses') return reject(`${method} ${url}`);
  return /^Bearer ./.test(headers.authorization ?? '') ? null : fail(FAILURES.auth);
};

export const startOpenAiServer = (
  replies: Replies<ResponsesBody, WireReply>,
  habits: ResponsesHabits = {},
): Promise<WireServer<ResponsesBody>> => {
  /** By model. */
  const secrets = new Map<string, Set<string>>();
  const speech: Speech<ResponsesBody, WireReply> = {
    findWrongCall,
    findFault: (body) => findFault(body, secrets.get(body.model), habits),
    reject,
    answer: (reply, { model }, number) => {
      if (reply.type === 'nothing') return reply;
      if (reply.type === 'failure')
        return reply.failure === 'page'
          ? { type: 'error', status: 502, body: PAGE }
          : fail(FAILURES[reply.failure], reply.retryAfterS);
      const own = secrets.get(model) ?? new Set<string>();
      secrets.set(model, own);
      for (const part of reply.parts)
        if (part.type === 'thinking')
          own.add(habits.thoughts === 'words' ? part.text : part.secret);
      return streamOf(reply, model, number, habits);
    },
  };
  return startServer(speech, replies);
};
