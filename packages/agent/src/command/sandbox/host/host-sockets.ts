import { readFileSync } from 'node:fs';

/**
 * Sockets of the machine that a command could reach. Behind them are unfenced programs.
 *
 * A socket with a path can be reached through any mount of its folder, even a read-only one. An abstract socket belongs
 * to the network namespace and can be reached by everyone who shares it.
 */

/** Flag in /proc/net/unix of a socket that accepts connections. */
const ACCEPTS = '00010000';

const table = (): readonly string[] => {
  try {
    return readFileSync('/proc/net/unix', 'utf8').split('\n');
  } catch {
    return []; // not Linux
  }
};

export type HostSockets = {
  /** Absolute paths. */
  readonly paths: readonly string[];
  /** Whether there is an abstract socket, one without a path. */
  readonly abstract: boolean;
};

export const hostSockets = (): HostSockets => {
  const paths: string[] = [];
  let abstract = false;
  for (const line of table()) {
    const [, , , flags = '', , , , ...rest] = line.split(/ +/);
    const name = rest.join(' ');
    if (name.startsWith('/')) paths.push(name);
    else if (name.startsWith('@') && flags === ACCEPTS) abstract = true;
  }
  return { paths, abstract };
};
