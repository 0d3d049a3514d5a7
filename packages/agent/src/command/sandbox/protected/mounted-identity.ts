import { closeSync, constants, lstatSync, openSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { shellWords } from '../../launcher/shell-quote.js';

/**
 * Makes sure that what is mounted for a command is what was looked at.
 *
 * Bubblewrap follows paths. While it sets a fence up, another command could exchange a folder for a symlink to one
 * outside the workspace, which would then be mounted. So the shell inside compares device and inode before the command.
 */

export type MountedIdentity = { readonly path: string; readonly identity: string };

const FOLDER_ONLY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Device and inode of an entry whose folder is really there, not behind a symlink. Null if it is not. */
const identityAt = (place: string): string | null => {
  const parent = path.dirname(place);
  let descriptor: number | null = null;
  try {
    descriptor = openSync(parent, FOLDER_ONLY);
    const folder = `/proc/self/fd/${descriptor}`;
    if (readlinkSync(folder) !== parent) return null;
    const { dev, ino } = lstatSync(path.join(folder, path.basename(place)), { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return null; // it is gone
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
};

/** Null if one of the places has been exchanged already. */
export const mountedIdentities = (places: readonly string[]): readonly MountedIdentity[] | null => {
  const all = places.map((place) => ({ path: place, identity: identityAt(place) }));
  const there = all.flatMap(({ path: one, identity }) =>
    identity === null ? [] : [{ path: one, identity }],
  );
  return there.length === all.length ? there : null;
};

export const EXCHANGED =
  'another command exchanged folders of the workspace while this one was set up, so it was not started: try again';

/** Shell text that ends the shell if something else is mounted; empty if there is nothing to compare. */
export const checkOfMounts = (expected: readonly MountedIdentity[]): string => {
  if (expected.length === 0) return '';
  const found = `$(command -p stat -c %d:%i -- ${shellWords(expected.map((one) => one.path))} 2>/dev/null)`;
  const identities = shellWords([expected.map(({ identity }) => identity).join('\n')]);
  return `[ "${found}" = ${identities} ] || { echo "[the sandbox: ${EXCHANGED}]" >&2; exit 126; }\n`;
};
