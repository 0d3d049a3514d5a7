/**
 * A node on the engine: it checks the engine, serves the calls of sessions, is registered, and uses
 * their runtime.
 */

import './polyfill.js';
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
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
import { httpLive, type KnownNode, type LiveChannel, localLive } from './live.js';
import { createRestateRuntime, type RestateRuntime } from './runtime.js';
import { checkBlobs, s3Blobs } from './s3-blobs.js';
import { sessionObject } from './session-object.js';
import { EVERY_SHARD } from './session-records.js';
import { SessionStates } from './session-states.js';
import { SessionStore } from './session-store.js';
import { type EquippedSession, Workers, type WorkerWorld } from './session-worker.js';
import {
  entriesObject,
  indexObject,
  keyObject,
  metadataObject,
  RECORDS,
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

const registerAll = async (node: PawlNode, addresses: NodeAddresses): Promise<void> => {
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
    await registerAll(opened.node, {
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

export type NodeAddresses = {
  /** Where the engine takes orders, for example `http://127.0.0.1:9070`. */
  readonly adminUrl: string;
  /** Reaches the shared port of all nodes. */
  readonly sharedUrl: string;
  /** Reaches the own port of this node. */
  readonly ownUrl: string;
};

const IDLE_MS = 60_000;

const NAME = /^[A-Za-z0-9-]{1,64}$/;

type Listening = { readonly port: number; close(): Promise<void> };

const listen = async (
  services: Parameters<typeof restate.createEndpointHandler>[0]['services'],
  { host = '127.0.0.1', identityKeys = [] }: NodeOptions,
  port: number,
  route: (serve: Serve) => Serve = (serve) => serve,
): Promise<Listening> => {
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
  const tools = createToolsService({ ...parts, decider });
  const toolsServer = await attempt(() => listen([tools], options, ownPort));
  if (toolsServer.kind === 'fault') {
    await shared.close();
    throw toolsServer.fault;
  }
  const registration = new Registration(live, report);
  const { version: machineVersion } = agentMachine;
  const leave = await live.join(
    { name, machineVersion, deployment: DEPLOYMENT, sharedPort: shared.port },
    () => void registration.look(),
  );
  return {
    name,
    sharedPort: shared.port,
    ownPort: toolsServer.value.port,
    inMemory: () => ({ states: states.size, workers: workers.size }),
    register: (addresses) => registration.begin(addresses),
    async stop() {
      leave();
      registration.end();
      others.close();
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
/** An engine that starts together with its nodes, or is busy, takes a while. */
const ANSWER_MS = 60_000;
const ASK_AGAIN_MS = 500;

const askEngine = async (
  url: string,
  how: string,
  report: EngineNodeOptions['report'],
): Promise<string> => {
  const patience = AbortSignal.timeout(ANSWER_MS);
  for (let tries = 1; ; tries++) {
    const asked = await attempt(async () => {
      const response = await fetch(url, { signal: patience });
      return response.ok ? await response.text() : '';
    });
    if (asked.kind === 'done') return asked.value;
    const { cause, message } = asked.fault;
    const why = cause instanceof Error ? cause.message : message;
    const said = `The engine does not answer at ${url}: ${why}.`;
    if (patience.aborted) throw new NodeStartError('unreachable', `${said} ${how}`);
    if (tries === 1) report(new Error(`${said} The node waits for it, at most a minute. ${how}`));
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
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
const checkEngine = async ({ ingressUrl, adminUrl, report }: EngineNodeOptions): Promise<void> => {
  const health = `${ingressUrl}/restate/health`;
  const noRestate = (url: string, which: string): NodeStartError =>
    new NodeStartError(
      'wrongEngine',
      `What answers at ${url} is not ${which} of a Restate server.`,
    );
  const services = await askEngine(
    health,
    'Start its server, or name the port where it takes calls (8080 by default).',
    report,
  );
  if (!services.includes('services')) throw noRestate(health, 'the port for calls');
  const version = versionIn(
    await askEngine(
      `${adminUrl}/version`,
      'Name the address of its admin port (9070 by default) with --engine-admin.',
      report,
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

/** Names this version in addresses. */
const DEPLOYMENT = `pawl-${version}-machine-${agentMachine.version}`;

/**
 * The address under which the engine knows the services of this version. It makes a deployment of
 * its own of each version, so the engine continues each call where it began, and an update never
 * replaces a deployment.
 */
export const deploymentAddress = (uri: string): string => `${uri.replace(/\/$/, '')}/${DEPLOYMENT}`;

/** The deployment is registered already: the node was started again. */
const CONFLICT = 409;

/**
 * Registers the services of this version at an address. Replaces nothing. `isForced`: calls that
 * begin from now on come here, also if a later version was registered meanwhile.
 */
export const register = async (adminUrl: string, uri: string, isForced = false): Promise<void> => {
  const response = await fetch(`${adminUrl}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri: deploymentAddress(uri), force: isForced }),
    signal: AbortSignal.timeout(30_000),
  });
  if (response.ok || response.status === CONFLICT) return;
  throw new Error(
    `the engine did not accept the node at ${uri}: ${response.status} ${await response.text()}`,
  );
};

type Described = {
  readonly deployment_id?: string;
  readonly uri?: string;
  readonly handlers?: readonly { readonly name: string }[];
};

/** What the engine knows of a service or a deployment. */
const askAdmin = async (adminUrl: string, path: string): Promise<Described> => {
  const response = await fetch(`${adminUrl}/${path}`, { signal: AbortSignal.timeout(30_000) });
  return (await response.json()) as Described; // as the engine writes it
};

/** The address that new calls of sessions go to. */
const sessionsAddress = async (adminUrl: string): Promise<string | undefined> => {
  const { deployment_id } = await askAdmin(adminUrl, 'services/Session');
  return (await askAdmin(adminUrl, `deployments/${deployment_id}`)).uri;
};

/**
 * If the version in charge puts records by session only, they are sorted by key once more. Called
 * before another version is in charge, so that none is missing in a list.
 */
const sortAgain = async (adminUrl: string): Promise<void> => {
  const { handlers } = await askAdmin(adminUrl, `services/${RECORDS}`);
  if (handlers === undefined || handlers.some(({ name }) => name === 'sortOnce')) return;
  const response = await fetch(`${adminUrl}/services/${RECORDS}/state`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ object_key: EVERY_SHARD, new_state: {} }),
    signal: AbortSignal.timeout(30_000),
  });
  if (!response.ok) throw new Error(`the engine did not answer: ${await response.text()}`);
};

/** Registers what any node can do at the address of all nodes, and puts this version in charge. */
export const registerShared = async (adminUrl: string, sharedUrl: string): Promise<void> => {
  await sortAgain(adminUrl);
  await register(adminUrl, sharedUrl);
  const isLatest = (await sessionsAddress(adminUrl)) === deploymentAddress(sharedUrl);
  if (!isLatest) await register(adminUrl, sharedUrl, true);
};

/** Registers a node, and what any node can do when no node of another version answers. */
class Registration {
  readonly #live: LiveChannel;
  readonly #report: (fault: Error) => void;
  #addresses: NodeAddresses | null = null;
  #shared: Promise<void> | null = null;

  constructor(live: LiveChannel, report: (fault: Error) => void) {
    this.#live = live;
    this.#report = report;
  }

  async begin(addresses: NodeAddresses): Promise<void> {
    await register(addresses.adminUrl, addresses.ownUrl);
    this.#addresses = addresses;
    if (!this.#isAgreed) return;
    this.#shared ??= registerShared(addresses.adminUrl, addresses.sharedUrl);
    await this.#shared;
  }

  /** A node has come or gone. */
  async look(): Promise<void> {
    if (!this.#isAgreed) this.#shared = null;
    else if (this.#addresses !== null) {
      const { adminUrl, sharedUrl } = this.#addresses;
      this.#shared ??= registerShared(adminUrl, sharedUrl);
      const registered = await attempt(() => this.#shared ?? Promise.resolve());
      if (registered.kind === 'done') return;
      this.#report(registered.fault);
      this.#shared = null;
      setTimeout(() => void this.look(), REGISTER_AGAIN_MS).unref();
    }
  }

  end(): void {
    this.#addresses = null;
  }

  get #isAgreed(): boolean {
    return this.#live.nodes().every(({ deployment }) => deployment === DEPLOYMENT);
  }
}

const REGISTER_AGAIN_MS = 2_000;

// Calls of other versions.

type Serve = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

/**
 * Passes calls of other versions on to a node that has it: the engine uses one connection for all,
 * and it leads to any node. Without such a node this one takes them.
 */
class OtherNodes {
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
    const authority = `${inUrl(host ?? '127.0.0.1')}:${sharedPort}`;
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
