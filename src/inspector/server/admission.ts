import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/**
 * Who may read from the inspector's server: the browser to which the user gave the address with its token.
 *
 * 1. Host must be an address of this computer with our port, so that a foreign name that resolves to it gets nothing.
 * 2. Origin, if there is one, must be ours: pages of other servers get nothing.
 * 3. The path begins with the token.
 */

/** `path`: what follows the token, beginning with a slash. */
export type RequestAdmission =
  | { readonly kind: 'admitted'; readonly path: string }
  | { readonly kind: 'refused'; readonly status: 403 | 405; readonly why: string };

const LOCAL_NAMES = ['127.0.0.1', 'localhost', '[::1]'];

const sameText = (one: string, other: string): boolean => {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
};

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
  const hosts = LOCAL_NAMES.map((name) => `${name}:${port}`);
  if (!hosts.includes(headers.host ?? '')) return refused('The host of this address is not this computer.');
  const { origin } = headers;
  if (origin !== undefined && !hosts.some((host) => origin === `http://${host}`))
    return refused('Pages of other servers may not read the inspector.');
  const [, given = '', ...rest] = (url.split('?', 1)[0] ?? '').split('/');
  if (!sameText(given, token))
    return refused('The token in the address is wrong. Use the address that pawl inspect printed.');
  return { kind: 'admitted', path: `/${rest.join('/')}` };
};
