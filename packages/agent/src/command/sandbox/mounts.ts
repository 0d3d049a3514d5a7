import { lstatSync } from 'node:fs';
import path from 'node:path';
import { shellWords } from './shell-text.js';
import { inFolder } from './untrusted-files.js';

/** One file or folder in the sandbox, with its arguments for bubblewrap. */
export type Mount = {
  /** Absolute. Deeper paths are mounted later, on top of the folders that contain them. */
  readonly path: string;
  readonly words: readonly string[];
};

/** Read-only. */
export const readable = (place: string, from = place): Mount => ({
  path: place,
  words: ['--ro-bind', from, place],
});
/** Read-only; skipped if it no longer exists. */
export const readableIfThere = (place: string): Mount => ({
  path: place,
  words: ['--ro-bind-try', place, place],
});
/** Writable; skipped if it no longer exists. */
export const writableIfThere = (place: string): Mount => ({
  path: place,
  words: ['--bind-try', place, place],
});
export const writable = (place: string, from = place): Mount => ({
  path: place,
  words: ['--bind', from, place],
});
/** An empty folder for further mounts. `sealed` makes it read-only afterwards. */
export const emptyFolder = (place: string): Mount => ({ path: place, words: ['--tmpfs', place] });
/**
 * A folder that nobody may open; it masks secrets. It is cheaper than a bind mount, for which bubblewrap reads the list
 * of mounts.
 */
export const closedFolder = (place: string): Mount => ({
  path: place,
  words: ['--perms', '0000', '--tmpfs', place],
});
/** Makes a folder read-only, after all mounts inside it. */
export const sealed = (place: string): readonly string[] => ['--remount-ro', place];

export const pathDepth = (place: string): number => place.split(path.sep).length;

/** Arguments in the order that bubblewrap needs. Of two mounts at one path, the later one wins. */
export const mountWords = (mounts: readonly Mount[]): readonly string[] =>
  mounts.toSorted((one, other) => pathDepth(one.path) - pathDepth(other.path)).flatMap(({ words }) => words);

/**
 * Makes sure that what is mounted for a command is what was looked at.
 *
 * Bubblewrap follows paths. While it sets a fence up, another command could exchange a folder for a symlink to one
 * outside the workspace, which would then be mounted. So the shell inside compares device and inode before the command.
 */

export type MountedIdentity = { readonly path: string; readonly identity: string };

/** Device and inode of an entry whose folder is really there, not behind a symlink. Null if it is not. */
const identityAt = (place: string): string | null =>
  inFolder(path.dirname(place), (below) => {
    const { dev, ino } = lstatSync(path.join(below, path.basename(place)), { bigint: true });
    return `${dev}:${ino}`;
  });

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
export const mountCheck = (expected: readonly MountedIdentity[]): string => {
  if (expected.length === 0) return '';
  const currentIdentities = `$(command -p stat -c %d:%i -- ${shellWords(expected.map((one) => one.path))} 2>/dev/null)`;
  const identities = shellWords([expected.map(({ identity }) => identity).join('\n')]);
  return `[ "${currentIdentities}" = ${identities} ] || { echo "[the sandbox: ${EXCHANGED}]" >&2; exit 126; }\n`;
};
