/**
 * What the keys of a node spend in a day, and the models that stay within it.
 *
 * 1. Every request of a session passes `meteredModel`, which answers for the key: those of
 *    sub-calls, summaries and models that take over too. The key is looked up at each request.
 * 2. Money is set aside before a request, in a store that outlives the process and that all nodes
 *    share; what it has not cost comes back when its usage is known (decision 0020). A crash
 *    between leaves it spent.
 * 3. Tokens are looked at and not set aside: each request counts the whole conversation again.
 */

import { createHash } from 'node:crypto';
import path from 'node:path';
import {
  costsNothing,
  HIDDEN_TOKENS_MAX,
  IMAGE_TOKENS_MAX,
  OUTPUT_TOKENS_MIN,
  worstCaseWithin,
} from '@pawl/agent/machine/moves/request';
import { type Prices, totalTokens } from '@pawl/agent/machine/settings';
import { attempt } from '@pawl/agent/platform/attempt';
import { readRegular, writePrivate } from '@pawl/agent/platform/files';
import type { Model, ModelPiece, ModelRequest, TokenUsage } from '@pawl/agent/ports/model';
import { measureRequest, priceUsage } from '@pawl/agent/session/model-call';
import * as v from 'valibot';
import { ApiFault } from './api-fault.js';
import type { ServeKey, SpendingLimits } from './keys.js';

const daySchema = v.object({
  /** `2026-11-29`, in UTC. */
  day: v.string(),
  /** What was spent, and what is set aside. */
  usd: v.number(),
  /** The part of it that is set aside for requests whose cost is not known. */
  reservedUsd: v.number(),
  tokens: v.number(),
});

/** What a key has spent on one day. */
export type DaySpending = v.InferOutput<typeof daySchema>;

/** Sets money aside, or says what a request has cost. */
export type DayCharge =
  | {
      readonly kind: 'reserve';
      readonly day: string;
      /** The request needs at least this, and can use so much. */
      readonly least: number;
      readonly most: number;
      readonly limits: SpendingLimits;
    }
  | {
      readonly kind: 'settle';
      readonly day: string;
      readonly reserved: number;
      readonly usd: number;
      readonly tokens: number;
    };

/** `granted`: dollars that were set aside; null: the limits do not allow it. */
export type DayCharged = { readonly spending: DaySpending; readonly granted: number | null };

/** Sums of fractions are a little off. */
const ROUNDING = 1e-9;

const charge = (before: DaySpending, asked: DayCharge): DayCharged => {
  const { usd, tokens, reservedUsd } = before;
  if (asked.kind === 'settle') {
    const back = usd - asked.reserved + asked.usd;
    const spending = {
      ...before,
      usd: Math.max(0, back),
      reservedUsd: Math.max(0, reservedUsd - asked.reserved),
      tokens: tokens + asked.tokens,
    };
    return { spending, granted: 0 };
  }
  const { limits, least, most } = asked;
  const free = limits.usd === undefined ? most : limits.usd * (1 - ROUNDING) - usd;
  if (free < least || tokens >= (limits.tokens ?? Number.POSITIVE_INFINITY))
    return { spending: before, granted: null };
  const granted = Math.min(most, free);
  return {
    spending: { ...before, usd: usd + granted, reservedUsd: reservedUsd + granted },
    granted,
  };
};

/**
 * The spending after a charge. `stored`: what `spendAfter` returned before, or null; anything else
 * is a fault. A day begins at nothing; what comes late for an earlier day changes nothing.
 */
export const spendAfter = (stored: unknown, asked: DayCharge): DayCharged => {
  const nothing = { day: asked.day, usd: 0, reservedUsd: 0, tokens: 0 };
  const before = stored === null ? nothing : v.parse(daySchema, stored);
  if (before.day > asked.day)
    return { spending: before, granted: asked.kind === 'settle' ? 0 : null };
  return charge(before.day === asked.day ? before : nothing, asked);
};

/** Holds the spending of each key. A charge is durable, and on all nodes, when it resolves. */
export type SpendingStore = { charge(key: string, asked: DayCharge): Promise<DayCharged> };

const BYTES_MAX = 4_096;

/** A file for each key. One process at a time writes there. */
export const fileSpending = (folder: string): SpendingStore => {
  const last = new Map<string, Promise<unknown>>();
  const chargeNow = async (key: string, asked: DayCharge): Promise<DayCharged> => {
    const file = path.join(folder, `${key}.json`);
    const loaded = await readRegular(file, BYTES_MAX);
    if (loaded.kind === 'unusable')
      throw new Error(`what the key ${key} has spent can't be read: ${loaded.why}`);
    const text = loaded.kind === 'file' ? loaded.bytes.toString('utf8') : '';
    const charged = await attempt(async () =>
      spendAfter(loaded.kind === 'absent' ? null : JSON.parse(text), asked),
    );
    if (charged.kind === 'fault')
      throw new Error(
        `${file} does not say what the key ${key} has spent: ${charged.fault.message}. Remove it, ` +
          'and the day begins at nothing',
      );
    const { spending } = charged.value;
    await writePrivate(file, `${JSON.stringify(spending)}\n`);
    return charged.value;
  };
  return {
    charge: (key, asked) => {
      const before = last.get(key) ?? Promise.resolve();
      const now = before.then(() => chargeNow(key, asked));
      last.set(
        key,
        now.catch(() => undefined), // whoever asked gets the fault
      );
      return now;
    },
  };
};

// ---- Models ----

export type Meter = {
  readonly store: SpendingStore;
  /** The key of the session as it is now; null: the operator has removed it. */
  key(): Promise<ServeKey | null>;
  /** The time of day in milliseconds. */
  now(): number;
};

/** `retryable`: what is set aside for other requests may come back. */
type Refusal = { readonly why: string; readonly retryable: boolean };

const refused = ({ why: message, retryable }: Refusal): ModelPiece => ({
  type: 'failed',
  error: {
    kind: retryable ? 'rateLimited' : 'quotaExhausted',
    message,
    retryable,
    retryAfterMs: null,
    sent: 'no',
  },
  usage: null,
});

const refusal = (
  { name, perDay = {} }: ServeKey,
  { usd, reservedUsd, tokens }: DaySpending,
  least: number,
): Refusal => {
  if (perDay.tokens !== undefined && tokens >= perDay.tokens)
    return {
      why: `the key ${name} has used its ${perDay.tokens} tokens of this day. ${TOMORROW}`,
      retryable: false,
    };
  const money = (amount: number): string => `$${amount.toFixed(4)}`;
  const used = `${money(usd)} of its ${money(perDay.usd ?? 0)} of this day is used`;
  const others = reservedUsd === 0 ? '' : `, ${money(reservedUsd)} of it set aside for requests`;
  return {
    why: `the key ${name}: the request could cost ${money(least)}, and ${used}${others}. ${TOMORROW}`,
    retryable: usd - reservedUsd + least <= (perDay.usd ?? 0),
  };
};
const DAY_MS = 24 * 60 * 60_000;
const dayAt = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
const TOMORROW = 'The next day begins at 00:00 UTC; the operator may raise the limit';

/**
 * Why the key can't pay for the next request of a session today; null if it may. The request has
 * the tokens that the provider has counted so far, and a short reply.
 */
export const findSpentDay = async (
  { store, now }: Pick<Meter, 'store' | 'now'>,
  key: ServeKey,
  { contextTokens, prices }: { readonly contextTokens: number; readonly prices: Prices | null },
): Promise<ApiFault | null> => {
  const { name, perDay: limits } = key;
  if (limits === undefined) return null;
  const { inputUsd, outputUsd } = worstCaseWithin(0, {
    inputTokens: contextTokens + HIDDEN_TOKENS_MAX,
    prices: prices ?? FREE,
    outputTokensMax: OUTPUT_TOKENS_MIN,
  });
  const least = limits.usd === undefined ? 0 : inputUsd + outputUsd;
  // sets nothing aside
  const asked = { kind: 'reserve', day: dayAt(now()), least, most: 0, limits } as const;
  const { spending, granted } = await store.charge(name, asked);
  const { why, retryable } = refusal(key, spending, least);
  if (granted !== null || retryable) return null;
  const seconds = Math.ceil((DAY_MS - (now() % DAY_MS)) / 1_000);
  return new ApiFault('quotaExhausted', `Nothing was done: ${why}.`, seconds);
};

/** A request of which the provider has counted the tokens: the conversation so far. */
type Counted = { readonly length: number; readonly hash: string; readonly tokens: number };

const BYTES_PER_TOKEN_MAX = 8;
const hashText = (text: string): string => createHash('sha256').update(text).digest('base64');
const conversationText = ({ instructions, tools, messages }: ModelRequest): string =>
  // without its last bracket, so that the same conversation begins alike when it has grown
  JSON.stringify([instructions, tools, messages], (name, value: unknown) =>
    name === 'base64' ? undefined : value,
  ).slice(0, -2);

const FREE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

/** The requests of one model in one session, for a key with limits of a day. */
class MeteredRequests {
  readonly #model: Model;
  readonly #meter: Meter;
  /** The last one whose usage is known; null: none. */
  #counted: Counted | null = null;

  constructor(model: Model, meter: Meter) {
    this.#model = model;
    this.#meter = meter;
  }

  async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPiece> {
    const key = await this.#meter.key();
    const why = key === null ? 'the operator has removed its key' : this.#notAllowed(key);
    if (key === null || why !== null) yield refused({ why: why ?? '', retryable: false });
    else if (key.perDay === undefined) yield* this.#model.stream(request, signal);
    else yield* this.#paid(key, key.perDay, request, signal);
  }

  #notAllowed({ name, models, perDay }: ServeKey): string | null {
    const { id, facts } = this.#model;
    if (models !== undefined && !models.includes(id))
      return `the key ${name} may not use the model ${id}`;
    return perDay?.usd === undefined || facts.prices !== null
      ? null
      : `the price of ${id} is unknown, so the limit of the key ${name} could not hold`;
  }

  async *#paid(
    key: ServeKey,
    limits: SpendingLimits,
    request: ModelRequest,
    signal: AbortSignal,
  ): AsyncGenerator<ModelPiece> {
    const { store, now } = this.#meter;
    const { facts } = this.#model;
    const text = conversationText(request);
    const wish = {
      inputTokens: this.#inputTokensMax(request, text),
      prices: facts.prices ?? FREE,
      outputTokensMax: request.outputTokensMax ?? facts.outputTokensMax,
    };
    const costWithin = (amount: number): number => {
      const { inputUsd, outputUsd } = worstCaseWithin(amount, wish);
      return inputUsd + outputUsd;
    };
    const [least, most] = [costWithin(0), costWithin(Number.MAX_SAFE_INTEGER)];
    const day = dayAt(now());
    const asked = await attempt(() =>
      store.charge(key.name, { kind: 'reserve', day, least, most, limits }),
    );
    if (asked.kind === 'fault')
      return yield refused({
        why: `money can't be set aside: ${asked.fault.message}`,
        retryable: true,
      });
    const { granted, spending } = asked.value;
    if (granted === null) return yield refused(refusal(key, spending, least));
    const { inputTokens, outputTokens, outputUsd } = worstCaseWithin(granted, wish);
    // without a word of what it cost, it counts as the most that it can have cost
    let [usd, tokens, isAnswered] = [granted, inputTokens + outputTokens, false];
    try {
      if (signal.aborted) [usd, tokens] = [0, 0];
      const bounded = { ...request, outputTokensMax: outputTokens, isBoundPaid: true } as const;
      for await (const piece of signal.aborted ? [] : this.#model.stream(bounded, signal)) {
        if (piece.type === 'completed' || piece.type === 'failed') {
          const known = this.#costIn(piece, isAnswered);
          // a reply that broke off may have been as long as it might be
          const isPart = piece.type === 'failed' && piece.usage !== null;
          if (known !== null) {
            usd = isPart ? Math.min(granted, known.usd + outputUsd) : known.usd;
            tokens = known.tokens + (isPart ? outputTokens : 0);
          }
          if (piece.type === 'completed' && piece.usage !== null) this.#count(text, piece.usage);
        } else isAnswered = true;
        yield piece;
      }
    } finally {
      const spent = { kind: 'settle', day, reserved: granted, usd, tokens } as const;
      // a fault leaves the money set aside: it counts as spent
      await attempt(() => store.charge(key.name, spent));
    }
  }

  /** What it reports; null: nobody can say, so it counts as what was set aside. */
  #costIn(
    piece: Extract<ModelPiece, { readonly type: 'completed' | 'failed' }>,
    isAnswered: boolean,
  ): { readonly usd: number; readonly tokens: number } | null {
    const { usage } = piece;
    if (usage !== null) {
      const { costUsd } = priceUsage(usage, this.#model.facts.prices);
      return { usd: costUsd ?? 0, tokens: totalTokens(usage) };
    }
    if (piece.type === 'completed') return null;
    const { error } = piece;
    const isFree = costsNothing(isAnswered ? { error, firstPieceAt: 0 } : { error });
    return isFree ? { usd: 0, tokens: 0 } : null;
  }

  #count(text: string, usage: TokenUsage): void {
    const { inputTokens, cacheReadTokens, cacheWriteTokens } = usage;
    const tokens = inputTokens + cacheReadTokens + cacheWriteTokens;
    this.#counted = { length: text.length, hash: hashText(text), tokens };
  }

  /** The tokens of the request from above: a byte is at most a token. */
  #inputTokensMax(request: ModelRequest, text: string): number {
    const { bytes, images } = measureRequest(request);
    const before = this.#counted;
    const start = before === null ? '' : text.slice(0, before.length);
    const atMost =
      before !== null && start.length === before.length && hashText(start) === before.hash
        ? Math.max(before.tokens, before.length / BYTES_PER_TOKEN_MAX) +
          Buffer.byteLength(text.slice(before.length))
        : bytes;
    return Math.ceil(Math.min(bytes, atMost)) + images * IMAGE_TOKENS_MAX + HIDDEN_TOKENS_MAX;
  }
}

/** The model, for sessions of one key: it answers only what the key may ask and pay for. */
export const meteredModel = (model: Model, meter: Meter): Model => {
  const requests = new MeteredRequests(model, meter);
  return { ...model, stream: (request, signal) => requests.stream(request, signal) };
};
