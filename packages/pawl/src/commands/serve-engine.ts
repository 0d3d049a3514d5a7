/**
 * `pawl serve --engine`: the sessions of a node on a durable engine.
 *
 * A node is a process that runs sessions for others. A durable engine is a server outside of Pawl
 * (Restate) that keeps the events, timers and running work of sessions: when a node dies, it calls
 * another one. docs/build/many-machines.md draws the parts. A key is that of a client of the node:
 * each session belongs to one.
 *
 * `engineSessions` reads the flags (serve-engine-flags.ts), loads the engine's package
 * (serve-engine-package.ts), and starts the node with an agent (serve-engine-agent.ts).
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '@pawl/agent/platform/attempt';
import type { NodeMetrics } from '@pawl/serve/metrics';
import { type NodeSessionWish, type SharedRuntime, sharedSessions } from '@pawl/serve/node-runtime';
import type { SpendingStore } from '@pawl/serve/spending';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { openStateFolder } from '../sessions/stored-sessions.js';
import { withConfig } from '../settings/configuration.js';
import { realWorkspace, type Warn } from '../settings/connect-model.js';
import type { RunFlags } from '../settings/flags.js';
import type { ServeFlags } from './serve.js';
import { nodeAgent } from './serve-engine-agent.js';
import { readNodeOptions } from './serve-engine-flags.js';
import { loadEnginePackage } from './serve-engine-package.js';
import { blamingClient, type ClientKeyFlags, type NodeSessions } from './serve-sessions.js';

/** Warns that the setting `tasks` has no effect on an engine. */
const warnOfTasks = async (flags: RunFlags, warn: Warn): Promise<void> => {
  const ignore = (): void => undefined; // `configure` of serve-node.ts has warned
  const folder = realWorkspace(process.cwd());
  const settled = await withConfig(flags, folder, { command: 'run', resumed: false, warn: ignore });
  if (settled.tasks === true) warn('Sessions on an engine have no tool `task`.');
};

/**
 * A failed start of the node as a `Stop` with its exit code; any other fault as it is. The class of
 * the error is in the engine's package, so it is known by its name.
 */
const toStop = (fault: Error): Error => {
  if (fault.name !== 'NodeStartError' || !('kind' in fault)) return fault;
  return fault.kind === 'unreachable'
    ? new Stop(exitCodes.unavailable, 'unavailable', fault.message)
    : new Stop(exitCodes.configuration, 'configuration', fault.message);
};

/** What limits the sessions of each client's key, and what counts them. */
type ClientKeyParts = {
  /**
   * The flags for sessions of each key: its preset, and in `forKey` its models, what it may still
   * spend, and the folders that it must not see. Requests to models are charged to the store.
   */
  keyFlagsWith(store: SpendingStore): ClientKeyFlags;
  /** Counts what happens in sessions, where it happens. */
  readonly metrics: NodeMetrics;
  readonly warn: Warn;
};

/** Starts the node on the engine. `sessions`: the flags for its sessions. */
export const engineSessions = async (
  flags: ServeFlags & { readonly engine: string },
  sessions: RunFlags,
  { keyFlagsWith, metrics, warn }: ClientKeyParts,
): Promise<NodeSessions> => {
  const stateFolder = openStateFolder(process.env);
  const nodeOptions = readNodeOptions(flags, stateFolder);
  await warnOfTasks(sessions, warn);
  const { startEngineNode } = await loadEnginePackage();
  const engine = lateRuntime();
  const spending: SpendingStore = {
    // the engine counts what each key spends, for all nodes
    charge: async (...asked) => (await engine.runtime).charge(...asked),
  };
  const keyFlags = keyFlagsWith(spending);
  const findClientKey = rememberClientKeys(engine.runtime);
  const agent = nodeAgent(sessions, { keyFlags, findClientKey, warn });
  const { blobs } = nodeOptions;
  if (blobs.kind === 'folder') mkdirSync(blobs.path, { recursive: true, mode: 0o700 });
  const started = await attempt(() =>
    startEngineNode({
      ...nodeOptions,
      equip: (session) => agent.equip(session),
      applied: (sessionId, change) =>
        // `change`: events, and the state before and after them. The key is unknown while the
        // engine is away: then the figures are nobody's
        void findClientKey(sessionId).then(
          (key) => metrics.applied(key ?? '', change),
          () => metrics.applied('', change),
        ),
      report: (fault) => warn(fault.message),
    }),
  );
  if (started.kind === 'fault') throw toStop(started.fault);
  const { runtime, stop } = started.value;
  engine.resolve(runtime);
  // `blamingClient` reports what a client's wishes cause as its fault, not as the node's
  const prepare = (wish: NodeSessionWish) => blamingClient(() => agent.prepare(wish));
  return {
    // `applied` above has counted the figures, so the node does not
    runtime: { ...sharedSessions(runtime, prepare, nodeOptions.name), isCounted: 'yes' },
    spending,
    recordsFolder: join(stateFolder, 'serve', 'sessions'), // unused: `runtime` has records
    stop,
  };
};

/** The runtime of a node that is still being started: the engine may already give it work. */
const lateRuntime = () => {
  let resolve = (_runtime: SharedRuntime): void => undefined;
  const runtime = new Promise<SharedRuntime>((done) => {
    resolve = done;
  });
  return { runtime, resolve: (started: SharedRuntime) => resolve(started) };
};

const REMEMBERED_MAX = 10_000;

/** Finds the name of a session's key, which never changes; null: a session of nobody. */
const rememberClientKeys = (runtime: Promise<SharedRuntime>) => {
  const known = new Map<string, string>();
  return async (sessionId: string): Promise<string | null> => {
    const remembered = known.get(sessionId);
    if (remembered !== undefined) return remembered;
    const name = (await (await runtime).records.get(sessionId))?.key ?? null;
    if (known.size >= REMEMBERED_MAX) known.clear();
    if (name !== null) known.set(sessionId, name);
    return name;
  };
};
