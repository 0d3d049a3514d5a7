import { constants, readlinkSync, type Stats } from 'node:fs';
import path from 'node:path';
import { statusOf } from '../files/entry-status.js';
import { isOwnOrSystem, otherWriters } from '../files/file-ownership.js';

/**
 * Follows a path and checks for every folder and symlink on the way whether another user could change the target.
 *
 * 1. Everything on the way belongs to this user or the system, and nobody else may write to it. In a sticky folder of
 *    the system (/tmp) others may add entries but not replace ours, so the entry itself is checked.
 * 2. No folder on the way is forbidden. Folders are compared by device and inode, so their names don't matter.
 */

export type Identity = { readonly dev: number; readonly ino: number };

export type Followed =
  | {
      readonly kind: 'trusted';
      /** The path without symlinks. */
      readonly real: string;
      readonly status: Stats;
      /** Folders that administrators of the machine may write to. */
      readonly shared: readonly string[];
    }
  | { readonly kind: 'absent' }
  | { readonly kind: 'refused'; readonly why: string };

const LINKS_MAX = 40;

const ownerFault = (place: string, status: Stats): string | null =>
  isOwnOrSystem(status) ? null : `${place} belongs to another user (${status.uid})`;

const folderFault = (place: string, status: Stats, forbidden: readonly Identity[]): string | null => {
  if (forbidden.some(({ dev, ino }) => dev === status.dev && ino === status.ino))
    return `it lies in ${place}, which the workspace belongs to`;
  const fault = ownerFault(place, status);
  if (fault !== null) return fault;
  return otherWriters(status) === 'others' ? `other users may write to ${place}` : null;
};

const isFolder = (status: Stats): boolean => (status.mode & constants.S_IFMT) === constants.S_IFDIR;

const readTarget = (link: string): string => {
  try {
    return readlinkSync(link);
  } catch {
    return '/'; // gone meanwhile: a folder, which is no program
  }
};

/** Follows an absolute path. Never throws. */
export const followTrusted = (place: string, forbidden: readonly Identity[]): Followed => {
  const shared: string[] = [];
  let links = 0;
  let real = '/';
  let rest = place.split('/').filter((part) => part !== '' && part !== '.');
  let status = statusOf(real);
  for (;;) {
    if (status === null) return { kind: 'absent' };
    if (isFolder(status)) {
      const fault = folderFault(real, status, forbidden);
      if (fault !== null) return { kind: 'refused', why: fault };
      if (otherWriters(status) === 'administrators') shared.push(real);
    }
    const [part, ...others] = rest;
    if (part === undefined) return { kind: 'trusted', real, status, shared };
    if (!isFolder(status)) return { kind: 'absent' };
    rest = others;
    const next = part === '..' ? path.dirname(real) : path.join(real, part);
    status = statusOf(next);
    if (status?.isSymbolicLink()) {
      const fault = ownerFault(next, status);
      if (fault !== null) return { kind: 'refused', why: fault };
      links += 1;
      if (links > LINKS_MAX) return { kind: 'refused', why: `${place} leads through too many symlinks` };
      const target = readTarget(next);
      rest = [...target.split('/').filter((name) => name !== '' && name !== '.'), ...rest];
      if (target.startsWith('/')) real = '/';
      status = statusOf(real);
    } else real = next;
  }
};
