import type { JudgedCall } from '../../agent/call.js';
import type { Settings } from '../../agent/settings.js';
import type { Hooks } from '../../ports/after-tool-hooks.js';
import { attempt } from '../attempt.js';

/**
 * Lets the hooks read the workspace before a call takes effect. A cancel does not wait for that. null if the hooks need
 * not know about the call: it changes nothing, or no phase will follow.
 */
export const lookBefore = (
  hooks: Hooks | null,
  settings: Settings,
  call: JudgedCall,
  cancelled: AbortSignal,
): Promise<void> | null => {
  if (hooks === null || settings.hooks === 'never' || !call.traits.mutating) return null;
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

/** Lets the hooks read the workspace right after a cancelled call, since no phase may follow. Nothing waits for it. */
export const lookAfter = (hooks: Hooks | null, settings: Settings, { call, signal, looked }: Ended): void => {
  if (hooks === null || looked === null || signal.signal.reason !== 'cancelled') return;
  void attempt(() => hooks.after(call, settings));
};
