import type { Limits } from '../../agent/settings.js';
import { systemClock } from '../../runtime/clock.js';
import type { LocalRuntime } from '../../runtime/local-runtime.js';
import { newSessionId } from '../../runtime/new-session-id.js';
import { ApiFault } from '../../serve/http/api-fault.js';
import type { NodeRuntime, NodeSessionWish } from '../../serve/node-runtime.js';
import { exitCodes, Stop } from '../exit-codes.js';
import type { RunFlags } from '../flags.js';
import { type Opened, openFromFlags } from '../sessions/open-session.js';
import { storedJournals } from '../sessions/stored-sessions.js';
import { withConfig } from '../settings/apply-config.js';
import { realWorkspace, type Warn } from '../settings/connect-model.js';

/**
 * The sessions of a node without an engine: in this process, with their journals on disk. Each is opened as every
 * command opens one, from flags and configuration, with the same policy and sandbox.
 */

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

/** What a client caused by its wishes, such as a limit in dollars for a model without a price, is its fault. */
const blameClient = (error: unknown): unknown => {
  const isWish =
    error instanceof Stop && (error.exit === exitCodes.usage || error.exit === exitCodes.badInput);
  return isWish ? new ApiFault('badRequest', error.message) : error;
};

export const embeddedSessions = (flags: RunFlags, warn: Warn): NodeRuntime => {
  const runtimes = new Map<string, LocalRuntime>();
  const journals = storedJournals();
  const keep = ({ session, runtime }: Opened): string => {
    runtimes.set(session.id, runtime);
    const forget = (): void => void runtimes.delete(session.id);
    session.ended.then(forget, forget);
    return session.id;
  };
  const find = (sessionId: string): LocalRuntime => {
    const runtime = runtimes.get(sessionId);
    if (runtime === undefined) throw new Error(`session ${sessionId} is not open on this node`);
    return runtime;
  };
  const create = async ({ workspace, preset, limits }: NodeSessionWish): Promise<string> => {
    const ignore = (): void => undefined; // opening the session warns
    const folder = realWorkspace(workspace);
    const own = await withConfig(flags, folder, { command: 'run', resumed: false, warn: ignore });
    const wanted: RunFlags = {
      ...flags,
      ...limitFlags(own, limits),
      workspace,
      ...(preset === null ? {} : { preset }),
    };
    return keep(await openFromFlags(wanted, 'node', { warn }));
  };
  const open = async (sessionId: string): Promise<void> => {
    if (runtimes.has(sessionId)) return;
    // A session keeps what it was created with.
    const { model, effort, preset, sandbox, profile, maxUsd, maxTokens, maxRounds, maxMinutes, ...kept } =
      flags;
    keep(await openFromFlags(kept, 'node', { warn, resume: sessionId }));
  };
  return {
    endsWithNode: true,
    create: (wanted) =>
      create(wanted).catch((error: unknown) => {
        throw blameClient(error);
      }),
    open,
    send: async (sessionId, input) => find(sessionId).send(sessionId, input),
    read: (sessionId, from = 1) =>
      runtimes.get(sessionId)?.read(sessionId, from) ?? journals.read(sessionId, from),
    watch: (sessionId, watcher) => find(sessionId).watch(sessionId, watcher),
    state: async (sessionId) => runtimes.get(sessionId)?.state(sessionId) ?? journals.peek(sessionId),
    fork: async (sessionId, seq) => {
      const runtime = runtimes.get(sessionId);
      if (runtime !== undefined) return runtime.fork(sessionId, seq);
      const forked = newSessionId(systemClock);
      await journals.fork(sessionId, seq, forked, systemClock.now());
      return forked;
    },
    list: () => journals.list(),
    close: async (sessionId) => find(sessionId).close(sessionId),
  };
};
