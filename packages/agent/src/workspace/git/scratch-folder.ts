import { lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readTextOrEmptySync } from '../../platform/files/regular-file.js';
import { hasEnded, identifyProcess, type ProcessIdentity } from '../../platform/programs/process-identity.js';

/**
 * A temporary folder for one use of git. A killed program leaves it behind; the next one removes it.
 *
 * 1. A folder names its process. It is removed only if that process has certainly ended, and the folder is the user's.
 * 2. A folder that names nobody, since its program was killed at that moment, is removed after a day.
 */

const PREFIX = 'pawl-git-';
const OWNER = 'owner.json';
const BYTES_MAX = 4_096;
const DAY_MS = 24 * 60 * 60 * 1000;

let isSwept = false;

const ownerOf = (folder: string): ProcessIdentity | null => {
  try {
    const value: unknown = JSON.parse(readTextOrEmptySync(path.join(folder, OWNER), BYTES_MAX));
    const isIdentity = typeof value === 'object' && value !== null && 'pid' in value && 'pids' in value;
    return isIdentity ? (value as ProcessIdentity) : null; // only we write to it, and this is what we write
  } catch {
    return null;
  }
};

const isLeftBehind = (folder: string): boolean => {
  const status = lstatSync(folder, { throwIfNoEntry: false });
  if (status?.isDirectory() !== true || status.uid !== process.getuid?.()) return false;
  const owner = ownerOf(folder);
  return owner === null ? Date.now() - status.mtimeMs > DAY_MS : hasEnded(owner);
};

/** Removes what killed programs have left. A folder that can't be removed is left to the next one. */
const sweep = (parent: string): void => {
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(PREFIX)) continue;
    const folder = path.join(parent, name);
    try {
      if (isLeftBehind(folder)) rmSync(folder, { recursive: true, force: true });
    } catch {
      // another program removes it at the same moment, or may do what we may not
    }
  }
};

/** Makes the folder. The first one of a program removes those of killed programs. */
export const makeScratch = (): string => {
  const parent = tmpdir();
  const folder = mkdtempSync(path.join(parent, PREFIX));
  writeFileSync(path.join(folder, OWNER), JSON.stringify(identifyProcess()));
  if (!isSwept) {
    isSwept = true;
    sweep(parent);
  }
  return folder;
};
