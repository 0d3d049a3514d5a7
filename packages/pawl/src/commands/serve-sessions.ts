/**
 * The sessions of a node (`pawl serve`), a process that runs sessions for others. The operator
 * starts the node with flags; a client asks it for sessions, and may lower their limits and choose
 * a preset.
 */

import type { Limits } from '@pawl/agent/machine/settings';
import { systemClock } from '@pawl/agent/platform/clock';
import { newSessionId } from '@pawl/agent/session/equipment';
import type { LocalRuntime } from '@pawl/agent/session/runtime';
import { ApiFault } from '@pawl/serve/api-fault';
import type { NodeRuntime, NodeSessionWish } from '@pawl/serve/node-runtime';
import type { SpendingStore } from '@pawl/serve/spending';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { type Opened, openFromFlags } from '../sessions/open-session.js';
import { storedJournals } from '../sessions/stored-sessions.js';
import { withConfig } from '../settings/configuration.js';
import { sessionWorkspace, type Warn } from '../settings/connect-model.js';
import { type KeyedSession, LIMITS, type RunFlags, withoutFlags } from '../settings/flags.js';

/**
 * The sessions of a node without an engine: in this process, with their journals on disk. Each is
 * opened as every command opens one, from flags and configuration, with the same policy and
 * sandbox.
 */
export const embeddedSessions = (
  flags: RunFlags,
  keyFlags: ClientKeyFlags,
  warn: Warn,
): NodeRuntime => {
  const runtimes = new Map<string, LocalRuntime>();
  const journals = storedJournals();
  /** Keeps the session until it has ended. Returns its id. */
  const remember = ({ session, runtime }: Opened): string => {
    runtimes.set(session.id, runtime);
    // an ended session is read from its journal again
    const forget = (): void => void runtimes.delete(session.id);
    session.ended.then(forget, forget);
    return session.id;
  };
  const find = (sessionId: string): LocalRuntime => {
    const runtime = runtimes.get(sessionId);
    if (runtime === undefined) throw new Error(`session ${sessionId} is not open on this node`);
    return runtime;
  };
  const open = async (sessionId: string, key: string): Promise<void> => {
    if (runtimes.has(sessionId)) return;
    const allFlags = { ...flagsToReopen(flags), ...keyFlags(key) };
    remember(await openFromFlags(allFlags, 'node', { warn, resume: sessionId }));
  };
  return {
    endsWithNode: true, // closed with this process
    create: (wish) =>
      blamingClient(async () =>
        remember(
          await openFromFlags(
            await clientSessionFlags({ ...flags, ...keyFlags(wish.key) }, wish),
            'node',
            { warn },
          ),
        ),
      ),
    open,
    send: async (sessionId, input) => find(sessionId).send(sessionId, input),
    read: (sessionId, from = 1) =>
      runtimes.get(sessionId)?.read(sessionId, from) ?? journals.read(sessionId, from),
    watch: (sessionId, watcher) => find(sessionId).watch(sessionId, watcher),
    state: async (sessionId) =>
      runtimes.get(sessionId)?.state(sessionId) ?? journals.peek(sessionId),
    fork: async (sessionId, seq) => {
      const runtime = runtimes.get(sessionId);
      if (runtime !== undefined) return runtime.fork(sessionId, seq);
      // the parent is not open, so its stored journal is copied
      const forked = newSessionId(systemClock);
      await journals.fork(sessionId, seq, forked, systemClock.now());
      return forked;
    },
    list: (sessionIds) => journals.list(sessionIds),
    close: async (sessionId) => find(sessionId).close(sessionId),
    mayRest: (sessionId) =>
      find(sessionId)
        .find(sessionId)
        .jobs()
        .every((job) => job.status() !== 'running'),
  };
};

/** The lower of the operator's limit, as text, and the client's. */
const lowerLimit = (
  operatorLimit: string | undefined,
  clientLimit: number | undefined,
): string | undefined => {
  if (clientLimit === undefined) return operatorLimit;
  const limit = Number(operatorLimit ?? 0);
  const amount = limit > 0 ? Math.min(limit, clientLimit) : clientLimit;
  // in the form of a flag: without an exponent, and never 0, which no flag takes
  return Number.isInteger(amount) ? String(amount) : Math.max(amount, 1e-6).toFixed(6);
};

const MINUTE_MS = 60_000;

/** The limits of a new session: a client can only lower the operator's. */
const limitFlags = (
  operatorFlags: Pick<RunFlags, 'maxUsd' | 'maxTokens' | 'maxRounds' | 'maxMinutes'>,
  { usd, tokens, rounds, timeMs }: Partial<Limits>,
): RunFlags => {
  const limitAmount = (limit: Limits['usd'] | undefined): number | undefined =>
    limit === 'unlimited' ? undefined : limit;
  const minutes = limitAmount(timeMs);
  const lowered = {
    maxUsd: lowerLimit(operatorFlags.maxUsd, limitAmount(usd)),
    maxTokens: lowerLimit(operatorFlags.maxTokens, limitAmount(tokens)),
    maxRounds: lowerLimit(operatorFlags.maxRounds, limitAmount(rounds)),
    maxMinutes: lowerLimit(
      operatorFlags.maxMinutes,
      minutes === undefined ? undefined : minutes / MINUTE_MS,
    ),
  };
  return Object.fromEntries(Object.entries(lowered).filter(([, value]) => value !== undefined));
};

/**
 * The flags of a session that a client wants: the operator's, with lower limits and the client's
 * preset.
 */
export const clientSessionFlags = async (
  flags: RunFlags,
  { workspace, model, preset, limits }: NodeSessionWish,
): Promise<RunFlags> => {
  const ignore = (): void => undefined; // opening the session warns
  const folder = sessionWorkspace(workspace);
  const configured = await withConfig(flags, folder, {
    command: 'run',
    resumed: false,
    warn: ignore,
  });
  return {
    ...flags,
    ...limitFlags(configured, limits),
    workspace,
    ...(model === null ? {} : { model }),
    ...(preset === null ? {} : { preset }),
  };
};

/** The flags that the sessions of a client's key have besides those of the node. */
export type ClientKeyFlags = (
  key: string,
) => Pick<RunFlags, 'preset'> & { readonly forKey: KeyedSession };

/**
 * The operator's flags for a session that is opened again in this process. It keeps its model,
 * effort and profile, and what it was created with where that is stricter.
 */
const flagsToReopen = (flags: RunFlags): RunFlags =>
  withoutFlags(flags, ['model', 'effort', 'profile']);

/** The operator's flags for an engine's session that goes on: its journal has its settings. */
export const flagsToEquip = (flags: RunFlags): RunFlags =>
  withoutFlags(flags, ['model', 'effort', 'preset', 'sandbox', 'profile'], LIMITS);

/**
 * Reports errors that a client's wishes cause as its faults: a limit in dollars for a model without
 * a price, for example.
 */
export const blamingClient = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    const isClientFault =
      error instanceof Stop &&
      (error.exit === exitCodes.usage || error.exit === exitCodes.badInput);
    throw isClientFault ? new ApiFault('badRequest', error.message) : error;
  }
};

/** The sessions of a node, and what belongs to them. */
export type NodeSessions = {
  readonly runtime: NodeRuntime;
  /** What the keys have spent. */
  readonly spending: SpendingStore;
  /** The folder with a record for each session of the client that it belongs to. */
  readonly recordsFolder: string;
  /** Called when the node has drained. */
  stop(): Promise<void>;
};
