import { lstatSync, realpathSync, type Stats } from 'node:fs';

/** What lies at a path, in one question. Neither function throws. */

/** Null if nothing is there, or if a folder on the way is closed to us or is none. A symlink is not followed. */
export const statusOf = (place: string): Stats | null => {
  try {
    return lstatSync(place, { throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
  }
};

/** The path behind all symlinks; null if it leads nowhere, goes round in a circle, or is closed to us. */
export const realPathOf = (place: string): string | null => {
  try {
    return realpathSync(place);
  } catch {
    return null;
  }
};
