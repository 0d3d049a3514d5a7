import { allowHosts, type Preset, presetRules } from '../agent/policy/preset-rules.js';
import { defaultSettings, type Limits, type SandboxLevel, type Settings } from '../agent/settings.js';
import { isLimited } from '../agent/values/limit-value.js';
import type { Model } from '../ports/model.js';
import type { StoppingPolicy } from '../ports/session-input-output.js';
import { settingsOfModel } from '../runtime/model/connected-models.js';
import { type Fenced, fencedSettings } from './session-sandbox-level.js';

/** Computes a session's settings from the model, the options and the earlier settings. */

export type SettingsPatch = Partial<Omit<Settings, 'limits'>> & { readonly limits?: Partial<Limits> };

/** The session options that affect settings. */
type Wishes = {
  readonly preset?: Preset;
  readonly sandbox?: SandboxLevel;
  readonly hosts?: readonly string[];
  readonly settings?: SettingsPatch;
  readonly stoppingPolicy?: StoppingPolicy;
};

/** Settings that the model and the options determine; limits and rules that are left out stay as in `before`. */
export const settingsFrom = (
  model: Model,
  workspace: string,
  wishes: Wishes,
  before: Pick<Settings, 'limits' | 'rules' | 'sandbox' | 'preset' | 'formatter'>,
  fenced: Fenced,
): Partial<Settings> => {
  const { preset, hosts, settings, stoppingPolicy } = wishes;
  return {
    ...settingsOfModel(model),
    workspace,
    ...fencedSettings(wishes, before, fenced),
    ...(preset === undefined ? {} : { rules: presetRules[preset], preset }),
    ...(hosts === undefined
      ? {}
      : { rules: allowHosts(preset === undefined ? before.rules : presetRules[preset], hosts) }),
    ...(preset === 'ci' ? ({ onAsk: 'deny' } as const) : {}),
    userPolicy: stoppingPolicy === undefined ? 'none' : 'ask',
    ...settings,
    limits: { ...before.limits, ...settings?.limits },
  };
};

export const newSettings = (model: Model, workspace: string, wishes: Wishes, fenced: Fenced): Settings => ({
  ...defaultSettings,
  ...settingsOfModel(model),
  workspace,
  ...settingsFrom(model, workspace, { preset: 'auto', ...wishes }, defaultSettings, fenced),
});

/** The settings of `wanted` that differ from `before`, compared as JSON. */
export const differences = (before: Settings, wanted: Partial<Settings>): Partial<Settings> =>
  Object.fromEntries(
    Object.entries(wanted).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name as keyof Settings]), // safe: a key of `wanted`
    ),
  );

/** With a limit in dollars: refuse a model without a price, or count its calls as free. */
export type Unpriced = 'refuse' | 'countAsNothing';

/** Throws if there is a limit in dollars and the model's price is unknown. */
export const refuseUnpriced = (
  model: Model,
  limits: Partial<Limits> | undefined,
  unpriced: Unpriced | undefined,
): void => {
  if (model.facts.prices !== null || unpriced === 'countAsNothing' || !isLimited(limits?.usd)) return;
  throw new Error(
    `a limit in dollars can't be kept: the price of ${model.id} is not known. Set a limit in tokens, rounds or minutes instead.`,
  );
};
