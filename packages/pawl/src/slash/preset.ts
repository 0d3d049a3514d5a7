import { aboutPresets, presetNames, settingsOfPreset } from '@pawl/agent/api/preset-settings';
import type { Preset } from '@pawl/agent/policy/preset-rules';
import { makeSafe } from '@pawl/terminal/safe-text';
import { type Command, type CommandContext, NotNow } from './command-context.js';

/** `/preset`: shows or changes the preset of this session. */

const choose = async ({ view }: CommandContext, now: Preset | undefined): Promise<Preset | null> => {
  const choices = presetNames.map((name) => ({
    text: name,
    about: name === now ? `${aboutPresets[name]} (now)` : aboutPresets[name],
  }));
  return presetNames[(await view.pick('Preset:', choices)) ?? -1] ?? null;
};

const named = (words: string): Preset => {
  const found = presetNames.find((name) => name === words.toLowerCase());
  if (found === undefined)
    throw new NotNow(`There is no preset '${words}'. There are ${presetNames.join(', ')}.`);
  return found;
};

export const preset: Command = async (context, words) => {
  const { settings } = context.view.state.session;
  const chosen = words === '' ? await choose(context, settings.preset) : named(words);
  if (chosen === null || chosen === settings.preset)
    return context.view.print(makeSafe(`  The preset is ${settings.preset ?? 'unnamed'}.`));
  const patch = await settingsOfPreset(settings, chosen);
  await context.session.send({ type: 'SettingsChanged', patch });
  context.view.print(
    makeSafe(`  The preset is now ${chosen}: ${aboutPresets[chosen]} · sandbox ${patch.sandbox}`),
  );
};
