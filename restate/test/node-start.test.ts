import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { type TestContext, test } from 'node:test';
import { fileBlobs } from 'pawl/engine';
import { atEnd, temporaryFolder } from '../../test/temporary-folder.js';
import { localLive, startEngineNode, startNode } from '../src/index.js';
import { Registration } from '../src/registration.js';
import { freeFirstPort } from './free-first-port.js';

/** Starts of a node at an engine that is not as it should be. */

type Status = (method: string, path: string) => number;

/** Answers as the engine does, with the status that the test says. */
const startedEngine = async (context: TestContext, status: Status): Promise<string> => {
  const bodies: Readonly<Record<string, object>> = {
    '/restate/health': { services: [] },
    '/version': { version: '1.7.12' },
    '/services/Session': { deployment_id: 'd' },
    '/services/SessionMetadata': { handlers: [{ name: 'sortOnce' }] },
  };
  const engine = createServer((request, response) => {
    request.resume();
    const { method = '', url = '' } = request;
    response.statusCode = status(method, url);
    response.end(JSON.stringify(response.statusCode === 200 ? (bodies[url] ?? {}) : {}));
  });
  await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
  atEnd(context, () => void engine.close().closeAllConnections());
  return `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
};

const startAt = async (context: TestContext, url: string, address: string, firstPort: number) => {
  const node = await startEngineNode({
    name: 'a',
    ingressUrl: url,
    adminUrl: url,
    address,
    firstPort,
    sharedUrl: null,
    peers: [],
    liveToken: null,
    identityKeys: [],
    blobs: { kind: 'folder', path: temporaryFolder(context, 'node-start') },
    equip: () => Promise.reject(new Error('no session comes')),
    applied: () => undefined,
    report: () => undefined,
  });
  atEnd(context, () => node.stop());
};

test('an engine that still starts, and answers so, is waited for', async (context) => {
  let asked = 0;
  const url = await startedEngine(context, (_, path) => {
    asked++;
    return asked === 1 || (asked === 3 && path === '/version') ? 503 : 200;
  });
  await startAt(context, url, '127.0.0.1', await freeFirstPort());
});

test('a node that can not ask the engine which version sorts records is not put in charge', async (context) => {
  let posts = 0;
  let isBroken = true;
  const url = await startedEngine(context, (method, path) => {
    if (method === 'POST') posts++;
    return path === '/services/SessionMetadata' && isBroken ? 500 : 200;
  });
  const port = await freeFirstPort();
  await assert.rejects(startAt(context, url, '127.0.0.1', port), /500/);
  assert.equal(posts, 1, 'its own port alone');
  isBroken = false;
  await startAt(context, url, '127.0.0.1', port); // its ports are free again
});

test('a node with an IPv6 address listens there', async (context) => {
  if (
    !Object.values(networkInterfaces())
      .flat()
      .some((one) => one?.address === '::1')
  )
    return context.skip('no IPv6 here');
  const url = await startedEngine(context, () => 200);
  const port = await freeFirstPort();
  await startAt(context, url, 'fd00::1', port);
  await new Promise<void>((resolve, reject) => {
    const socket = connect(port, '::1', () => resolve(void socket.destroy()));
    socket.once('error', reject);
  });
});

test('a node that can not join the others leaves its ports', async (context) => {
  const options = {
    name: 'a',
    ingressUrl: 'http://127.0.0.1:1',
    blobs: fileBlobs(temporaryFolder(context, 'node-start')),
    equip: () => Promise.reject(new Error('no session comes')),
  };
  const sharedPort = await freeFirstPort();
  const ports = { sharedPort, ownPort: sharedPort + 1 };
  const join = () => Promise.reject(new Error('no other node'));
  await assert.rejects(
    startNode({ ...options, ...ports, live: { ...localLive(), join } }),
    /other/,
  );
  const node = await startNode({ ...options, ...ports, live: localLive() });
  await node.stop();
});

test('a registration that fails is reported once, however many nodes come meanwhile', async (context) => {
  const url = await startedEngine(context, (_, path) => (path.startsWith('/services') ? 500 : 200));
  const faults: string[] = [];
  const registration = new Registration(localLive(), ({ message }) => void faults.push(message));
  const addresses = { adminUrl: url, sharedUrl: `${url}/shared`, ownUrl: `${url}/own` };
  await assert.rejects(registration.begin(addresses));
  await Promise.all([registration.look(), registration.look()]);
  registration.end();
  assert.equal(faults.length, 1);
});
