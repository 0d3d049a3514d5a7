import path from 'node:path';
import { realPathOf, statusOf } from '../../../platform/files/entry-status.js';
import { isWithin } from '../../../platform/files/is-within.js';
import { type Mount, readableIfThere } from '../mounts.js';
import type { ProtectedPath } from './protected-scan.js';

/**
 * The read-only mounts inside a writable workspace.
 *
 * A folder that contains something read-only is a separate mount, so that it can't be renamed. A new folder in its
 * place would be writable.
 */

/** Each mount costs 0.2 ms. Paths beyond this number are only checked after a command. */
const MOUNTS_MAX = 60;
/** Number of repositories in which git works; further ones are entirely read-only. */
const REPOSITORIES_MAX = 6;

const writableIfThere = (place: string): Mount => ({ path: place, words: ['--bind-try', place, place] });

/** Makes the target of a symlink read-only if it lies in the workspace. */
const linkTargetMounts = (link: string, workspace: string): readonly Mount[] => {
  const real = realPathOf(link);
  if (real === null || real === workspace || !isWithin(real, workspace)) return [];
  return [readableIfThere(real)];
};

const mountsOf = (found: ProtectedPath, workspace: string): readonly Mount[] => {
  const parent = path.dirname(found.path);
  if (found.kind === 'link') return linkTargetMounts(found.path, workspace);
  if (found.kind === 'repository') {
    return [statusOf(found.path)?.isDirectory() ? writableIfThere(found.path) : readableIfThere(found.path)];
  }
  const isPart = path.basename(parent).startsWith('.') && parent !== workspace && !found.inGit;
  return [...(isPart ? [writableIfThere(parent)] : []), readableIfThere(found.path)];
};

const depthOf = (place: string): number => place.split(path.sep).length;

export type ProtectedMounts = {
  readonly mounts: readonly Mount[];
  /** Paths that are read-only for the command. */
  readonly bound: ReadonlySet<string>;
  /** Mounted paths below folders that another command could exchange. */
  readonly exchangeable: readonly string[];
};

/**
 * `found`: the existing protected paths; if there are too many, the highest ones are mounted. `own`: folders whose
 * repositories stay writable and are only checked afterwards.
 */
export const protectedMounts = (
  found: Iterable<ProtectedPath>,
  { workspace, own }: { readonly workspace: string; readonly own: readonly string[] },
): ProtectedMounts => {
  const isOwn = ({ path: place, inGit, kind }: ProtectedPath): boolean =>
    (inGit || kind === 'repository') && own.some((folder) => isWithin(place, folder));
  const all = [...found]
    .filter((one) => !isOwn(one))
    .toSorted((one, other) => depthOf(one.path) - depthOf(other.path));
  const repositories = all.filter(({ kind }) => kind === 'repository').map((one) => one.path);
  const closed = repositories.slice(REPOSITORIES_MAX);
  const mounts = new Map<string, Mount>();
  const bound = new Set<string>();
  for (const one of all) {
    const outer = closed.find((repository) => isWithin(one.path, repository));
    if (outer !== undefined) {
      mounts.set(outer, readableIfThere(outer));
      bound.add(one.path);
      continue;
    }
    if (mounts.size >= MOUNTS_MAX) break;
    for (const mount of mountsOf(one, workspace)) {
      if (!mounts.has(mount.path) || mount.words[0] === '--ro-bind-try') mounts.set(mount.path, mount);
    }
    if (one.kind !== 'link') bound.add(one.path);
  }
  const isFirm = (place: string): boolean =>
    [workspace, path.join(workspace, '.git')].includes(path.dirname(place)) ||
    (path.dirname(path.dirname(place)) === workspace && mounts.has(path.dirname(place)));
  const exchangeable = [...mounts.keys()].filter((place) => isWithin(place, workspace) && !isFirm(place));
  return { mounts: [...mounts.values()], bound, exchangeable };
};
