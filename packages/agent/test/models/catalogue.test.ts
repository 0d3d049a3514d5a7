import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  catalogueFacts,
  knownModels,
  nearestEffort,
  thinksByItself,
} from '../../src/models/catalogue.js';
import { DEFAULT_MODEL, providers } from '../../src/models/provider-table.js';

const names = [
  'claude-fable-5-1',
  'claude-opus-5-5',
  'claude-opus-4-8',
  'claude-opus-4-5',
  'claude-sonnet-5-5',
  'claude-sonnet-4-5',
  'claude-haiku-5-5',
  'claude-haiku-4-5',
];

for (const name of names) {
  test(`the facts of ${name} are plausible and have a source`, () => {
    const { windowTokens, outputTokensMax, prices, source, tools } = catalogueFacts(
      `anthropic/${name}`,
    );
    assert.ok(windowTokens >= 100_000 && windowTokens <= 1_000_000);
    assert.ok(outputTokensMax >= 32_000 && outputTokensMax <= 128_000);
    assert.match(source ?? '', /\d{4}-\d\d-\d\d/);
    assert.equal(tools, 'yes');
    assert.ok(prices);
    assert.ok(
      prices.cacheRead < prices.input &&
        prices.input < prices.cacheWrite &&
        prices.cacheWrite < prices.output,
    );
    assert.equal(prices.output, prices.input * 5);
    assert.equal(prices.cacheWrite, prices.input * 1.25);
  });
}

/** Providers that name no price: what they give is limited in requests. */
const WITHOUT_PRICE = ['nvidia', 'github'];

for (const id of knownModels()) {
  test(`${id} has plausible facts and a source with its day`, () => {
    const { windowTokens, outputTokensMax, prices, source } = catalogueFacts(id);
    assert.ok(windowTokens >= 100_000 && windowTokens <= 1_050_000);
    assert.ok(outputTokensMax >= 16_000 && outputTokensMax <= 128_000);
    assert.match(source ?? '', /\d{4}-\d\d-\d\d$/);
    assert.equal(prices === null, WITHOUT_PRICE.includes(id.split('/')[0] ?? ''));
    if (prices === null) return;
    assert.ok(prices.cacheRead <= prices.input && prices.input <= prices.cacheWrite);
    assert.ok(prices.cacheWrite < prices.output);
  });
}

test('a price that is announced holds from its day on', () => {
  const at = (day: string) => catalogueFacts('google/gemini-3.8-flash', Date.parse(day)).prices;
  assert.deepEqual(
    [at('2026-12-31T23:59:59Z')?.input, at('2027-01-01')?.input, at('2027-01-01')?.output],
    [0.75, 1.5, 7.5],
  );
});

test('the usual model of every hosted provider is known', () => {
  // OpenRouter lists prices itself, and the models of Azure are the names of its users
  const hosted = providers.filter(
    ({ key, name }) => key === 'required' && name !== 'openrouter' && name !== 'azure',
  );
  assert.ok(hosted.length > 15);
  for (const { name, defaultModel } of hosted)
    assert.ok(knownModels().includes(`${name}/${defaultModel}`), name);
  assert.ok(knownModels().includes(DEFAULT_MODEL));
});

test('a dated name is the same model', () => {
  assert.deepEqual(
    catalogueFacts('anthropic/claude-haiku-4-5-20251001'),
    catalogueFacts('anthropic/claude-haiku-4-5'),
  );
  assert.deepEqual(
    catalogueFacts('openai/gpt-6.1-sol-2026-09-29'),
    catalogueFacts('openai/gpt-6.1-sol'),
  );
});

for (const id of [
  'anthropic/claude-unknown',
  'anthropic/toString',
  'openai/claude-sonnet-5-5',
  'claude-sonnet-5-5',
  '',
]) {
  test(`"${id}" is unknown: careful assumptions, no price, no source`, () => {
    assert.deepEqual(catalogueFacts(id), {
      windowTokens: 128_000,
      outputTokensMax: 8_192,
      thinking: 'no',
      tools: 'yes',
      prices: null,
      source: null,
    });
    assert.equal(thinksByItself(id), false);
  });
}

test('the default model is known and thinks by itself', () => {
  assert.notEqual(catalogueFacts(DEFAULT_MODEL).source, null);
  assert.equal(thinksByItself(DEFAULT_MODEL), true);
});

/** Each level is sent as the one beside it. */
const levels: readonly (readonly [
  id: string,
  low: string,
  high: string,
  xhigh: string,
  max: string,
])[] = [
  ['anthropic/claude-opus-5-5', 'low', 'high', 'xhigh', 'max'],
  ['anthropic/claude-haiku-5-5', 'low', 'high', 'xhigh', 'max'],
  ['anthropic/claude-opus-4-7', 'low', 'high', 'xhigh', 'max'],
  ['anthropic/claude-opus-4-6', 'low', 'high', 'high', 'max'],
  ['anthropic/claude-sonnet-4-6', 'low', 'high', 'high', 'max'],
  ['anthropic/claude-sonnet-4-5', 'low', 'high', 'high', 'high'],
  ['openai/gpt-6.1-sol', 'low', 'high', 'xhigh', 'max'],
  ['openai/gpt-6-luna', 'low', 'high', 'xhigh', 'max'],
  ['google/gemini-3.8-flash', 'low', 'high', 'high', 'high'],
  ['google/gemini-2.5-pro', 'low', 'high', 'high', 'high'],
  ['openai-compatible/anything', 'low', 'high', 'xhigh', 'max'],
];
for (const [id, ...expected] of levels) {
  test(`${id} gets an effort that it has, the nearest one below`, () => {
    const facts = catalogueFacts(id);
    const found = (['low', 'high', 'xhigh', 'max'] as const).map((one) =>
      nearestEffort(facts, one),
    );
    assert.deepEqual(found, expected);
  });
}

test('below the lowest level of a model there is its lowest', () => {
  assert.equal(nearestEffort({ effortLevels: ['high', 'max'] }, 'low'), 'high');
  assert.equal(nearestEffort({ effortLevels: [] }, 'low'), 'low');
});

test('a cache of an hour costs twice the input to write, and only Anthropic has it', () => {
  const id = 'anthropic/claude-sonnet-5-5';
  const [short, long] = [catalogueFacts(id), catalogueFacts(id, Date.now(), '1h')];
  assert.equal(short.cacheLifetimeMs, 300_000);
  assert.equal(long.cacheLifetimeMs, 3_600_000);
  assert.deepEqual({ ...long.prices }, { ...short.prices, cacheWrite: 4 });
  for (const other of ['openai/gpt-6-sol', 'google/gemini-3.5-flash', 'anthropic/unknown'])
    assert.deepEqual(catalogueFacts(other, Date.now(), '1h'), catalogueFacts(other));
});
