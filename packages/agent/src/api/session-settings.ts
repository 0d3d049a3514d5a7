import {
  defaultSettings,
  type Grant,
  type Limits,
  type SandboxLevel,
  type Settings,
} from '../machine/settings.js';
import type { State } from '../machine/state.js';
import { isLimited, type Limit } from '../machine/values/limit-value.js';
import { allowHosts, type Preset, presetRules } from '../policy/preset-rules.js';
import type { Model } from '../ports/model.js';
import type { StoppingPolicy } from '../ports/session-input-output.js';
import type { SessionOrigin } from '../session/in-process-runtime.js';
import { settingsOfModel } from '../session/model/connected-models.js';
import { type Fenced, fencedSettings, presetSandbox } from './session-sandbox-level.js';

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
const settingsFrom = (
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

/** Values of a setting from narrow to wide. */
const fromNarrow = {
  preset: ['plan', 'careful', 'ci', 'auto'],
} as const satisfies { readonly [K in keyof Settings]?: readonly Settings[K][] };

/** The narrower of two values. An unknown one never narrows. */
export const narrower = <K extends keyof typeof fromNarrow>(
  name: K,
  value: NonNullable<Settings[K]>,
  recorded: Settings[K],
): NonNullable<Settings[K]> => {
  const ranks: readonly unknown[] = fromNarrow[name];
  const rank = ranks.indexOf(recorded);
  return rank >= 0 && rank < ranks.indexOf(value) ? (recorded as NonNullable<Settings[K]>) : value; // it has a rank
};

const narrowerLevel = (level: SandboxLevel, recorded: Settings['sandbox']): SandboxLevel => {
  if (recorded === 'read-only') return recorded;
  return recorded === 'workspace' && level === 'workspace+net' ? recorded : level;
};

/** The tighter of two limits, for each limit. */
export const narrowerLimits = (limits: Limits, recorded: Limits): Limits => {
  const tighter = (limit: Limit, before: Limit): Limit =>
    isLimited(limit) && isLimited(before) ? Math.min(limit, before) : isLimited(limit) ? limit : before;
  const { usd, tokens, timeMs, rounds, truncation, repeats, errors, sameResults } = limits;
  return {
    usd: tighter(usd, recorded.usd),
    tokens: tighter(tokens, recorded.tokens),
    timeMs: tighter(timeMs, recorded.timeMs),
    rounds: tighter(rounds, recorded.rounds),
    truncation: tighter(truncation, recorded.truncation),
    repeats: tighter(repeats, recorded.repeats),
    errors: tighter(errors, recorded.errors),
    sameResults: tighter(sameResults, recorded.sameResults),
  };
};

/**
 * Settings of a session that is resumed.
 *
 * 1. Rules, preset, sandbox and limits come from the options, as for a new session. Of the journal only what
 *    is narrower counts, so that a session that only read does not begin to write because it is resumed.
 * 2. Of a foreign session nothing counts.
 */
export const resumedSettings = (
  model: Model,
  workspace: string,
  wishes: Wishes,
  { settings: before, origin }: { readonly settings: Settings; readonly origin: SessionOrigin },
  fenced: Fenced,
): Partial<Settings> => {
  const { writtenRules = [] } = wishes.settings ?? {};
  const rules = writtenRules.length === 0 && (before.writtenRules ?? []).length === 0 ? {} : { writtenRules };
  if (origin === 'foreign') return { ...newSettings(model, workspace, wishes, fenced), ...rules };
  const preset = wishes.preset ?? narrower('preset', 'auto', before.preset);
  const sandbox = wishes.sandbox ?? narrowerLevel(presetSandbox[preset], before.sandbox);
  const fresh = settingsFrom(
    model,
    workspace,
    { ...wishes, preset, sandbox, settings: {} },
    defaultSettings,
    fenced,
  );
  const isFenced = fresh.sandbox !== 'off' && fresh.sandbox !== 'missing';
  return {
    ...fresh,
    ...(before.preset === preset && isFenced ? { formatter: before.formatter } : {}),
    autoRearm: 'off',
    ...wishes.settings,
    ...rules,
    limits: { ...narrowerLimits(defaultSettings.limits, before.limits), ...wishes.settings?.limits },
  };
};

export const newSettings = (model: Model, workspace: string, wishes: Wishes, fenced: Fenced): Settings => ({
  ...defaultSettings,
  ...settingsOfModel(model),
  workspace,
  ...settingsFrom(model, workspace, { preset: 'auto', ...wishes }, defaultSettings, fenced),
});

/** What a session may do, given by configuration, flags and its user. */
export type SessionRights = { readonly settings: Partial<Settings>; readonly grants: readonly Grant[] };

/** The rights of a session that runs in this process, for one that goes on in its place: a fork, or itself opened again. */
export const liveRights = ({ session: { settings, grants } }: State): SessionRights => {
  const { preset, rules, writtenRules, sandbox, limits, onAsk, hooks, formatter, autoCommit } = settings;
  return {
    grants,
    settings: {
      ...(preset === undefined ? {} : { preset }),
      ...(writtenRules === undefined ? {} : { writtenRules }),
      ...(sandbox === undefined || sandbox === 'missing' ? {} : { sandbox }),
      ...{ rules, limits, onAsk, hooks, formatter, autoCommit },
    },
  };
};

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
