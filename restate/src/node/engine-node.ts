import { agentMachine, attempt, type Blobs, type EngineNodeOptions, fileBlobs } from 'pawl/engine';
import { checkBlobs, s3Blobs } from '../blobs/s3-blobs.js';
import { createRestateRuntime, type RestateRuntime } from '../client/restate-runtime.js';
import { checkEngine, NodeStartError } from '../engine/check-engine.js';
import { register } from '../engine/register.js';
import { httpLive } from '../live/http-live.js';
import { type LiveChannel, localLive } from '../live/live-channel.js';
import { type PawlNode, startNode } from './start-node.js';

/** A whole node for a program such as `pawl serve`: it does the work of sessions, is registered, and uses their runtime. */

export type EngineNode = {
  readonly runtime: RestateRuntime;
  /** Stops the work here; the engine lets the sessions go on, here after the next start, or on other nodes. */
  stop(): Promise<void>;
};

/** Nodes and those who use them must have the same machine. */
export const machineFingerprint = agentMachine.fingerprint;

const LOOPBACK = ['127.0.0.1', 'localhost', '::1'];

const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** A port that is taken is the one failure to listen that users cause. */
const listening = async <T>(port: number, start: () => Promise<T>): Promise<T> => {
  const started = await attempt(start);
  if (started.kind === 'done') return started.value;
  const { fault } = started;
  if (!('code' in fault) || fault.code !== 'EADDRINUSE') throw fault;
  throw new NodeStartError(
    'portTaken',
    `The port ${port} of the node, or one of the two after it, is taken. Choose three others: --node-ports FIRST.`,
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
  throw new NodeStartError('unreachable', `The store for blobs can't be used: ${checked.fault.message}`);
};

const registerAt = async (adminUrl: string, url: string): Promise<void> => {
  const registered = await attempt(() => register(adminUrl, url));
  if (registered.kind === 'done') return;
  const how = 'The engine must reach the node there: --node-address names this computer, --nodes all nodes.';
  throw new NodeStartError('unreachable', `${capital(registered.fault.message.trim())}. ${how}`);
};

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/** Starts the node and tells the engine of it. Rejects with a NodeStartError if the surroundings are wrong. */
export const startEngineNode = async (options: EngineNodeOptions): Promise<EngineNode> => {
  const { name, ingressUrl, adminUrl, address, firstPort, sharedUrl, identityKeys, report } = options;
  await checkEngine(ingressUrl, adminUrl);
  const blobs = await openBlobs(options);
  const host = LOOPBACK.includes(address) ? address : '0.0.0.0';
  const live = await listening(firstPort, () => openLive(options, host));
  const own: { node: PawlNode | null; runtime: RestateRuntime | null } = { node: null, runtime: null };
  const stop = async (): Promise<void> => {
    await own.runtime?.disconnect();
    await own.node?.stop();
    await live.close();
  };
  const started = await attempt(async () => {
    own.node = await listening(firstPort, () =>
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
        report,
      }),
    );
    const here = `http://${inUrl(address)}`;
    await registerAt(adminUrl, sharedUrl ?? `${here}:${firstPort}`);
    await registerAt(adminUrl, `${here}:${firstPort + 1}`);
    own.runtime = createRestateRuntime({ ingressUrl, live, placeOn: () => name, report });
    return own.runtime;
  });
  if (started.kind === 'done') return { runtime: started.value, stop };
  await attempt(stop); // the first failure is the one to report
  throw started.fault;
};
