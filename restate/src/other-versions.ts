/** Calls of other versions of Pawl, passed on to a node that has it (`OtherNodes`). */

import {
  type ClientHttp2Session,
  connect,
  constants,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { KnownNode, LiveChannel } from './live.js';
import { DEPLOYMENT } from './registration.js';

export const hostInUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

export type Serve = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

/**
 * Passes calls of other versions on to a node that has it: the engine uses one connection for all,
 * and it leads to any node. Without such a node this one takes them.
 */
export class OtherNodes {
  readonly #live: LiveChannel;
  readonly #connections = new Map<string, ClientHttp2Session>();

  constructor(live: LiveChannel) {
    this.#live = live;
  }

  route(serve: Serve): Serve {
    return (request, response) => {
      const [, deployment] = request.url.split('/');
      const place =
        deployment === DEPLOYMENT
          ? undefined
          : this.#live.nodes().find((node) => node.deployment === deployment);
      if (place === undefined) serve(request, response);
      else this.#passOn(request.stream, request.headers, place);
    };
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.destroy();
  }

  #passOn(
    incoming: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    { host, sharedPort }: KnownNode,
  ): void {
    const authority = `${hostInUrl(host ?? '127.0.0.1')}:${sharedPort}`;
    const connection = this.#connect(`http://${authority}`);
    const onward = connection.request({ ...headers, ':authority': authority });
    onward.on('response', (answer) => incoming.respond(answer));
    incoming.on('error', () => onward.close(constants.NGHTTP2_CANCEL));
    incoming.on('close', () => onward.close(constants.NGHTTP2_CANCEL));
    onward.on('error', () => incoming.close(constants.NGHTTP2_INTERNAL_ERROR));
    onward.on('close', () => {
      const isWhole = onward.rstCode === 0 && incoming.headersSent && !connection.closed;
      if (isWhole) incoming.end();
      else incoming.close(constants.NGHTTP2_INTERNAL_ERROR); // the engine asks again
    });
    incoming.pipe(onward).pipe(incoming, { end: false });
  }

  #connect(origin: string): ClientHttp2Session {
    const known = this.#connections.get(origin);
    if (known !== undefined && !known.closed && !known.destroyed) return known;
    const connection = connect(origin);
    connection.on('connect', (_session, socket) => void (socket as Socket).setNoDelay(true));
    connection.on('error', () => connection.destroy()); // each stream ends with an error too
    this.#connections.set(origin, connection);
    return connection;
  }
}
