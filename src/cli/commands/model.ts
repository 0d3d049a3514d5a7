import type { Prices } from '../../agent/usage.js';
import { factsOf, knownModels, modelsLike } from '../../models/catalogue.js';
import type { ModelFacts } from '../../needs.js';
import { formatTokens } from '../../terminal/print.js';
import { type Command, NotNow, type Room } from './room.js';

/** The model that answers. */

const priceText = (prices: Prices | null): string =>
  prices === null ? 'price unknown' : `$${prices.input} in, $${prices.output} out`;

const aboutFacts = ({ windowTokens, prices }: Pick<ModelFacts, 'windowTokens' | 'prices'>): string =>
  `${formatTokens(windowTokens)} window · ${priceText(prices)}`;

/** One of those, or null; of what answers now the window is the session's, which may have been asked for. */
const choose = async ({ desk }: Room, ids: readonly string[]): Promise<string | null> => {
  const { model, windowTokens } = desk.state.session.settings;
  const choices = ids.map((id) => {
    const facts = factsOf(id);
    const about =
      id === model ? `${aboutFacts({ ...facts, windowTokens })} · answers now` : aboutFacts(facts);
    return { text: id, about };
  });
  return ids[(await desk.pick('Model (dollars per million tokens):', choices)) ?? -1] ?? null;
};

/** What the words name: an id as it is, or one of those that it is a part of. */
const wanted = async (room: Room, words: string): Promise<string | null> => {
  const before = room.desk.state.session.settings.model;
  if (words.includes('/')) return words;
  const like = words === '' ? [...new Set([before, ...knownModels()])] : modelsLike(words);
  if (like.length === 0)
    throw new NotNow(
      `'${words}' is no model: write provider/name, for example ${before}. /model lists them.`,
    );
  return choose(room, like);
};

export const model: Command = async (room, words) => {
  const { desk, session } = room;
  const before = desk.state.session.settings.model;
  const chosen = await wanted(room, words);
  if (chosen === null) return desk.print(`  ${before} answers. Another one: /model PROVIDER/NAME`);
  if (chosen === before) return desk.print(`  ${before} answers already.`);
  const now = await session.useModel(chosen);
  desk.print(`  ${now.id} answers from the next call on\n  ${aboutFacts(now.facts)}`);
};
