/**
 * The flags of `pawl serve --engine` as options of the node; a wrong one ends the program. A key
 * here is a public key of the engine.
 */

import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { isLoopback } from '@pawl/serve/http';
import { type BlobPlace, type EngineNodeOptions, readS3Place } from '@pawl/serve/node-runtime';
import { usageStop } from '../settings/flags.js';
import { DEFAULT_NODE_PORT, type ServeFlags } from './serve.js';

/** The port of the engine's admin address, if no flag names another. */
const ADMIN_PORT = 9070;
/** A node takes three ports: this is the highest for the first of them. */
const FIRST_PORT_MAX = 65_533;

/** `restate://HOST:PORT` as the addresses of the engine. */
const engineUrls = (
  engine: string,
  admin: string | undefined,
): { readonly ingressUrl: string; readonly adminUrl: string } => {
  const [, host, port] = /^restate:\/\/(\[[0-9a-f:]+\]|[\w.-]+):(\d{1,5})$/i.exec(engine) ?? [];
  const ingressUrl = `http://${host}:${port}`;
  if (host === undefined || !URL.canParse(ingressUrl))
    throw usageStop(
      `--engine needs restate://HOST:PORT, the address of the engine's server, not '${engine}'.`,
    );
  const adminUrl = httpUrl('--engine-admin', admin ?? `http://${host}:${ADMIN_PORT}`);
  return { ingressUrl, adminUrl };
};

const httpUrl = (flag: string, value: string): string => {
  const url = URL.canParse(value) ? new URL(value) : null;
  // nothing but the origin: no path, query or password
  if (url === null || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`)
    throw usageStop(`${flag} needs http://HOST:PORT, not '${value}'.`);
  return url.origin;
};

const readNodeName = ({ node }: ServeFlags): string => {
  const name = node ?? hostname().replaceAll(/[^A-Za-z0-9-]/g, '-');
  if (/^[A-Za-z0-9-]{1,64}$/.test(name)) return name;
  throw usageStop(`--node needs a name of at most 64 letters, digits and hyphens, not '${name}'.`);
};

const readFirstPort = ({ nodePorts }: ServeFlags): number => {
  const port = Number(nodePorts ?? DEFAULT_NODE_PORT);
  if (Number.isInteger(port) && port >= 1 && port <= FIRST_PORT_MAX) return port;
  throw usageStop(
    `--node-ports needs the first of three ports, from 1 to ${FIRST_PORT_MAX}, not '${nodePorts}'.`,
  );
};

const readNodeAddress = ({ nodeAddress = '127.0.0.1', engineKey = [] }: ServeFlags): string => {
  if (!/^[\w.:-]+$/.test(nodeAddress))
    throw usageStop(
      `--node-address needs the name or address of this computer, not '${nodeAddress}'.`,
    );
  if (isLoopback(nodeAddress) || engineKey.length > 0) return nodeAddress;
  throw usageStop(
    `--node-address ${nodeAddress} lets other computers reach the node, and whoever does ` +
      'could run commands here. Give the public key of the engine: --engine-key publickeyv1_… ' +
      '(docs/build/many-machines.md).',
  );
};

const readBlobPlace = (place: string | undefined, stateFolder: string): BlobPlace => {
  if (place === undefined) return { kind: 'folder', path: join(stateFolder, 'serve', 'blobs') };
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(place)) return { kind: 'folder', path: resolve(place) };
  const read = readS3Place(place);
  if ('place' in read) return read.place;
  throw usageStop(`--blobs needs a folder, or the address of a bucket; ${read.fault}`);
};

export const readNodeOptions = (
  flags: ServeFlags & { readonly engine: string },
  stateFolder: string,
): Omit<EngineNodeOptions, 'equip' | 'applied' | 'report'> => {
  const { engine, engineAdmin, engineKey = [], nodes, peer = [], blobs } = flags;
  const { PAWL_NODE_TOKEN: liveToken = '' } = process.env;
  if (peer.length > 0 && liveToken === '')
    throw usageStop(
      '--peer needs the secret that all nodes share, in the variable PAWL_NODE_TOKEN.',
    );
  const wrongKey = engineKey.find((key) => !key.startsWith('publickeyv1_'));
  if (wrongKey !== undefined)
    throw usageStop(
      `--engine-key needs a public key, which begins with publickeyv1_, not '${wrongKey}'.`,
    );
  return {
    name: readNodeName(flags),
    ...engineUrls(engine, engineAdmin),
    address: readNodeAddress(flags),
    firstPort: readFirstPort(flags),
    // an address that reaches all nodes; without it this is the only one
    sharedUrl: nodes === undefined ? null : httpUrl('--nodes', nodes),
    // the other nodes, for text that is shown while it streams (the live channel), and its secret
    peers: peer.map((url) => httpUrl('--peer', url)),
    liveToken: liveToken === '' ? null : liveToken,
    identityKeys: engineKey, // whose calls the node obeys
    blobs: readBlobPlace(blobs, stateFolder),
  };
};
