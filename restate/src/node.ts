/**
 * A node on the engine: it checks the engine, serves the calls of sessions, is registered, and uses
 * their runtime.
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
  type SessionDependencies,
} from 'pawl/engine';
import { httpLive, type LiveChannel, localLive } from './live.js';
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

const LOOPBACK = /^(localhost|::1|127(\.\d{1,3}){3})$/;

const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** A port that is taken is the one failure to listen that users cause. */
const listening = async <T>(port: number, start: () => Promise<T>): Promise<T> => {
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

const registerAt = async (adminUrl: string, url: string): Promise<void> => {
  const registered = await attempt(() => register(adminUrl, url));
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
  await checkEngine(ingressUrl, adminUrl);
  const blobs = await openBlobs(options);
  const host = LOOPBACK.test(address) ? address : '0.0.0.0';
  const live = await listening(firstPort, () => openLive(options, host));
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
    opened.node = await listening(firstPort, () =>
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
    const here = `http://${inUrl(address)}`;
    await registerAt(adminUrl, sharedUrl ?? `${here}:${firstPort}`);
    await registerAt(adminUrl, `${here}:${firstPort + 1}`);
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
        for (const session of sessions) session.destroy();
      }),
  };
};

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
  const shared = await listen(
    [
      sessionObject({ states, live, prices, applied: options.applied }),
      indexObject,
      metadataObject,
      keyObject,
      spendingObject,
      entriesObject,
      modelService(parts),
    ],
    options,
    sharedPort,
  );
  const toolsServer = await attempt(() => listen([createToolsService(parts)], options, ownPort));
  if (toolsServer.kind === 'fault') {
    await shared.close();
    throw toolsServer.fault;
  }
  return {
    name,
    sharedPort: shared.port,
    ownPort: toolsServer.value.port,
    inMemory: () => ({ states: states.size, workers: workers.size }),
    async stop() {
      await Promise.all([shared.close(), toolsServer.value.close()]);
      await workers.stop();
      states.stop();
    },
  };
};

/**
 * Why a node can't start. `unreachable`: the engine or a node does not answer; `wrongEngine`:
 * another program, or too old.
 */
export class NodeStartError extends Error {
  override readonly name = 'NodeStartError';
  readonly kind: 'unreachable' | 'wrongEngine' | 'portTaken';

  constructor(kind: NodeStartError['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Older servers lack signals to running work, by which it is stopped. */
const VERSION_MIN = [1, 7] as const;
const TESTED = '1.7.12';
const ANSWER_MS = 5_000;

const askEngine = async (url: string, how: string): Promise<string> => {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) });
    return response.ok ? await response.text() : '';
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new NodeStartError('unreachable', `The engine does not answer at ${url}: ${why}. ${how}`);
  }
};

const versionIn = (text: string): string | null => {
  try {
    const { version } = JSON.parse(text) as { readonly version?: unknown };
    return typeof version === 'string' ? version : null;
  } catch {
    return null; // not JSON: another program answers there
  }
};

const isOldOrUnknown = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [majorMin, minorMin] = VERSION_MIN;
  return major !== majorMin || !(minor >= minorMin);
};

/**
 * Whether the engine can be used, before a node starts: it answers, it is Restate, and it is new
 * enough.
 *
 * Throws a NodeStartError.
 */
const checkEngine = async (ingressUrl: string, adminUrl: string): Promise<void> => {
  const health = `${ingressUrl}/restate/health`;
  const noRestate = (url: string, which: string): NodeStartError =>
    new NodeStartError(
      'wrongEngine',
      `What answers at ${url} is not ${which} of a Restate server.`,
    );
  const services = await askEngine(
    health,
    'Start its server, or name the port where it takes calls (8080 by default).',
  );
  if (!services.includes('services')) throw noRestate(health, 'the port for calls');
  const version = versionIn(
    await askEngine(
      `${adminUrl}/version`,
      'Name the address of its admin port (9070 by default) with --engine-admin.',
    ),
  );
  if (version === null) throw noRestate(adminUrl, 'the admin port');
  if (isOldOrUnknown(version))
    throw new NodeStartError(
      'wrongEngine',
      `The engine is Restate ${version}; a node needs ${VERSION_MIN.join('.')} or a later ` +
        `1.x (tested with ${TESTED}). Install one of these.`,
    );
};

// Tells the engine where nodes are.

/** Version of this package, which is released together with Pawl under the same number. */
export const version = '0.1.0';

/**
 * The address under which the engine knows the services of this version. The path means nothing to
 * a node: it makes a deployment of its own of each version. So the engine continues each call where
 * it began, and an update never replaces a deployment.
 */
export const deploymentAddress = (uri: string): string =>
  `${uri.replace(/\/$/, '')}/pawl-${version}-machine-${agentMachine.version}`;

/** The deployment is registered already: the node was started again. */
const CONFLICT = 409;

/** Registers the services of this version at an address. Replaces nothing. */
export const register = async (adminUrl: string, uri: string): Promise<void> => {
  const response = await fetch(`${adminUrl}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri: deploymentAddress(uri), force: false }),
    signal: AbortSignal.timeout(30_000),
  });
  if (response.ok || response.status === CONFLICT) return;
  throw new Error(
    `the engine did not accept the node at ${uri}: ${response.status} ${await response.text()}`,
  );
};
