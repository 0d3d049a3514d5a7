import { closeSync, constants, openSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { descriptorPath, hasDescriptorPaths, O_PATH } from '../../platform/files/regular-file.js';
import { codeOf } from '../journal-error.js';

/**
 * A socket file that proves that its process lives.
 *
 * The kernel accepts connections while the process holds the socket, whatever else the process does, and refuses them
 * from the moment of its death. Containers that share the folder see the same, since the socket is found by its file.
 */
export type LockSocket = { close(): Promise<void> };

/** A socket address holds 107 bytes; a longer path goes through a descriptor of its folder. */
const ADDRESS_BYTES_MAX = 100;

type Address = { readonly path: string; release(): void };

const nothing = (): void => undefined;

const addressOf = (path: string): Address => {
  if (Buffer.byteLength(path) <= ADDRESS_BYTES_MAX || !hasDescriptorPaths())
    return { path, release: nothing };
  const folder = openSync(dirname(path), O_PATH | constants.O_DIRECTORY);
  return { path: join(descriptorPath(folder), basename(path)), release: () => closeSync(folder) };
};

/** Creates the socket; null on file systems that have none. */
export const listenAt = (path: string): Promise<LockSocket | null> =>
  new Promise((resolve) => {
    const address = addressOf(path);
    const server = createServer((socket) => socket.destroy());
    server.once('error', () => {
      // Not needed on most systems: without a socket, the pid tells whether the holder lives.
      address.release();
      resolve(null);
    });
    // exclusive: workers of a node:cluster must not share the socket.
    server.listen({ path: address.path, exclusive: true }, () => {
      server.unref();
      resolve({
        close: () =>
          new Promise((closed) => {
            server.close(() => {
              address.release();
              closed();
            });
          }),
      });
    });
  });

/** `refused`: the process that made the socket is dead. `unknown`: there is no such socket, or it can't be reached. */
export const answers = (path: string): Promise<'alive' | 'refused' | 'unknown'> =>
  new Promise((resolve) => {
    const address = addressOf(path);
    const socket = createConnection({ path: address.path });
    const end = (answer: 'alive' | 'refused' | 'unknown'): void => {
      socket.destroy();
      address.release();
      resolve(answer);
    };
    socket.once('connect', () => end('alive'));
    socket.once('error', (error) => {
      const code = codeOf(error);
      if (code === 'EAGAIN')
        end('alive'); // its queue is full
      else end(code === 'ECONNREFUSED' ? 'refused' : 'unknown');
    });
  });
