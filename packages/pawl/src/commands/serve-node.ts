/** `pawl serve`: a node, which is a process that runs sessions for others, until a signal. */

import { randomBytes } from 'node:crypto';
import { basename, join, resolve } from 'node:path';
import { attempt } from '@pawl/agent/platform/attempt';
import { dataFolder } from '@pawl/agent/platform/environment';
import { readRegularSync } from '@pawl/agent/platform/files';
import { isLoopback } from '@pawl/serve/http';
import { keyOfToken, type ReadKeys, readKeys, type ServeKey } from '@pawl/serve/keys';
import { type ServingNode, startNode } from '@pawl/serve/node';
import type { WorkspaceOptions } from '@pawl/serve/workspaces';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError } from '@pawl/terminal/write';
import { exitCodes, listenToSignals, Stop } from '../process/exit-codes.js';
import { refuseBadFlags } from '../sessions/session-settings.js';
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
    if (!/^[\w][\w.-]{0,62}$/.test(name))
      throw usageStop(
        `--repository ${entry} needs a name of letters, digits, dots and hyphens: NAME=PATH.`,
      );
    if (repositories.has(name))
      throw usageStop(`Two repositories have the name ${name}. Name them: NAME=PATH.`);
    repositories.set(name, real);
  }
  return repositories;
};

const readWorkspaces = (flags: ServeFlags, signal: AbortSignal): WorkspaceOptions => {
  const folders = (flags.folder ?? []).map((folder) => sessionWorkspace(resolve(folder)));
  const repositories = readRepositories(flags);
  if (folders.length === 0 && repositories.size === 0)
    throw usageStop(
      'A node needs a place for its sessions: --repository PATH (each gets a worktree) or ' +
        '--folder PATH.',
    );
  const worktrees = join(dataFolder(process.env), 'worktrees');
  return { folders, repositories, dataFolder: worktrees, environment: process.env, signal };
};

const warn = (text: string): void => writeError(safe`pawl: ${makeSafe(text)}\n`);

/** Finds a missing key or a faulty configuration now rather than with the first session. */
const checkSurroundings = async (flags: RunFlags): Promise<void> => {
  refuseBadFlags(flags); // throws for a value that can't be read
  const folder = realWorkspace(process.cwd());
  const configured = await withConfig(flags, folder, { command: 'run', resumed: false, warn });
  await connectModel(
    configured.model ?? (await chooseUsual(configured, () => undefined)),
    configured,
    process.cwd(),
  );
};

const refuseEngineFlags = (flags: ServeFlags): void => {
  const engineFlag = engineFlags.find((name) => flags[name] !== undefined);
  if (engineFlag === undefined) return;
  const flag = engineFlag.replaceAll(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);
  throw usageStop(`--${flag} is for nodes on an engine: give --engine restate://HOST:PORT too.`);
};

const openSessions = async (flags: ServeFlags, sessions: RunFlags): Promise<NodeSessions> => {
  const { engine } = flags;
  if (engine === undefined) refuseEngineFlags(flags);
  await checkSurroundings(sessions);
  if (engine !== undefined)
    return (await import('./serve-engine.js')).engineSessions({ ...flags, engine }, sessions, warn);
  return {
    runtime: embeddedSessions(sessions, warn),
    recordsFolder: join(openStateFolder(process.env), 'serve', 'sessions'),
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
  await new Promise<void>((done, failed) => {
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
  stopListening();
};

/** Prints the address of the node, and the header that it wants. */
const announce = ({ address }: ServingNode, { keys, newToken }: NodeKeys): void => {
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
  const keys = nodeKeys(flags.keys, process.env);
  const host = readHost(flags, keys);
  const ending = new AbortController(); // ends work on worktrees that is still under way
  const workspaces = readWorkspaces(flags, ending.signal);
  // Nothing listens yet: a fault in the flags or the surroundings ends the program before.
  const { runtime, recordsFolder, stop } = await openSessions(flags, nodeSessionFlags(flags));
  const started = await attempt(() =>
    startNode({
      runtime,
      keys: keys.keys,
      host,
      port,
      // further values of the header Host that the node accepts
      names: flags.name ?? [],
      workspaces,
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
  await untilSignal(started.value, drainMs);
  await stop();
  ending.abort();
  return exitCodes.done;
};

/** The keys of the clients. */
type NodeKeys = {
  readonly keys: readonly ServeKey[];
  /** A random token, to be shown; null if the operator has keys. */
  readonly newToken: string | null;
};

const FILE_BYTES_MAX = 1024 * 1024;

const keysFault = (message: string): Stop =>
  new Stop(exitCodes.configuration, 'configuration', message);

const keysOrFault = (what: string, read: ReadKeys): readonly ServeKey[] => {
  if (read.kind === 'ok') return read.keys;
  throw keysFault(`${what} can't be used: ${read.why}.`);
};

const readKeyFile = (file: string): string => {
  const loaded = readRegularSync(file, FILE_BYTES_MAX);
  if (loaded.kind === 'absent')
    throw keysFault(`There is no file of keys ${file}. docs/build/serve.md has an example.`);
  if (loaded.kind !== 'file')
    throw keysFault(`${file} is not a file of keys: it is not a regular file.`);
  const { status, bytes } = loaded;
  if (status.uid !== process.getuid?.())
    throw keysFault(`${file} belongs to another user. Use a file of your own.`);
  if ((status.mode & 0o077) !== 0)
    throw keysFault(`Others may read ${file}. Make it yours alone: chmod 600 ${file}`);
  return bytes.toString('utf8');
};

/**
 * The keys of a node: from a file, from PAWL_SERVE_TOKEN, or a new one. Never from the command
 * line.
 */
export const nodeKeys = (
  file: string | undefined,
  { PAWL_SERVE_TOKEN: token = '' }: NodeJS.ProcessEnv,
): NodeKeys => {
  if (file !== undefined && token !== '')
    throw keysFault('There are keys in --keys and a token in PAWL_SERVE_TOKEN. Give one of them.');
  if (file !== undefined)
    return { keys: keysOrFault(file, readKeys(readKeyFile(file))), newToken: null };
  if (token !== '')
    return { keys: keysOrFault('PAWL_SERVE_TOKEN', keyOfToken(token)), newToken: null };
  const newToken = randomBytes(24).toString('base64url');
  return { keys: keysOrFault('the token', keyOfToken(newToken)), newToken };
};
