import { createHash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { cannotWrite, codeOf, JournalError } from '../journal-error.js';
import {
  describeSelf,
  type Holder,
  isGone,
  isRunning,
  readHolder,
  removeDead,
  removeHolder,
  writeHolder,
} from './lock-owner.js';

/**
 * Ensures one writer per journal.
 *
 * 1. Within a process: a set of the held paths.
 * 2. On Linux: an abstract socket named by a hash of the real path. The kernel releases it as soon as its holder dies.
 * 3. Everywhere: a lock file that names the holder. It covers other platforms and containers with their own network
 *    namespace, and gives the pid for the message. A dead process's lock file is taken over.
 */
export type Lock = { release(): Promise<void> };

const held = new Set<string>();

const locked = (path: string, holder: Holder | undefined): JournalError => {
  const who = holder === undefined ? 'another process' : `process ${holder.pid} on ${holder.host}`;
  return new JournalError(
    'locked',
    path,
    `The session is open in ${who} (${path}). End that one first; if it is gone for certain, delete the file.`,
  );
};

const bind = (name: string): Promise<Server> =>
  new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', reject);
    // exclusive: workers of a node:cluster must not share the socket.
    server.listen({ path: name, exclusive: true }, () => {
      server.unref();
      resolve(server);
    });
  });

const unbind = (server: Server | null): Promise<void> =>
  new Promise((resolve) => {
    if (server === null) resolve();
    else server.close(() => resolve());
  });

const NAMING_TRIES = 25;
const NAMING_PAUSE_MS = 20;

/** Finds the socket's holder. It binds before it writes the file, so the file can be missing or name a dead process. */
const findHolder = async (path: string): Promise<Holder | undefined> => {
  for (let attempt = 1; attempt <= NAMING_TRIES; attempt++) {
    const holder = await readHolder(path);
    if (holder !== undefined && isRunning(holder.pid)) return holder;
    await setTimeout(NAMING_PAUSE_MS);
  }
  return undefined;
};

/** Binds the abstract socket; null if the platform has none. */
const bindAbstract = async (path: string, platform: string): Promise<Server | null> => {
  if (platform !== 'linux') return null;
  const name = createHash('sha256').update(path).digest('hex');
  try {
    return await bind(`\0pawl-${name}`);
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') throw locked(path, await findHolder(path));
    throw error;
  }
};

/** Writes the lock file; replaces that of a dead holder. */
const takeFile = async (path: string, platform: string): Promise<void> => {
  const self = await describeSelf(platform);
  for (;;) {
    if (await writeHolder(path, self)) return;
    const holder = await readHolder(path);
    if (holder !== undefined && !(await isGone(holder, self))) throw locked(path, holder);
    const winner = await removeDead(path, holder);
    if (winner !== undefined) throw locked(path, winner);
  }
};

const acquireReal = async (path: string, platform: string): Promise<Lock> => {
  const server = await bindAbstract(path, platform);
  try {
    await takeFile(path, platform);
  } catch (error) {
    await unbind(server);
    throw error;
  }
  let releasing: Promise<void> | undefined;
  const release = async (): Promise<void> => {
    // Remove the file first: while we hold the socket, nobody else can have written it.
    try {
      await removeHolder(path);
    } finally {
      await unbind(server);
      held.delete(path);
    }
  };
  return {
    release: () => {
      releasing ??= release();
      return releasing;
    },
  };
};

/**
 * Takes the lock `file`; rejects with `locked` or `cannotWrite`. Its folder must exist. Abstract sockets are used if
 * `platform` has them.
 */
export const acquireLock = async (file: string, platform: string = process.platform): Promise<Lock> => {
  let path = file;
  try {
    path = join(await realpath(dirname(file)), basename(file));
    if (held.has(path)) throw locked(path, await readHolder(path));
    held.add(path);
  } catch (error) {
    throw cannotWrite(path, error);
  }
  try {
    return await acquireReal(path, platform);
  } catch (error) {
    held.delete(path);
    throw cannotWrite(path, error);
  }
};
