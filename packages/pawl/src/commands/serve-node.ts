/** `pawl serve`: a node, which is a process that runs sessions for others, until a signal. */

import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { attempt } from '@pawl/agent/platform/attempt';
import { dataFolder } from '@pawl/agent/platform/environment';
import { isLoopback } from '@pawl/serve/http';
import { type KeyPlaces, REPOSITORY_NAME } from '@pawl/serve/keys';
import { NodeMetrics } from '@pawl/serve/metrics';
import { type ServingNode, startNode } from '@pawl/serve/node';
import { fileSpending, type SpendingStore } from '@pawl/serve/spending';
import type { WorkspaceOptions } from '@pawl/serve/workspaces';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError } from '@pawl/terminal/write';
import { exitCodes, listenToSignals, Stop } from '../process/exit-codes.js';
import { refuseBadFlags, refuseUnfenced } from '../sessions/session-settings.js';
import { openStateFolder } from '../sessions/stored-sessions.js';
import { withConfig } from '../settings/configuration.js';
import {
  chooseUsual,
  connectModel,
  realWorkspace,
  sessionWorkspace,
} from '../settings/connect-model.js';
import { nodeSessionFlags, type RunFlags, readAmount, usageStop } from '../settings/flags.js';
import { DEFAULT_DRAIN_SECONDS, DEFAULT_PORT, engineFlags, type ServeFlags } from './serve.js';
import { clientKeyFlags, type NodeKeys, nodeKeys } from './serve-keys.js';
import { embeddedSessions, type NodeSessions } from './serve-sessions.js';

const PORT_MAX = 65_535;

const readPort = ({ port }: ServeFlags): number => {
  if (port === undefined) return DEFAULT_PORT;
  const number = /^\d{1,5}$/.test(port) ? Number(port) : Number.NaN;
  if (number <= PORT_MAX) return number;
  throw usageStop(`--port needs a port from 0 to ${PORT_MAX}, not '${port}'.`);
};

const readHost = ({ host = '127.0.0.1' }: ServeFlags, { newToken }: NodeKeys): string => {
  if (newToken === null || isLoopback(host)) return host;
  throw usageStop(
    `--host ${host} lets other computers reach the node, so it needs keys: --keys FILE, or ` +
      'PAWL_SERVE_TOKEN in the environment.',
  );
};

/**
 * The repositories, by whose names a client asks for a worktree. A flag is `name=path`, or a path
 * whose last part is the name.
 */
const readRepositories = ({ repository = [] }: ServeFlags): ReadonlyMap<string, string> => {
  const repositories = new Map<string, string>();
  for (const entry of repository) {
    const [, named, path = entry] = /^([\w.-]+)=(.+)$/s.exec(entry) ?? [];
    const real = sessionWorkspace(resolve(path));
    const name = named ?? basename(real);
    if (!REPOSITORY_NAME.test(name))
      throw usageStop(
        `--repository ${entry} needs a name of letters, digits, dots and hyphens: NAME=PATH.`,
      );
    if (!existsSync(join(real, '.git')))
      throw usageStop(
        `--repository ${entry}: ${real} is not the working tree of a git repository (a bare one has none).`,
      );
    if (repositories.has(name))
      throw usageStop(`Two repositories have the name ${name}. Name them: NAME=PATH.`);
    repositories.set(name, real);
  }
  return repositories;
};

const readPlaces = (flags: ServeFlags): KeyPlaces => ({
  folders: (flags.folder ?? []).map((folder) => sessionWorkspace(resolve(folder))),
  repositories: readRepositories(flags),
});

const readWorkspaces = (
  places: KeyPlaces,
  { source }: NodeKeys,
  signal: AbortSignal,
): WorkspaceOptions => {
  const isEmpty = places.folders.length === 0 && places.repositories.size === 0;
  if (isEmpty && !source.now().every((key) => key.places !== undefined))
    throw usageStop(
      'A node needs a place for its sessions: --repository PATH (each gets a worktree) or ' +
        '--folder PATH.',
    );
  const worktreesFolder = join(dataFolder(process.env), 'worktrees');
  return { ...places, dataFolder: worktreesFolder, environment: process.env, signal };
};

const warn = (text: string): void => writeError(safe`pawl: ${makeSafe(text)}\n`);

/** The flags for sessions, checked and completed by the configuration. */
const configure = async (flags: RunFlags) => {
  refuseBadFlags(flags); // throws for a value that can't be read
  const folder = realWorkspace(process.cwd());
  return withConfig(flags, folder, { command: 'run', resumed: false, warn });
};

/** Finds a missing API key now rather than with the first session. */
const checkModel = async (flags: Awaited<ReturnType<typeof configure>>): Promise<void> => {
  const id = flags.model ?? (await chooseUsual(flags, () => undefined));
  await connectModel(id, flags, realWorkspace(process.cwd()));
};

const refuseEngineFlags = (flags: ServeFlags): void => {
  const engineFlag = engineFlags.find((name) => flags[name] !== undefined);
  if (engineFlag === undefined) return;
  const flag = engineFlag.replaceAll(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);
  throw usageStop(`--${flag} is for nodes on an engine: give --engine restate://HOST:PORT too.`);
};

const openSessions = async (
  flags: ServeFlags,
  sessions: RunFlags,
  keys: NodeKeys,
  places: KeyPlaces,
  metrics: NodeMetrics,
): Promise<NodeSessions> => {
  const { engine } = flags;
  const keyFlagsWith = (store: SpendingStore) => clientKeyFlags(keys.source, places, store);
  if (engine !== undefined) {
    const { engineSessions } = await import('./serve-engine.js');
    return engineSessions({ ...flags, engine }, sessions, { keyFlagsWith, metrics, warn });
  }
  const folder = join(openStateFolder(process.env), 'serve');
  const spending = fileSpending(join(folder, 'spending'));
  return {
    runtime: embeddedSessions(sessions, keyFlagsWith(spending), warn),
    spending,
    recordsFolder: join(folder, 'sessions'),
    stop: async () => undefined, // its sessions were closed
  };
};

/**
 * Ends the node on a signal: it takes no new work, and running turns may end (it drains). A second
 * signal interrupts them at once.
 */
const untilSignal = async (node: ServingNode, drainMs: number): Promise<void> => {
  const hurry = new AbortController();
  let drained: Promise<void> | null = null;
  let stopListening = (): void => undefined;
  const drainedOnce = new Promise<void>((done, failed) => {
    const drain = (): void => {
      if (drained !== null) {
        hurry.abort();
        return;
      }
      writeError(
        safe`The node takes no new work. Running turns have ${makeSafe(String(drainMs / 1_000))} s; a second signal interrupts them now.\n`,
      );
      drained = node.drain(drainMs, hurry.signal);
      drained.then(done, failed);
    };
    stopListening = listenToSignals({ interrupt: drain, interruptAgain: drain, terminate: drain });
  });
  await drainedOnce.finally(stopListening);
};

/** Prints the address of the node, and the header that it wants. */
const announce = ({ address }: ServingNode, { source, newToken }: NodeKeys): void => {
  const keys = source.now();
  writeError(safe`Pawl serves sessions at ${makeSafe(address)}. Every request needs the header\n`);
  if (newToken !== null) writeError(safe`Authorization: Bearer ${makeSafe(newToken)}\n`);
  else {
    const which = keys.length === 1 ? 'your key' : `one of your ${keys.length} keys`;
    writeError(safe`Authorization: Bearer TOKEN, with the token of ${makeSafe(which)}\n`);
  }
};

/** Starts the node, says how to reach it, and waits for a signal. Returns the exit code. */
export const runServe = async (flags: ServeFlags): Promise<number> => {
  const port = readPort(flags);
  const drainMs =
    1_000 *
    readAmount('--drain-seconds', flags.drainSeconds ?? String(DEFAULT_DRAIN_SECONDS), 'any');
  const places = readPlaces(flags);
  if (flags.engine === undefined) refuseEngineFlags(flags);
  const sessions = nodeSessionFlags(flags);
  const configured = await configure(sessions);
  const keys = nodeKeys(flags.keys, process.env, {
    places,
    // a tenant may not reach the places of others, and only the sandbox keeps it out
    check: (all) => {
      if (all.some((key) => key.places !== undefined)) refuseUnfenced(configured);
    },
    warn,
  });
  const host = readHost(flags, keys);
  const ending = new AbortController(); // ends work on worktrees that is still under way
  const workspaces = readWorkspaces(places, keys, ending.signal);
  const metrics = new NodeMetrics();
  // Nothing listens yet: a fault in the flags or the surroundings ends the program before.
  await checkModel(configured);
  const { runtime, spending, recordsFolder, stop } = await openSessions(
    flags,
    sessions,
    keys,
    places,
    metrics,
  );
  const started = await attempt(() =>
    startNode({
      runtime,
      keys: keys.source,
      auditFile: join(openStateFolder(process.env), 'serve', 'audit.jsonl'),
      metrics,
      host,
      port,
      // further values of the header Host that the node accepts
      names: flags.name ?? [],
      workspaces,
      spending,
      recordsFolder,
      report: (fault) => warn(fault.message),
    }),
  );
  if (started.kind === 'fault') {
    await stop();
    throw new Stop(
      exitCodes.unavailable,
      'unavailable',
      `Pawl can't listen at ${host}, port ${port}: ${started.fault.message}`,
    );
  }
  announce(started.value, keys);
  try {
    await untilSignal(started.value, drainMs);
  } finally {
    await stop();
    ending.abort();
  }
  return exitCodes.done;
};
