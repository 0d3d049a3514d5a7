import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { type Script, scriptedModel } from '@pawl/agent/models/scripted-model';
import type { Model, ModelPiece, ModelRequest } from '@pawl/agent/ports/model';
import { temporaryFolder } from '../../../test/temporary-folder.js';
import type { ServeKey } from '../src/keys.js';
import {
  type DayCharge,
  fileSpending,
  findSpentDay,
  meteredModel,
  spendAfter,
} from '../src/spending.js';
import { keyNamed } from './node-under-test.js';

/** What a key spends in a day: over several sessions at once, restarts and lost replies. */

const PRICES = { input: 1, output: 10, cacheRead: 1, cacheWrite: 1 };
const facts = { windowTokens: 100_000, outputTokensMax: 1_000, prices: PRICES };
/** A reply costs a cent: a thousand tokens out. */
const usage = { inputTokens: 0, outputTokens: 1_000, cacheReadTokens: 0, cacheWriteTokens: 0 };
const answers: Script = { facts, replies: [], rules: [{ when: '', text: 'Fine.', usage }] };
const asking: ModelRequest = {
  instructions: '',
  tools: [],
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'hi', origin: 'user' }] }],
};
const DAY_MS = 24 * 60 * 60_000;

const lastPiece = async (pieces: AsyncIterable<ModelPiece>): Promise<ModelPiece | null> => {
  let last: ModelPiece | null = null;
  for await (const piece of pieces) last = piece;
  return last;
};

/** A model of the key in a process of its own; `says` is how its request ended. */
const openModel = (folder: string, key: ServeKey | null, script: Script, nowMs = DAY_MS) => {
  const meter = { store: fileSpending(folder), key: async () => key, now: () => nowMs };
  const model = meteredModel(scriptedModel(script, { id: 'script/one' }), meter);
  return async (): Promise<string> => {
    const last = await lastPiece(model.stream(asking, new AbortController().signal));
    return last?.type === 'failed' ? `${last.error.kind}: ${last.error.message}` : 'answered';
  };
};

const limited = (perDay: ServeKey['perDay'], more: Partial<ServeKey> = {}): ServeKey => ({
  ...keyNamed('one'),
  ...more,
  ...(perDay === undefined ? {} : { perDay }),
});

test('the money of a day holds over sessions at once and restarts, and comes back the next day', async (context) => {
  const folder = path.join(temporaryFolder(context, 'spending'), 'spent');
  const key = limited({ usd: 0.055 });
  const ask = openModel(folder, key, answers);
  const together = await Promise.all(Array.from({ length: 12 }, ask));
  const later = [await ask(), await openModel(folder, key, answers)(), await ask(), await ask()];
  const answered = [...together, ...later].filter((said) => said === 'answered').length;
  assert.equal(answered, 5, 'each costs a cent, and needs 1.1 cents set aside');
  assert.match(together.at(-1) ?? '', /rateLimited: .* set aside for requests/);
  assert.match(later.at(-1) ?? '', /quotaExhausted: the key one: the request could cost \$0\.01/);
  assert.equal(await openModel(folder, key, answers, 2 * DAY_MS)(), 'answered');
  assert.equal(await openModel(folder, limited({ usd: 1 }), answers, 2 * DAY_MS)(), 'answered');
});

test('what a request has cost is what counts, and without a word of it all that was set aside', async (context) => {
  const lost = { ...usage, outputTokens: 10 };
  const rows: readonly (readonly [string, Script, number, number])[] = [
    ['an answer', answers, 0.01, 1_000],
    ['a small answer', { ...answers, rules: [{ when: '', text: 'x', usage: lost }] }, 0.0001, 10],
    ['a refusal', { ...answers, rules: [{ when: '', fail: { kind: 'overloaded' } }] }, 0, 0],
    // 1.1 cents were set aside: a thousand tokens out, and some more than a thousand in
    [
      'a reply that breaks off',
      { ...answers, rules: [{ when: '', text: 'x', cut: true }] },
      0.0111,
      2_100,
    ],
  ];
  for (const [name, script, cost, tokens] of rows) {
    const folder = path.join(temporaryFolder(context, 'spending'), 'spent');
    await openModel(folder, limited({ usd: 1 }), script)();
    const asked: DayCharge = { kind: 'settle', day: '1970-01-02', reserved: 0, usd: 0, tokens: 0 };
    const { spending } = await fileSpending(folder).charge('one', asked);
    assert.ok(Math.abs(spending.usd - cost) < 1e-4, `${name}: ${JSON.stringify(spending)}`);
    assert.equal(spending.reservedUsd, 0, name);
    assert.ok(Math.abs(spending.tokens - tokens) < 100, `${name}: ${spending.tokens} tokens`);
  }
});

test('a reply that breaks off after a part of its usage counts as long as it might be', async (context) => {
  const folder = path.join(temporaryFolder(context, 'spending'), 'spent');
  const key = limited({ usd: 1 });
  const begun = { inputTokens: 10, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const error = { kind: 'unreachable', message: '', retryable: true, retryAfterMs: null } as const;
  const cancelled: Model = {
    ...scriptedModel(answers, { id: 'script/one' }),
    async *stream() {
      yield { type: 'text', text: 'x'.repeat(4_000) };
      yield { type: 'failed', error, usage: begun };
    },
  };
  const meter = { store: fileSpending(folder), key: async () => key, now: () => DAY_MS };
  await lastPiece(meteredModel(cancelled, meter).stream(asking, new AbortController().signal));
  const asked: DayCharge = { kind: 'settle', day: '1970-01-02', reserved: 0, usd: 0, tokens: 0 };
  const { spending } = await fileSpending(folder).charge('one', asked);
  assert.ok(Math.abs(spending.usd - 0.01) < 1e-4, `${spending.usd} dollars`);
  assert.ok(Math.abs(spending.tokens - 1_011) < 10, `${spending.tokens} tokens`);
});

test('what was set aside stays spent when the process is killed', async (context) => {
  const folder = path.join(temporaryFolder(context, 'spending'), 'spent');
  const key = limited({ usd: 0.012 });
  const meter = { store: fileSpending(folder), key: async () => key, now: () => DAY_MS };
  const stalling = { ...answers, rules: [{ when: '', text: 'Fine.', stall: true }] };
  const model = meteredModel(scriptedModel(stalling, { id: 'script/one' }), meter);
  const aborting = new AbortController();
  const pieces = model.stream(asking, aborting.signal)[Symbol.asyncIterator]();
  await pieces.next(); // the request is under way, and nobody reads on
  assert.match(await openModel(folder, key, answers)(), /set aside for requests/);
  aborting.abort();
  await pieces.next();
  assert.match(await openModel(folder, key, answers)(), /^quotaExhausted/);
});

test('a request is refused for the limit of tokens, the model, the price, and a key that is gone', async (context) => {
  const folder = path.join(temporaryFolder(context, 'spending'), 'spent');
  const byTokens = openModel(folder, limited({ tokens: 1_500 }), answers);
  assert.deepEqual([await byTokens(), await byTokens()], ['answered', 'answered']);
  const rows: readonly (readonly [ServeKey | null, Script, RegExp])[] = [
    [limited({ tokens: 1_500 }), answers, /has used its 1500 tokens of this day/],
    [limited(undefined, { models: ['script/two'] }), answers, /may not use the model script\/one/],
    [limited({ usd: 1 }), { ...answers, facts: { ...facts, prices: null } }, /price .* unknown/],
    [null, answers, /the operator has removed its key/],
    [limited(undefined, { models: ['script/one'] }), answers, /^answered$/],
  ];
  for (const [key, script, said] of rows)
    assert.match(await openModel(folder, key, script)(), said);
});

test('what a key has spent is not forgotten because its file can not be read', async (context) => {
  const folder = temporaryFolder(context, 'spending');
  for (const text of ['', ' '.repeat(5_000)]) {
    writeFileSync(path.join(folder, 'one.json'), text);
    assert.match(await openModel(folder, limited({ usd: 1 }), answers)(), /has spent/);
    assert.equal(readFileSync(path.join(folder, 'one.json'), 'utf8'), text);
  }
});

test('a charge of yesterday changes nothing today, and a file that is none is a fault', () => {
  const day = '2026-11-29';
  const limits = { usd: 1 };
  const reserve = { kind: 'reserve', day, least: 0.4, most: 0.7, limits } as const;
  const { spending, granted } = spendAfter(null, reserve);
  assert.deepEqual([granted, spending.usd, spending.reservedUsd], [0.7, 0.7, 0.7]);
  assert.equal(spendAfter(spending, reserve).granted, null, 'the least does not fit');
  const late = { kind: 'settle', day: '2026-11-28', reserved: 0.7, usd: 0, tokens: 9 } as const;
  assert.deepEqual(spendAfter(spending, late).spending, spending);
  assert.throws(() => spendAfter({ usd: 'much' }, reserve));
});

test('the day is spent for a session when its next request is known not to fit, and no earlier', async (context) => {
  // a short reply and the tokens that a request has besides its text cost 1.1 cents
  const rows: readonly (readonly [
    string,
    number,
    number,
    number,
    typeof PRICES | null,
    boolean,
  ])[] = [
    ['nothing is spent', 0, 0, 0, PRICES, false],
    ['enough is left', 0.038, 0, 0, PRICES, false],
    ['too little is left', 0.04, 0, 0, PRICES, true],
    ['enough for a short conversation', 0.02, 0, 10_000, PRICES, false],
    ['too little for a long one', 0.02, 0, 30_000, PRICES, true],
    ['what is set aside may come back', 0, 0.04, 0, PRICES, false],
    ['the price is unknown', 0.04, 0, 0, null, false],
  ];
  for (const [name, spent, held, contextTokens, prices, isSpent] of rows) {
    const store = fileSpending(path.join(temporaryFolder(context, 'spending'), 'spent'));
    const day = { day: '1970-01-02' };
    await store.charge('one', { kind: 'settle', ...day, reserved: 0, usd: spent, tokens: 0 });
    const reserve = { kind: 'reserve', ...day, least: held, most: held, limits: {} } as const;
    await store.charge('one', reserve);
    const meter = { store, now: () => DAY_MS + 60_000 };
    const key = limited({ usd: 0.05 });
    const fault = await findSpentDay(meter, key, { contextTokens, prices });
    assert.equal(fault !== null, isSpent, `${name}: ${fault?.message}`);
    if (fault === null) continue;
    assert.deepEqual([fault.status, fault.retryAfter], [429, 24 * 60 * 60 - 60], name);
    assert.match(fault.message, /could cost \$0\.0\d+, and \$0\.0\d+ of its \$0\.0500 of this day/);
  }
});
