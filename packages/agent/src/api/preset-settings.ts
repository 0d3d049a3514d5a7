import type { Settings } from '../machine/settings.js';
import { allowedHosts, allowHosts, type Preset, presetRules } from '../policy/preset-rules.js';
import { fencedSettings, probeFor } from './session-sandbox-level.js';

/** The presets, and the settings that a running session gets with another one. */

export const presetNames: readonly Preset[] = ['plan', 'careful', 'auto', 'ci'];

export const aboutPresets: Readonly<Record<Preset, string>> = {
  plan: 'reads only; commands in a read-only sandbox',
  careful:
    'asks before edits, and before a command loses files that git can not restore or leaves the sandbox',
  auto: 'changes the workspace unasked; asks before anything leaves the sandbox',
  ci: 'changes the workspace unasked; denies what leaves the sandbox, and never asks',
};

/** Settings that change with the preset. A sandbox level that the user chose stays; a sandbox that is off stays off. */
export const settingsOfPreset = async (before: Settings, preset: Preset): Promise<Partial<Settings>> => {
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
