import type { HookVerdict, HookVerdicts } from '../../packages/agent/src/policy/judged-call.js';
import type { HookMoment, UserHooks } from '../../packages/agent/src/ports/hooks.js';
import type { JsonObject } from '../../packages/machine/src/kernel/shape.js';

/** Hooks of a user for the contract's stories: one hook, called "guard". */

type Said = Omit<Partial<HookVerdict>, 'hook'>;
type Says = (
  facts: JsonObject,
  signal: AbortSignal,
) => Said | undefined | Promise<Said | undefined>;

const verdictsOf = (said: Said | undefined): HookVerdicts =>
  said === undefined ? [] : [{ hook: 'guard', decision: 'allow', ...said }];

/** What the hook says at each moment. At other moments there is no hook. */
export const guard = (says: Partial<Record<HookMoment, Says>>): UserHooks => ({
  wants: (moment) => says[moment] !== undefined,
  run: async (moment, facts, signal) => verdictsOf(await says[moment]?.(facts, signal)),
});

/** Says these things in turn, then nothing. */
export const inTurn = (...said: readonly Said[]): Says => {
  const left = [...said];
  return () => left.shift();
};

/** A hook that says something once, when the story wants it to, and nothing after that. */
export type Gate = {
  readonly says: Says;
  /** Resolves when the hook has begun. */
  readonly begun: Promise<void>;
  open(): void;
};

const signalled = (): { readonly happened: Promise<void>; happen(): void } => {
  let happen = (): void => undefined;
  const happened = new Promise<void>((resolve) => {
    happen = resolve;
  });
  return { happened, happen: () => happen() };
};

export const gate = (said: Said): Gate => {
  const begins = signalled();
  const opens = signalled();
  let isLater = false;
  return {
    begun: begins.happened,
    open: opens.happen,
    says: async (_facts, signal) => {
      if (isLater) return undefined;
      isLater = true;
      begins.happen();
      const stopped = new Promise<Said>((resolve) =>
        signal.addEventListener('abort', () => resolve({ fault: 'it was stopped' }), {
          once: true,
        }),
      );
      return Promise.race([opens.happened.then(() => said), stopped]);
    },
  };
};
