import { existsSync } from 'node:fs';
import path from 'node:path';

/** Finds repositories without starting a process. */

/** The nearest folder at or above `folder` that contains `.git`; null if there is none. */
export const markedFolder = (folder: string): string | null => {
  for (let place = folder; ; place = path.dirname(place)) {
    if (existsSync(path.join(place, '.git'))) return place;
    if (path.dirname(place) === place) return null;
  }
};
