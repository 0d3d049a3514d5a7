import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import * as restate from '@restatedev/restate-sdk';
import { register } from '../src/registration.js';
import { SessionStore } from '../src/session-store.js';
import type { Engine } from '../src/start-engine.js';

/** What the engine itself needs for one call on this computer: an object that stores one value and answers. */

const floor = restate.object({
  name: 'Floor',
  options: { journalRetention: 0, enableLazyState: true },
  handlers: {
    set: async (ctx: restate.ObjectContext, value: number): Promise<number> => {
      ctx.set('value', value);
      return value;
    },
  },
});

/** Starts the object, and returns one call of it. */
export const startFloor = async ({ ingressUrl, adminUrl }: Engine) => {
  const server = createServer(
    restate.createEndpointHandler({ services: [floor], logger: () => undefined }),
  );
  server.on('connection', (socket) => socket.setNoDelay(true));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  await register(adminUrl, `http://127.0.0.1:${(server.address() as AddressInfo).port}`); // it listens on a port
  const store = new SessionStore(ingressUrl);
  const key = randomUUID();
  return {
    call: (value: number) =>
      store.call({ service: 'Floor', handler: 'set', key, parameter: value, once: true }),
    stop: () => server.close(),
  };
};
