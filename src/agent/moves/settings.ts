import { changeSession } from '../change.js';
import type { On } from '../event.js';
import type { Same } from '../move.js';
import { go, ignore, withSession } from '../move.js';
import type { Session, State } from '../state.js';
import { resetClock } from './clock.js';

const isSame = ({ settings, grants }: Session, event: On<'SettingsChanged'>): boolean =>
  JSON.stringify([{ ...settings, ...event.patch }, event.grants ?? grants]) ===
  JSON.stringify([settings, grants]);

/**
 * SettingsChanged: holds from the next decision (R59). New limits are also what re-arming adds; what the user allowed
 * may be taken back by it.
 */
export const changeSettings = <S extends State>(state: S, event: On<'SettingsChanged'>): Same<S> => {
  if (isSame(state.session, event)) return ignore(state, 'the settings are as they were');
  const settings = { ...state.session.settings, ...event.patch };
  const { usd, tokens } = settings.limits;
  const slices = event.patch.limits === undefined ? state.session.slices : { usd, tokens };
  const { session, actions } = resetClock(
    state,
    state.session,
    changeSession(state.session, { settings, slices, grants: event.grants ?? state.session.grants }),
  );
  return go(withSession(state, session), ...actions);
};
