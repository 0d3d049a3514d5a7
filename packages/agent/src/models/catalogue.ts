/**
 * Facts about models, as their makers publish them. Each table says where and when it was read. A
 * model that is not in a table is unknown, and a line says so.
 *
 * Many makers charge more for every token of a prompt above some length. `windowTokens` is then
 * the length up to which the prices hold, so that no budget is exceeded unseen.
 */

import { type EffortLevel, effortLevels, type Prices } from '../machine/settings.js';
import { nearestWord } from '../platform/text.js';
import type { ModelFacts } from '../ports/model.js';
import type { CataloguedProvider } from './provider-table.js';

/**
 * `adaptive`: the model decides how much to think, unless told. `onDemand`: it thinks only when
 * asked to. `budget`: likewise, and the request says how many tokens it may think.
 */
type Thinking = 'adaptive' | 'onDemand' | 'budget';

type Row = {
  readonly windowTokens: number;
  readonly outputTokensMax: number;
  readonly thinking: Thinking;
  readonly prices: Prices;
  /** Announced prices, valid from the beginning of a day (UTC). */
  readonly later?: { readonly from: string; readonly prices: Prices };
  /** Levels of effort, if not those of the table. */
  readonly effortLevels?: readonly EffortLevel[];
};

/** The models of one maker. */
type Table = {
  readonly source: string;
  /** How long a request stays in the provider's cache; absent where its maker names no time. */
  readonly cacheLifetimeMs?: number;
  readonly effortLevels: readonly EffortLevel[];
  readonly rows: Readonly<Record<string, Row>>;
};

const UP_TO_HIGH: readonly EffortLevel[] = ['low', 'medium', 'high'];
/** Models without the level `xhigh`: the generation 4.6 of Anthropic. */
const WITHOUT_XHIGH = { effortLevels: [...UP_TO_HIGH, 'max'] } as const;

const MINUTE_MS = 60_000;

/** Dollars per million tokens: input, output, cache read, cache write. */
type Dollars = readonly [number, number, number, number];

const dollarPrices = ([input, output, cacheRead, cacheWrite]: Dollars): Prices => ({
  input,
  output,
  cacheRead,
  cacheWrite,
});

/** A row in short. */
const row = (
  windowTokens: number,
  outputTokensMax: number,
  thinking: Thinking,
  dollars: Dollars,
): Row => ({
  windowTokens,
  outputTokensMax,
  thinking,
  prices: dollarPrices(dollars),
});

/**
 * Read from the models overview, the page of each model, and pricing. Cache writes are the
 * five-minute ones; those of an hour cost twice the price of input. Dated names (`…-20251001`) are
 * the same models. Levels of effort are those of the page on effort, stored copies read 2026-11-25.
 */
const anthropic: Table = {
  source: 'platform.claude.com/docs, 2026-11-21',
  cacheLifetimeMs: 5 * MINUTE_MS,
  effortLevels,
  rows: {
    // Its cache is read for a fortieth of the price of input.
    'claude-fable-5-1': row(1_000_000, 128_000, 'adaptive', [10, 50, 0.25, 12.5]),
    'claude-fable-5': row(1_000_000, 128_000, 'adaptive', [10, 50, 1, 12.5]),
    'claude-opus-5-5': row(1_000_000, 128_000, 'adaptive', [4, 20, 0.2, 5]),
    'claude-opus-5': row(1_000_000, 128_000, 'adaptive', [5, 25, 0.5, 6.25]),
    'claude-opus-4-8': row(1_000_000, 128_000, 'onDemand', [5, 25, 0.5, 6.25]),
    'claude-opus-4-7': row(1_000_000, 128_000, 'onDemand', [5, 25, 0.5, 6.25]),
    'claude-opus-4-6': {
      ...row(1_000_000, 128_000, 'onDemand', [5, 25, 0.5, 6.25]),
      ...WITHOUT_XHIGH,
    },
    'claude-opus-4-5': row(200_000, 64_000, 'budget', [5, 25, 0.5, 6.25]),
    'claude-sonnet-5-5': row(1_000_000, 128_000, 'adaptive', [2, 10, 0.1, 2.5]),
    'claude-sonnet-5': row(1_000_000, 128_000, 'adaptive', [2, 10, 0.2, 2.5]),
    'claude-sonnet-4-6': {
      ...row(1_000_000, 128_000, 'onDemand', [3, 15, 0.3, 3.75]),
      ...WITHOUT_XHIGH,
    },
    'claude-sonnet-4-5': row(200_000, 64_000, 'budget', [3, 15, 0.3, 3.75]),
    // Its real window is 1,000,000; above 100,000 tokens every token costs five times as much.
    'claude-haiku-5-5': row(100_000, 128_000, 'adaptive', [0.1, 0.5, 0.01, 0.125]),
    'claude-haiku-4-5': row(200_000, 64_000, 'budget', [1, 5, 0.1, 1.25]),
  },
};

/**
 * Read from stored copies of each model's page at developers.openai.com. The real window is
 * 1,050,000; above 272,000 tokens input costs twice as much, and output one and a half times. The
 * cache's time is its least (`prompt_cache_options.ttl`), read 2026-11-25.
 */
const openai: Table = {
  source: 'developers.openai.com/api/docs/models, stored copies read 2026-11-22',
  cacheLifetimeMs: 30 * MINUTE_MS,
  effortLevels,
  rows: {
    'gpt-6-astra': row(272_000, 128_000, 'adaptive', [10, 50, 1, 12.5]),
    'gpt-6.2-sol': row(272_000, 128_000, 'adaptive', [2, 10, 0.1, 2.5]),
    'gpt-6.1-sol': row(272_000, 128_000, 'adaptive', [2, 10, 0.1, 2.5]),
    'gpt-6.1-terra': row(272_000, 128_000, 'adaptive', [1, 5, 0.05, 1.25]),
    'gpt-6-sol': row(272_000, 128_000, 'adaptive', [2, 10, 0.2, 2.5]),
    'gpt-6-luna': row(272_000, 128_000, 'adaptive', [0.1, 0.5, 0.01, 0.125]),
    'gpt-5.6-luna': row(272_000, 128_000, 'adaptive', [0.2, 1.2, 0.02, 0.25]),
  },
};

/**
 * Read from stored copies of the pricing page and of each model's page at ai.google.dev, and from a
 * transcript of 2026-10-07. Google caches by itself here and takes nothing for storage, so cache
 * writes cost as much as input. It names no time for which it keeps them.
 */
const google: Table = {
  source: 'ai.google.dev/gemini-api/docs/pricing, stored copies read 2026-11-22',
  effortLevels: UP_TO_HIGH,
  rows: {
    'gemini-3.8-flash': {
      ...row(1_048_576, 65_536, 'adaptive', [0.75, 3.75, 0.075, 0.75]),
      later: { from: '2027-01-01', prices: dollarPrices([1.5, 7.5, 0.15, 1.5]) },
    },
    'gemini-3.5-flash': row(1_048_576, 65_536, 'adaptive', [1.5, 9, 0.15, 1.5]),
    // Its real window is 1,048,576; above 200,000 tokens every token costs more.
    'gemini-3.1-pro-preview': row(200_000, 65_536, 'adaptive', [2, 12, 0.2, 2]),
    // Likewise.
    'gemini-2.5-pro': row(200_000, 65_536, 'adaptive', [1.25, 10, 0.125, 1.25]),
  },
};

const catalogue: Readonly<Record<CataloguedProvider, Table>> = { anthropic, openai, google };
const tables: Readonly<Record<string, Table>> = catalogue;

type CatalogueEntry = { readonly table: Table; readonly row: Row };

/** The row of a model, and its table. */
const findEntry = (id: string): CatalogueEntry | null => {
  const slash = id.indexOf('/');
  const provider = id.slice(0, slash);
  const table = Object.hasOwn(tables, provider) ? tables[provider] : undefined;
  const name = id.slice(slash + 1).replace(/-(\d{8}|\d{4}-\d\d-\d\d)$/, '');
  const entry =
    table !== undefined && Object.hasOwn(table.rows, name) ? table.rows[name] : undefined;
  return table === undefined || entry === undefined ? null : { table, row: entry };
};

/** Safe assumptions about an unknown model. */
export const UNKNOWN: ModelFacts = {
  windowTokens: 128_000,
  outputTokensMax: 8_192,
  thinking: 'no',
  tools: 'yes',
  prices: null,
  source: null,
};

const LISTED_SOURCE = 'models.dev, stored copy of 2026-07-02';

/** Window, longest output, prices or null, and whether the model takes pictures. */
type ListedRow = readonly [number, number, Dollars | null, 'yes' | 'no'];

/**
 * Models of providers that list their models: what their lists don't tell. The window is the length
 * up to which the prices hold. null: the provider asks no money, or names no price.
 */
const listedRows: Readonly<Record<string, ListedRow>> = {
  'xai/grok-4.3': [200_000, 30_000, [1.25, 2.5, 0.2, 1.25], 'yes'],
  'xai/grok-build-0.1': [200_000, 128_000, [1, 2, 0.2, 1], 'yes'],
  'mistral/mistral-large-latest': [262_144, 128_000, [0.5, 1.5, 0.5, 0.5], 'yes'],
  'deepseek/deepseek-v4-pro': [1_000_000, 128_000, [0.435, 0.87, 0.003625, 0.435], 'no'],
  'deepseek/deepseek-v4-flash': [1_000_000, 128_000, [0.14, 0.28, 0.0028, 0.14], 'no'],
  'groq/openai/gpt-oss-120b': [131_072, 65_536, [0.15, 0.6, 0.075, 0.15], 'no'],
  'together/zai-org/GLM-5.2': [262_144, 128_000, [1.4, 4.4, 0.26, 1.4], 'no'],
  'together/moonshotai/Kimi-K2.7-Code': [262_144, 128_000, [0.95, 4, 0.19, 0.95], 'no'],
  'fireworks/accounts/fireworks/models/glm-5p2': [1_048_575, 128_000, [1.4, 4.4, 0.26, 1.4], 'no'],
  'cerebras/gpt-oss-120b': [131_072, 40_960, [0.35, 0.75, 0.35, 0.35], 'no'],
  'moonshot/kimi-k2.7-code': [262_144, 128_000, [0.95, 4, 0.19, 0.95], 'no'],
  'zai/glm-5.2': [1_000_000, 128_000, [1.4, 4.4, 0.26, 1.4], 'no'],
  'qwen/qwen3.7-plus': [256_000, 65_536, [0.5, 3, 0.05, 0.625], 'yes'],
  'nvidia/moonshotai/kimi-k2.6': [262_144, 128_000, null, 'yes'],
  'huggingface/zai-org/GLM-5.2': [262_144, 128_000, [1.4, 4.4, 1.4, 1.4], 'no'],
  'github/openai/gpt-4.1': [128_000, 16_384, null, 'yes'],
};

/** The facts about a model of a provider that lists its models; null if none are known. */
export const listedFacts = (id: string): ModelFacts | null => {
  const listed = Object.hasOwn(listedRows, id) ? listedRows[id] : undefined;
  if (listed === undefined) return null;
  const [windowTokens, outputTokensMax, dollars, images] = listed;
  return {
    ...UNKNOWN,
    windowTokens,
    outputTokensMax,
    images,
    prices: dollars === null ? null : dollarPrices(dollars),
    source: LISTED_SOURCE,
  };
};

/** How long a provider keeps the cache of a request, where it lets one choose: only Anthropic. */
export type CacheTtl = '5m' | '1h';

/** Caches of an hour, which cost twice the price of input to write. */
const forAnHour = (facts: ModelFacts): ModelFacts => ({
  ...facts,
  cacheLifetimeMs: 60 * MINUTE_MS,
  prices: facts.prices && { ...facts.prices, cacheWrite: 2 * facts.prices.input },
});

/**
 * The facts about the model `provider/name`; safe assumptions without prices and source if it is
 * unknown. `now` in milliseconds since 1970.
 */
export const catalogueFacts = (
  id: string,
  now: number = Date.now(),
  cacheTtl: CacheTtl = '5m',
): ModelFacts => {
  const entry = findEntry(id);
  if (entry === null) return listedFacts(id) ?? UNKNOWN;
  const facts = readRow(entry, now);
  return cacheTtl === '1h' && entry.table === anthropic ? forAnHour(facts) : facts;
};

/** The facts of a row at a time. */
const readRow = (entry: CatalogueEntry, now: number): ModelFacts => {
  const { cacheLifetimeMs } = entry.table;
  const { windowTokens, outputTokensMax, thinking, prices, later } = entry.row;
  const levels = entry.row.effortLevels ?? entry.table.effortLevels;
  const isLater = later !== undefined && now >= Date.parse(later.from);
  return {
    windowTokens,
    outputTokensMax,
    thinking: 'yes',
    effort: thinking === 'budget' ? 'budget' : 'levels',
    effortLevels: thinking === 'budget' ? UP_TO_HIGH : levels,
    tools: 'yes',
    // Every model of the tables takes pictures.
    images: 'yes',
    prices: isLater ? later.prices : prices,
    ...(cacheLifetimeMs === undefined ? {} : { cacheLifetimeMs }),
    source: entry.table.source,
  };
};

/**
 * The level that a model gets for a level: the same, or else the next lower one that it has, or its
 * lowest.
 */
export const nearestEffort = (
  { effortLevels: has }: Pick<ModelFacts, 'effortLevels'>,
  level: EffortLevel,
): EffortLevel => {
  if (has === undefined || has.includes(level)) return level;
  const lower = effortLevels.slice(0, effortLevels.indexOf(level));
  const isThere = (one: EffortLevel): boolean => has.includes(one);
  return lower.findLast(isThere) ?? effortLevels.find(isThere) ?? level;
};

/** True if a model thinks unasked, so that a summary of its thoughts costs nothing more. */
export const thinksByItself = (id: string): boolean => findEntry(id)?.row.thinking === 'adaptive';

/** The ids of all models in the catalogue, grouped by provider. */
export const knownModels = (): readonly string[] => [
  ...Object.entries(tables).flatMap(([provider, { rows }]) =>
    Object.keys(rows).map((name) => `${provider}/${name}`),
  ),
  ...Object.keys(listedRows),
];

const readDigits = (name: string): string => name.replace(/\D/g, '');

/**
 * The known model of the same provider that was probably meant; undefined if none is similar. A
 * name with other digits is another version, perhaps a newer one.
 */
export const nearestModel = (modelId: string): string | undefined => {
  const provider = modelId.slice(0, modelId.indexOf('/') + 1);
  return nearestWord(
    modelId,
    knownModels().filter(
      (known) => known.startsWith(provider) && readDigits(known) === readDigits(modelId),
    ),
  );
};

/** Known models whose id contains the words. */
export const modelsLike = (words: string): readonly string[] =>
  knownModels().filter((id) => id.includes(words.trim().toLowerCase()));
