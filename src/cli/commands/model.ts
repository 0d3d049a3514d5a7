import { factsOf, knownModels } from '../../models/catalogue.js';
import { formatTokens } from '../../terminal/print.js';
import { type Command, NotNow } from './room.js';

/** The model that answers. */

const aboutModel = (id: string): string => {
  const { windowTokens, prices } = factsOf(id);
  const price = prices === null ? 'price unknown' : `$${prices.input} in, $${prices.output} out`;
  return `${formatTokens(windowTokens)} window · ${price}`;
};

export const model: Command = async ({ desk, session }, words) => {
  const before = desk.state.session.settings.model;
  const known = [...new Set([before, ...knownModels()])];
  const choices = known.map((id) => ({
    text: id,
    about: `${aboutModel(id)}${id === before ? ' · answers now' : ''}`,
  }));
  const chosen = words === '' ? known[(await desk.pick('Model:', choices)) ?? -1] : words;
  if (chosen === undefined) return desk.print(`  ${before} answers. Another one: /model PROVIDER/NAME`);
  if (chosen === before) return desk.print(`  ${before} answers already.`);
  if (!chosen.includes('/'))
    throw new NotNow(`'${chosen}' is no model: write provider/name, for example ${before}.`);
  const now = await session.useModel(chosen);
  desk.print(`  ${now.id} answers from the next call on\n  ${aboutModel(now.id)}`);
};
