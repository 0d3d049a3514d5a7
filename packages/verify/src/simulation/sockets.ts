/**
 * Local sockets of simulated processes: as files of a simulated disk, or with abstract names.
 * Locks prove with them whether their holder lives. The kernel of a simulated computer refuses
 * connections to the sockets of a process that has ended.
 */

import { EventEmitter } from 'node:events';
import net from 'node:net';
import { type Caller, systemError } from './disk.js';

/** What sockets need of the simulated disks, which node-files.ts provides. */
type SocketFiles = {
  /** The process that uses the path; null if it is not simulated. */
  getCaller(path: string): Caller | null;
  create(path: string): void;
  remove(path: string): void;
  /** The same for all processes. */
  getName(path: string): string;
  exists(path: string): boolean;
};

/** Processes that listen, by the names of their sockets. */
const listening = new Map<string, Caller>();

/** Forgets all sockets. */
export const closeSockets = (): void => listening.clear();

const isAbstract = (path: string): boolean => path.startsWith('\0');

class SimulatedServer extends EventEmitter {
  readonly #files: SocketFiles;
  #path: string | null = null;

  constructor(files: SocketFiles) {
    super();
    this.#files = files;
  }

  listen({ path }: { readonly path: string }, done: () => void): this {
    const caller = this.#files.getCaller(path);
    if (caller === null) throw new Error(`${path} is not simulated`);
    caller.later(() => {
      const name = this.#files.getName(path);
      const other = listening.get(name);
      if (other !== undefined && !other.isDead)
        return this.emit('error', systemError('EADDRINUSE', name));
      try {
        if (!isAbstract(path)) this.#files.create(path);
      } catch (error) {
        return this.emit('error', error);
      }
      listening.set(name, caller);
      this.#path = path;
      return done();
    });
    return this;
  }

  close(done?: () => void): this {
    const path = this.#path;
    const caller = path === null ? null : this.#files.getCaller(path);
    caller?.later(() => {
      if (path !== null) {
        listening.delete(this.#files.getName(path));
        this.#remove(path);
      }
      done?.();
    });
    return this;
  }

  /** Ignores a socket file that it can't remove, as Node does. */
  #remove(path: string): void {
    try {
      if (!isAbstract(path)) this.#files.remove(path);
    } catch {
      // the file stays without a listener
    }
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

class SimulatedSocket extends EventEmitter {
  constructor(path: string, files: SocketFiles) {
    super();
    files.getCaller(path)?.later(() => {
      const holder = listening.get(files.getName(path));
      if (holder !== undefined && !holder.isDead) return this.emit('connect');
      const code = holder !== undefined || files.exists(path) ? 'ECONNREFUSED' : 'ENOENT';
      return this.emit('error', systemError(code, path));
    });
  }

  destroy(): this {
    return this;
  }
}

const getPath = (options: unknown): string =>
  typeof options === 'object' &&
  options !== null &&
  'path' in options &&
  typeof options.path === 'string'
    ? options.path
    : '';

/** Replaces Node's local sockets. Returns a function that puts them back. */
export const simulateSockets = (files: SocketFiles): (() => void) => {
  // the object behind `node:net`, whose exports follow it
  const owner = net as unknown as Record<string, unknown>;
  const { createServer, createConnection } = net;
  owner.createServer = () => new SimulatedServer(files);
  owner.createConnection = (options: unknown) => new SimulatedSocket(getPath(options), files);
  return () => {
    owner.createServer = createServer;
    owner.createConnection = createConnection;
  };
};
