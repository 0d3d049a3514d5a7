import path from 'node:path';

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

const depthOf = (place: string): number => place.split(path.sep).length;

/** Arguments in the order that bubblewrap needs. Of two mounts at one path, the later one wins. */
export const argumentsOfMounts = (mounts: readonly Mount[]): readonly string[] =>
  mounts.toSorted((one, other) => depthOf(one.path) - depthOf(other.path)).flatMap(({ words }) => words);
