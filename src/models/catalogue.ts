import type { ModelFacts, Prices } from '../needs.js';

/**
 * What is known of models, as their makers publish it.
 *
 * Read on 2026-11-21 from platform.claude.com/docs: models overview, the page of each model, and pricing. Cache writes
 * are those that live five minutes, the only ones asked for. Dated names (`…-20251001`) are the same models.
 */
const READ_ON = '2026-11-21';

/** `adaptive`: decides itself how much to think unless told otherwise; `onDemand`: thinks only when asked to. */
type Thinking = 'adaptive' | 'onDemand';

type Row = {
  readonly windowTokens: number;
  readonly outputTokensMax: number;
  readonly thinking: Thinking;
  readonly prices: Prices;
};

const row = (
  windowTokens: number,
  outputTokensMax: number,
  thinking: Thinking,
  [input, output, cacheRead, cacheWrite]: readonly [number, number, number, number],
): Row => ({ windowTokens, outputTokensMax, thinking, prices: { input, output, cacheRead, cacheWrite } });

/** Window, output limit, thinking, then dollars per million tokens: input, output, cache read, cache write. */
const anthropic: Readonly<Record<string, Row>> = {
  'claude-fable-5-1': row(1_000_000, 128_000, 'adaptive', [10, 50, 0.25, 12.5]),
  'claude-fable-5': row(1_000_000, 128_000, 'adaptive', [10, 50, 1, 12.5]),
  'claude-opus-5-5': row(1_000_000, 128_000, 'adaptive', [4, 20, 0.2, 5]),
  'claude-opus-5': row(1_000_000, 128_000, 'adaptive', [5, 25, 0.5, 6.25]),
  'claude-opus-4-8': row(1_000_000, 128_000, 'onDemand', [5, 25, 0.5, 6.25]),
  'claude-opus-4-7': row(1_000_000, 128_000, 'onDemand', [5, 25, 0.5, 6.25]),
  'claude-opus-4-6': row(1_000_000, 128_000, 'onDemand', [5, 25, 0.5, 6.25]),
  'claude-opus-4-5': row(200_000, 64_000, 'onDemand', [5, 25, 0.5, 6.25]),
  'claude-sonnet-5-5': row(1_000_000, 128_000, 'adaptive', [2, 10, 0.1, 2.5]),
  'claude-sonnet-5': row(1_000_000, 128_000, 'adaptive', [2, 10, 0.2, 2.5]),
  'claude-sonnet-4-6': row(1_000_000, 128_000, 'onDemand', [3, 15, 0.3, 3.75]),
  'claude-sonnet-4-5': row(200_000, 64_000, 'onDemand', [3, 15, 0.3, 3.75]),
  // Its real window is 1,000,000, but a prompt of more than 100,000 tokens costs five times as much for every token.
  // The window given here is the one in which these prices hold, so that no budget is exceeded unseen.
  'claude-haiku-5-5': row(100_000, 128_000, 'adaptive', [0.1, 0.5, 0.01, 0.125]),
  'claude-haiku-4-5': row(200_000, 64_000, 'onDemand', [1, 5, 0.1, 1.25]),
};

const providers: Readonly<Record<string, Readonly<Record<string, Row>>>> = { anthropic };

/** Used where no model is named. */
export const DEFAULT_MODEL = 'anthropic/claude-sonnet-5-5';

const rowOf = (id: string): Row | undefined => {
  const slash = id.indexOf('/');
  const name = id.slice(slash + 1).replace(/-\d{8}$/, '');
  const table = providers[id.slice(0, slash)];
  return table !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
};

/** What is known of a model named `provider/name`; of one that is not known, safe assumptions without prices or source. */
export const factsOf = (id: string): ModelFacts => {
  const known = rowOf(id);
  if (known === undefined) {
    return {
      windowTokens: 128_000,
      outputTokensMax: 8_192,
      thinking: 'no',
      tools: 'yes',
      prices: null,
      source: null,
    };
  }
  const { windowTokens, outputTokensMax, prices } = known;
  return {
    windowTokens,
    outputTokensMax,
    thinking: 'yes',
    tools: 'yes',
    prices,
    source: `platform.claude.com/docs, ${READ_ON}`,
  };
};

/** Whether a model thinks by itself, so that asking for a summary of its thoughts costs nothing more. */
export const thinksByItself = (id: string): boolean => rowOf(id)?.thinking === 'adaptive';
