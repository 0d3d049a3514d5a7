/**
 * Computes a session's settings from the model, the options and the earlier settings.
 *
 * From top to bottom: settings of new and resumed sessions, and the narrower of two; a limit in
 * dollars without a price; the sandbox level and the formatter; and the presets. A resumed session
 * gets its rights from the options, as a new one does; what was narrower in it stays narrower. An
 * open session whose options are named again (`namedDifferences`) keeps what they do not name, and
 * one with another preset (`presetSettings`) its hosts and a sandbox that the user chose.
 */

import type { SandboxProbe } from '../command/sandbox/bubblewrap.js';
import { probeSandbox } from '../command/session-sandbox.js';
import {
  defaultSettings,
  eachLimit,
  type FallbackModel,
  isLimited,
  type Limit,
  type Limits,
  type ModelSettings,
  type Settings,
} from '../machine/settings.js';
import type { State } from '../machine/state.js';
import type { SandboxLevel } from '../policy/decide.js';
import {
  allowedHosts,
  allowHosts,
  type Preset,
  presetAfterPlan,
  presetRules,
} from '../policy/presets.js';
import type { Grant } from '../policy/rules.js';
import type { Model } from '../ports/model.js';
import type { StoppingPolicy } from '../ports/session.js';

/** The settings for a session that uses this model. */
export const modelSettings = ({ id, facts, canAbort }: Model): ModelSettings => ({
  model: id,
  windowTokens: facts.windowTokens,
  // `drain`: a cancel waits for the end of a reply that can't be aborted
  cancelMode: canAbort === 'no' ? 'drain' : 'abort',
});

/** Whether a session was created in its store, or imported or copied there. */
export type SessionOrigin = 'own' | 'foreign';

export type SettingsPatch = Partial<Omit<Settings, 'limits' | 'tools' | 'fallback' | 'primary'>> & {
  readonly limits?: Partial<Limits>;
};

/** The session options that affect settings. */
type SettingsOptions = {
  readonly preset?: Preset;
  readonly sandbox?: SandboxLevel;
  readonly hosts?: readonly string[];
  readonly settings?: SettingsPatch;
  readonly stoppingPolicy?: StoppingPolicy;
};

/** A read-only sandbox that the options name beside `plan` stays after an accepted plan. */
const readOnlyAfterPlan = ({ preset, sandbox }: SettingsOptions): Partial<Settings> =>
  preset === 'plan' && sandbox === 'read-only' ? { sandboxBefore: sandbox } : {};

export const newSettings = (
  model: Model,
  workspace: string,
  options: SettingsOptions,
  probe: ProbeResult,
): Settings => ({
  ...defaultSettings,
  ...modelSettings(model),
  workspace,
  ...applyOptions(model, workspace, { preset: 'auto', ...options }, defaultSettings, probe),
  ...readOnlyAfterPlan(options),
});

/**
 * Settings of a session that is resumed.
 *
 * 1. Rules, preset, sandbox and limits come from the options, as for a new session. Of the journal
 *    only what is narrower counts, so that a session that only read does not begin to write because
 *    it is resumed.
 * 2. If the session is making a plan, `presetBefore` is the preset to which the accepted plan
 *    returns. It becomes `careful`, since what the journal says could be wider.
 * 3. Of a foreign session (imported or copied here) nothing counts: its settings are those of a new
 *    one.
 * 4. The level that comes with `plan` is not narrower: other options may end the plan.
 */
export const resumedSettings = (
  model: Model,
  workspace: string,
  options: SettingsOptions,
  { settings: before, origin }: { readonly settings: Settings; readonly origin: SessionOrigin },
  probe: ProbeResult,
): Partial<Settings> => {
  const { writtenRules = [] } = options.settings ?? {};
  // Also an empty list: it takes the place of the rules in the journal.
  const rules =
    writtenRules.length === 0 && (before.writtenRules ?? []).length === 0 ? {} : { writtenRules };
  const { presetBefore } = before;
  const afterPlan = presetBefore === undefined ? {} : ({ presetBefore: 'careful' } as const);
  if (origin === 'foreign') {
    // what a new session may lack would stay
    const { effort, sandboxBefore } = before;
    return {
      ...(effort === undefined ? {} : { effort: 'auto' }),
      ...(sandboxBefore === undefined ? {} : { sandboxBefore: 'workspace' }),
      ...newSettings(model, workspace, options, probe),
      ...rules,
      ...afterPlan,
    };
  }
  const preset = options.preset ?? narrowerPreset('auto', before.preset);
  const sandbox = options.sandbox ?? narrowerLevel(presetSandbox[preset], levelBesidePlan(before));
  const fresh = applyOptions(
    model,
    workspace,
    { ...options, preset, sandbox, settings: {} },
    defaultSettings,
    probe,
  );
  return {
    ...fresh,
    // A formatter runs code of the repository, so the earlier choice counts only in a sandbox.
    ...(before.preset === preset && !lacksSandbox(fresh.sandbox)
      ? { formatter: before.formatter }
      : {}),
    ...afterPlan,
    ...readOnlyAfterPlan({ ...options, preset }),
    autoRearm: 'off', // the user must ask again for limits that rise by themselves
    ...options.settings,
    ...rules,
    limits: {
      ...narrowerLimits(defaultSettings.limits, before.limits),
      ...options.settings?.limits,
    },
  };
};

/** What the options ask for and the open session does not have. */
export const namedDifferences = (
  model: Model,
  workspace: string,
  options: SettingsOptions,
  before: Settings,
  probe: ProbeResult,
): Partial<Settings> => {
  const asked = applyOptions(model, workspace, options, before, probe);
  const named = new Set([
    'workspace',
    ...(options.preset === undefined ? [] : ['preset']),
    ...(options.sandbox === undefined ? [] : ['sandbox']),
    ...(options.hosts === undefined ? [] : ['rules']),
    ...Object.keys(options.settings ?? {}),
  ]);
  return differences(
    before,
    Object.fromEntries(Object.entries(asked).filter(([name]) => named.has(name))),
  );
};

/**
 * Settings that the model and the options determine; absent limits and rules stay as in `before`.
 */
const applyOptions = (
  model: Model,
  workspace: string,
  options: SettingsOptions,
  before: Pick<Settings, 'limits' | 'rules' | 'sandbox' | 'preset' | 'formatter'>,
  probe: ProbeResult,
): Partial<Settings> => {
  const { preset, hosts, settings, stoppingPolicy } = options;
  return {
    ...modelSettings(model),
    workspace,
    ...sandboxSettings(options, before, probe),
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

const presetsFromNarrow: readonly Preset[] = ['plan', 'careful', 'ci', 'auto', 'full'];

/** The narrower of two presets. An unknown one never narrows. */
export const narrowerPreset = (preset: Preset, recorded: Preset = preset): Preset => {
  const rank = presetsFromNarrow.indexOf(recorded);
  return rank >= 0 && rank < presetsFromNarrow.indexOf(preset) ? recorded : preset;
};

/**
 * The narrower sandbox level. `off` and `missing` in the journal don't narrow: whether there is a
 * sandbox is found out again.
 */
const narrowerLevel = (level: SandboxLevel, recorded: Settings['sandbox']): SandboxLevel => {
  if (recorded === 'read-only') return recorded;
  return recorded === 'workspace' && level === 'workspace+net' ? recorded : level;
};

/** The tighter of two limits, for each limit. */
export const narrowerLimits = (limits: Limits, recorded: Limits): Limits => {
  const tighter = (limit: Limit, before: Limit): Limit =>
    isLimited(limit) && isLimited(before)
      ? Math.min(limit, before)
      : isLimited(limit)
        ? limit
        : before;
  return eachLimit((name) => tighter(limits[name], recorded[name]));
};

/** What a session may do, by configuration, flags and its user. */
export type SessionRights = {
  readonly settings: Partial<Settings>;
  readonly grants: readonly Grant[];
};

/**
 * The rights of a session that runs in this process, for one that goes on in its place: a fork, or
 * itself opened again.
 */
export const liveRights = ({ session: { settings, grants } }: State): SessionRights => {
  const { preset, presetBefore, sandboxBefore, writtenRules, sandbox } = settings;
  const { rules, limits, onAsk, hooks, formatter, autoCommit } = settings;
  return {
    grants,
    settings: {
      ...(preset === undefined ? {} : { preset }),
      ...(presetBefore === undefined ? {} : { presetBefore }),
      ...(sandboxBefore === undefined ? {} : { sandboxBefore }),
      ...(writtenRules === undefined ? {} : { writtenRules }),
      ...(sandbox === undefined || sandbox === 'missing' ? {} : { sandbox }),
      ...{ rules, limits, onAsk, hooks, formatter, autoCommit },
    },
  };
};

/** The settings of `changes` that differ from `before`, compared as JSON. */
const differences = (before: Settings, changes: Partial<Settings>): Partial<Settings> =>
  Object.fromEntries(
    Object.entries(changes).filter(
      // safe: its key
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name as keyof Settings]),
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
  if (model.facts.prices !== null || unpriced === 'countAsNothing' || !isLimited(limits?.usd))
    return;
  throw new Error(
    `a limit in dollars can't be kept: the price of ${model.id} is not known. Set a limit in ` +
      'tokens, rounds or minutes instead.',
  );
};

/** The models that may take over, as the machine needs them. */
export const fallbackSettings = (
  models: readonly Model[],
  unpriced: Unpriced | undefined,
): readonly FallbackModel[] =>
  models.map((model) => {
    const { prices, tools } = model.facts;
    return {
      ...modelSettings(model),
      prices,
      ...(unpriced === 'countAsNothing' ? { unpriced } : {}),
      ...(tools === 'no' ? { tools } : {}),
    };
  });

/**
 * What changes in a session that is resumed with these settings. A turn in which another model has
 * taken over goes on with that one, if it still may; else with the model of the settings.
 */
export const resumedChanges = (
  { settings: before, origin }: { readonly settings: Settings; readonly origin: SessionOrigin },
  settings: Partial<Settings> & Pick<Settings, 'model' | 'limits'>,
  fallback: readonly FallbackModel[],
): Partial<Settings> => {
  const { model, primary, fallback: listed = [] } = before;
  const all = listed.length + fallback.length === 0 ? settings : { ...settings, fallback };
  const changes = differences(before, all);
  if (primary === undefined) return changes;
  const current = fallback.find((one) => one.model === model);
  const isPriced =
    current !== undefined && (current.prices !== null || current.unpriced !== undefined);
  const stays =
    origin === 'own' &&
    current !== undefined &&
    primary.model === settings.model &&
    (isPriced || !isLimited(settings.limits.usd));
  // the machine drops `primary` where a model is named
  if (!stays) return { ...changes, model: settings.model };
  const { model: _, windowTokens, cancelMode, ...others } = changes;
  return others;
};

// ---- The sandbox level of a session's commands, and whether formatters run ----

/** Default sandbox level of each preset. */
const presetSandbox: Readonly<Record<Preset, SandboxLevel>> = {
  plan: 'read-only',
  careful: 'workspace',
  auto: 'workspace',
  ci: 'workspace',
  full: 'off',
};

/**
 * Default formatter setting of each preset. Formatter configurations are repository code, so they
 * need the sandbox.
 */
const presetFormatter: Readonly<Record<Preset, Settings['formatter']>> = {
  plan: 'off',
  careful: 'off',
  auto: 'onChanges',
  ci: 'onChanges',
  full: 'off',
};

/** Result of the sandbox probe on this computer; null if the sandbox is off. */
export type ProbeResult = SandboxProbe | null;

/** Probes the sandbox, unless it is off. `kept`: the result is cached on disk. */
export const probeUnlessOff = async (
  level: SandboxLevel | undefined,
  workspace: string,
  preset?: Preset,
): Promise<ProbeResult> =>
  level === 'off' || preset === 'full' ? null : probeSandbox(process.env, workspace, 'kept');

type Before = Pick<Settings, 'sandbox' | 'preset' | 'formatter'>;

const lacksSandbox = (sandbox: Settings['sandbox']): sandbox is 'off' | 'missing' =>
  sandbox === 'off' || sandbox === 'missing';

/** The level of a session, without the one that comes with `plan`. */
const levelBesidePlan = ({ preset, sandbox, sandboxBefore }: Settings): Settings['sandbox'] =>
  preset === 'plan' ? sandboxBefore : sandbox;

const chooseLevel = (
  preset: Preset | undefined,
  chosen: SandboxLevel | undefined,
  before: Before,
): SandboxLevel => {
  if (preset === 'full') return presetSandbox.full;
  if (chosen !== undefined) return chosen;
  if (preset !== undefined) return presetSandbox[preset];
  const previous = before.sandbox;
  return previous === undefined || lacksSandbox(previous)
    ? presetSandbox[before.preset ?? 'auto']
    : previous;
};

/**
 * Without a sandbox, a formatter runs only if the user turned it on, not because of the preset's
 * default.
 */
const chooseFormatter = (
  preset: Preset | undefined,
  sandbox: Settings['sandbox'],
  before: Before,
): Settings['formatter'] => {
  const formatter = preset === undefined ? before.formatter : presetFormatter[preset];
  // Without a sandbox no preset turns it on, so what was set then is the user's choice.
  const wasUsersChoice = preset === undefined && lacksSandbox(before.sandbox);
  return lacksSandbox(sandbox) && !wasUsersChoice ? 'off' : formatter;
};

/**
 * Sandbox level and formatter setting for a session that is opened or changes its preset. Each
 * computer decides the level again: a resumed session keeps its level only if it had a sandbox.
 */
export const sandboxSettings = (
  { preset, sandbox: chosen }: { readonly preset?: Preset; readonly sandbox?: SandboxLevel },
  before: Before,
  probe: ProbeResult,
): Pick<Settings, 'formatter'> & { readonly sandbox: NonNullable<Settings['sandbox']> } => {
  const level = chooseLevel(preset, chosen, before);
  const sandbox = level !== 'off' && probe?.kind === 'missing' ? 'missing' : level;
  return { sandbox, formatter: chooseFormatter(preset, sandbox, before) };
};

/** Warning for the user if the sandbox is on but does not work here; null otherwise. */
export const missingSandboxText = (
  { sandbox, onAsk }: Pick<Settings, 'sandbox' | 'onAsk'>,
  probe: ProbeResult,
): string | null => {
  if (sandbox !== 'missing' || probe?.kind !== 'missing') return null;
  const fate = onAsk === 'ask' ? 'Pawl asks before each one' : 'each one is denied';
  return `${probe.reason} So commands have no sandbox here, and ${fate}. ${probe.repair}`;
};

// ---- The presets, and the settings that a running session gets with another one ----

/** The presets that a running session can be given: `full` is chosen only when it is opened. */
export const presetNames: readonly Preset[] = ['plan', 'careful', 'auto', 'ci'];

export const aboutPresets: Readonly<Record<Preset, string>> = {
  plan: 'reads only; commands in a read-only sandbox',
  careful:
    'asks before edits, and before a command loses files that git can not restore or leaves ' +
    'the sandbox',
  auto: 'changes the workspace unasked; asks before anything leaves the sandbox',
  ci: 'changes the workspace unasked; denies what leaves the sandbox, and never asks',
  full: 'no sandbox; nothing is asked or denied but by your own rules',
};

/**
 * Settings that change with the preset. A sandbox that the user switched off stays off, and one
 * that the user chose to be read-only stays so; after `full`, which has none, it comes back.
 */
export const presetSettings = async (
  before: Settings,
  preset: Preset,
): Promise<Partial<Settings>> => {
  const isOff = before.sandbox === 'off' && before.preset !== 'full';
  const isReadOnly = levelBesidePlan(before) === 'read-only';
  const sandbox: SandboxLevel | undefined = isOff ? 'off' : isReadOnly ? 'read-only' : undefined;
  const probe = await probeUnlessOff(sandbox, before.workspace);
  const options = sandbox === undefined ? { preset } : { preset, sandbox };
  return {
    preset,
    ...(preset === 'plan' && before.preset !== 'plan'
      ? {
          presetBefore: presetAfterPlan(before.preset),
          sandboxBefore: before.sandbox ?? 'off',
        }
      : {}),
    rules: allowHosts(presetRules[preset], allowedHosts(before.rules)),
    onAsk: preset === 'ci' ? 'deny' : 'ask',
    ...sandboxSettings(options, before, probe),
  };
};
