import { lstatSync, type Stats } from 'node:fs';

/** The status of the entry itself; symlinks are not followed. Null if it does not exist or is hidden from us. */
export const statusOf = (place: string): Stats | null => {
  try {
    return lstatSync(place, { throwIfNoEntry: false }) ?? null;
  } catch {
    return null; // a folder on the way is closed to us, or is none
  }
};
