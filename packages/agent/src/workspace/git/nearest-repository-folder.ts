import { existsSync } from 'node:fs';
import path from 'node:path';
import { folderAbove } from '../../platform/files/folder-above.js';

/** Finds repositories without starting a process. */

/** The nearest folder at or above `folder` that contains `.git`; null if there is none. */
export const markedFolder = (folder: string): string | null => {
  for (let place: string | null = folder; place !== null; place = folderAbove(place)) {
    if (existsSync(path.join(place, '.git'))) return place;
  }
  return null;
};
