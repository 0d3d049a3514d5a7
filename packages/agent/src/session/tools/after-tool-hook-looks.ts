import type { JudgedCall } from '../../machine/call.js';
import type { Settings } from '../../machine/settings.js';
import type { Hooks } from '../../ports/after-tool-hooks.js';
import { attempt } from '../attempt.js';

/** Whether the hooks need to know about a call: it changes something, and phases may follow. */
export const isWatched = (hooks: Hooks | null, settings: Settings, call: JudgedCall): hooks is Hooks =>
  hooks !== null && settings.hooks !== 'never' && call.traits.mutating;

/**
 * Lets the hooks read the workspace before a call takes effect. A cancel does not wait for that. null if the hooks need
 * not know about the call.
 */
export const lookBefore = (
  hooks: Hooks | null,
  settings: Settings,
  call: JudgedCall,
  cancelled: AbortSignal,
): Promise<void> | null => {
  if (!isWatched(hooks, settings, call)) return null;
  const cancel = new Promise<void>((resolve) => {
    cancelled.addEventListener('abort', () => resolve(), { once: true });
  });
  const looked = attempt(() => hooks.before(call, settings)).then(() => undefined);
  return Promise.race([looked, cancel]);
};

type Ended = {
  readonly call: JudgedCall;
  readonly signal: AbortController;
  readonly looked: Promise<void> | null;
};

/**
 * Lets the hooks read the workspace right after a call, if nothing may read it soon: the turn was cancelled, so no phase
 * follows, or the user may change files while another call waits. Only a cancelled call is not delayed.
 */
export const lookAfter = async (
  hooks: Hooks | null,
  settings: Settings,
  { call, signal, looked }: Ended,
): Promise<void> => {
  if (hooks === null || looked === null) return;
  const isCancelled = signal.signal.reason === 'cancelled';
  if (!isCancelled && settings.autoCommit === 'off') return;
  const seen = attempt(() => hooks.after(call, settings));
  if (!isCancelled) await seen;
};
