import { readdirSync } from 'node:fs';
import path from 'node:path';
import { realPathOf, statusOf } from '../../../platform/files/entry-status.js';
import { isWithin } from '../../../platform/files/is-within.js';
import { readSmall } from './git-folders.js';

/**
 * Decides whether a repository that a command made may stay: using git in it must not run any program.
 *
 * `git init`, `git clone` and `git worktree add` make such repositories. Anything unknown counts as harmful.
 */

/** `section.key`, or `section.*.key` for a section with a quoted name. */
const HARMLESS_KEYS: ReadonlySet<string> = new Set([
  ...[
    'core.repositoryformatversion',
    'core.filemode',
    'core.bare',
    'core.logallrefupdates',
    'core.ignorecase',
  ],
  ...['core.precomposeunicode', 'core.symlinks', 'core.sharedrepository', 'core.autocrlf', 'core.eol'],
  ...[
    'core.safecrlf',
    'core.quotepath',
    'core.abbrev',
    'core.compression',
    'core.protectntfs',
    'core.protecthfs',
  ],
  ...['core.untrackedcache', 'core.preloadindex', 'core.longpaths', 'core.commitgraph', 'core.whitespace'],
  ...[
    'remote.*.url',
    'remote.*.pushurl',
    'remote.*.fetch',
    'remote.*.push',
    'remote.*.tagopt',
    'remote.*.prune',
  ],
  ...['remote.*.mirror', 'remote.*.promisor', 'remote.*.partialclonefilter', 'remote.pushdefault'],
  ...['branch.*.remote', 'branch.*.merge', 'branch.*.rebase', 'branch.*.pushremote', 'branch.*.description'],
  ...[
    'branch.autosetuprebase',
    'branch.autosetupmerge',
    'user.name',
    'user.email',
    'author.name',
    'author.email',
  ],
  ...['committer.name', 'committer.email', 'init.defaultbranch', 'pull.rebase', 'pull.ff', 'push.default'],
  ...['push.autosetupremote', 'push.followtags', 'merge.ff', 'merge.conflictstyle', 'fetch.prune', 'gc.auto'],
  ...['submodule.*.url', 'submodule.*.active', 'submodule.active', 'submodule.recurse', 'rerere.enabled'],
  ...['extensions.objectformat', 'extensions.partialclone', 'extensions.refstorage', 'extensions.noop'],
  ...[
    'extensions.relativeworktrees',
    'advice.detachedhead',
    'color.ui',
    'diff.renames',
    'log.date',
    'status.short',
  ],
  ...['pack.threads', 'feature.manyfiles', 'feature.experimental', 'index.version', 'protocol.version'],
]);

/** Whether an address runs no program: no `ext::sh -c …`, no option in place of a host. */
const isHarmlessAddress = (value: string): boolean => !value.includes('::') && !/(?:^|\/\/|@)-/.test(value);

/** In bytes. A longer file would be read only in part. */
const CONFIG_MAX = 32 * 1024;

type Entry = { readonly key: string; readonly value: string };

/**
 * The entries of a configuration. Null if a line is not a plain section, entry or comment, or continues on the next
 * one.
 */
const entriesOf = (config: string): readonly Entry[] | null => {
  let section = '';
  const entries: Entry[] = [];
  for (const line of config.split(/\r?\n/).map((one) => one.trim())) {
    if (line === '' || line.startsWith('#') || line.startsWith(';')) continue;
    if (line.endsWith('\\')) return null;
    const head = /^\[\s*([A-Za-z0-9.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]$/.exec(line);
    if (head !== null) {
      section = `${(head[1] ?? '').toLowerCase()}${head[2] === undefined ? '' : '.*'}`;
      continue;
    }
    const entry = /^([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$/.exec(line);
    if (entry === null || section === '') return null;
    entries.push({ key: `${section}.${(entry[1] ?? '').toLowerCase()}`, value: entry[2] ?? '' });
  }
  return entries;
};

const isHarmlessEntry = ({ key, value }: Entry, folder: string, workspace: string): boolean => {
  if (key === 'core.worktree') {
    const named = value.replace(/^"(.*)"$/, '$1');
    return isWithin(path.resolve(folder, named), workspace);
  }
  if (!HARMLESS_KEYS.has(key)) return false;
  return !/url$/.test(key) || isHarmlessAddress(value);
};

/** Whether a configuration is harmless. A missing file is: git then uses its defaults. */
export const isHarmlessConfig = (file: string, workspace: string): boolean => {
  const status = statusOf(file);
  if (status === null) return true;
  if (!status.isFile() || status.size > CONFIG_MAX) return false;
  const entries = entriesOf(readSmall(file));
  const folder = path.dirname(file);
  return entries?.every((entry) => isHarmlessEntry(entry, folder, workspace)) ?? false;
};

const namesIn = (folder: string): readonly string[] | null => {
  try {
    return readdirSync(folder);
  } catch {
    return null; // no folder, or closed to us
  }
};

/** Whether a hooks folder holds only git's samples. Git runs no hook whose name has an extension. */
export const areHarmlessHooks = (folder: string): boolean => {
  const status = statusOf(folder);
  if (status === null) return true;
  return status.isDirectory() && (namesIn(folder)?.every((name) => name.endsWith('.sample')) ?? false);
};

const isAbsent = (place: string): boolean => statusOf(place) === null;

/** Whether a worktree folder looks as git made it: it names its repository and a worktree inside the workspace. */
export const isHarmlessWorktree = (folder: string, workspace: string): boolean => {
  const back = readSmall(path.join(folder, 'gitdir')).trim();
  return (
    readSmall(path.join(folder, 'commondir')).trim() === '../..' &&
    path.basename(back) === '.git' &&
    isWithin(path.resolve(folder, back), workspace) &&
    ['config.worktree', 'config', 'hooks', 'info'].every((name) => isAbsent(path.join(folder, name)))
  );
};

/** Checks a git folder and those of its submodules and worktrees. */
const isHarmlessFolder = (folder: string, workspace: string, depth = 1): boolean => {
  const at = (name: string): string => path.join(folder, name);
  const inner = namesIn(at('modules')) ?? [];
  return (
    statusOf(folder)?.isDirectory() === true &&
    isHarmlessConfig(at('config'), workspace) &&
    areHarmlessHooks(at('hooks')) &&
    ['config.worktree', 'commondir', 'info/attributes'].every((name) => isAbsent(at(name))) &&
    (namesIn(at('worktrees')) ?? []).every((name) =>
      isHarmlessWorktree(at(`worktrees/${name}`), workspace),
    ) &&
    depth < 4 &&
    inner.every((name) => isHarmlessFolder(at(`modules/${name}`), workspace, depth + 1))
  );
};

/** Checks a new `.git`: a folder, or a file that names a folder inside the workspace or in a known repository. */
export const isHarmlessRepository = (place: string, workspace: string, known: readonly string[]): boolean => {
  const status = statusOf(place);
  if (status === null) return true;
  if (status.isDirectory()) return isHarmlessFolder(place, workspace);
  if (!status.isFile()) return false;
  const named = /^gitdir:\s*(.+?)\s*$/.exec(readSmall(place))?.[1];
  const folder = named === undefined ? null : realPathOf(path.resolve(path.dirname(place), named));
  if (folder === null) return false;
  const owner = known.find((one) => isWithin(folder, one));
  if (owner === undefined && !isWithin(folder, workspace)) return false;
  return path.basename(path.dirname(folder)) === 'worktrees'
    ? isHarmlessWorktree(folder, workspace)
    : isHarmlessFolder(folder, workspace);
};
