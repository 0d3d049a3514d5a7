import { mkdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { attempt } from '@pawl/agent/session/attempt';
import { sharedSessions } from '@pawl/serve/adapt-runtime-to-node';
import { type BlobPlace, readS3Place } from '@pawl/serve/blob-place';
import type { EngineNodeOptions } from '@pawl/serve/engine-node-options-types';
import { isLoopback } from '@pawl/serve/http/admission';
import { exitCodes, Stop } from '../../exit-codes.js';
import { type RunFlags, usageStop } from '../../flags.js';
import { openStateFolder } from '../../sessions/make-state-folder.js';
import { withConfig } from '../../settings/apply-config.js';
import { realWorkspace, type Warn } from '../../settings/connect-model.js';
import { blamingClient } from './client-session-flags.js';
import { nodeAgent } from './engine-agent.js';
import { loadEnginePackage } from './engine-package.js';
import type { NodeSessions } from './node-sessions-type.js';
import { DEFAULT_NODE_PORT, type ServeFlags } from './serve-flags.js';

/** The sessions of a node on a durable engine: this process does their work, and the engine keeps them. */

const ADMIN_PORT = 9070;
/** Three ports from the first one on. */
const FIRST_PORT_MAX = 65_533;

/** `restate://HOST:PORT` as the addresses of the engine. */
const engineUrls = (
  engine: string,
  admin: string | undefined,
): { readonly ingressUrl: string; readonly adminUrl: string } => {
  const [, host, port] = /^restate:\/\/(\[[0-9a-f:]+\]|[\w.-]+):(\d{1,5})$/i.exec(engine) ?? [];
  if (host === undefined)
    throw usageStop(
      `--engine needs restate://HOST:PORT, the address of the engine's server, not '${engine}'.`,
    );
  const adminUrl = httpUrl('--engine-admin', admin ?? `http://${host}:${ADMIN_PORT}`);
  return { ingressUrl: `http://${host}:${port}`, adminUrl };
};

const httpUrl = (flag: string, given: string): string => {
  const url = URL.canParse(given) ? new URL(given) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.pathname !== '/')
    throw usageStop(`${flag} needs http://HOST:PORT, not '${given}'.`);
  return url.origin;
};

const nameOf = ({ node }: ServeFlags): string => {
  const name = node ?? hostname().replaceAll(/[^A-Za-z0-9-]/g, '-');
  if (/^[A-Za-z0-9-]{1,64}$/.test(name)) return name;
  throw usageStop(`--node needs a name of at most 64 letters, digits and hyphens, not '${name}'.`);
};

const firstPortOf = ({ nodePorts }: ServeFlags): number => {
  const port = Number(nodePorts ?? DEFAULT_NODE_PORT);
  if (Number.isInteger(port) && port >= 1 && port <= FIRST_PORT_MAX) return port;
  throw usageStop(
    `--node-ports needs the first of three ports, from 1 to ${FIRST_PORT_MAX}, not '${nodePorts}'.`,
  );
};

const addressOf = ({ nodeAddress = '127.0.0.1', engineKey = [] }: ServeFlags): string => {
  if (!/^[\w.:-]+$/.test(nodeAddress))
    throw usageStop(`--node-address needs the name or address of this computer, not '${nodeAddress}'.`);
  if (isLoopback(nodeAddress) || engineKey.length > 0) return nodeAddress;
  throw usageStop(
    `--node-address ${nodeAddress} lets other computers reach the node, and whoever does could run commands here. Give the public key of the engine: --engine-key publickeyv1_… (docs/many-machines.md).`,
  );
};

const blobsOf = (given: string | undefined, stateFolder: string): BlobPlace => {
  if (given === undefined) return { kind: 'folder', path: join(stateFolder, 'serve', 'blobs') };
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(given)) return { kind: 'folder', path: resolve(given) };
  const read = readS3Place(given);
  if ('place' in read) return read.place;
  throw usageStop(`--blobs needs a folder, or the address of a bucket; ${read.fault}`);
};

const wishesOf = (
  flags: ServeFlags & { readonly engine: string },
  stateFolder: string,
): Omit<EngineNodeOptions, 'equip' | 'report'> => {
  const { engine, engineAdmin, engineKey = [], nodes, peer = [], blobs } = flags;
  const { PAWL_NODE_TOKEN: liveToken = '' } = process.env;
  if (peer.length > 0 && liveToken === '')
    throw usageStop('--peer needs the secret that all nodes share, in the variable PAWL_NODE_TOKEN.');
  const wrongKey = engineKey.find((key) => !key.startsWith('publickeyv1_'));
  if (wrongKey !== undefined)
    throw usageStop(`--engine-key needs a public key, which begins with publickeyv1_, not '${wrongKey}'.`);
  return {
    name: nameOf(flags),
    ...engineUrls(engine, engineAdmin),
    address: addressOf(flags),
    firstPort: firstPortOf(flags),
    sharedUrl: nodes === undefined ? null : httpUrl('--nodes', nodes),
    peers: peer.map((url) => httpUrl('--peer', url)),
    liveToken: liveToken === '' ? null : liveToken,
    identityKeys: engineKey,
    blobs: blobsOf(blobs, stateFolder),
  };
};

/** Hooks may forbid what the rules allow, so they are not left out in silence. */
const warnOfTasks = async (flags: RunFlags, warn: Warn): Promise<void> => {
  const ignore = (): void => undefined; // it was said when the surroundings were checked
  const folder = realWorkspace(process.cwd());
  const settled = await withConfig(flags, folder, { command: 'run', resumed: false, warn: ignore });
  if (settled.tasks === true) warn('Sessions on an engine have no tool `task`.');
};

const stopOf = (fault: Error): Error => {
  if (fault.name !== 'NodeStartError' || !('kind' in fault)) return fault;
  return fault.kind === 'unreachable'
    ? new Stop(exitCodes.unavailable, 'unavailable', fault.message)
    : new Stop(exitCodes.configuration, 'configuration', fault.message);
};

export const engineSessions = async (
  flags: ServeFlags & { readonly engine: string },
  sessions: RunFlags,
  warn: Warn,
): Promise<NodeSessions> => {
  const stateFolder = openStateFolder(process.env);
  const wishes = wishesOf(flags, stateFolder);
  await warnOfTasks(sessions, warn);
  const { startEngineNode } = await loadEnginePackage();
  const agent = nodeAgent(sessions, warn);
  const { blobs } = wishes;
  if (blobs.kind === 'folder') mkdirSync(blobs.path, { recursive: true, mode: 0o700 });
  const started = await attempt(() =>
    startEngineNode({
      ...wishes,
      equip: (session) => agent.equip(session),
      report: (fault) => warn(fault.message),
    }),
  );
  if (started.kind === 'fault') throw stopOf(started.fault);
  const { runtime, stop } = started.value;
  return {
    runtime: sharedSessions(runtime, (wish) => blamingClient(() => agent.prepare(wish)), wishes.name),
    recordsFolder: join(stateFolder, 'serve', 'sessions'), // not used: the engine keeps the records
    stop,
  };
};
