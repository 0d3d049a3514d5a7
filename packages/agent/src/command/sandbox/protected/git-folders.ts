import { closeSync, constants, fstatSync, openSync, readdirSync, readSync, type Stats } from 'node:fs';
import path from 'node:path';
import { realPathOf, statusOf } from '../../../platform/files/entry-status.js';
import { isOwnOrSystem } from '../../../platform/files/file-ownership.js';
import { folderAbove } from '../../../platform/files/folder-above.js';
import { isWithin } from '../../../platform/files/is-within.js';

/**
 * Where git keeps a repository, and which of its files git obeys or runs.
 *
 * A `.git` file can name any folder of the machine. It counts only if that folder names the workspace in return, which
 * only git itself could have written there.
 */

/** Files of a git folder that git obeys or runs. `commondir` names another folder whose configuration counts. */
const CODE = ['config', 'config.worktree', 'hooks', 'info/attributes', 'commondir'];
/** The same for the folder of a linked worktree, below `worktrees`. */
const WORKTREE_CODE = ['commondir', 'gitdir', 'config.worktree', 'info/attributes', 'hooks', 'config'];
const MODULES_DEPTH_MAX = 4;
const FOLDERS_MAX = 200;
const TEXT_MAX = 64 * 1024;

/** The text of a small regular file; empty for everything else. Never waits for a FIFO. */
export const readSmall = (file: string): string => {
  let descriptor: number | null = null;
  try {
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    if (!fstatSync(descriptor).isFile()) return '';
    const bytes = Buffer.alloc(TEXT_MAX);
    return bytes.subarray(0, readSync(descriptor, bytes, 0, TEXT_MAX, 0)).toString('utf8');
  } catch {
    return ''; // absent, a symlink, or closed to us: git is told nothing by it either
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
};

const foldersIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => path.join(folder, entry.name))
      .slice(0, FOLDERS_MAX);
  } catch {
    return []; // there is none
  }
};

const isGitFolder = (folder: string): boolean =>
  statusOf(path.join(folder, 'HEAD')) !== null && statusOf(path.join(folder, 'objects')) !== null;

/** Whether git takes a folder named `.git` for a repository. It passes over an empty one and looks further up. */
const isRepository = (folder: string): boolean =>
  isGitFolder(folder) || ['HEAD', 'commondir'].every((name) => statusOf(path.join(folder, name)) !== null);

/** Git folders of submodules, at any depth because their names may contain slashes. */
const moduleFolders = (folder: string, depth = 1): readonly string[] =>
  foldersIn(folder).flatMap((inner) => {
    if (isGitFolder(inner)) return [inner, ...moduleFolders(path.join(inner, 'modules'), depth + 1)];
    return depth < MODULES_DEPTH_MAX ? moduleFolders(inner, depth + 1) : [];
  });

/** Paths in a git folder that git obeys or runs, whether they exist or not. */
export const codePlaces = (gitFolder: string): readonly string[] => [
  ...CODE.map((name) => path.join(gitFolder, name)),
  ...moduleFolders(path.join(gitFolder, 'modules'))
    .slice(0, FOLDERS_MAX)
    .flatMap((inner) => CODE.map((name) => path.join(inner, name))),
  ...foldersIn(path.join(gitFolder, 'worktrees')).flatMap((inner) =>
    WORKTREE_CODE.map((name) => path.join(inner, name)),
  ),
];

/** The real folder that a `.git` file in this folder names; null if it names none. */
const folderNamedIn = (file: string, folder: string): string | null => {
  const named = /^gitdir:\s*(.+?)\s*$/.exec(readSmall(file))?.[1];
  return named === undefined ? null : realPathOf(path.resolve(folder, named));
};

/** The git folder behind a `.git`, and the one that it shares its configuration with. Null if it leads nowhere. */
export const gitFoldersAt = (place: string): { readonly folder: string; readonly common: string } | null => {
  const status = statusOf(place);
  if (status === null) return null;
  const behind = (): string | null =>
    status.isFile() ? folderNamedIn(place, path.dirname(place)) : realPathOf(place);
  const folder = status.isDirectory() ? place : behind();
  if (folder === null) return null;
  const shared = readSmall(path.join(folder, 'commondir')).trim();
  const common = shared === '' ? folder : realPathOf(path.resolve(folder, shared));
  return { folder, common: common ?? folder };
};

/** The folder that a linked worktree shares with its repository; null if it does not name this worktree in return. */
const commonFolder = (gitFolder: string, top: string): string | null => {
  const back = readSmall(path.join(gitFolder, 'gitdir')).trim();
  const common = realPathOf(path.resolve(gitFolder, readSmall(path.join(gitFolder, 'commondir')).trim()));
  if (back === '' || common === null || path.dirname(gitFolder) !== path.join(common, 'worktrees'))
    return null;
  return realPathOf(path.resolve(gitFolder, back)) === path.join(top, '.git') ? common : null;
};

/** Whether the configuration of a submodule's git folder names this folder as its worktree. */
const isModuleOf = (gitFolder: string, top: string): boolean => {
  const named = /^\s*worktree\s*=\s*(.+?)\s*$/m.exec(readSmall(path.join(gitFolder, 'config')))?.[1];
  return named !== undefined && realPathOf(path.resolve(gitFolder, named)) === top;
};

export type RepositoryPaths = {
  /** The folder with `.git`. */
  readonly top: string;
  /** Real path of the git folder, which holds configuration, hooks and objects. */
  readonly folder: string;
};

export type FoundRepository =
  | { readonly kind: 'found'; readonly repository: RepositoryPaths }
  | { readonly kind: 'none' }
  /** `why` ends a sentence that begins with "git finds no repository inside the sandbox, since". */
  | { readonly kind: 'refused'; readonly why: string };

const refused = (why: string): FoundRepository => ({ kind: 'refused', why });

const behindFile = (top: string, file: string): FoundRepository => {
  const folder = folderNamedIn(file, top);
  if (folder === null) return refused(`${file} names no folder`);
  const found = (kept: string): FoundRepository => ({ kind: 'found', repository: { top, folder: kept } });
  const common = commonFolder(folder, top);
  const kept = common ?? folder;
  const status = statusOf(kept);
  if (status === null || !isOwnOrSystem(status)) return refused(`${kept} belongs to somebody else`);
  if (!isGitFolder(kept)) return refused(`${kept} is no repository`);
  if (common !== null || isModuleOf(folder, top) || isWithin(folder, top)) return found(kept);
  return refused(`${file} names ${folder}, which does not name this folder in turn`);
};

const repositoryAt = (top: string, status: Stats): FoundRepository => {
  const place = path.join(top, '.git');
  const owner = statusOf(top);
  if (!isOwnOrSystem(status) || owner === null || !isOwnOrSystem(owner)) {
    return refused(`${top} belongs to somebody else`);
  }
  if (status.isFile()) return behindFile(top, place);
  if (status.isDirectory()) return { kind: 'found', repository: { top, folder: place } };
  const folder = realPathOf(place);
  if (folder === null || !isWithin(folder, top)) return refused(`${place} is a symlink that leads out of it`);
  return { kind: 'found', repository: { top, folder } };
};

/** The repository that the workspace, a real path, lies in. */
export const findRepository = (workspace: string): FoundRepository => {
  for (let folder: string | null = workspace; folder !== null; folder = folderAbove(folder)) {
    const status = statusOf(path.join(folder, '.git'));
    const isPassed = status?.isDirectory() === true && !isRepository(path.join(folder, '.git'));
    if (status !== null && !isPassed) return repositoryAt(folder, status);
  }
  return { kind: 'none' };
};
