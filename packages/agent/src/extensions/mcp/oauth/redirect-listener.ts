import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isSameSecret } from '../../../platform/base/compare-secrets.js';

/**
 * Waits on 127.0.0.1 for the redirect of a login.
 *
 * 1. Only a request with the login's own state counts. Anybody on this machine, and any web page, can send others: they
 *    are answered and forgotten.
 * 2. The host of a request must be ours, so that no foreign name leads here.
 */
export type RedirectListener = {
  /** `http://127.0.0.1:PORT/callback` */
  readonly redirectUrl: string;
  /** Resolves with the parameters of the redirect that has this state. */
  receive(state: string): Promise<URLSearchParams>;
  close(): void;
};

const PATH = '/callback';

const answer = (outgoing: ServerResponse, status: number, words: string): void => {
  outgoing.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'",
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    connection: 'close',
  });
  outgoing.end(`<!doctype html><title>Pawl</title><p>${words}</p>`);
};

const listen = (server: Server, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    server.once('error', () => resolve(false)); // the port is taken
    server.listen(port, '127.0.0.1', () => resolve(true));
  });

/**
 * Listens at the address of an earlier login if that is free, since registrations are bound to it. `only`: the one port that
 * counts, since the user has registered it.
 */
export const openRedirectListener = async (
  earlier: string | null,
  only: number | null = null,
): Promise<RedirectListener> => {
  let expected: { readonly state: string; take(found: URLSearchParams): void } | null = null;
  /** The state of the redirect that was taken last: it is taken once. */
  let taken: string | null = null;
  const take = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const url = URL.canParse(incoming.url ?? '', 'http://127.0.0.1')
      ? new URL(incoming.url ?? '', 'http://127.0.0.1')
      : null;
    const host = new URL(redirectUrl).host;
    if (
      url === null ||
      url.pathname !== PATH ||
      incoming.method !== 'GET' ||
      incoming.headers.host !== host
    ) {
      answer(outgoing, 404, 'There is nothing here.');
    } else if (taken !== null && isSameSecret(url.searchParams.get('state'), taken)) {
      answer(outgoing, 400, 'This address was used already. Pawl takes it once.');
    } else if (expected === null || !isSameSecret(url.searchParams.get('state'), expected.state)) {
      answer(outgoing, 400, 'This does not belong to the login that Pawl is waiting for.');
    } else {
      const refused = url.searchParams.has('error');
      answer(outgoing, 200, refused ? 'The login was refused.' : 'Done. Pawl says how it went on.');
      taken = expected.state;
      expected.take(url.searchParams);
      expected = null;
    }
  };
  const server = createServer(take);
  const port = earlier !== null && URL.canParse(earlier) ? Number(new URL(earlier).port) : 0;
  if (only !== null && !(await listen(server, only)))
    throw new Error(`port ${only} on 127.0.0.1, which your settings name for the redirect, is in use`);
  if (only === null && !(await listen(server, port)) && !(await listen(server, 0)))
    throw new Error('no port on 127.0.0.1 can be used for the redirect of the login');
  const { port: bound } = server.address() as AddressInfo; // it listens on a port
  const redirectUrl = `http://127.0.0.1:${bound}${PATH}`;
  return {
    redirectUrl,
    receive: (state) =>
      new Promise((resolve) => {
        expected = { state, take: resolve };
      }),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
};
