import type { Prices } from '@pawl/agent/machine/values/usage';
import { factsOf, knownModels, modelsLike } from '@pawl/agent/models/catalogue';
import type { ModelFacts } from '@pawl/agent/ports/model';
import { formatTokens } from '@pawl/terminal/paint-text';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { type Command, type CommandContext, NotNow } from './command-context.js';

/** `/model`: shows or changes the model. */

const priceText = (prices: Prices | null): string =>
  prices === null ? 'price unknown' : `$${prices.input} in, $${prices.output} out`;

const aboutFacts = ({ windowTokens, prices }: Pick<ModelFacts, 'windowTokens' | 'prices'>): string =>
  `${formatTokens(windowTokens)} window · ${priceText(prices)}`;

/**
 * Lets the user pick one of the models; null if none was picked. The current model is shown with the session's window,
 * which may differ from the catalogue's.
 */
const choose = async ({ view }: CommandContext, ids: readonly string[]): Promise<string | null> => {
  const { model, windowTokens } = view.state.session.settings;
  const choices = ids.map((id) => {
    const facts = factsOf(id);
    const about = id === model ? `${aboutFacts({ ...facts, windowTokens })} · current` : aboutFacts(facts);
    return { text: id, about };
  });
  return ids[(await view.pick('Model (dollars per million tokens):', choices)) ?? -1] ?? null;
};

/** The model id that the words name: `provider/name` as it is, otherwise a choice of models whose ids contain the words. */
const wanted = async (context: CommandContext, words: string): Promise<string | null> => {
  const before = context.view.state.session.settings.model;
  if (words.includes('/')) return words;
  const like = words === '' ? [...new Set([before, ...knownModels()])] : modelsLike(words);
  if (like.length === 0)
    throw new NotNow(
      `'${words}' is not a model. Write provider/name, for example ${before}. /model lists the models.`,
    );
  return choose(context, like);
};

export const model: Command = async (context, words) => {
  const { view, session } = context;
  const before = view.state.session.settings.model;
  const chosen = await wanted(context, words);
  if (chosen === null)
    return view.print(safe`  The model is ${makeSafe(before)}. To change it: /model PROVIDER/NAME`);
  if (chosen === before) return view.print(safe`  The model is already ${makeSafe(before)}.`);
  const now = await session.useModel(chosen);
  view.print(safe`  The next call goes to ${makeSafe(now.id)}\n  ${makeSafe(aboutFacts(now.facts))}`);
};
