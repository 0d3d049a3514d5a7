import { defaultSettings, type Limits, type Settings } from '../../src/agent/settings.js';

export type SettingsPatch = Partial<Omit<Settings, 'limits'>> & { readonly limits?: Partial<Limits> };

/** The defaults of the conformance cases: everything on. */
export const settingsOf = (patch: SettingsPatch = {}): Settings => ({
  ...defaultSettings,
  model: 'test/model',
  workspace: '/project',
  formatter: 'onChanges',
  autoCommit: 'on',
  autoRearm: 'on',
  ...patch,
  limits: { ...defaultSettings.limits, ...patch.limits },
});
