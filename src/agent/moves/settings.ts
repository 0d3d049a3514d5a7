import type { On } from '../event.js';
import type { Same } from '../move.js';
import { go, ignore, withSession } from '../move.js';
import type { Settings } from '../settings.js';
import type { State } from '../state.js';

const isSame = (settings: Settings, patch: Partial<Settings>): boolean =>
  JSON.stringify({ ...settings, ...patch }) === JSON.stringify(settings);

/** SettingsChanged: holds from the next decision (R59). New limits are also what re-arming adds. */
export const changeSettings = <S extends State>(state: S, event: On<'SettingsChanged'>): Same<S> => {
  if (isSame(state.session.settings, event.patch)) return ignore(state, 'the settings are as they were');
  const settings = { ...state.session.settings, ...event.patch };
  const { usd, tokens } = settings.limits;
  const slices = event.patch.limits === undefined ? state.session.slices : { usd, tokens };
  return go(withSession(state, { ...state.session, settings, slices }));
};
