import type { SandboxProbe } from '../command/sandbox/sandbox-probe.js';
import { probeSandbox } from '../command/sandbox/session/session-sandbox.js';
import type { SandboxLevel, Settings } from '../machine/settings.js';
import type { Preset } from '../policy/preset-rules.js';

/** Chooses the sandbox level of a session's commands, and whether formatters run. */

/** Default sandbox level of each preset. */
export const presetSandbox: Readonly<Record<Preset, SandboxLevel>> = {
  plan: 'read-only',
  careful: 'workspace',
  auto: 'workspace',
  ci: 'workspace',
};

/** Default formatter setting of each preset. Formatter configurations are repository code, so they need the sandbox. */
const presetFormatter: Readonly<Record<Preset, Settings['formatter']>> = {
  plan: 'off',
  careful: 'off',
  auto: 'onChanges',
  ci: 'onChanges',
};

/** Result of the sandbox probe on this computer; null if the sandbox is off. */
export type Fenced = SandboxProbe | null;

/** Probes the sandbox, unless it is off. The result is cached on disk. */
export const probeFor = async (level: SandboxLevel | undefined, workspace: string): Promise<Fenced> =>
  level === 'off' ? null : probeSandbox(process.env, workspace, 'kept');

type Before = Pick<Settings, 'sandbox' | 'preset' | 'formatter'>;

const levelFrom = (
  preset: Preset | undefined,
  chosen: SandboxLevel | undefined,
  before: Before,
): SandboxLevel => {
  if (chosen !== undefined) return chosen;
  if (preset !== undefined) return presetSandbox[preset];
  const kept = before.sandbox;
  const isFenced = kept !== undefined && kept !== 'off' && kept !== 'missing';
  return isFenced ? kept : presetSandbox[before.preset ?? 'auto'];
};

const isWithout = (sandbox: Settings['sandbox']): boolean => sandbox === 'off' || sandbox === 'missing';

/** Without a sandbox, a formatter runs only if the user turned it on, not because of the preset's default. */
const formatterFrom = (
  preset: Preset | undefined,
  sandbox: Settings['sandbox'],
  before: Before,
): Settings['formatter'] => {
  const wanted = preset === undefined ? before.formatter : presetFormatter[preset];
  const wasOwn = preset === undefined && isWithout(before.sandbox);
  return isWithout(sandbox) && !wasOwn ? 'off' : wanted;
};

/**
 * Sandbox level and formatter setting for a session that is opened or changes its preset. Each computer decides the
 * level again: a resumed session keeps its level only if it had a sandbox.
 */
export const fencedSettings = (
  { preset, sandbox: chosen }: { readonly preset?: Preset; readonly sandbox?: SandboxLevel },
  before: Before,
  fenced: Fenced,
): Pick<Settings, 'formatter'> & { readonly sandbox: NonNullable<Settings['sandbox']> } => {
  const level = levelFrom(preset, chosen, before);
  const sandbox = level !== 'off' && fenced?.kind === 'missing' ? 'missing' : level;
  return { sandbox, formatter: formatterFrom(preset, sandbox, before) };
};

/** Warning for the user if the sandbox is wanted but does not work here; null otherwise. */
export const missingText = (sandbox: Settings['sandbox'], fenced: Fenced): string | null => {
  if (sandbox !== 'missing' || fenced?.kind !== 'missing') return null;
  return [
    `There is no sandbox for commands here: ${fenced.reason}`,
    'In a terminal you are asked for each command, without one each is denied.',
    fenced.repair,
    'Or decide that they run without: --sandbox off, PAWL_SANDBOX=off, or sandbox = "off" in your own config.toml.',
  ].join(' ');
};
