import type { On } from '../event.js';
import type { Same } from '../move.js';
import { go, ignore, withSession } from '../move.js';
import type { Settings } from '../settings.js';
import type { State } from '../state.js';
import { resetClock } from './clock.js';

const isSame = (settings: Settings, patch: Partial<Settings>): boolean =>
  JSON.stringify({ ...settings, ...patch }) === JSON.stringify(settings);

/** SettingsChanged: holds from the next decision (R59). New limits are also what re-arming adds. */
export const changeSettings = <S extends State>(state: S, event: On<'SettingsChanged'>): Same<S> => {
  if (isSame(state.session.settings, event.patch)) return ignore(state, 'the settings are as they were');
  const settings = { ...state.session.settings, ...event.patch };
  const { usd, tokens } = settings.limits;
  const slices = event.patch.limits === undefined ? state.session.slices : { usd, tokens };
  const { session, actions } = resetClock(state, state.session, { ...state.session, settings, slices });
  return go(withSession(state, session), ...actions);
};
