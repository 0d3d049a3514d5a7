/**
 * One GET of a public address.
 *
 * 1. A public name never leads to an address of a private network, whatever DNS answers. A proxy
 *    resolves names itself, so only the name is checked there.
 * 2. No redirect is followed, only the request is sent, no connection stays open.
 * 3. At most `bytesMax` bytes of the decompressed body are read; the rest is not awaited.
 */

import dns from 'node:dns';
import type http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import type { ProcessEnvironment } from '../platform/environment.js';
import {
  createDecoder,
  proxyFor,
  requestFor,
  requestThroughProxy,
  tunnelAgent,
} from '../platform/http.js';
import { isPrivateAddress, isPrivateHost } from '../policy/patterns.js';

export type GetAnswer = {
  readonly status: number;
  readonly statusText: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly bytes: Buffer;
  /** The body is longer than `bytes`. */
  readonly cut: boolean;
};

export type GetRequest = {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytesMax: number;
  readonly environment: ProcessEnvironment;
  /** Resolves a name to addresses; default the system's. */
  readonly lookup?: Lookup;
  /** Aborting it rejects at once. */
  readonly signal: AbortSignal;
};

export type Lookup = LookupFunction;

/** Sends the request. Rejects if there is no answer, or it breaks off. */
export const get = (request: GetRequest): Promise<GetAnswer> =>
  new Promise((resolve, reject) => {
    const outgoing = connect(request);
    outgoing.once('error', reject);
    outgoing.once('response', (incoming) => {
      const { statusCode: status = 0, statusMessage: statusText = '', headers } = incoming;
      readBody(incoming, request.bytesMax).then(
        (body) => resolve({ status, statusText, headers, ...body }),
        reject,
      );
    });
    outgoing.end();
  });

/** Checks every address of a name, since the connection may take any. */
const publicOnly =
  (lookup: Lookup): Lookup =>
  (hostname, options, callback) => {
    lookup(hostname, options, (error, address, family) => {
      if (error !== null) return callback(error, address, family);
      const all = typeof address === 'string' ? [address] : address.map((each) => each.address);
      // null, of a text that is no address, counts as private too
      const inside = all.find((each) => isPrivateAddress(each) !== false);
      if (inside === undefined) return callback(null, address, family);
      const why =
        `${hostname} leads to ${inside}, an address of a private network. Fetch it by that ` +
        'address if you may.';
      callback(Object.assign(new Error(why), { code: 'PRIVATE' }), '', 0);
    });
  };

/** Opens the request, directly or through the proxy that the environment names. */
const connect = (options: GetRequest): http.ClientRequest => {
  const { url, headers, environment, signal, lookup: find = dns.lookup } = options;
  const proxy = proxyFor(url, environment);
  // a private host was approved by its name, so it may lead to a private address
  const lookup = isPrivateHost(url.host) ? find : publicOnly(find);
  const shared = { method: 'GET', headers, signal };
  if (proxy === null) return requestFor(url)(url, { ...shared, agent: false, lookup });
  if (url.protocol === 'https:') {
    const agent = tunnelAgent(proxy);
    const tunnelled = https.request(url, { ...shared, agent });
    return tunnelled.once('close', () => agent.destroy());
  }
  return requestThroughProxy(proxy, url, { ...shared, agent: false });
};

/** Reads the body up to the limit. */
const readBody = (
  incoming: http.IncomingMessage,
  bytesMax: number,
): Promise<Pick<GetAnswer, 'bytes' | 'cut'>> =>
  new Promise((resolve, reject) => {
    const coding = (incoming.headers['content-encoding'] ?? '').trim().toLowerCase();
    const decoder = createDecoder(coding);
    const source = decoder === null ? incoming : incoming.pipe(decoder);
    const pieces: Buffer[] = [];
    let size = 0;
    const finish = (cut: boolean): void => {
      resolve({ bytes: Buffer.concat(pieces).subarray(0, bytesMax), cut });
      incoming.destroy();
      decoder?.destroy();
    };
    source.on('data', (piece: Buffer) => {
      pieces.push(piece);
      size += piece.length;
      if (size > bytesMax) finish(true);
    });
    source.once('end', () => finish(false));
    source.once('error', reject);
    incoming.once('error', reject);
    incoming.once('aborted', () =>
      reject(new Error('the connection broke off in the middle of the page')),
    );
  });
