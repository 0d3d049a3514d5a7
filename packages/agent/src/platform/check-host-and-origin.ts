/**
 * Whether a request to one of our servers was meant for it.
 *
 * 1. Host must be one of the server's own, so that a foreign name that resolves to its address gets
 *    nothing.
 * 2. Origin, which only web pages send, must be a page of the same address.
 */

import type { IncomingHttpHeaders } from 'node:http';

const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '[::1]'];

/** The values of Host that reach a server on the loopback interface. */
export const loopbackHosts = (port: number): readonly string[] =>
  LOOPBACK_NAMES.map((name) => `${name}:${port}`);

/**
 * The header for which the request is to be refused; null if it is meant for this server. `hosts`:
 * the only values of Host, of a server that speaks plain HTTP; null accepts any, for a server that
 * a proxy may stand in front of.
 */
export const foreignHeader = (
  { host, origin }: Pick<IncomingHttpHeaders, 'host' | 'origin'>,
  hosts: readonly string[] | null,
): 'host' | 'origin' | null => {
  const given = host?.toLowerCase() ?? '';
  if (hosts !== null && !hosts.includes(given)) return 'host';
  const pages =
    hosts === null
      ? [`http://${given}`, `https://${given}`]
      : hosts.map((name) => `http://${name}`);
  return origin === undefined || pages.includes(origin) ? null : 'origin';
};
