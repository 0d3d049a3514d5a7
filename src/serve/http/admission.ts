import type { IncomingHttpHeaders } from 'node:http';
import { ApiFault } from './api-fault.js';
import type { KeyUse } from './key-use.js';
import { findKey, type ServeKey } from './keys.js';

/**
 * Who may use the node.
 *
 * 1. Host must name this node, so that a foreign name that resolves to its address gets nothing.
 * 2. A request with an Origin comes from a web page. Only pages of the node's own address may send one.
 * 3. Every request but /health needs the token of a key.
 */

export type NodeAddress = {
  /** The address that the server listens on. */
  readonly host: string;
  readonly port: number;
  /** Further values of Host, such as the public name behind a proxy. */
  readonly names: readonly string[];
};

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];
const EVERY_ADDRESS = ['0.0.0.0', '::'];

export const isLoopback = (host: string): boolean => ['127.0.0.1', 'localhost', '::1'].includes(host);

const inAddress = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** The values of Host that are accepted; null accepts any. */
const acceptedHosts = ({ host, port, names }: NodeAddress): readonly string[] | null => {
  if (EVERY_ADDRESS.includes(host) && names.length === 0) return null;
  return [
    ...[...LOOPBACK, inAddress(host)].map((name) => `${name}:${port}`),
    ...names.flatMap((name) => [name, `${name}:${port}`]),
  ];
};

/** Rules 1 and 2. */
export const checkPlace = ({ host, origin }: IncomingHttpHeaders, address: NodeAddress): void => {
  const accepted = acceptedHosts(address);
  const given = host?.toLowerCase() ?? '';
  if (accepted !== null && !accepted.includes(given))
    throw new ApiFault(
      'notAllowed',
      'The Host of this request is not a name of this node. Start it with --name for the name that you use.',
    );
  if (origin !== undefined && origin !== `http://${given}` && origin !== `https://${given}`)
    throw new ApiFault(
      'notAllowed',
      'Requests of web pages are not answered. Send the request from a program.',
    );
};

/** Rule 3, and the key's limit on requests. */
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
