import https from 'node:https';
import type { Socket } from 'node:net';
import tls from 'node:tls';
import type { ProcessEnvironment } from '../base/process-environment-type.js';
import { nodeHttp } from './load-node-http.js';

const read = (environment: ProcessEnvironment, name: string): string =>
  environment[name.toLowerCase()] || environment[name] || '';

/** True if NO_PROXY covers the host: `*`, a domain with all below it (`.` in front or not), or either with a port. */
const isExempt = (url: URL, list: string): boolean =>
  list
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      if (entry === '*') return true;
      const [, name = '', port] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
      const domain = name.replace(/^\*?\./, '').toLowerCase();
      const urlPort = url.port || (url.protocol === 'https:' ? '443' : '80');
      const fits = url.hostname === domain || url.hostname.endsWith(`.${domain}`);
      return fits && (port === undefined || port === urlPort);
    });

/**
 * The proxy for a URL, or null: HTTPS_PROXY, HTTP_PROXY and NO_PROXY as curl reads them, lower case first.
 * Throws if the variable is no URL.
 */
export const proxyFor = (url: URL, environment: ProcessEnvironment): URL | null => {
  const name = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const address = read(environment, name);
  if (address === '' || isExempt(url, read(environment, 'NO_PROXY'))) return null;
  const whole = address.includes('://') ? address : `http://${address}`;
  if (!URL.canParse(whole)) throw new Error(`${name} is no URL: ${address}. Correct it or unset it.`);
  return new URL(whole);
};

/** The header with the user and the password of the proxy's URL. */
export const proxyHeaders = (proxy: URL): Readonly<Record<string, string>> => {
  if (proxy.username === '') return {};
  const user = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(user).toString('base64')}` };
};

/** Opens a connection to `host:port` through a proxy (CONNECT). Rejects if the proxy refuses, or when aborted. */
const tunnel = (proxy: URL, authority: string, signal: AbortSignal | undefined): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const { request } = proxy.protocol === 'https:' ? https : nodeHttp;
    const asking = request(proxy, {
      method: 'CONNECT',
      path: authority,
      agent: false,
      headers: { host: authority, ...proxyHeaders(proxy) },
      ...(signal === undefined ? {} : { signal }),
    });
    asking.once('connect', (answer, socket, early: Buffer) => {
      if (answer.statusCode === 200 && early.length === 0) return resolve(socket as Socket); // a TCP or TLS socket
      socket.destroy();
      const said = answer.statusCode === 200 ? 'spoke first' : `answered ${answer.statusCode}`;
      const failure = new Error(`the proxy ${proxy.host} ${said} when asked for ${authority}`);
      reject(Object.assign(failure, { code: 'PROXY_REFUSED' }));
    });
    asking.once('error', reject);
    asking.end();
  });

/** Node does not pass a request's `signal` to its agent, so requests through a tunnel pass it under this name. */
export type TunnelSignal = { readonly tunnelSignal?: AbortSignal };

type Secured = (error: Error | null, socket?: tls.TLSSocket) => void;

/** An agent for https whose connections go through a proxy. */
export const tunnelAgent = (proxy: URL): https.Agent => {
  const agent = new https.Agent({ keepAlive: true });
  const createConnection = (target: tls.ConnectionOptions & TunnelSignal, secured: Secured): undefined => {
    tunnel(proxy, `${target.host}:${target.port}`, target.tunnelSignal)
      .then((socket) => secured(null, tls.connect({ ...target, socket })))
      .catch((error: Error) => secured(error));
  };
  // Node calls this method with a callback; the types of Node 20 leave it out.
  return Object.assign(agent, { createConnection });
};
