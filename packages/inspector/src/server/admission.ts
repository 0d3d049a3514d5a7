import type { IncomingMessage } from 'node:http';
import { isSameSecret } from '@pawl/agent/platform/base/compare-secrets';
import { foreignHeader, loopbackHosts } from '@pawl/agent/platform/net/check-host-and-origin';

/**
 * Who may read from the inspector's server: the browser to which the user gave the address with its token.
 *
 * 1. Host and Origin must be ours (net/check-host-and-origin.ts).
 * 2. The path begins with the token.
 */

/** `path`: what follows the token, beginning with a slash. */
export type RequestAdmission =
  | { readonly kind: 'admitted'; readonly path: string }
  | { readonly kind: 'refused'; readonly status: 403 | 405; readonly why: string };

const refused = (why: string, status: 403 | 405 = 403): RequestAdmission => ({
  kind: 'refused',
  status,
  why,
});

export const admit = (
  { method, url = '', headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>,
  port: number,
  token: string,
): RequestAdmission => {
  if (method !== 'GET') return refused('The inspector only shows: use GET.', 405);
  const foreign = foreignHeader(headers, loopbackHosts(port));
  if (foreign === 'host') return refused('The host of this address is not this computer.');
  if (foreign === 'origin') return refused('Pages of other servers may not read the inspector.');
  const [, given = '', ...rest] = (url.split('?', 1)[0] ?? '').split('/');
  if (!isSameSecret(given, token))
    return refused('The token in the address is wrong. Use the address that pawl inspect printed.');
  return { kind: 'admitted', path: `/${rest.join('/')}` };
};
