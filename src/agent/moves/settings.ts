import type { On } from '../event.js';
import type { Same } from '../move.js';
import { go, withSession } from '../move.js';
import type { State } from '../state.js';

/** SettingsChanged: holds from the next decision (R59). New limits are also what re-arming adds. */
export const changeSettings = <S extends State>(state: S, event: On<'SettingsChanged'>): Same<S> => {
  const settings = { ...state.session.settings, ...event.patch };
  const { usd, tokens } = settings.limits;
  const slices = event.patch.limits === undefined ? state.session.slices : { usd, tokens };
  return go(withSession(state, { ...state.session, settings, slices }));
};
