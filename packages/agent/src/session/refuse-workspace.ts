/**
 * Folders in which no session works: the agent writes its workspace without a question, and there other programs would obey
 * what it writes.
 *
 * 1. Real absolute paths are judged, so the folder `.git/hooks` is one however it was opened.
 * 2. A repository may lie below such a name, as a worktree in `.cursor/worktrees` does: names above its root don't count.
 *    `.git`, folders of the system and those of Pawl always do.
 */

import { existsSync } from 'node:fs';
import path from 'node:path';
import { configFolder, homeFolder, type ProcessEnvironment, stateFolder } from '../platform/environment.js';
import { isWithin } from '../platform/files.js';
import { findProtection, isSecretPath } from '../policy/paths.js';

/** Folders that are no workspace themselves; folders below them may be. */
const SYSTEM_TOPS = ['/', '/usr', '/var', '/run'];
/** Folders in which nothing is a workspace. */
const SYSTEM = '/etc /boot /proc /sys /bin /sbin /lib /lib64 /usr/bin /usr/sbin /usr/lib'.split(' ');
/** Memory that is used as a disk, in a folder of the system. */
const SHARED_MEMORY = '/dev/shm';

const isOfSystem = (folder: string): boolean => {
  if (SYSTEM_TOPS.includes(folder) || path.dirname(folder) === folder) return true;
  if (isWithin(folder, '/dev')) return !isWithin(folder, SHARED_MEMORY) || folder === SHARED_MEMORY;
  return SYSTEM.some((place) => isWithin(folder, place));
};

/** The root of the repository in which the folder lies; null without one. */
const repositoryAbove = (folder: string): string | null => {
  for (let above = folder; path.dirname(above) !== above; above = path.dirname(above))
    if (existsSync(path.join(above, '.git'))) return above;
  return null;
};

/**
 * Why a folder (a real absolute path) can be no workspace, as the end of the sentence "it can't,
 * since". Null if it can.
 */
export const workspaceFault = (folder: string, environment: ProcessEnvironment): string | null => {
  if (isOfSystem(folder)) return 'it belongs to the system';
  for (const place of [stateFolder(environment), configFolder(environment)])
    if (isWithin(folder, place)) return `Pawl keeps its own files in ${place}`;
  if (folder.split(path.sep).some((name) => findProtection(name)?.path === '.git'))
    return 'it lies in .git: git obeys its configuration and runs its hooks';
  const root = repositoryAbove(folder);
  const home = homeFolder(environment);
  if (root === null && isWithin(folder, home) && isSecretPath(folder, home)) return 'secrets are kept there';
  const protection = findProtection(root === null ? folder : path.relative(root, folder));
  return protection === null ? null : `it lies in ${protection.path}: ${protection.why}`;
};

/** The whole refusal, with what to do; null for a folder that can be a workspace. */
export const workspaceRefusal = (folder: string, environment: ProcessEnvironment): string | null => {
  const why = workspaceFault(folder, environment);
  return why === null
    ? null
    : `${folder} can't be the workspace, since ${why}. Give the folder of your project.`;
};
