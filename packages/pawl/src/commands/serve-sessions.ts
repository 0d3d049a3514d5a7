/**
 * The sessions of a node: opened from the flags of the operator, with the lower limits and the
 * preset that a client wants.
 */

import type { Limits } from '@pawl/agent/machine/settings';
import { systemClock } from '@pawl/agent/platform/clock';
import { newSessionId } from '@pawl/agent/session/equipment';
import type { LocalRuntime } from '@pawl/agent/session/runtime';
import { ApiFault } from '@pawl/serve/api-fault';
import type { NodeRuntime, NodeSessionWish } from '@pawl/serve/node-runtime';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { type Opened, openFromFlags } from '../sessions/open-session.js';
import { storedJournals } from '../sessions/stored-sessions.js';
import { withConfig } from '../settings/configuration.js';
import { sessionWorkspace, type Warn } from '../settings/connect-model.js';
import type { RunFlags } from '../settings/flags.js';

/**
 * The sessions of a node without an engine: in this process, with their journals on disk. Each is
 * opened as every command opens one, from flags and configuration, with the same policy and
 * sandbox.
 */
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
  const open = async (sessionId: string): Promise<void> => {
    if (runtimes.has(sessionId)) return;
    keep(await openFromFlags(flagsToReopen(flags), 'node', { warn, resume: sessionId }));
  };
  return {
    endsWithNode: true,
    create: (wish) =>
      blamingClient(async () =>
        keep(await openFromFlags(await wishedFlags(flags, wish), 'node', { warn })),
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
      const forked = newSessionId(systemClock);
      await journals.fork(sessionId, seq, forked, systemClock.now());
      return forked;
    },
    list: () => journals.list(),
    close: async (sessionId) => find(sessionId).close(sessionId),
  };
};

/** The lower of the operator's limit, as text, and the client's. */
const lower = (
  operatorLimit: string | undefined,
  clientLimit: number | undefined,
): string | undefined => {
  if (clientLimit === undefined) return operatorLimit;
  const limit = Number(operatorLimit ?? 0);
  const amount = limit > 0 ? Math.min(limit, clientLimit) : clientLimit;
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
    maxUsd: lower(operatorFlags.maxUsd, limitAmount(usd)),
    maxTokens: lower(operatorFlags.maxTokens, limitAmount(tokens)),
    maxRounds: lower(operatorFlags.maxRounds, limitAmount(rounds)),
    maxMinutes: lower(
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
export const wishedFlags = async (
  flags: RunFlags,
  { workspace, preset, limits }: NodeSessionWish,
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
    ...(preset === null ? {} : { preset }),
  };
};

/**
 * The operator's flags for a session that goes on. Where it was created with less, it keeps that.
 */
const flagsToReopen = (flags: RunFlags): RunFlags => {
  const { model, effort, profile, ...rest } = flags;
  return rest;
};

/** The flags for a session of an engine that goes on: it keeps what it was created with. */
export const flagsToGoOn = (flags: RunFlags): RunFlags => {
  const {
    model,
    effort,
    preset,
    sandbox,
    profile,
    maxUsd,
    maxTokens,
    maxRounds,
    maxMinutes,
    ...rest
  } = flags;
  return rest;
};

/**
 * Reports errors that a client's wishes cause as its faults: a limit in dollars for a model without
 * a price, for example.
 */
export const blamingClient = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    const isWish =
      error instanceof Stop &&
      (error.exit === exitCodes.usage || error.exit === exitCodes.badInput);
    throw isWish ? new ApiFault('badRequest', error.message) : error;
  }
};

/** The sessions of a node, and what belongs to them. */
export type NodeSessions = {
  readonly runtime: NodeRuntime;
  /** Holds the records of whose the sessions are. */
  readonly recordsFolder: string;
  /** Called when the node has drained. */
  stop(): Promise<void>;
};
