import { randomInt } from 'node:crypto';
import { createServer } from 'node:http';

/** Three ports in a row that are free now, below those that a system gives to connections. */
export const freeFirstPort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(20_000, 30_000);
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
