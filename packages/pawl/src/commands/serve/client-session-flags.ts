import type { Limits } from '@pawl/agent/machine/settings';
import type { NodeSessionWish } from '@pawl/serve/adapt-runtime-to-node';
import { ApiFault } from '@pawl/serve/http/api-fault';
import { exitCodes, Stop } from '../../exit-codes.js';
import type { RunFlags } from '../../flags.js';
import { withConfig } from '../../settings/apply-config.js';
import { sessionWorkspace } from '../../settings/connect-model.js';

/** The flags of a session that a client wants: the operator's, with lower limits and the client's preset. */

/** The lower of the operator's limit, as text, and the client's. */
const lower = (own: string | undefined, wanted: number | undefined): string | undefined => {
  if (wanted === undefined) return own;
  const limit = Number(own ?? 0);
  const amount = limit > 0 ? Math.min(limit, wanted) : wanted;
  return Number.isInteger(amount) ? String(amount) : Math.max(amount, 1e-6).toFixed(6);
};

const MINUTE_MS = 60_000;

/** The limits of a new session: a client can only lower the operator's. */
const limitFlags = (
  own: Pick<RunFlags, 'maxUsd' | 'maxTokens' | 'maxRounds' | 'maxMinutes'>,
  { usd, tokens, rounds, timeMs }: Partial<Limits>,
): RunFlags => {
  const amountOf = (limit: Limits['usd'] | undefined): number | undefined =>
    limit === 'unlimited' ? undefined : limit;
  const minutes = amountOf(timeMs);
  const lowered = {
    maxUsd: lower(own.maxUsd, amountOf(usd)),
    maxTokens: lower(own.maxTokens, amountOf(tokens)),
    maxRounds: lower(own.maxRounds, amountOf(rounds)),
    maxMinutes: lower(own.maxMinutes, minutes === undefined ? undefined : minutes / MINUTE_MS),
  };
  return Object.fromEntries(Object.entries(lowered).filter(([, value]) => value !== undefined));
};

export const wishedFlags = async (
  flags: RunFlags,
  { workspace, preset, limits }: NodeSessionWish,
): Promise<RunFlags> => {
  const ignore = (): void => undefined; // opening the session warns
  const folder = sessionWorkspace(workspace);
  const own = await withConfig(flags, folder, { command: 'run', resumed: false, warn: ignore });
  return { ...flags, ...limitFlags(own, limits), workspace, ...(preset === null ? {} : { preset }) };
};

/** The operator's flags for a session that goes on. Where it was created with less, it keeps that. */
export const flagsToReopen = (flags: RunFlags): RunFlags => {
  const { model, effort, profile, ...kept } = flags;
  return kept;
};

/** The flags for a session of an engine that goes on: it keeps what it was created with. */
export const flagsToGoOn = (flags: RunFlags): RunFlags => {
  const { model, effort, preset, sandbox, profile, maxUsd, maxTokens, maxRounds, maxMinutes, ...kept } =
    flags;
  return kept;
};

/** What a client caused by its wishes, such as a limit in dollars for a model without a price, is its fault. */
export const blamingClient = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    const isWish =
      error instanceof Stop && (error.exit === exitCodes.usage || error.exit === exitCodes.badInput);
    throw isWish ? new ApiFault('badRequest', error.message) : error;
  }
};
