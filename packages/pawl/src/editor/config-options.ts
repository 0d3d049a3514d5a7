import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk';
import { aboutPresets, presetNames, settingsOfPreset } from '@pawl/agent/api/preset-settings';
import type { Session } from '@pawl/agent/api/session';
import type { Effort, Settings } from '@pawl/agent/machine/settings';
import type { Preset } from '@pawl/agent/policy/preset-rules';

/** The settings that a client can change: preset, model and effort. */

const EFFORTS: readonly Effort[] = ['auto', 'low', 'medium', 'high'];

/** A session from before presets has none: its rules are its own. */
const presetOf = ({ preset }: Settings): string => preset ?? 'unnamed';

const unnamed = { id: 'unnamed', name: 'unnamed', description: 'the rules of an older session' };

/** The presets as modes, for clients that don't know config options. */
export const modesOf = (settings: Settings): SessionModeState => ({
  currentModeId: presetOf(settings),
  availableModes: [
    ...presetNames.map((name) => ({ id: name, name, description: aboutPresets[name] })),
    ...(settings.preset === undefined ? [unnamed] : []),
  ],
});

export const configOptionsOf = (settings: Settings, models: readonly string[]): SessionConfigOption[] => [
  {
    id: 'mode',
    name: 'Preset',
    description: 'What the agent may do without asking',
    category: 'mode',
    type: 'select',
    currentValue: presetOf(settings),
    options: modesOf(settings).availableModes.map(({ id, name, description }) => ({
      value: id,
      name,
      ...(description === undefined ? {} : { description }),
    })),
  },
  {
    id: 'model',
    name: 'Model',
    category: 'model',
    type: 'select',
    currentValue: settings.model,
    options: [...new Set([settings.model, ...models])].map((id) => ({ value: id, name: id })),
  },
  {
    id: 'effort',
    name: 'Effort',
    description: 'How much the model should think',
    category: 'thought_level',
    type: 'select',
    currentValue: settings.effort ?? 'auto',
    options: EFFORTS.map((effort) => ({ value: effort, name: effort })),
  },
];

const isPreset = (value: string): value is Preset => presetNames.some((name) => name === value);
const isEffort = (value: string): value is Effort => EFFORTS.some((effort) => effort === value);

/** Why an option was not changed, for the user. */
export class BadOption extends Error {}

export const changePreset = async (session: Session, value: string): Promise<void> => {
  if (!isPreset(value))
    throw new BadOption(`There is no preset '${value}'. There are ${presetNames.join(', ')}.`);
  const { settings } = (await session.state()).session;
  if (settings.preset === value) return;
  await session.send({ type: 'SettingsChanged', patch: await settingsOfPreset(settings, value) });
};

/** Changes one option. Throws a BadOption for an unknown option or value. */
export const changeOption = async (session: Session, id: string, value: string): Promise<void> => {
  if (id === 'mode') return changePreset(session, value);
  if (id === 'model') return void (await session.useModel(value));
  if (id !== 'effort') throw new BadOption(`There is no option '${id}'. There are mode, model, effort.`);
  if (!isEffort(value))
    throw new BadOption(`There is no effort '${value}'. There are ${EFFORTS.join(', ')}.`);
  await session.send({ type: 'SettingsChanged', patch: { effort: value } });
};

/** The parts of the settings that a client shows. */
export const shownSettings = ({ preset, model, effort }: Settings): string =>
  JSON.stringify([preset, model, effort]);
