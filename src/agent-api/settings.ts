import {
  allowHosts,
  defaultSettings,
  type Limits,
  type Preset,
  presetRules,
  type Settings,
} from '../agent/settings.js';
import type { Model, StoppingPolicy } from '../needs.js';
import { settingsOfModel } from '../runtime/models.js';

/** What a session is set to, from the model, the options and what it was set to before. */

export type SettingsPatch = Partial<Omit<Settings, 'limits'>> & { readonly limits?: Partial<Limits> };

/** The part of a session's options that settings follow from. */
type Wishes = {
  readonly preset?: Preset;
  readonly hosts?: readonly string[];
  readonly settings?: SettingsPatch;
  readonly stoppingPolicy?: StoppingPolicy;
};

/** How a formatter is set up is code of the repository: it runs unasked only where commands do. */
const presetFormatter: Readonly<Record<Preset, Settings['formatter']>> = {
  plan: 'off',
  careful: 'off',
  auto: 'onChanges',
  ci: 'onChanges',
};

/** Settings that follow from the model and the options; limits and rules that are not named are as they were `before`. */
export const settingsFrom = (
  model: Model,
  workspace: string,
  { preset, hosts, settings, stoppingPolicy }: Wishes,
  before: Pick<Settings, 'limits' | 'rules'>,
): Partial<Settings> => ({
  ...settingsOfModel(model),
  workspace,
  ...(preset === undefined ? {} : { rules: presetRules[preset], formatter: presetFormatter[preset] }),
  ...(hosts === undefined
    ? {}
    : { rules: allowHosts(preset === undefined ? before.rules : presetRules[preset], hosts) }),
  ...(preset === 'ci' ? ({ onAsk: 'deny' } as const) : {}),
  userPolicy: stoppingPolicy === undefined ? 'none' : 'ask',
  ...settings,
  limits: { ...before.limits, ...settings?.limits },
});

export const newSettings = (model: Model, workspace: string, wishes: Wishes): Settings => ({
  ...defaultSettings,
  ...settingsOfModel(model),
  workspace,
  formatter: presetFormatter.auto,
  ...settingsFrom(model, workspace, wishes, defaultSettings),
});

/** What `wanted` sets differently. Settings are plain JSON. */
export const differences = (before: Settings, wanted: Partial<Settings>): Partial<Settings> =>
  Object.fromEntries(
    Object.entries(wanted).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name as keyof Settings]), // a name in `wanted`
    ),
  );

/** Whether a limit in dollars refuses a model without a price, or counts its calls as nothing. */
export type Unpriced = 'refuse' | 'countAsNothing';

/** Throws where a limit in dollars could not be kept. */
export const refuseUnpriced = (
  model: Model,
  limits: Partial<Limits> | undefined,
  unpriced: Unpriced | undefined,
): void => {
  if (model.facts.prices !== null || unpriced === 'countAsNothing' || (limits?.usd ?? 0) === 0) return;
  throw new Error(
    `a limit in dollars can't be kept: the price of ${model.id} is not known. Set a limit in tokens, rounds or minutes instead.`,
  );
};
