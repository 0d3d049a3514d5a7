/** Temporary folders, which a later process removes if this one is killed. */

import { lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { attemptNow } from '../platform/attempt.js';
import { readTextOrEmptySync } from '../platform/files.js';
import { hasEnded, identifyProcess, type ProcessIdentity } from '../platform/processes.js';

const SCRATCH_PREFIX = 'pawl-git-';
const OWNER = 'owner.json';
const OWNER_BYTES_MAX = 4_096;
const DAY_MS = 24 * 60 * 60 * 1000;

let isSwept = false;

/**
 * Makes a temporary folder for one use of git, with a file that identifies this process. If this
 * process is killed, the first call in a later process removes the folder.
 */
export const makeScratch = (): string => {
  const parent = tmpdir();
  const folder = mkdtempSync(path.join(parent, SCRATCH_PREFIX));
  writeFileSync(path.join(folder, OWNER), JSON.stringify(identifyProcess()));
  if (!isSwept) {
    isSwept = true;
    attemptNow(() => sweep(parent)); // a closed folder can't be listed: what is left there stays
  }
  return folder;
};

/** Removes the folders of killed processes. A later process retries a failed removal. */
const sweep = (parent: string): void => {
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(SCRATCH_PREFIX)) continue;
    const folder = path.join(parent, name);
    try {
      if (isLeftBehind(folder)) rmSync(folder, { recursive: true, force: true });
    } catch {
      // another process removes it at the same moment, or has the right to
    }
  }
};

/** Whether the process of a folder of this user has certainly ended; if unknown: a day is over. */
const isLeftBehind = (folder: string): boolean => {
  const status = lstatSync(folder, { throwIfNoEntry: false });
  if (status?.isDirectory() !== true || status.uid !== process.getuid?.()) return false;
  const owner = readOwner(folder);
  return owner === null ? Date.now() - status.mtimeMs > DAY_MS : hasEnded(owner);
};

const readOwner = (folder: string): ProcessIdentity | null => {
  try {
    const value: unknown = JSON.parse(
      readTextOrEmptySync(path.join(folder, OWNER), OWNER_BYTES_MAX),
    );
    const isIdentity =
      typeof value === 'object' && value !== null && 'pid' in value && 'pids' in value;
    // only we write to it, and this is what we write
    return isIdentity ? (value as ProcessIdentity) : null;
  } catch {
    return null;
  }
};
