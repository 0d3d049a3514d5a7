/**
 * A model that follows the session's plan: replies, and faults of networks and providers. It also
 * checks the requests that it gets, as a strict provider would.
 *
 * The `world` is all that surrounds the processes of one simulated session. Its `plan` says how
 * often which faults come, its `choices` are random ones that repeat with the seed. `violate`
 * reports a broken rule. `noteSituation` notes a case that must occur somewhere in a set of
 * sessions, so that it is known to be tested. `isHealed`: the faults are over, and the session must
 * come to an end. At a `crashPoint` the process may crash. A side request is one without tools, for
 * a commit message; all others are main requests.
 *
 * From top to bottom: how a reply ends; its parts; the check of a request; the streaming of a
 * reply; `simulatedModel`; and the faults of messages.
 */

import type { ModelErrorKind } from '@pawl/agent/machine/event';
import type { Message } from '@pawl/agent/machine/message';
import type { Prices } from '@pawl/agent/machine/settings';
import type { Model, ModelPiece, ModelRequest, RawCall } from '@pawl/agent/ports/model';
import { DEAR_PRICES, PRICES } from './prices.js';
import type { SimulatedProcess } from './simulated-process.js';
import { TOOL_NAMES } from './tools.js';
import type { Situation } from './world.js';

/** The last text of a request for a summary. */
export const SUMMARISE = 'write the summary';
/** Ends the names of inputs, so that no name is part of another. */
export const INPUT_NAME = /input\d+;/g;

const OUTPUT_TOKENS_MAX = 60;

/** A failure of a provider, and the situation that it makes, if that must occur in some session. */
type Failure = readonly [kind: ModelErrorKind, retryable: boolean, situation: Situation | null];

const FAILURES: readonly Failure[] = [
  ['rateLimited', true, 'rate limited'],
  ['overloaded', true, 'server failed'],
  ['unreachable', true, 'server failed'],
  ['contextOverflow', false, 'context overflow'],
  ['auth', false, null],
  ['quotaExhausted', false, null],
  ['badRequest', false, null],
];

/** How a reply ends. */
type End =
  | { readonly kind: 'reply' }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | {
      readonly kind:
        | 'breaksOff'
        | 'silent'
        | 'throws'
        | 'malformed'
        | 'badUsage'
        | 'empty'
        | 'cut'
        | 'refused';
    };

/** Failures that lead to another model after the last retry. */
const OUTAGES: readonly Failure[] = [
  ['overloaded', true, 'server failed'],
  ['rateLimited', true, 'rate limited'],
  ['quotaExhausted', false, null],
];

const chooseEnd = ({ world }: SimulatedProcess, id: string): End => {
  const { choices, plan, isHealed } = world;
  if (isHealed) return { kind: 'reply' };
  const outages = id === FIRST_MODEL ? plan.outages : plan.outages / 2;
  if (outages > 0 && choices.chance(outages))
    return {
      kind: 'failed',
      failure: OUTAGES[choices.below(OUTAGES.length)] ?? ['overloaded', true, null],
    };
  // Only failures that are tried again: such a session is about the waits between them.
  if (plan.isAboutRetries) return { kind: choices.pick('reply', 'breaksOff') };
  if (!choices.chance(plan.modelFaults)) return { kind: 'reply' };
  const kind = choices.pick(
    'failed',
    'failed',
    'failed',
    'breaksOff',
    'silent',
    'throws',
    'malformed',
    'badUsage',
    'empty',
    'cut',
    'refused',
  );
  if (kind !== 'failed') return { kind };
  return { kind, failure: FAILURES[choices.below(FAILURES.length)] ?? ['overloaded', true, null] };
};

/** The names of all inputs in a conversation: a summary has to keep them (step-checks.ts). */
const findInputNames = (messages: readonly Message[]): readonly string[] => [
  ...new Set(
    messages.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === 'text' ? (part.text.match(INPUT_NAME) ?? []) : [])),
    ),
  ),
];

const asksForSummary = ({ messages }: ModelRequest): boolean =>
  messages.at(-1)?.parts.some((part) => part.type === 'text' && part.text.includes(SUMMARISE)) ===
  true;

/** Messages since the last text of the user: two for each round of calls and results. */
const countSinceInput = (messages: readonly Message[]): number => {
  const last = messages.findLastIndex(
    ({ role, parts }) =>
      role === 'user' && parts.some((part) => part.type === 'text' && part.origin === 'user'),
  );
  return messages.length - 1 - last;
};

const pickCall = (process: SimulatedProcess): RawCall => {
  const { choices, isHealed } = process.world;
  const tool = TOOL_NAMES[choices.below(TOOL_NAMES.length)] ?? 'look';
  const callId = process.world.name('call');
  const input = { file: choices.pick('a', 'b'), line: callId };
  const isBroken = !isHealed && choices.chance(0.05);
  const rawInput = isBroken ? choices.pick('{"file":', '[1]', 'no JSON') : JSON.stringify(input);
  return {
    type: 'call',
    callId,
    tool: isBroken && choices.chance(0.3) ? 'no_such_tool' : tool,
    rawInput,
  };
};

const createParts = (
  process: SimulatedProcess,
  request: ModelRequest,
): Extract<ModelPiece, { type: 'completed' }>['parts'] => {
  const { choices, plan, isHealed } = process.world;
  if (request.tools.length === 0) return [{ type: 'text', text: 'a commit' }];
  if (asksForSummary(request))
    return [{ type: 'text', text: `so far: ${findInputNames(request.messages).join(' ')}` }];
  const mayCall =
    request.toolChoice !== 'none' && countSinceInput(request.messages) < (isHealed ? 2 : 8);
  if (!mayCall || !choices.chance(0.6)) return [{ type: 'text', text: 'done' }];
  const calls = Array.from({ length: choices.between(1, plan.callsMax) }, () => pickCall(process));
  return choices.chance(0.3) ? [{ type: 'text', text: 'I look' }, ...calls] : calls;
};

/** Checks a request to a model as its provider would, and the rules for sending one. */
const checkRequest = (process: SimulatedProcess, id: string, request: ModelRequest): void => {
  const { world, state } = process;
  const fault = findRequestFault(request.messages);
  if (fault !== null) world.violate('valid-request', fault);
  // `hasUsedReserve`: the disk is full, and entries are in space that was reserved for the end.
  if (process.hasFailedToWrite || process.hasUsedReserve)
    world.violate('no-effect-after-failed-write', 'a request after the journal has failed');
  if (request.tools.length === 0 || state === null) return; // a side request
  const { model } = state.session.settings;
  if (model !== id) world.violate('machine-rules', `${id} is asked, and ${model} is to answer`);
  if (process.requests > 1)
    world.violate('one-request-at-once', `${process.requests} requests are open`);
  const { limits } = state.session.settings;
  if (limits.usd !== 'unlimited' && state.session.usage.costUsd >= limits.usd)
    world.violate(
      'spend-within-limit',
      `a request at $${state.session.usage.costUsd} of $${limits.usd}`,
    );
};

/** Waits, but not longer than until the abort. True if it was aborted. */
const pauseOrAbort = (
  process: SimulatedProcess,
  delayMs: number,
  signal: AbortSignal,
): Promise<boolean> =>
  new Promise((resolve) => {
    const finish = (): void => resolve(signal.aborted);
    process.after(delayMs, finish);
    if (signal.aborted) finish();
    signal.addEventListener('abort', () => process.after(0, finish), { once: true });
  });

const HOUR = 3_600_000;
/** A reply that broke off is journaled within this time, however slow the disk is. */
const BROKEN_MS = 1_000;

/** Lengths of messages as JSON: each request holds all messages before. */
const lengths = new WeakMap<Message, number>();

const countCharacters = (message: Message): number => {
  const known = lengths.get(message);
  if (known !== undefined) return known;
  const { length } = JSON.stringify(message);
  lengths.set(message, length);
  return length;
};

const countUsage = (process: SimulatedProcess, request: ModelRequest) => {
  // as JSON, with brackets and commas
  const characters = request.messages.reduce(
    (sum, message) => sum + countCharacters(message) + 1,
    1,
  );
  const inputTokens = Math.ceil(characters / 4);
  const outputTokens = process.world.choices.between(5, OUTPUT_TOKENS_MAX);
  return { inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 };
};

const createFailedPiece = (
  { world }: SimulatedProcess,
  [kind, retryable, situation]: Failure,
): ModelPiece => {
  if (situation !== null) world.noteSituation(situation);
  const retryAfterMs = kind === 'rateLimited' ? world.choices.pick(null, 3_000, 400_000) : null;
  return { type: 'failed', error: { kind, message: kind, retryable, retryAfterMs }, usage: null };
};

async function* streamReply(
  process: SimulatedProcess,
  id: string,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelPiece> {
  const { world } = process;
  const { choices } = world;
  const end = chooseEnd(process, id);
  world.log(`request of ${request.messages.length} messages: ${end.kind}`);
  if (await pauseOrAbort(process, choices.pick(200, 20, 5_000), signal)) return;
  if (end.kind === 'silent') {
    world.noteSituation('model fell silent');
    if (await pauseOrAbort(process, HOUR, signal)) return;
    world.violate('settles', 'the model was silent for an hour, and nobody ended the request');
  }
  for (let count = choices.pick(0, 1, 4); count > 0; count--) {
    yield { type: choices.pick('text', 'reasoning'), text: `piece ${count}; ` };
    if (await pauseOrAbort(process, choices.pick(10, 100), signal)) {
      if (!choices.chance(0.3)) return;
      world.noteSituation('usage after an abort');
      yield {
        type: 'completed',
        parts: [],
        stopReason: 'end',
        usage: countUsage(process, request),
      };
      return;
    }
  }
  process.crashPoint('the end of a reply');
  if (process.isDead) return;
  yield* endReply(process, request, end);
}

/** Checks that the session notices a broken reply at once, before the limit for silence. */
const checkEndIsNoticed = (process: SimulatedProcess): void => {
  const { world, state } = process;
  if (state?.name !== 'CallingLlm') return;
  const { requestId } = state;
  const { requestsMade } = process;
  process.after(BROKEN_MS, () => {
    const now = process.state;
    if (process.requestsMade > requestsMade) return; // the session was opened again
    if (
      process.hasFailedToWrite ||
      process.hasUsedReserve ||
      now?.name !== 'CallingLlm' ||
      now.requestId !== requestId
    )
      return;
    world.violate(
      'settles',
      `the reply to ${requestId} broke off, and the session still waits for it`,
    );
  });
};

function* endReply(
  process: SimulatedProcess,
  request: ModelRequest,
  end: End,
): Generator<ModelPiece> {
  const { world } = process;
  switch (end.kind) {
    case 'failed':
      yield createFailedPiece(process, end.failure);
      return;
    case 'breaksOff':
      world.noteSituation('reply broke off');
      checkEndIsNoticed(process);
      return;
    case 'throws':
      throw new Error('EPIPE: the connection is gone');
    case 'malformed':
      world.noteSituation('malformed reply');
      // a careless adapter may yield this
      yield { type: 'completed', parts: 7, stopReason: 'end' } as unknown as ModelPiece;
      return;
    default:
      yield createCompletedPiece(process, request, end);
  }
}

const createCompletedPiece = (
  process: SimulatedProcess,
  request: ModelRequest,
  end: End,
): ModelPiece => {
  const { world } = process;
  if (end.kind === 'badUsage') world.noteSituation('usage that can not be counted');
  const counted = countUsage(process, request);
  const usage =
    end.kind === 'badUsage'
      ? { ...counted, inputTokens: world.choices.pick(Number.NaN, -5) }
      : counted;
  const parts = end.kind === 'empty' ? [] : createParts(process, request);
  const calls = parts.some(({ type }) => type === 'call');
  if (end.kind === 'cut') return { type: 'completed', parts, stopReason: 'maxTokens', usage };
  if (end.kind === 'refused')
    return {
      type: 'completed',
      parts: [{ type: 'text', text: 'no' }],
      stopReason: 'refusal',
      usage,
    };
  return { type: 'completed', parts, stopReason: calls ? 'toolUse' : 'end', usage };
};

/** The model of each session. */
const FIRST_MODEL = 'simulated/model';
const prices: Readonly<Record<string, Prices | null>> = {
  'simulated/dear': DEAR_PRICES,
  'simulated/unpriced': null,
};

export const simulatedModel = (process: SimulatedProcess, id: string): Model => ({
  id,
  facts: {
    windowTokens: 128_000,
    outputTokensMax: 1_000,
    thinking: 'no',
    tools: 'yes',
    prices: id in prices ? (prices[id] ?? null) : PRICES,
    source: 'simulated',
  },
  canAbort: 'yes',
  async *stream(request, signal) {
    process.crashPoint('a request');
    if (process.isDead) await new Promise(() => undefined);
    process.requestsMade += 1;
    const isMain = request.tools.length > 0;
    if (isMain) process.requests += 1;
    let isOpen = isMain;
    const close = (): void => {
      if (isOpen) process.requests -= 1;
      isOpen = false;
    };
    signal.addEventListener('abort', close, { once: true });
    checkRequest(process, id, request);
    for await (const piece of streamReply(process, id, request, signal)) {
      if (piece.type === 'completed' || piece.type === 'failed') close();
      yield piece;
    }
    close();
  },
});

/** The fault in a message of the user: it must answer the calls that were asked, and in order. */
const findUserFault = (
  parts: Extract<Message, { role: 'user' }>['parts'],
  asked: readonly string[],
  at: number,
): string | null => {
  const answered = parts.flatMap((part) => (part.type === 'result' ? [part.callId] : []));
  if (answered.join() !== asked.join())
    return `message ${at} answers [${answered}], and [${asked}] were asked`;
  const firstText = parts.findIndex(({ type }) => type === 'text');
  if (firstText >= 0 && parts.slice(firstText).some(({ type }) => type === 'result'))
    return `message ${at} has a result after a text`;
  return parts.some(
    (part) => part.type === 'text' && part.text.trim() === '' && (part.images ?? []).length === 0,
  )
    ? `message ${at} has an empty text`
    : null;
};

/** The fault that a strict provider sees in a request. Independent of the machine's rules. */
const findRequestFault = (messages: readonly Message[]): string | null => {
  let asked: readonly string[] = [];
  for (const [index, message] of messages.entries()) {
    const expected = index % 2 === 0 ? 'user' : 'assistant';
    if (message.role !== expected) return `message ${index} is the ${message.role}'s`;
    if (message.parts.length === 0) return `message ${index} is empty`;
    if (message.role === 'assistant') {
      asked = message.parts.flatMap((part) => (part.type === 'call' ? [part.callId] : []));
      if (new Set(asked).size < asked.length) return `message ${index} asks for a call twice`;
      continue;
    }
    const fault = findUserFault(message.parts, asked, index);
    if (fault !== null) return fault;
    asked = [];
  }
  return messages.at(-1)?.role === 'user' ? null : "the last message is not the user's";
};
