/**
 * A node on the engine. `startEngineNode` is what `pawl serve --engine` calls: it checks the engine
 * and the store for blobs, starts a node (`startNode`), registers it, and opens a runtime for the
 * sessions. `startNode` serves the calls of sessions alone.
 */

import './polyfill.js';
import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import * as restate from '@restatedev/restate-sdk';
import {
  type AppliedChange,
  agentMachine,
  attempt,
  type Blobs,
  type EngineNodeOptions,
  fileBlobs,
  isLoopback,
  type SessionDependencies,
} from 'pawl/engine';
import { checkEngine, NodeStartError } from './engine-check.js';
import { httpLive, type LiveChannel, localLive } from './live.js';
import { hostInUrl, OtherNodes, type Serve } from './other-versions.js';
import { DEPLOYMENT, type NodeAddresses, Registration } from './registration.js';
import { createRestateRuntime, type RestateRuntime } from './runtime.js';
import { checkBlobs, s3Blobs } from './s3-blobs.js';
import { sessionObject } from './session-object.js';
import { SessionStates } from './session-states.js';
import { SessionStore } from './session-store.js';
import { type EquippedSession, Workers, type WorkerWorld } from './session-worker.js';
import {
  entriesObject,
  indexObject,
  keyObject,
  metadataObject,
  spendingObject,
} from './stored-objects.js';
import { createToolsService, modelService } from './work-services.js';

export type EngineNode = {
  readonly runtime: RestateRuntime;
  /**
   * Stops the work here; the engine lets the sessions go on, here after the next start, or on other
   * nodes.
   */
  stop(): Promise<void>;
};

/** Nodes and those who use them must have the same machine. */
export const machineFingerprint = agentMachine.fingerprint;

/**
 * Where a node listens. Others may reach it by a name, or by the address of a router: only its own
 * computer is a place to listen, anything else is all of its addresses.
 */
const listenHost = (address: string): string => {
  if (isLoopback(address)) return address;
  return address.includes(':') ? '::' : '0.0.0.0';
};

/** A port that is taken is the one failure to listen that users cause. */
const explainTakenPort = async <T>(port: number, start: () => Promise<T>): Promise<T> => {
  const started = await attempt(start);
  if (started.kind === 'done') return started.value;
  const { fault } = started;
  if (!('code' in fault) || fault.code !== 'EADDRINUSE') throw fault;
  throw new NodeStartError(
    'portTaken',
    `The port ${port} of the node, or one of the two after it, is taken. Choose three ` +
      'others: --node-ports FIRST.',
  );
};

const openLive = async (
  { peers, liveToken, firstPort }: EngineNodeOptions,
  host: string,
): Promise<LiveChannel> => {
  if (liveToken === null) return localLive();
  return httpLive({ peers, token: liveToken, listen: { host, port: firstPort + 2 } });
};

/** A store that can't be used is found before sessions need it. */
const openBlobs = async ({ blobs: place }: EngineNodeOptions): Promise<Blobs> => {
  if (place.kind === 'folder') return fileBlobs(place.path);
  const blobs = s3Blobs(place);
  const checked = await attempt(() => checkBlobs(blobs));
  if (checked.kind === 'done') return blobs;
  throw new NodeStartError(
    'unreachable',
    `The store for blobs can't be used: ${checked.fault.message}`,
  );
};

const registerOrExplain = async (node: PawlNode, addresses: NodeAddresses): Promise<void> => {
  const registered = await attempt(() => node.register(addresses));
  if (registered.kind === 'done') return;
  const how =
    'The engine must reach the node there: --node-address names this computer, --nodes all nodes.';
  throw new NodeStartError('unreachable', `${capital(registered.fault.message.trim())}. ${how}`);
};

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/**
 * Starts the node and tells the engine of it. Rejects with a NodeStartError if the surroundings are
 * wrong.
 */
export const startEngineNode = async (options: EngineNodeOptions): Promise<EngineNode> => {
  const { name, ingressUrl, adminUrl, address, firstPort, sharedUrl, identityKeys, report } =
    options;
  await checkEngine(options);
  const blobs = await openBlobs(options);
  const host = listenHost(address);
  const live = await explainTakenPort(firstPort, () => openLive(options, host));
  const opened: { node: PawlNode | null; runtime: RestateRuntime | null } = {
    node: null,
    runtime: null,
  };
  const stop = async (): Promise<void> => {
    await opened.runtime?.disconnect();
    await opened.node?.stop();
    await live.close();
  };
  const started = await attempt(async () => {
    // `equip` and `applied` are called as methods: `options` may be an object that uses `this`
    opened.node = await explainTakenPort(firstPort, () =>
      startNode({
        name,
        ingressUrl,
        host,
        sharedPort: firstPort,
        ownPort: firstPort + 1,
        blobs,
        live,
        identityKeys,
        equip: (session) => options.equip(session),
        applied: (...change) => options.applied(...change),
        report,
      }),
    );
    const here = `http://${hostInUrl(address)}`;
    await registerOrExplain(opened.node, {
      adminUrl,
      sharedUrl: sharedUrl ?? `${here}:${firstPort}`,
      ownUrl: `${here}:${firstPort + 1}`,
    });
    opened.runtime = createRestateRuntime({ ingressUrl, live, placeOn: () => name, report });
    return opened.runtime;
  });
  if (started.kind === 'done') return { runtime: started.value, stop };
  await attempt(stop); // the first failure is the one to report
  throw started.fault;
};

export type NodeOptions = {
  /**
   * The name of the node. Sessions whose workspace is here name it, so it stays the same for ever.
   * Letters, digits, `-`.
   */
  readonly name: string;
  /** Where the engine takes calls, for example `http://127.0.0.1:8080`. */
  readonly ingressUrl: string;
  /**
   * The address to listen on; the engine must reach it, and nobody else should. Default 127.0.0.1.
   */
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
  /**
   * How long a session that rests stays in memory. Default: one minute. It is read from the engine
   * when it is needed.
   */
  readonly idleMs?: number;
  /**
   * Public keys of the engine (`publickeyv1_…`); without them whoever reaches the ports can give
   * orders.
   */
  readonly identityKeys?: readonly string[];
  readonly report?: (fault: Error) => void;
  /** Called once for the events that this node has applied to a session. */
  readonly applied?: (sessionId: string, change: AppliedChange) => void;
};

export type PawlNode = {
  readonly name: string;
  /** Addresses to register with the engine: of all nodes together, and of this one. */
  readonly sharedPort: number;
  readonly ownPort: number;
  /** Sessions that are in memory, for figures. */
  inMemory(): { readonly states: number; readonly workers: number };
  /**
   * Tells the engine where the node is. What any node can do is registered when all nodes that
   * answer have this version: now, or as soon as the last of another version is gone.
   */
  register(addresses: NodeAddresses): Promise<void>;
  stop(): Promise<void>;
};

const IDLE_MS = 60_000;

const NAME = /^[A-Za-z0-9-]{1,64}$/;

type Listener = { readonly port: number; close(): Promise<void> };

const listen = async (
  services: Parameters<typeof restate.createEndpointHandler>[0]['services'],
  { host = '127.0.0.1', identityKeys = [] }: NodeOptions,
  port: number,
  route: (serve: Serve) => Serve = (serve) => serve,
): Promise<Listener> => {
  const handler = restate.createEndpointHandler({
    services,
    ...(identityKeys.length === 0 ? {} : { identityKeys: [...identityKeys] }),
    logger: ({ level }, ...texts) => {
      if (level === 'error' || (level === 'warn' && process.env.DEBUG_RESTATE))
        process.emitWarning(texts.map(String).join(' '));
    },
  });
  const server: Http2Server = createServer(route(handler));
  const sessions = new Set<ServerHttp2Session>();
  // small messages, one waits for the other
  server.on('connection', (socket) => socket.setNoDelay(true));
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
        // what is quick may end, and the engine asks another node for the rest
        for (const session of sessions) session.close();
        setTimeout(() => {
          for (const session of sessions) session.destroy();
        }, CLOSING_MS);
      }),
  };
};

/** A call of a session takes some milliseconds. */
const CLOSING_MS = 300;

/** One node: a process that runs sessions for the engine. */
export const startNode = async (options: NodeOptions): Promise<PawlNode> => {
  const { name, ingressUrl, sharedPort = 0, ownPort = 0, blobs, live } = options;
  if (!NAME.test(name))
    throw new TypeError(`a node is named with letters, digits and "-", not "${name}"`);
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
  const decider = { states, live, prices, applied: options.applied };
  const others = new OtherNodes(live);
  const registration = new Registration(live, report);
  const listeners: Listener[] = [];
  let leave = (): void => undefined;
  const stop = async (): Promise<void> => {
    leave();
    registration.end();
    others.close();
    await Promise.all(listeners.map((listener) => listener.close()));
    await workers.stop();
    states.stop();
  };
  const started = await attempt(async (): Promise<PawlNode> => {
    const shared = await listen(
      [
        sessionObject(decider),
        indexObject,
        metadataObject,
        keyObject,
        spendingObject,
        entriesObject,
        modelService(parts),
      ],
      options,
      sharedPort,
      (serve) => others.route(serve),
    );
    listeners.push(shared);
    const own = await listen([createToolsService({ ...parts, decider })], options, ownPort);
    listeners.push(own);
    const { version: machineVersion } = agentMachine;
    leave = await live.join(
      { name, machineVersion, deployment: DEPLOYMENT, sharedPort: shared.port },
      () => void registration.look(),
    );
    return {
      name,
      sharedPort: shared.port,
      ownPort: own.port,
      inMemory: () => ({ states: states.size, workers: workers.size }),
      register: (addresses) => registration.begin(addresses),
      stop,
    };
  });
  if (started.kind === 'done') return started.value;
  await attempt(stop); // the first failure is the one to report
  throw started.fault;
};
