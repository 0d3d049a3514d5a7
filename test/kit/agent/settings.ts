import {
  defaultSettings,
  type Limits,
  readLimits,
  type Settings,
} from '../../../packages/agent/src/machine/settings.js';

export type SettingsPatch = Partial<Omit<Settings, 'limits'>> & {
  readonly limits?: Partial<Limits>;
};

/** Settings of the tests: everything on, and no second try. */
export const settingsOf = (patch: SettingsPatch = {}): Settings => ({
  ...defaultSettings,
  model: 'test/model',
  workspace: '/project',
  formatter: 'onChanges',
  autoCommit: 'on',
  autoRearm: 'on',
  emptyRetries: 0,
  ...patch,
  limits: readLimits({ ...defaultSettings.limits, ...patch.limits }),
});
