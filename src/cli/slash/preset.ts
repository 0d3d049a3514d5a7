import { allowedHosts, allowHosts, type Preset, presetRules } from '../../agent/policy/rules.js';
import type { Settings } from '../../agent/settings.js';
import { fencedSettings, probeFor } from '../../api/session-sandbox-level.js';
import { makeSafe } from '../../terminal/safe-text.js';
import { type Command, type CommandContext, NotNow } from './command-context.js';

/** `/preset`: shows or changes the preset of this session. */

const PRESETS: readonly Preset[] = ['plan', 'careful', 'auto', 'ci'];

const about: Readonly<Record<Preset, string>> = {
  plan: 'reads only; commands in a read-only sandbox',
  careful: 'asks before changes, and before a command leaves the sandbox',
  auto: 'changes the workspace unasked; asks before anything leaves the sandbox',
  ci: 'changes the workspace unasked; denies what leaves the sandbox, and never asks',
};

const choose = async ({ view }: CommandContext, now: Preset | undefined): Promise<Preset | null> => {
  const choices = PRESETS.map((name) => ({
    text: name,
    about: name === now ? `${about[name]} (now)` : about[name],
  }));
  return PRESETS[(await view.pick('Preset:', choices)) ?? -1] ?? null;
};

const named = (words: string): Preset => {
  const found = PRESETS.find((name) => name === words.toLowerCase());
  if (found === undefined)
    throw new NotNow(`There is no preset '${words}'. There are ${PRESETS.join(', ')}.`);
  return found;
};

/** Settings that change with the preset. A sandbox level that the user chose stays; a sandbox that is off stays off. */
const changes = async (before: Settings, preset: Preset): Promise<Partial<Settings>> => {
  const isOff = before.sandbox === 'off';
  const fenced = await probeFor(isOff ? 'off' : undefined, before.workspace);
  const wishes = isOff ? ({ preset, sandbox: 'off' } as const) : { preset };
  return {
    preset,
    rules: allowHosts(presetRules[preset], allowedHosts(before.rules)),
    onAsk: preset === 'ci' ? 'deny' : 'ask',
    ...fencedSettings(wishes, before, fenced),
  };
};

export const preset: Command = async (context, words) => {
  const { settings } = context.view.state.session;
  const chosen = words === '' ? await choose(context, settings.preset) : named(words);
  if (chosen === null || chosen === settings.preset)
    return context.view.print(makeSafe(`  The preset is ${settings.preset ?? 'unnamed'}.`));
  const patch = await changes(settings, chosen);
  await context.session.send({ type: 'SettingsChanged', patch });
  context.view.print(makeSafe(`  The preset is now ${chosen}: ${about[chosen]} · sandbox ${patch.sandbox}`));
};
