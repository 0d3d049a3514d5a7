/**
 * The request to the model. From top to bottom: its sending; what is added to the conversation that
 * it holds; and the money that is set aside before it is sent.
 */

import type { Action, RequestPurpose } from '../action.js';
import {
  addParts,
  addReply,
  addResults,
  addTexts,
  conversationLength,
  imageTokens,
} from '../conversation.js';
import type { Event, On, QueuedInput } from '../event.js';
import type { AssistantMessage, ResultPart, TextOrigin, UserText } from '../message.js';
import { type Prices, type Remaining, remainingLimit, totalTokens } from '../settings.js';
import {
  changeCalling,
  changeSession,
  changeTurn,
  findReservation,
  go,
  type In,
  ignore,
  type MoveTo,
  measuredId,
  nextId,
  reservedUsd,
  type SessionData,
  type SessionUpdate,
  type State,
  type Stay,
  withoutReservations,
  withSession,
} from '../state.js';
import { formatLimit, formatNumber, reachedLimit, spentText } from './budget.js';

/**
 * The state of a model call with the current conversation. `sendCall` sends it when the state comes
 * to rest.
 */
export const newCallingLlm = (
  session: SessionData,
  purpose: RequestPurpose,
  attempt: number,
): In<'CallingLlm'> => ({
  name: 'CallingLlm',
  session,
  purpose,
  requestId: '',
  attempt,
  partial: '',
  call: { mode: 'open' },
});

/**
 * Rest of CallingLlm (the move with which the state begins to wait): the only place that sends a
 * request. The request gets a new id; a resumed session keeps the id it has.
 */
export const sendCall = (state: In<'CallingLlm'>): MoveTo<'CallingLlm'> => {
  const { purpose } = state;
  const length = conversationLength(state.session.conversation);
  if (state.requestId !== '')
    return go(state, { type: 'SendLlmRequest', requestId: state.requestId, purpose, length });
  const [requestId, session] = nextId(state.session, 'request');
  const unaccounted = [...session.unaccounted, requestId];
  return go(changeCalling(state, { requestId, session: changeSession(session, { unaccounted }) }), {
    type: 'SendLlmRequest',
    requestId,
    purpose,
    length,
  });
};

/** At a limit: the model may answer in one more request, without tools. */
export const askToFinish = (
  state: In<'CheckingBudget'>,
  event: Event,
): MoveTo<'GatheringAdditionalMessages'> => {
  const { session } = state;
  const dimension = reachedLimit(session) ?? 'rounds';
  const spent = spentText(session, dimension, event.at);
  const noted = appendTexts(session, 'note', [
    `[${spent}: no tool runs any more. Give your final answer now.]`,
  ]);
  const finishing = changeTurn(noted, { finishing: dimension });
  return go(
    { name: 'GatheringAdditionalMessages', session: finishing },
    { type: 'DisplayNotice', kind: 'budget', text: `${spent}: the model is asked for its answer` },
  );
};

/** Retracts the streamed text of a reply that is not stored (rules.md#streamed-text). */
export const retractPartial = (requestId: string, shown: string): readonly Action[] =>
  shown === '' ? [] : [{ type: 'RetractPartial', requestId }];

// ---- Additions to the conversation, with the estimate of its size ----

const charactersPerToken = 4;

/** The size after an addition, estimated until a provider has counted. */
const grownTokens = (session: SessionData, characters: number, tokens = 0): number =>
  session.contextTokens + tokens + Math.ceil(characters / charactersPerToken);

const countImageTokens = (parts: readonly (ResultPart | UserText)[]): number =>
  parts.reduce((sum, part) => sum + imageTokens(part), 0);

const totalLength = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + text.length, 0);

/** Adds text to the trailing user message, or begins one. */
export const appendTexts = (
  session: SessionData,
  origin: TextOrigin,
  texts: readonly string[],
): SessionData =>
  changeSession(session, {
    conversation: addTexts(session.conversation, origin, texts),
    contextTokens: grownTokens(session, totalLength(texts)),
  });

/** Adds inputs of the user, with their images, to the trailing user message. */
export const appendInputs = (session: SessionData, inputs: readonly QueuedInput[]): SessionData => {
  const parts = inputs.map(({ text, images }): UserText => {
    const shown = images === undefined ? {} : { images };
    return { type: 'text', origin: 'user', text, ...shown };
  });
  return changeSession(session, {
    conversation: addParts(session.conversation, parts),
    contextTokens: grownTokens(
      session,
      totalLength(inputs.map(({ text }) => text)),
      countImageTokens(parts),
    ),
  });
};

/** Appends the results for the calls of the last reply, in call order. */
export const appendResults = (session: SessionData, results: readonly ResultPart[]): SessionData =>
  changeSession(session, {
    conversation: addResults(session.conversation, results),
    contextTokens: grownTokens(
      session,
      totalLength(results.map((result) => result.text)),
      countImageTokens(results),
    ),
  });

/**
 * Stores the received part of a stopped reply and estimates its size, since no provider counted it.
 */
export const appendPartialReply = (
  session: SessionData,
  reply: AssistantMessage,
  text: string,
): SessionData =>
  changeSession(appendReply(session, reply), {
    contextTokens: grownTokens(session, text.length),
  });

/** Stores a complete reply. The provider's count replaces the estimate, see `readReply`. */
export const appendReply = (session: SessionData, reply: AssistantMessage): SessionData =>
  changeSession(session, {
    conversation: addReply(session.conversation, reply),
  });

// ---- Money is set aside before a request is sent (rules.md#reserve-before-request) ----

/*
 * The worst case: each byte of its text is a token, each image IMAGE_TOKENS_MAX, all of it is
 * written to the cache, and the reply is as long as it may be. What the model counted of the
 * same conversation replaces its bytes.
 *
 * "Measured" has two meanings: RequestMeasured tells the size of the next request, before it is
 * sent; `session.measured` is the last request whose tokens the model has counted.
 */

/** More than any provider counts for a picture. */
export const IMAGE_TOKENS_MAX = 6_000;
/** What a provider adds to a request by itself, such as its instructions about tools. */
export const HIDDEN_TOKENS_MAX = 1_000;
/** No tokenizer makes fewer tokens of a text: a smaller count is not believed. */
const BYTES_PER_TOKEN_MAX = 8;
/** The largest output under a limit in dollars: what a lost request costs stays bearable. */
export const OUTPUT_TOKENS_MAX = 32_000;
/** A reply that may not be that long is not worth its request. */
export const OUTPUT_TOKENS_MIN = 1_024;
const MILLION = 1_000_000;
/** Sums of prices are not exact: this share of a limit stays free. */
const ROUNDING = 1e-9;

/** A request that the runtime is about to send, with its size. */
type NextRequest = On<'RequestMeasured'>;

/**
 * The most tokens that the next request can have. After a counted request only further bytes count
 * one token each: `freshBytes` of a request for a summary, the growth of a request of the turn. A
 * hook's request continues nothing, so all its bytes count. If 20,000 bytes were 5,000 tokens, a
 * request of 21,000 has 7,000 at most: 5,000, one for each further byte, and HIDDEN_TOKENS_MAX. The
 * 5,000 include the reply, whose bytes are further ones, too: an upper bound.
 */
const inputTokensMax = (
  { name, session }: State,
  { model, bytes, images, freshBytes }: NextRequest,
): number => {
  const { measured: last } = session;
  const growth = name === 'CallingLlm' ? bytes - last.bytes : -1;
  const more = freshBytes ?? growth;
  const continuesLast = more >= 0 && last.model === model;
  const tokens = continuesLast
    ? Math.max(last.tokens, last.bytes / BYTES_PER_TOKEN_MAX) + more
    : bytes;
  return Math.ceil(Math.min(bytes, tokens)) + images * IMAGE_TOKENS_MAX + HIDDEN_TOKENS_MAX;
};

/** What a request may cost at most, and how long its reply may be. */
type WorstCase = {
  readonly inputTokens: number;
  readonly inputUsd: number;
  readonly outputTokens: number;
  readonly outputUsd: number;
  /** Whether what is left pays for the shortest reply that is worth the request. */
  readonly fits: boolean;
};

/** The worst case of the next request, with the longest reply that the limit allows. */
const worstCase = (state: State, event: NextRequest): WorstCase => {
  const { session } = state;
  const limit = session.settings.limits.usd;
  const { prices, outputTokensMax } = event;
  const inputTokens = inputTokensMax(state, event);
  if (limit === 'unlimited' || prices === null) {
    const outputTokens = outputTokensMax;
    return { inputTokens, inputUsd: 0, outputTokens, outputUsd: 0, fits: true };
  }
  const usd = limit * (1 - ROUNDING) - session.usage.costUsd - reservedUsd(session);
  return worstCaseWithin(usd, { inputTokens, prices, outputTokensMax });
};

/** The highest price of the input, in dollars per million tokens. */
export const highestInputPrice = ({ input, cacheWrite, cacheRead }: Prices): number =>
  Math.max(input, cacheWrite, cacheRead);

type PricedRequest = {
  readonly inputTokens: number;
  readonly prices: Prices;
  readonly outputTokensMax: number;
};

/**
 * The worst case of a request that may cost `usd` dollars, with the longest reply. For $1, 100,000
 * tokens in at $3 a million and output at $15, the input costs $0.30 and $0.70 pay for 46,666
 * tokens of output: the reply may have 32,000 (OUTPUT_TOKENS_MAX).
 */
export const worstCaseWithin = (
  usd: number,
  { inputTokens, prices, outputTokensMax }: PricedRequest,
): WorstCase => {
  const inputUsd = (inputTokens * highestInputPrice(prices)) / MILLION;
  const free = usd - inputUsd;
  const most = Math.min(outputTokensMax, OUTPUT_TOKENS_MAX);
  const least = Math.min(outputTokensMax, OUTPUT_TOKENS_MIN);
  const paid = prices.output === 0 ? most : Math.floor((free * MILLION) / prices.output);
  const outputTokens = Math.max(least, Math.min(most, paid));
  const outputUsd = (outputTokens * prices.output) / MILLION;
  return { inputTokens, inputUsd, outputTokens, outputUsd, fits: free - outputUsd >= 0 };
};

/** Whether what is left pays for the request; also if no limit is set, or no price is known. */
export const isPaid = (state: State, event: NextRequest): boolean => worstCase(state, event).fits;

export const isStaleMeasure = (state: State, event: NextRequest): boolean =>
  event.usageId !== measuredId(state);
export const ignoreMeasure = <S extends State>(state: S): Stay<S> =>
  ignore(state, 'stale: nobody waits for this request');

/**
 * Sets the worst case aside. The runtime sends the request when it sees the reservation
 * (`admitRequest` in model-call.ts), with a reply of `outputTokens` at most.
 */
export const reserve = <S extends State>(state: S, event: NextRequest): Stay<S> => {
  const { session } = state;
  const { usageId: id, model, bytes } = event;
  const { inputUsd, outputUsd, outputTokens } = worstCase(state, event);
  // Several requests of one summary or hook share an id: their worst cases add up.
  const before = findReservation(session, id);
  const reservation = {
    id,
    usd: (before?.usd ?? 0) + inputUsd + outputUsd,
    outputUsd: (before?.outputUsd ?? 0) + outputUsd,
    outputTokens,
    sent: state.name === 'CallingLlm' ? { model, bytes } : null,
  };
  const reserved = [...withoutReservations(session, [id]), reservation];
  return go(withSession(state, changeSession(session, { reserved })));
};

/** A side request (a text beside the conversation) that can't be paid is not sent. */
export const refuseSideRequest = <S extends State>(state: S): Stay<S> =>
  ignore(state, 'what is left of the limit does not pay for this request');

/** The request is not sent. Its id is closed, unless an earlier request was sent under it. */
export const stopUnpaid = (
  state: In<'CallingLlm'> | In<'Compacting'>,
  event: NextRequest,
): MoveTo<'BudgetExceeded'> => {
  const { session } = state;
  const { usageId } = event;
  const { inputTokens, inputUsd, outputTokens, outputUsd } = worstCase(state, event);
  const unaccounted =
    findReservation(session, usageId) === undefined
      ? session.unaccounted.filter((id) => id !== usageId)
      : session.unaccounted;
  const costs = formatNumber('usd', inputUsd + outputUsd);
  const unpaid =
    `the next request could cost ${costs} (up to ${inputTokens} tokens in, ${outputTokens} out), ` +
    `and ${usedMoneyText(session)}: raise the limit with /budget DOLLARS, or with --max-usd`;
  const abort: Action =
    state.name === 'CallingLlm'
      ? { type: 'AbortLlmRequest', requestId: usageId }
      : { type: 'AbortCompaction', compactionId: usageId };
  const changed = changeSession(session, { unaccounted });
  return go({ name: 'BudgetExceeded', session: changed, dimension: 'usd', unpaid }, abort);
};

/** "$0.80 of $1.00 is used, $0.30 of it reserved until its cost is known". */
const usedMoneyText = (session: SessionData): string => {
  const reserved = reservedUsd(session);
  const used = formatNumber('usd', session.usage.costUsd + reserved);
  const ofLimit = `${used} of ${formatLimit('usd', session.settings.limits.usd)} is used`;
  return reserved === 0
    ? ofLimit
    : `${ofLimit}, ${formatNumber('usd', reserved)} of it reserved until its cost is known`;
};

/** What is left of the session's limits. */
export const remainingIn = (
  session: SessionData,
): { readonly usd: Remaining; readonly tokens: Remaining } => {
  const { settings, usage } = session;
  const { limits } = settings;
  return {
    usd: remainingLimit(limits.usd, usage.costUsd + reservedUsd(session)),
    tokens: remainingLimit(limits.tokens, totalTokens(usage)),
  };
};

/** What a spending call may spend: its reservation, or without one all that remains. */
export const getAllowance = (
  session: SessionData,
  id: string,
): { readonly usd: Remaining; readonly tokens: Remaining } => {
  const remaining = remainingIn(session);
  const reservation = findReservation(session, id);
  if (reservation === undefined) return remaining;
  return { ...remaining, usd: { type: 'left', amount: reservation.usd } };
};

/** Reserves the rest of the limit for a spending call, until its outcome reports its usage. */
export const reserveForCalls = (session: SessionData, ids: readonly string[]): SessionData => {
  const remaining = remainingIn(session).usd;
  const [id] = ids; // at most one: under a limit, calls that spend run one at a time
  if (remaining.type === 'unlimited' || id === undefined) return session;
  const usd = remaining.amount;
  const reservation = { id, usd, outputUsd: usd, outputTokens: 0, sent: null };
  return changeSession(session, { reserved: [...session.reserved, reservation] });
};

/**
 * Reservations of an ended process count as spent, since no usage of its requests can come any
 * more, and their ids are closed. `sentId`: the work that is done again, whose id stays open.
 * `running`: work that goes on and will report.
 */
export const settleLost = (
  session: SessionData,
  running: readonly string[],
  sentId: string | null = null,
): SessionUpdate => {
  const { reserved } = session;
  const lost = reserved.filter(({ id }) => !running.includes(id));
  const usd = lost.reduce((sum, one) => sum + one.usd, 0);
  if (lost.length === 0) return { session, actions: [] };
  const isSettled = (id: string): boolean =>
    id !== sentId && lost.some((one) => one.id === id && one.usd > 0);
  const settled = changeSession(session, {
    unaccounted: session.unaccounted.filter((id) => !isSettled(id)),
    reserved: reserved.filter(({ id }) => running.includes(id)),
    usage: { ...session.usage, costUsd: session.usage.costUsd + usd },
  });
  if (usd === 0) return { session: settled, actions: [] };
  const text =
    'what the requests of the ended process have cost is unknown: ' +
    `${formatNumber('usd', usd)}, the most that it can be, counts as spent`;
  return { session: settled, actions: [{ type: 'DisplayNotice', kind: 'budget', text }] };
};
