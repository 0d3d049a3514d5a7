import type { Effort } from '@pawl/agent/machine/settings';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { type Command, type CommandContext, NotNow } from './command-context.js';

/** `/effort`: shows or changes how much the model is to think. */

const EFFORTS: readonly Effort[] = ['auto', 'low', 'medium', 'high'];

const about: Readonly<Record<Effort, string>> = {
  auto: 'as the model sees fit',
  low: 'quick and cheap',
  medium: 'between the two',
  high: 'longest, and most expensive',
};

const choose = async ({ view }: CommandContext, now: Effort): Promise<Effort | null> => {
  const choices = EFFORTS.map((name) => ({
    text: name,
    about: name === now ? `${about[name]} (now)` : about[name],
  }));
  return EFFORTS[(await view.pick('Effort:', choices)) ?? -1] ?? null;
};

const named = (words: string): Effort => {
  const found = EFFORTS.find((name) => name === words.toLowerCase());
  if (found === undefined)
    throw new NotNow(`There is no effort '${words}'. There are ${EFFORTS.join(', ')}.`);
  return found;
};

export const effort: Command = async (context, words) => {
  const { view, session } = context;
  const { effort: now = 'auto' } = view.state.session.settings;
  const chosen = words === '' ? await choose(context, now) : named(words);
  if (chosen === null || chosen === now) return view.print(safe`  effort ${makeSafe(now)} holds.`);
  await session.send({ type: 'SettingsChanged', patch: { effort: chosen } });
  view.print(safe`  effort ${makeSafe(chosen)} holds from the next call on: ${makeSafe(about[chosen])}`);
  const { id, facts } = await session.model();
  if (chosen !== 'auto' && facts.effort === 'none')
    view.print(safe`  ${makeSafe(id)} can't be told how much to think, and ignores it.`);
};
