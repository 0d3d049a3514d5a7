import '../polyfill.js';
import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import * as restate from '@restatedev/restate-sdk';
import { attempt, type Blobs, type SessionDependencies } from 'pawl/engine';
import type { LiveChannel } from '../live/live-channel.js';
import { SessionStates } from '../session/session-states.js';
import { SessionStore } from '../session/session-store.js';
import { entriesObject } from './entries-object.js';
import { indexObject } from './index-object.js';
import { metadataObject } from './metadata-object.js';
import { sessionObject } from './session-object.js';
import type { EquippedSession, WorkerWorld } from './session-worker.js';
import { modelService, toolsServiceOf } from './work-services.js';
import { Workers } from './workers.js';

/** One node: a process that runs sessions for the engine. */

export type NodeOptions = {
  /** The name of the node. Sessions whose workspace is here name it, so it stays the same for ever. Letters, digits, `-`. */
  readonly name: string;
  /** Where the engine takes calls, for example `http://127.0.0.1:8080`. */
  readonly ingressUrl: string;
  /** The address to listen on; the engine must reach it, and nobody else should. Default 127.0.0.1. */
  readonly host?: string;
  /** The port of what any node can do: sessions and models. 0, the default, takes a free one. */
  readonly sharedPort?: number;
  /** The port of what only this node can do: the tools in its workspaces. */
  readonly ownPort?: number;
  /** The model, tools and memory of a session. Called again after every pause of the session. */
  equip(session: EquippedSession): Promise<SessionDependencies>;
  /** All nodes must have the same. */
  readonly blobs: Blobs;
  readonly live: LiveChannel;
  /** How long a session that rests stays in memory. Default: one minute. It is read from the engine when it is needed. */
  readonly idleMs?: number;
  /** Public keys of the engine (`publickeyv1_…`); without them whoever reaches the ports can give orders. */
  readonly identityKeys?: readonly string[];
  readonly report?: (fault: Error) => void;
};

export type PawlNode = {
  readonly name: string;
  /** Addresses to register with the engine: of all nodes together, and of this one. */
  readonly sharedPort: number;
  readonly ownPort: number;
  /** Sessions that are in memory, for figures. */
  inMemory(): { readonly states: number; readonly workers: number };
  stop(): Promise<void>;
};

const IDLE_MS = 60_000;

const NAME = /^[A-Za-z0-9-]{1,64}$/;

type Listening = { readonly port: number; close(): Promise<void> };

const listen = async (
  services: Parameters<typeof restate.createEndpointHandler>[0]['services'],
  { host = '127.0.0.1', identityKeys = [] }: NodeOptions,
  port: number,
): Promise<Listening> => {
  const handler = restate.createEndpointHandler({
    services,
    ...(identityKeys.length === 0 ? {} : { identityKeys: [...identityKeys] }),
    logger: ({ level }, ...texts) => {
      if (level === 'error' || (level === 'warn' && process.env.DEBUG_RESTATE))
        process.emitWarning(texts.map(String).join(' '));
    },
  });
  const server: Http2Server = createServer(handler);
  const sessions = new Set<ServerHttp2Session>();
  server.on('connection', (socket) => socket.setNoDelay(true)); // small messages, one waits for the other
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
    session.on('error', () => session.destroy()); // the engine connects again
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port, // it listens on a port, not on a socket file
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const session of sessions) session.destroy();
      }),
  };
};

export const startNode = async (options: NodeOptions): Promise<PawlNode> => {
  const { name, ingressUrl, sharedPort = 0, ownPort = 0, blobs, live } = options;
  if (!NAME.test(name)) throw new TypeError(`a node is named with letters, digits and "-", not "${name}"`);
  const report = options.report ?? ((fault: Error) => process.emitWarning(fault));
  const store = new SessionStore(ingressUrl);
  const { idleMs = IDLE_MS } = options;
  const states = new SessionStates(store, idleMs);
  const equip: NodeOptions['equip'] = (session) => options.equip(session);
  const world: WorkerWorld = { node: name, store, states, live, blobs, equip, report };
  const workers = new Workers(world, idleMs);
  live.answer((sessionId, requestId) => workers.shownText(sessionId, requestId));
  const parts = { workers, world };
  const prices = async (sessionId: string, modelId: string) => {
    const { seq, node } = await store.session(sessionId);
    const { equipment } = await workers.of(sessionId, seq, node);
    return equipment.model(modelId).facts.prices;
  };
  const shared = await listen(
    [
      sessionObject({ states, live, prices }),
      indexObject,
      metadataObject,
      entriesObject,
      modelService(parts),
    ],
    options,
    sharedPort,
  );
  const own = await attempt(() => listen([toolsServiceOf(parts)], options, ownPort));
  if (own.kind === 'fault') {
    await shared.close();
    throw own.fault;
  }
  return {
    name,
    sharedPort: shared.port,
    ownPort: own.value.port,
    inMemory: () => ({ states: states.size, workers: workers.size }),
    async stop() {
      await Promise.all([shared.close(), own.value.close()]);
      await workers.stop();
      states.stop();
    },
  };
};
