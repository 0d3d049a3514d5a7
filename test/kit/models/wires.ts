import { anthropicModel } from '../../../packages/agent/src/models/anthropic.js';
import { googleModel } from '../../../packages/agent/src/models/google.js';
import { compatibleModel } from '../../../packages/agent/src/models/openai-compatible.js';
import { openAiModel } from '../../../packages/agent/src/models/openai-responses.js';
import type { LeanFetch } from '../../../packages/agent/src/platform/http.js';
import type { Model, ModelFacts } from '../../../packages/agent/src/ports/model.js';
import { type ReplyPart, type ServerReply, startAnthropicServer } from '../../servers/anthropic.js';
import type { WireServer } from '../../servers/base.js';
import { startChatServer } from '../../servers/chat.js';
import type { ChatHabits } from '../../servers/chat-strict.js';
import { startGoogleServer } from '../../servers/google.js';
import { startOpenAiServer } from '../../servers/openai.js';
import type { ResponsesHabits } from '../../servers/openai-strict.js';
import {
  DEFAULT_TOKENS,
  PAGE,
  stopOf,
  type WireFailure,
  type WirePart,
  type WireReply,
} from '../../servers/reply.js';
import type { Habits } from '../../servers/strict.js';
import { adapterOptions } from './adapter-options.js';

/**
 * The four wires: a strict server of each, and a model that speaks to it; and servers of these wires with habits of
 * their own. Replies are given in words that are no wire's.
 */

export type WireName = 'anthropic' | 'openai' | 'google' | 'chat';

export type Scripted =
  | readonly (WireReply | ((body: unknown) => WireReply))[]
  | ((body: unknown, index: number) => WireReply);

export type TestedWire = {
  readonly name: WireName;
  /** Names the server's habit, too. */
  readonly title: string;
  /** What comes back of a thought: its words, what is signed with it, or nothing. */
  readonly keeps: 'words' | 'secret' | 'nothing';
  start(replies: Scripted): Promise<WireServer>;
  /** `fetch`: in place of a connection. */
  model(url: string, name?: string, key?: string, fetch?: LeanFetch): Model;
};

const facts: ModelFacts = {
  windowTokens: 100_000,
  outputTokensMax: 1_000,
  thinking: 'yes',
  tools: 'yes',
  prices: { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 1.25 },
  source: 'test',
};

/** Facts with a long answer, where the server counts prompt and answer together. */
const roomy = ({ windowTokens }: Habits): ModelFacts =>
  windowTokens === undefined ? facts : { ...facts, outputTokensMax: windowTokens - 200 };

// ---- Anthropic's server has words of its own ----

const partOf = (part: WirePart): ReplyPart => {
  switch (part.type) {
    case 'thinking':
      return { type: 'thinking', text: part.text, signature: part.secret };
    case 'refusal':
      return { type: 'text', text: part.text };
    default:
      return part;
  }
};

const STOPS = {
  end: 'end_turn',
  toolUse: 'tool_use',
  maxTokens: 'max_tokens',
  filter: 'refusal',
  refusal: 'refusal',
  unknown: 'moon_phase',
  malformedCall: 'end_turn',
} as const;

const FAILURES: Readonly<Record<WireFailure, readonly [number, string, string]>> = {
  rateLimit: [
    429,
    'rate_limit_error',
    'Number of request tokens has exceeded your per-minute rate limit',
  ],
  quota: [
    400,
    'invalid_request_error',
    'Your credit balance is too low to access the Anthropic API.',
  ],
  auth: [401, 'authentication_error', 'invalid x-api-key'],
  overloaded: [529, 'overloaded_error', 'Overloaded'],
  broken: [500, 'api_error', 'Internal server error'],
  tooLong: [400, 'invalid_request_error', 'prompt is too long: 203142 tokens > 200000 maximum'],
  badRequest: [400, 'invalid_request_error', 'no such parameter'],
  picture: [400, 'invalid_request_error', 'Could not process image'],
  filtered: [400, 'invalid_request_error', 'Output blocked by content filtering policy'],
  page: [502, '', PAGE],
};

/** `unsigned`: servers other than Anthropic's do not sign thoughts. */
const anthropicReply = (reply: WireReply, signs: 'signed' | 'unsigned' = 'signed'): ServerReply => {
  if (reply.type === 'nothing') return reply;
  if (reply.type === 'failure') {
    const [status, errorType, message] = FAILURES[reply.failure];
    const headers =
      reply.retryAfterS === undefined ? {} : { 'retry-after': String(reply.retryAfterS) };
    return { type: 'error', status, errorType, message, headers };
  }
  const { input, cached, output } = reply.tokens ?? DEFAULT_TOKENS;
  return {
    type: 'message',
    parts: reply.parts
      .map(partOf)
      .map((part) =>
        part.type === 'thinking' && signs === 'unsigned' ? { ...part, signature: null } : part,
      ),
    stopReason: STOPS[stopOf(reply)],
    end: reply.end ?? 'whole',
    usage: { input_tokens: input - cached, cache_read_input_tokens: cached, output_tokens: output },
  };
};

const through = (fetch: LeanFetch | undefined): { fetch?: LeanFetch } =>
  fetch === undefined ? {} : { fetch };

const anthropicWire = (
  title: string,
  signs: 'signed' | 'unsigned',
  usualName = 'claude-sonnet-5-5',
  habits: Habits = {},
): TestedWire => ({
  name: 'anthropic',
  title,
  keeps: signs === 'signed' ? 'secret' : 'words',
  start: (replies) =>
    startAnthropicServer({
      habits,
      replies:
        typeof replies === 'function'
          ? (body, index) => anthropicReply(replies(body, index), signs)
          : replies.map((reply) =>
              typeof reply === 'function'
                ? (body: unknown) => anthropicReply(reply(body), signs)
                : anthropicReply(reply, signs),
            ),
    }),
  model: (baseUrl, name = usualName, apiKey = 'key', fetch?) =>
    anthropicModel(
      adapterOptions(`anthropic/${name}`, baseUrl, {
        apiKey,
        facts: roomy(habits),
        thinksByItself: true,
        ...through(fetch),
      }),
    ),
});

const chatWire = (
  title: string,
  habits: ChatHabits,
  { usualName = 'qwen3', ...own }: Partial<ModelFacts> & { readonly usualName?: string } = {},
): TestedWire => ({
  name: 'chat',
  title,
  keeps:
    habits.back === 'refused'
      ? 'nothing'
      : habits.thoughts === 'extra_content'
        ? 'secret'
        : 'words',
  start: (replies) => startChatServer(replies, { key: 'key', habits }),
  model: (baseUrl, name = usualName, apiKey = 'key', fetch?) =>
    compatibleModel(
      adapterOptions(`openai-compatible/${name}`, `${baseUrl}/v1`, {
        apiKey,
        facts: { ...roomy(habits), ...own },
        ...through(fetch),
      }),
    ),
});

const openAiWire = (title: string, habits: ResponsesHabits, usualName: string): TestedWire => ({
  name: 'openai',
  title,
  keeps: habits.thoughts === 'words' ? 'words' : 'secret',
  start: (replies) => startOpenAiServer(replies, habits),
  model: (baseUrl, name = usualName, apiKey = 'key', fetch?) =>
    openAiModel(
      adapterOptions(`openai/${name}`, `${baseUrl}/v1`, {
        apiKey,
        facts: roomy(habits),
        ...through(fetch),
      }),
    ),
});

export const wires: readonly TestedWire[] = [
  anthropicWire('anthropic', 'signed'),
  openAiWire('openai', {}, 'gpt-6.2-sol'),
  {
    name: 'google',
    title: 'google',
    keeps: 'secret',
    start: startGoogleServer,
    model: (baseUrl, name = 'gemini-3.8-flash', apiKey = 'key', fetch?) =>
      googleModel(adapterOptions(`google/${name}`, baseUrl, { apiKey, facts, ...through(fetch) })),
  },
  chatWire('chat', {}),
];

const WINDOW = 9_000;

/** Fields that gateways refuse, one after the other. */
const REFUSED_FIELDS = ['stream_options', 'max_tokens', 'reasoning_effort'];

/** Servers that refuse what others take. Each has a model of its own: what it has taught is remembered. */
export const habits: readonly TestedWire[] = [
  anthropicWire('anthropic without signatures', 'unsigned', 'glm'),
  anthropicWire('anthropic, few fields, prompt and answer together', 'unsigned', 'kimi', {
    refuses: ['tools.eager_input_streaming', 'thinking', 'system.cache_control'],
    windowTokens: WINDOW,
  }),
  openAiWire('openai, thoughts in words', { thoughts: 'words' }, 'gpt-5.9-words'),
  openAiWire(
    'openai, few fields, prompt and answer together',
    { refuses: ['reasoning.summary'], windowTokens: WINDOW },
    'gpt-5.9-few',
  ),
  chatWire(
    'chat, prompt and answer together',
    { thoughts: 'reasoning', back: 'demanded', windowTokens: WINDOW },
    { usualName: 'vllm' },
  ),
  chatWire('chat, thoughts demanded', { back: 'demanded' }, { usualName: 'deepseek' }),
  chatWire(
    'chat, details demanded',
    { thoughts: 'reasoning_details', back: 'demanded' },
    { usualName: 'router' },
  ),
  chatWire(
    'chat, thoughts in the content',
    { thoughts: 'content', back: 'demanded' },
    { usualName: 'magistral' },
  ),
  chatWire(
    'chat, signed calls',
    { thoughts: 'extra_content', back: 'demanded' },
    { usualName: 'gemini' },
  ),
  chatWire(
    'chat, thoughts refused',
    { thoughts: 'reasoning', back: 'refused' },
    { usualName: 'groq' },
  ),
  chatWire('chat, few fields', { refuses: REFUSED_FIELDS }, { usualName: 'gateway' }),
  chatWire(
    'chat, few fields, thoughts demanded, prompt and answer together',
    { thoughts: 'reasoning', back: 'demanded', refuses: REFUSED_FIELDS, windowTokens: WINDOW },
    { usualName: 'all' },
  ),
];
