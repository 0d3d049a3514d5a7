/**
 * A model that answers from a script: docs/build/scripted-model.md.
 *
 * 1. Nothing is random, and only `delayMs` takes time.
 * 2. A request that the script does not foresee gets a failed reply that says so, never an invented
 *    answer.
 *
 * From top to bottom: the model; the form of a script; which reply a request gets; rules, which
 * answer every request that matches; and expectations, which a request must meet.
 */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { ModelError, ModelErrorKind, StopReason } from '../machine/event.js';
import type {
  AssistantMessage,
  AssistantText,
  Message,
  ReasoningPart,
} from '../machine/message.js';
import { type Clock, systemClock } from '../platform/clock.js';
import { cut } from '../platform/text.js';
import type {
  Model,
  ModelFacts,
  ModelPiece,
  ModelRequest,
  RawCall,
  TokenUsage,
} from '../ports/model.js';

const NO_TOKENS = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
/** Characters of a streamed piece. */
const PIECE_LENGTH = 24;

const facts: ModelFacts = {
  windowTokens: 128_000,
  outputTokensMax: 8_192,
  thinking: 'no',
  tools: 'yes',
  prices: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  source: 'the scripted model costs nothing',
};

export type ScriptedOptions = {
  /** Default `scripted/script`. */
  readonly id?: string;
  /** Clock for `delayMs`; default the system's. */
  readonly clock?: Pick<Clock, 'after'>;
};

const splitPieces = (text: string): readonly string[] =>
  text.match(new RegExp(`[\\s\\S]{1,${PIECE_LENGTH}}`, 'gu')) ?? [];

/** Resolves after the delay, or when the signal is aborted; a null delay waits for the abort. */
const wait = (
  clock: Pick<Clock, 'after'>,
  delayMs: number | null,
  signal: AbortSignal,
): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const cancel = delayMs === null ? () => undefined : clock.after(delayMs, end);
    signal.addEventListener('abort', end, { once: true });
    function end(): void {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    }
  });

const failed = (message: string, error: Partial<ModelError> = {}): ModelPiece => ({
  type: 'failed',
  error: { kind: 'badRequest', message, retryable: false, retryAfterMs: null, ...error },
  usage: null,
});

const RETRYABLE: ReadonlySet<ModelError['kind']> = new Set([
  'rateLimited',
  'overloaded',
  'unreachable',
  'timeout',
]);

/** The failure that the script asks for; null if it asks for none. */
const scriptedFailure = ({ fail, cut }: ScriptedReply): ModelPiece | null => {
  if (cut)
    return failed('the script cuts this reply off', { kind: 'unreachable', retryable: true });
  if (fail === undefined) return null;
  const { kind, message = `the script fails with ${kind}`, retryAfterMs = null } = fail;
  return failed(message, { kind, retryable: RETRYABLE.has(kind), retryAfterMs });
};

/** The end of a whole reply. */
const complete = (reply: ScriptedReply, number: number): ModelPiece => {
  const parts: (AssistantText | ReasoningPart | RawCall)[] = [];
  if (reply.reasoning) parts.push({ type: 'reasoning', text: reply.reasoning });
  if (reply.text) parts.push({ type: 'text', text: reply.text });
  const calls = reply.calls ?? [];
  for (const [index, call] of calls.entries()) {
    parts.push({
      type: 'call',
      callId: scriptedCallId(call, number, index),
      tool: call.tool,
      rawInput: scriptedInput(call),
    });
  }
  const stopReason = reply.stopReason ?? (calls.length > 0 ? 'toolUse' : 'end');
  return { type: 'completed', parts, stopReason, usage: { ...NO_TOKENS, ...reply.usage } };
};

/** The reply in pieces. */
function* streamPieces(reply: ScriptedReply): Generator<ModelPiece> {
  for (const text of splitPieces(reply.reasoning ?? '')) yield { type: 'reasoning', text };
  for (const text of splitPieces(reply.text ?? '')) yield { type: 'text', text };
  if (!isAnswer(reply)) return;
  for (const call of reply.calls ?? []) {
    for (const text of splitPieces(scriptedInput(call)))
      yield { type: 'toolCall', tool: call.tool, text };
  }
}

/** A model that gives one reply of a script per request. Keep one model for a whole session. */
export const scriptedModel = (script: Script, options: ScriptedOptions = {}): Model => {
  const { id = 'scripted/script', clock = systemClock } = options;
  const nextReply = createCursor(script.replies);
  const findRule = createRules(script.rules);

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPiece> {
    const rule = findRule(request.messages);
    if (rule !== undefined) return yield* give(rule, 0, signal);
    const choice = nextReply(request.messages);
    if (choice.kind === 'exhausted') {
      return yield failed(
        `${id}: the script is at its end: it has ${script.replies.length} replies, and one ` +
          'more was asked for',
      );
    }
    const { reply, number } = choice;
    const unmet = findUnmet(reply.expect, request);
    if (unmet !== null) return yield failed(`${id}, reply ${number}: ${unmet}`);
    yield* give(reply, number, signal);
  }

  async function* give(
    reply: ScriptedReply,
    number: number,
    signal: AbortSignal,
  ): AsyncGenerator<ModelPiece> {
    for (const piece of streamPieces(reply)) {
      if (reply.delayMs !== undefined) await wait(clock, reply.delayMs, signal);
      if (signal.aborted) return;
      yield piece;
    }
    if (reply.stall) return wait(clock, null, signal);
    yield scriptedFailure(reply) ?? complete(reply, number);
  }

  return { id, facts: { ...facts, ...script.facts }, canAbort: 'yes', stream };
};

// ---- The form of a script; docs/build/scripted-model.md explains each field ----

/**
 * `contains`: each of these texts. `matches`: a regular expression. `lacks`: none of these texts.
 */
type TextExpectation = {
  readonly contains?: string | readonly string[];
  readonly matches?: string;
  readonly lacks?: string | readonly string[];
};

type ResultExpectation = TextExpectation & { readonly callId: string; readonly failed?: boolean };

/** What must hold for the request that gets the reply. */
type Expectation = {
  /** The exact number of messages. */
  readonly messages?: number;
  /** All texts and results of the last message. */
  readonly last?: TextExpectation;
  readonly instructions?: TextExpectation;
  readonly results?: readonly ResultExpectation[];
  /** Tools that must be offered. */
  readonly tools?: readonly string[];
};

type ScriptedCall = {
  readonly tool: string;
  /** Default `call-REPLY-CALL`, both counted from 1. */
  readonly callId?: string;
  readonly input?: JsonObject;
  /** In place of `input`: text that need not be JSON. */
  readonly rawInput?: string;
};

type ScriptedFailure = {
  readonly kind: ModelErrorKind;
  readonly message?: string;
  readonly retryAfterMs?: number;
};

export type ScriptedReply = {
  readonly expect?: Expectation;
  readonly reasoning?: string;
  readonly text?: string;
  readonly calls?: readonly ScriptedCall[];
  readonly stopReason?: StopReason;
  readonly usage?: Partial<TokenUsage>;
  /** Delay before each piece. */
  readonly delayMs?: number;
  readonly fail?: ScriptedFailure;
  /** The reply never ends. */
  readonly stall?: boolean;
  /** The reply breaks off. */
  readonly cut?: boolean;
};

/** A reply to every request whose last message matches, at any place of its conversation. */
type ScriptedRule = Omit<ScriptedReply, 'expect' | 'calls'> & {
  /** A regular expression; `text` may use its groups. */
  readonly when: string;
};

export type Script = {
  readonly replies: readonly ScriptedReply[];
  /** Tried in their order, before the replies. */
  readonly rules?: readonly ScriptedRule[];
  readonly facts?: Partial<Pick<ModelFacts, 'windowTokens' | 'outputTokensMax' | 'prices'>>;
};

export const scriptedCallId = (call: ScriptedCall, number: number, index: number): string =>
  call.callId ?? `call-${number}-${index + 1}`;

const scriptedInput = (call: ScriptedCall): string =>
  call.rawInput ?? JSON.stringify(call.input ?? {});

/** True if a conversation keeps the reply: it is whole and not empty. */
export const isAnswer = ({ fail, stall, cut, text, reasoning, calls }: ScriptedReply): boolean =>
  fail === undefined && !stall && !cut && Boolean(text || reasoning || calls?.length);

/*
 * ---- Which reply a request gets ----
 *
 * 1. The messages alone tell a conversation's place in the script: a new process continues at the
 *    right place after a crash, a fork at its own, and messages of other models count for nothing.
 * 2. Replies that leave nothing in the conversation (failures, stalls, cuts, empty ones) come one
 *    after another for repeated requests at the same place. The model counts those requests; a new
 *    process starts to count anew.
 * 3. An answer that the conversation did not keep is given again.
 */

type FoundReply = {
  readonly kind: 'found';
  readonly reply: ScriptedReply;
  readonly number: number;
};
type NextReply = (messages: readonly Message[]) => FoundReply | { readonly kind: 'exhausted' };

const assistantText = ({ parts }: AssistantMessage): string =>
  parts.map((part) => (part.type === 'text' ? part.text : '')).join('');

const summaryText = (message: Message): string => {
  if (message.role === 'assistant') return '';
  return message.parts
    .map((part) => (part.type === 'text' && part.origin === 'summary' ? part.text : ''))
    .join('');
};

const findFrom = (
  replies: readonly ScriptedReply[],
  start: number,
  fits: (reply: ScriptedReply) => boolean,
): number => {
  for (let index = start; index < replies.length; index++) {
    const reply = replies[index];
    if (reply !== undefined && fits(reply)) return index;
  }
  return -1;
};

/**
 * The reply that a summary was made from: the one with the longest text in it; -1 if there is none.
 */
const longestWithin = (summary: string, replies: readonly ScriptedReply[]): number => {
  let best = -1;
  let longest = 0;
  for (const [index, { text = '' }] of replies.entries()) {
    if (text.length <= longest || !summary.includes(text)) continue;
    best = index;
    longest = text.length;
  }
  return best;
};

/** The replies of a script, and the first reply with each call id. */
type Indexed = {
  readonly replies: readonly ScriptedReply[];
  readonly callers: ReadonlyMap<string, number>;
};

/**
 * Indexes call ids, since each message of each request looks one up in scripts of thousands of
 * calls.
 */
const indexReplies = (replies: readonly ScriptedReply[]): Indexed => {
  const callers = new Map<string, number>();
  for (const [index, { calls = [] }] of replies.entries()) {
    for (const [place, call] of calls.entries()) {
      const callId = scriptedCallId(call, index + 1, place);
      if (!callers.has(callId)) callers.set(callId, index);
    }
  }
  return { replies, callers };
};

/** The reply that a message of the conversation came from, or -1. */
const findOrigin = (message: Message, { replies, callers }: Indexed, start: number): number => {
  const summary = summaryText(message);
  if (summary !== '') return longestWithin(summary, replies);
  if (message.role === 'user') return -1;
  const called = message.parts.find((part) => part.type === 'call');
  if (called !== undefined) return callers.get(called.callId) ?? -1;
  const text = assistantText(message);
  if (!message.cut)
    return findFrom(replies, start, (reply) => isAnswer(reply) && (reply.text ?? '') === text);
  return text === ''
    ? -1
    : findFrom(replies, start, (reply) => (reply.text ?? '').startsWith(text));
};

/** Makes a function from a conversation to the index of the first reply that it has not used up. */
const createPlaces = (script: Indexed): ((messages: readonly Message[]) => number) => {
  /** The messages of the last request, and the place after each. */
  let known: readonly Message[] = [];
  let places: number[] = [];
  return (messages) => {
    // A conversation mostly grows: only new messages are looked up, or a long session takes
    // quadratic time.
    let same = 0;
    while (same < messages.length && messages[same] === known[same]) same += 1;
    places = places.slice(0, same);
    for (const message of messages.slice(same)) {
      const place = places.at(-1) ?? 0;
      places.push(Math.max(place, findOrigin(message, script, place) + 1));
    }
    known = [...messages];
    return places.at(-1) ?? 0;
  };
};

/** Makes the function that chooses the reply to a conversation. */
export const createCursor = (replies: readonly ScriptedReply[]): NextReply => {
  const timesAt = new Map<number, number>();
  const findPlace = createPlaces(indexReplies(replies));
  return (messages) => {
    const place = findPlace(messages);
    const times = timesAt.get(place) ?? 0;
    timesAt.set(place, times + 1);
    // Repeated requests at a place go through the replies that leave nothing, up to the next
    // answer, which is then given each time (rules 2 and 3).
    const answer = findFrom(replies, place, isAnswer);
    const index = answer === -1 ? place + times : Math.min(place + times, answer);
    const reply = replies[index];
    return reply === undefined
      ? { kind: 'exhausted' }
      : { kind: 'found', reply, number: index + 1 };
  };
};

// ---- Rules ----

/**
 * Placeholders of a template: `$1` to `$9`, `$<name>`, `$&` for the whole match, `$$` for a dollar.
 */
const PLACEHOLDER = /\$(?:([1-9])|<([^>]*)>|([&$]))/g;

const fill = (template: string, match: RegExpExecArray): string =>
  template.replace(PLACEHOLDER, (_whole, number?: string, name?: string, sign?: string) => {
    if (number !== undefined) return match[Number(number)] ?? '';
    if (name !== undefined) return match.groups?.[name] ?? '';
    return sign === '&' ? match[0] : '$';
  });

/** The text of a user message: typed text, results, notes. */
export const messageText = (message: Message | undefined): string =>
  (message?.parts ?? []).map((part) => (part.type === 'call' ? part.tool : part.text)).join('\n');

/**
 * Finds the first rule that matches the last message, and fills in its text.
 *
 * It reads nothing else and remembers nothing: requests of many conversations may come at once and
 * in any order.
 */
const createRules = (
  rules: readonly ScriptedRule[] = [],
): ((messages: readonly Message[]) => ScriptedReply | undefined) => {
  const tried = rules.map((rule) => ({ rule, pattern: new RegExp(rule.when, 'u') }));
  return (messages) => {
    const text = tried.length === 0 ? '' : messageText(messages.at(-1));
    for (const { rule, pattern } of tried) {
      const match = pattern.exec(text);
      if (match === null) continue;
      const { when: _when, ...reply } = rule;
      return reply.text === undefined ? reply : { ...reply, text: fill(reply.text, match) };
    }
    return undefined;
  };
};

// ---- Expectations ----

/** Characters of a text that a message quotes. */
const QUOTED_MAX = 300;

const toList = (value: string | readonly string[] | undefined): readonly string[] => {
  if (value === undefined) return [];
  return typeof value === 'string' ? [value] : value;
};

const quote = (text: string): string => JSON.stringify(cut(text, QUOTED_MAX));

const findUnmetText = (
  what: string,
  expected: TextExpectation | undefined,
  text: string,
): string | null => {
  if (expected === undefined) return null;
  const missing = toList(expected.contains).find((expectedText) => !text.includes(expectedText));
  if (missing !== undefined)
    return `${what} should contain ${quote(missing)}, but is ${quote(text)}`;
  const present = toList(expected.lacks).find((unwanted) => text.includes(unwanted));
  if (present !== undefined)
    return `${what} should not contain ${quote(present)}, but is ${quote(text)}`;
  const { matches } = expected;
  if (matches === undefined || new RegExp(matches, 'u').test(text)) return null;
  return `${what} should match /${matches}/u, but is ${quote(text)}`;
};

const findUnmetResult = (
  expected: ResultExpectation,
  messages: readonly Message[],
): string | null => {
  const { callId, failed } = expected;
  const results = messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'result'));
  const match = results.find((result) => result.callId === callId);
  if (match === undefined) {
    const ids = results.map((result) => result.callId).join(', ');
    return `there should be a result of ${callId}, but there are results of: ${ids || 'none'}`;
  }
  if (failed !== undefined && match.failed !== failed) {
    const outcome = failed ? 'failed' : 'succeeded';
    return `${callId} should have ${outcome}, but its result is ${quote(match.text)}`;
  }
  return findUnmetText(`the result of ${callId}`, expected, match.text);
};

/**
 * The first unmet expectation, as a sentence with the expected and the actual value; null if all
 * are met.
 */
const findUnmet = (expected: Expectation | undefined, request: ModelRequest): string | null => {
  if (expected === undefined) return null;
  const { messages, instructions, tools } = request;
  if (expected.messages !== undefined && expected.messages !== messages.length) {
    return `the request should have ${expected.messages} messages, but has ${messages.length}`;
  }
  const names = tools.map(({ name }) => name);
  const absent = (expected.tools ?? []).find((name) => !names.includes(name));
  if (absent !== undefined)
    return `the tool ${absent} should be there, but there are: ${names.join(', ') || 'none'}`;
  for (const result of expected.results ?? []) {
    const unmet = findUnmetResult(result, messages);
    if (unmet !== null) return unmet;
  }
  return (
    findUnmetText('the last message', expected.last, messageText(messages.at(-1))) ??
    findUnmetText('the instructions', expected.instructions, instructions)
  );
};
