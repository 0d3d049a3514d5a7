import type http from 'node:http';
import { type Answer, type Replies, type Speech, startServer, type WireServer } from './base.js';
import { findFault } from './google-strict.js';
import {
  cutUp,
  DEFAULT_TOKENS,
  frame,
  type MessageReply,
  PAGE,
  stopOf,
  type WireFailure,
  type WirePart,
  type WireReply,
  type WireTokens,
} from './reply.js';

/** A local server that speaks Google's generative language API as a stream. */

export type GoogleBody = { readonly contents: readonly object[] };

const partsOf = (part: WirePart, signature: string | undefined): readonly object[] => {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return cutUp(part.text).map((text) => ({ text }));
    case 'thinking':
      return cutUp(part.text).map((text) => ({ text, thought: true }));
    case 'call': {
      const functionCall = { name: part.name, args: part.input ?? {} };
      return [
        signature === undefined ? { functionCall } : { functionCall, thoughtSignature: signature },
      ];
    }
    default:
      return part satisfies never;
  }
};

/** What a model thought comes as a signature of the first call, or of the end of its text. */
const allParts = ({ parts }: MessageReply): readonly object[] => {
  const secret =
    parts.flatMap((part) => (part.type === 'thinking' ? part.secret : []))[0] ?? 'no thoughts';
  const firstCall = parts.find(({ type }) => type === 'call');
  const found = parts.flatMap((part) => partsOf(part, part === firstCall ? secret : undefined));
  return firstCall === undefined && found.length > 0
    ? [...found, { text: '', thoughtSignature: secret }]
    : found;
};

const REASONS = {
  end: 'STOP',
  toolUse: 'STOP',
  maxTokens: 'MAX_TOKENS',
  filter: 'PROHIBITED_CONTENT',
  refusal: 'SAFETY',
  unknown: 'MOON_PHASE',
  malformedCall: 'MALFORMED_FUNCTION_CALL',
} as const;

const usageOf = (tokens: WireTokens, output: number): object => ({
  promptTokenCount: tokens.input,
  cachedContentTokenCount: tokens.cached,
  candidatesTokenCount: output,
  totalTokenCount: tokens.input + output,
});

const streamOf = (reply: MessageReply): Answer => {
  const { end = 'whole', tokens = DEFAULT_TOKENS } = reply;
  const events: object[] = allParts(reply).map((part) => ({
    candidates: [{ content: { role: 'model', parts: [part] }, index: 0 }],
    usageMetadata: usageOf(tokens, 1),
  }));
  if (end === 'error')
    events.push({
      error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' },
    });
  if (end === 'whole') {
    const candidates = [
      { content: { role: 'model', parts: [] }, finishReason: REASONS[stopOf(reply)], index: 0 },
    ];
    events.push({ candidates, usageMetadata: usageOf(tokens, tokens.output) });
  }
  const tail = end === 'cut' || end === 'silent' ? end : 'closed';
  return { type: 'stream', frames: events.map(frame), tail };
};

type Told = {
  readonly code: number;
  readonly status: string;
  readonly message: string;
  readonly details?: readonly object[];
};

const QUOTA = 'You exceeded your current quota, please check your plan and billing details.';
const violation = (quotaId: string): object => ({
  '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
  violations: [{ quotaId }],
});

const FAILURES: Readonly<Record<Exclude<WireFailure, 'page'>, Told>> = {
  rateLimit: {
    code: 429,
    status: 'RESOURCE_EXHAUSTED',
    message: QUOTA,
    details: [violation('GenerateRequestsPerMinutePerProjectPerModel-FreeTier')],
  },
  quota: {
    code: 429,
    status: 'RESOURCE_EXHAUSTED',
    message: QUOTA,
    details: [violation('GenerateRequestsPerDayPerProjectPerModel-FreeTier')],
  },
  auth: {
    code: 400,
    status: 'INVALID_ARGUMENT',
    message: 'API key not valid. Please pass a valid API key.',
    details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }],
  },
  overloaded: { code: 503, status: 'UNAVAILABLE', message: 'The model is overloaded.' },
  broken: { code: 500, status: 'INTERNAL', message: 'An internal error has occurred.' },
  tooLong: {
    code: 400,
    status: 'INVALID_ARGUMENT',
    message:
      'The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).',
  },
  badRequest: { code: 400, status: 'INVALID_ARGUMENT', message: 'Unknown name "x".' },
  picture: {
    code: 400,
    status: 'INVALID_ARGUMENT',
    message: 'Unable to process input image. Please retry or report.',
  },
  filtered: {
    code: 400,
    status: 'INVALID_ARGUMENT',
    message: 'Unused: a filtered prompt is an answer here.',
  },
};

const fail = (told: Told, retryAfterS?: number): Answer => {
  const retry = {
    '@type': 'type.googleapis.com/google.rpc.RetryInfo',
    retryDelay: `${retryAfterS}s`,
  };
  const details = [...(told.details ?? []), ...(retryAfterS === undefined ? [] : [retry])];
  return { type: 'error', status: told.code, body: { error: { ...told, details } } };
};

const reject = (message: string): Answer =>
  fail({ code: 400, status: 'INVALID_ARGUMENT', message });

const PATH = /^\/v1beta\/models\/([^/:]+):streamGenerateContent\?alt=sse$/;
const modelIn = ({ url = '' }: http.IncomingMessage): string => PATH.exec(url)?.[1] ?? '';

const findWrongCall = (incoming: http.IncomingMessage): Answer | null => {
  if (incoming.method !== 'POST' || modelIn(incoming) === '')
    return reject(`${incoming.method} ${incoming.url}`);
  return incoming.headers['x-goog-api-key'] ? null : fail(FAILURES.auth);
};

/** A prompt that is filtered is an answer without candidates. */
const blocked: Answer = {
  type: 'stream',
  frames: [
    frame({
      promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
      usageMetadata: { promptTokenCount: 10 },
    }),
  ],
  tail: 'closed',
};

export const startGoogleServer = (
  replies: Replies<GoogleBody, WireReply>,
): Promise<WireServer<GoogleBody>> => {
  /** By model. */
  const signatures = new Map<string, Set<string>>();
  const speech: Speech<GoogleBody, WireReply> = {
    findWrongCall,
    findFault: (body, incoming) => findFault(body, signatures.get(modelIn(incoming))),
    reject,
    answer: (reply, _body, _number, incoming) => {
      if (reply.type === 'nothing') return reply;
      if (reply.type === 'failure') {
        if (reply.failure === 'page') return { type: 'error', status: 502, body: PAGE };
        return reply.failure === 'filtered'
          ? blocked
          : fail(FAILURES[reply.failure], reply.retryAfterS);
      }
      const own = signatures.get(modelIn(incoming)) ?? new Set<string>();
      signatures.set(modelIn(incoming), own.add('no thoughts'));
      for (const part of reply.parts) if (part.type === 'thinking') own.add(part.secret);
      return streamOf(reply);
    },
  };
  return startServer(speech, replies);
};
