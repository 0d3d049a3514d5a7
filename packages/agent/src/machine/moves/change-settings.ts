import { changeSession } from '../change-state.js';
import type { On } from '../event.js';
import type { Stay } from '../move-result.js';
import { go, ignore, withSession } from '../move-result.js';
import { readLimits, type Settings } from '../settings.js';
import type { SessionData, State } from '../state.js';
import { resetClock } from './common/turn-time-limit.js';

const patched = ({ settings }: SessionData, { patch }: On<'SettingsChanged'>): Settings => {
  const changed = { ...settings, ...patch };
  return patch.limits === undefined ? changed : { ...changed, limits: readLimits(patch.limits) };
};

const isSame = (session: SessionData, settings: Settings, event: On<'SettingsChanged'>): boolean =>
  JSON.stringify([settings, event.grants ?? session.grants]) ===
  JSON.stringify([session.settings, session.grants]);

/**
 * SettingsChanged: takes effect from the next decision. New limits also become the slices of autoRearm; the event may
 * replace the grants.
 */
export const changeSettings = <S extends State>(state: S, event: On<'SettingsChanged'>): Stay<S> => {
  const settings = patched(state.session, event);
  if (isSame(state.session, settings, event)) return ignore(state, 'the settings are as they were');
  const { usd, tokens } = settings.limits;
  const slices = event.patch.limits === undefined ? state.session.slices : { usd, tokens };
  const { session, actions } = resetClock(
    state,
    state.session,
    changeSession(state.session, { settings, slices, grants: event.grants ?? state.session.grants }),
    event.stoppedAt ?? event.at,
  );
  return go(withSession(state, session), ...actions);
};
