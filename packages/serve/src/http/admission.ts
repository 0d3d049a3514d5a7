import type { IncomingHttpHeaders } from 'node:http';
import { foreignHeader, loopbackHosts } from '@pawl/agent/platform/net/check-host-and-origin';
import { ApiFault } from './api-fault.js';
import type { KeyUse } from './key-rate-limits.js';
import { findKey, type ServeKey } from './keys.js';

/**
 * Who may use the node.
 *
 * 1. Host and Origin must be ours (net/check-host-and-origin.ts).
 * 2. Every request but /health needs the token of a key.
 */

export type NodeAddress = {
  /** The address that the server listens on. */
  readonly host: string;
  readonly port: number;
  /** Further values of Host, such as the public name behind a proxy. */
  readonly names: readonly string[];
};

const EVERY_ADDRESS = ['0.0.0.0', '::'];

export const isLoopback = (host: string): boolean => ['127.0.0.1', 'localhost', '::1'].includes(host);

const inAddress = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** The values of Host that are accepted; null accepts any. */
const acceptedHosts = ({ host, port, names }: NodeAddress): readonly string[] | null => {
  if (EVERY_ADDRESS.includes(host) && names.length === 0) return null;
  return [
    ...loopbackHosts(port),
    `${inAddress(host)}:${port}`,
    ...names.flatMap((name) => [name, `${name}:${port}`]),
  ];
};

/** Rule 1. */
export const checkPlace = (headers: IncomingHttpHeaders, address: NodeAddress): void => {
  const foreign = foreignHeader(headers, acceptedHosts(address));
  if (foreign === 'host')
    throw new ApiFault(
      'notAllowed',
      'The Host of this request is not a name of this node. Start it with --name for the name that you use.',
    );
  if (foreign === 'origin')
    throw new ApiFault(
      'notAllowed',
      'Requests of web pages are not answered. Send the request from a program.',
    );
};

/** Rule 2, and the key's limit on requests. */
export const admitKey = (headers: IncomingHttpHeaders, keys: readonly ServeKey[], use: KeyUse): ServeKey => {
  const key = findKey(keys, headers.authorization);
  if (key === null)
    throw new ApiFault(
      'wrongToken',
      'The token is missing or wrong. Send the header Authorization: Bearer TOKEN.',
    );
  const waitSeconds = use.countRequest(key);
  if (waitSeconds > 0)
    throw new ApiFault(
      'tooManyRequests',
      `The key ${key.name} may send ${key.limits.requestsPerMinute} requests a minute. Try again in ${waitSeconds} s.`,
      waitSeconds,
    );
  return key;
};
