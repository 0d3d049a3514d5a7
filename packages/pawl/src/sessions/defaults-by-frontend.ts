import { defaultSettings, type Limits, type Settings } from '@pawl/agent/machine/settings';
import type { Preset } from '@pawl/agent/policy/preset-rules';
import { isBare } from '@pawl/terminal/paint-text';
import type { RunFlags } from '../flags.js';

/**
 * Where the user of a session is: at a terminal, in an editor, at a program that a node serves (`pawl serve`), or nowhere.
 */
export type Place = 'terminal' | 'editor' | 'node' | 'headless';

const isWatched = (place: Place): boolean => place === 'terminal' || place === 'editor';

/**
 * A headless turn has no limit in rounds: money, tokens and time limit it, and loop detection ends it. The thresholds are
 * high because a model that waits for something repeats a call several times and gets the same result.
 */
const headlessLimits: Partial<Limits> = { rounds: 0, repeats: 20, errors: 20, sameResults: 20 };

export const defaultLimits = (place: Place): Limits => ({
  ...defaultSettings.limits,
  ...(isWatched(place) ? {} : headlessLimits),
});

/** The preset of a new session. */
export const defaultPreset = (place: Place): Preset => (isWatched(place) ? 'careful' : 'auto');

/** Whether a user can be asked there; `chosen` is the wish for a place that nobody watches. */
export const onAskAt = (place: Place, chosen: 'stop' | 'deny' | null): Settings['onAsk'] => {
  if (isWatched(place)) return 'ask';
  return chosen ?? (place === 'node' ? 'ask' : 'stop');
};

/** Queued input goes back into the input line of a terminal. Elsewhere there is no such line, so it is held. */
export const queueOnCancelAt = (place: Place, { plain }: RunFlags): Settings['queueOnCancel'] =>
  place === 'terminal' && !isBare(process.env) && plain !== true ? 'restore' : 'hold';
