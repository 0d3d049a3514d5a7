/**
 * What may stay of a repository that a command made: all by which git runs no program. `git init`,
 * `git clone` and `git worktree add` make such repositories. Anything unknown counts as harmful.
 *
 * protected-files.ts asks `leadsInside` about a new `.git`, `isHarmlessInWorktree` about a file in
 * a worktree folder (git-folders.ts has the words), and `cleanConfig` about a configuration: it
 * writes the harmless part, and tells the user and the model of `removed`.
 */

import path from 'node:path';
import { isFolder, isWithin, readRegularSync, realPath } from '../../platform/files.js';
import { type ConfigEntry, configEntries, listWords } from '../../policy/paths.js';
import { CONFIG_MAX, folderAround, folderNamedIn, readPathFile } from './git-folders.js';

/** Keys as in `ConfigEntry`. */
const HARMLESS_KEYS: ReadonlySet<string> = new Set(
  listWords(`
  core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase
  core.precomposeunicode core.symlinks core.sharedrepository core.autocrlf core.eol
  core.safecrlf core.quotepath core.abbrev core.compression core.untrackedcache core.preloadindex core.longpaths core.commitgraph core.whitespace
  remote.*.url remote.*.pushurl remote.*.fetch remote.*.push remote.*.tagopt remote.*.prune
  remote.*.mirror remote.*.promisor remote.*.partialclonefilter remote.pushdefault
  branch.*.remote branch.*.merge branch.*.rebase branch.*.pushremote branch.*.description
  branch.autosetuprebase branch.autosetupmerge user.name user.email author.name author.email
  committer.name committer.email init.defaultbranch pull.rebase pull.ff push.default
  push.autosetupremote push.followtags merge.ff merge.conflictstyle fetch.prune gc.auto
  submodule.*.url submodule.*.active submodule.active submodule.recurse rerere.enabled
  extensions.objectformat extensions.partialclone extensions.refstorage extensions.noop
  extensions.relativeworktrees advice.detachedhead color.ui diff.renames log.date status.short
  pack.threads feature.manyfiles feature.experimental index.version protocol.version
`),
);

/** Keys whose value may be an address. */
const ADDRESS = /url$|remote$|pushdefault$/;

/** Whether an address runs no program: no `ext::sh -c …`, no option in place of a host. */
const isHarmlessAddress = (value: string): boolean =>
  !value.includes('::') && !/(?:^|\/\/|@)-/.test(value);

/** Whether git wrote this worktree for a submodule: no symlink leads out of the workspace. */
const isWorktree = (place: string, gitFolder: string, workspace: string): boolean =>
  gitFolder.includes('/.git/modules/') && isWithin(place, workspace) && realPath(place) === place;

const isHarmlessEntry = (
  { key, value }: ConfigEntry,
  folder: string,
  workspace: string,
): boolean =>
  key === 'core.worktree'
    ? isWorktree(path.resolve(folder, value), folder, workspace)
    : HARMLESS_KEYS.has(key) && (!ADDRESS.test(key) || isHarmlessAddress(value));

/** A value as git writes it. */
const gitValue = (value: string): string => {
  const escaped = value.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\t', '\\t');
  return /^ |[;#\r]| $/.test(value) ? `"${escaped}"` : escaped;
};

/** What may stay of a configuration. */
export type CleanedConfig = {
  readonly bytes: Buffer;
  /** They are what the file holds: so git reads the same entries in it as we do. */
  readonly isSame: boolean;
  /**
   * The keys of the other entries. What stands behind an item that git would refuse is left out
   * too, but not listed.
   */
  readonly removed: readonly string[];
};

/** What may stay of a configuration that a command made; null if it can't be read. */
export const cleanConfig = (file: string, workspace: string): CleanedConfig | null => {
  const loaded = readRegularSync(file, CONFIG_MAX, { follow: 'none' });
  if (loaded.kind !== 'file') return null;
  const before = loaded.bytes.toString('utf8');
  const removed: string[] = [];
  let text = '';
  let lastHead = '';
  for (const entry of configEntries(before)) {
    const { key, value, head, name } = entry;
    if (isHarmlessEntry(entry, path.dirname(file), workspace)) {
      text += `${head === lastHead ? '' : `${head}\n`}\t${name} = ${gitValue(value)}\n`;
      lastHead = head;
    } else removed.push(key);
  }
  const bytes = Buffer.from(text);
  return { bytes, isSame: bytes.equals(loaded.bytes), removed };
};

/** Whether a `.git` file outside of the workspace, which no command writes, names this folder. */
const isNamedOutside = (worktreeFolder: string, file: string): boolean =>
  folderNamedIn(file, path.dirname(file)) === worktreeFolder;

/**
 * Whether a file in a worktree folder is as git creates it. `commondir` names the git folder around
 * it. `gitdir` names the `.git` file of a worktree inside the workspace, or one outside that names
 * the worktree folder in turn. A file that is empty, or can't be read, is just being written.
 */
export const isHarmlessInWorktree = (place: string, workspace: string): boolean => {
  const folder = folderAround(place);
  const back = readPathFile(path.join(folder, 'gitdir'));
  const named = path.resolve(folder, back);
  const parent = path.dirname(named);
  const file = path.join(realPath(parent) ?? parent, path.basename(named));
  const isBack =
    back === '' ||
    (path.basename(back) === '.git' && (isWithin(file, workspace) || isNamedOutside(folder, file)));
  if (path.basename(place) === 'gitdir') return isBack;
  const isCommon = path.basename(place) === 'commondir';
  return isCommon && isBack && /^(?:\.\.\/\.\.)?$/.test(readPathFile(place));
};

/**
 * Whether a new `.git`, no symlink, is a folder, or a file that names one inside the workspace.
 * What git obeys there is judged by itself. An empty file is just being written.
 */
export const leadsInside = (place: string, workspace: string): boolean => {
  if (isFolder(place) || readPathFile(place) === '') return true;
  const folder = folderNamedIn(place, path.dirname(place));
  return folder !== null && isWithin(folder, workspace);
};
