import { createServer } from 'node:http';
import { freePorts } from '../src/start-engine.js';

/** Three ports in a row that are free now. */
export const freeFirstPort = async (): Promise<number> => {
  for (;;) {
    const [port = 0] = await freePorts(1);
    const all = [port, port + 1, port + 2].map((one) => createServer().listen(one, '127.0.0.1'));
    const isFree = await Promise.all(
      all.map(
        (server) =>
          new Promise((resolve) =>
            server.once('listening', () => resolve(true)).once('error', () => resolve(false)),
          ),
      ),
    );
    for (const server of all) server.close();
    if (isFree.every(Boolean)) return port;
  }
};
