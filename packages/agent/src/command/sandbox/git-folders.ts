/**
 * Where git keeps a repository, which of its files git obeys or runs, and what its configuration
 * and index name.
 *
 * - A git folder holds configuration, hooks and objects: `.git`, or a bare repository.
 * - A worktree is a folder with checked-out files. A linked one has its own worktree folder, below
 *   `worktrees` of the git folder, and shares the rest with the other worktrees.
 * - A `.git` file names a git folder or a worktree folder, anywhere on the machine.
 *   `findRepository` takes one outside of the folder with the file only if it names that folder in
 *   return, which only git itself could have written there. One inside shows nothing more.
 *
 * From top to bottom: the git folders of a workspace (`codePlaces`, `findRepository`); a setting
 * (`readSetting`), and the files that a configuration names (`createNamedPlaces`); git, run so that
 * it starts no program of the repository (`askGit`); and git's index (`createIndexReader`).
 * new-repository.ts says what may stay of a repository that a command made.
 */

import type { Stats } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import type { ProcessEnvironment } from '../../platform/environment.js';
import {
  entryStatus,
  followStatus,
  isFolder,
  isWithin,
  readBytes,
  readSmall,
  realPath,
} from '../../platform/files.js';
import type { ProgramPath } from '../../platform/find-program.js';
import { listFolder } from '../../platform/replaceable-files.js';
import { askProgramSync } from '../../platform/start-program.js';
import { folderAbove, isOwnOrSystem } from '../../platform/trusted-folders.js';
import { type ConfigEntry, configEntries, listWords, settingCommand } from '../../policy/paths.js';

/**
 * Files of a git folder that git obeys or runs. `commondir` names another folder whose
 * configuration counts.
 */
const CODE = ['config', 'config.worktree', 'hooks', 'info/attributes', 'commondir'];
/** The same for a worktree folder. */
const WORKTREE_CODE = [...CODE, 'gitdir'];
/** Folders above such files. A symlink in their place is a path of the list itself. */
const ABOVE_CODE = ['info', 'modules', 'worktrees'];
// The bounds of a walk through one git folder, which may be made to cost us time. A folder beyond
// them is a path of the list itself, so that all of it counts.
/** Depth of folders below `modules`. */
const MODULES_DEPTH_MAX = 8;
/** Folders and links. */
const LOOKED_MAX = 1_000;

/** Whether a folder holds a history. */
const isGitFolder = (folder: string): boolean =>
  entryStatus(path.join(folder, 'HEAD')) !== null &&
  entryStatus(path.join(folder, 'objects')) !== null;

/** Git passes over any other folder named `.git`, such as an empty one. */
const isGitOrWorktreeFolder = (folder: string): boolean =>
  isGitFolder(folder) ||
  ['HEAD', 'commondir'].every((name) => entryStatus(path.join(folder, name)) !== null);

/**
 * Paths in a git folder that git obeys or runs, whether they exist or not, with those of submodules
 * and worktree folders in it.
 */
export const codePlaces = (gitFolder: string): readonly string[] => {
  const places: string[] = [];
  /** How many folders and links may still be looked at. */
  let remaining = LOOKED_MAX;
  /**
   * Enters a folder: adds the links in it, and returns the folders in it. Beyond LOOKED_MAX it adds
   * the folder itself, and returns none.
   */
  const enter = (folder: string): readonly string[] => {
    const entries = listFolder(folder);
    const at = (entry: { readonly name: string }): string => path.join(folder, entry.name);
    const links = entries.filter((entry) => entry.isSymbolicLink()).map(at);
    const folders = entries.filter((entry) => entry.isDirectory()).map(at);
    remaining -= links.length + folders.length;
    places.push(...(remaining < 0 ? [folder] : links));
    return remaining < 0 ? [] : folders;
  };
  /** Names of submodules may contain slashes. */
  const addModules = (folder: string, depth: number): void => {
    for (const inner of enter(folder)) {
      if (depth > MODULES_DEPTH_MAX) places.push(inner);
      else if (isGitFolder(inner)) addFolder(inner, depth);
      else addModules(inner, depth + 1);
    }
  };
  const addFolder = (folder: string, depth: number): void => {
    const at = (name: string): string => path.join(folder, name);
    const links = ABOVE_CODE.map(at).filter((place) => entryStatus(place)?.isSymbolicLink());
    places.push(...links, ...CODE.map(at));
    addModules(at('modules'), depth + 1);
    for (const inner of enter(at('worktrees'))) {
      places.push(...WORKTREE_CODE.map((name) => path.join(inner, name)));
      addModules(path.join(inner, 'modules'), depth + 1);
    }
  };
  addFolder(gitFolder, 0);
  return places;
};

/** The git folder or worktree folder that a path like `hooks` or `info/attributes` belongs to. */
export const folderAround = (place: string): string => {
  const parent = path.dirname(place);
  // not by the parent's name alone: a worktree folder may be called `info`
  return place.endsWith('/info/attributes') ? path.dirname(parent) : parent;
};

/** Whether a path lies in a worktree folder. */
export const isInWorktreeFolder = (place: string): boolean => {
  const above = path.dirname(folderAround(place));
  return path.basename(above) === 'worktrees' && isGitFolder(path.dirname(above));
};

/** The path that a file of git holds, such as `gitdir`; empty if there is no such file. */
export const readPathFile = (file: string): string => readSmall(file).replace(/[\r\n]+$/, '');

/** The real folder that a `.git` file in this folder names; null if it names none. */
export const folderNamedIn = (file: string, folder: string): string | null => {
  const [, named] = /^gitdir: (.+)$/s.exec(readPathFile(file)) ?? [];
  return named === undefined ? null : realPath(path.resolve(folder, named));
};

export type GitFolders = {
  /** The git folder of a worktree, or its worktree folder. */
  readonly folder: string;
  /** The git folder, which it shares with other worktrees. */
  readonly common: string;
};

/** The folders behind a `.git`; null if it leads nowhere. */
export const gitFoldersAt = (place: string): GitFolders | null => {
  const status = entryStatus(place);
  // git follows a symlink, also to a file that names a folder
  const target = status?.isSymbolicLink() ? realPath(place) : place;
  if (status === null || target === null) return null;
  const folder = isFolder(target) ? target : folderNamedIn(target, path.dirname(place));
  if (folder === null) return null;
  const shared = readPathFile(path.join(folder, 'commondir'));
  const common = shared === '' ? folder : realPath(path.resolve(folder, shared));
  return { folder, common: common ?? folder };
};

/**
 * The git folder that a worktree folder belongs to. Null if it belongs to none, or does not name
 * `top`, the worktree, in return.
 */
const commonFolder = (worktreeFolder: string, top: string): string | null => {
  const dotGit = readPathFile(path.join(worktreeFolder, 'gitdir'));
  const shared = readPathFile(path.join(worktreeFolder, 'commondir'));
  const common = realPath(path.resolve(worktreeFolder, shared));
  if (dotGit === '' || common === null) return null;
  if (path.dirname(worktreeFolder) !== path.join(common, 'worktrees')) return null;
  return realPath(path.resolve(worktreeFolder, dotGit)) === path.join(top, '.git') ? common : null;
};

/** Whether the git folder of a submodule names the folder `top` as its worktree. */
const namesWorktree = (gitFolder: string, top: string): boolean => {
  const named = readSetting(gitFolder, 'core.worktree');
  return named !== undefined && realPath(path.resolve(gitFolder, named)) === top;
};

/** Real paths. `top`: the folder with `.git`. */
export type RepositoryPaths = GitFolders & { readonly top: string };

export type FoundRepository =
  | { readonly kind: 'found'; readonly repository: RepositoryPaths }
  | { readonly kind: 'none' }
  /** `why` ends a sentence that begins with "git finds no repository inside the sandbox, since". */
  | { readonly kind: 'refused'; readonly why: string };

const refused = (why: string): FoundRepository => ({ kind: 'refused', why });

/** The repository of a folder `top` with a `.git` file. */
const behindFile = (top: string, file: string): FoundRepository => {
  const folder = folderNamedIn(file, top);
  if (folder === null) return refused(`${file} names no folder`);
  const common = commonFolder(folder, top);
  const gitFolder = common ?? folder;
  const status = entryStatus(gitFolder);
  if (status === null || !isOwnOrSystem(status))
    return refused(`${gitFolder} belongs to somebody else`);
  if (!isGitFolder(gitFolder)) return refused(`${gitFolder} is no repository`);
  // A folder below `top` shows nothing more of the machine, so it need not name `top`.
  if (common !== null || namesWorktree(folder, top) || isWithin(folder, top))
    return { kind: 'found', repository: { top, folder, common: gitFolder } };
  return refused(`${file} names ${folder}, which does not name this folder in turn`);
};

/** The repository of a folder with a `.git`. `status`: that of `.git`. */
const repositoryAt = (top: string, status: Stats): FoundRepository => {
  const place = path.join(top, '.git');
  const topStatus = entryStatus(top);
  if (!isOwnOrSystem(status) || topStatus === null || !isOwnOrSystem(topStatus)) {
    return refused(`${top} belongs to somebody else`);
  }
  if (status.isFile()) return behindFile(top, place);
  const found = (folder: string): FoundRepository => ({
    kind: 'found',
    repository: { top, folder, common: folder },
  });
  if (status.isDirectory()) return found(place);
  const target = realPath(place);
  if (target === null || !isWithin(target, top))
    return refused(`${place} is a symlink that leads out of its folder`);
  if (!isFolder(target)) return behindFile(top, target);
  return found(target);
};

/** The repository that the workspace, a real path, lies in. */
export const findRepository = (workspace: string): FoundRepository => {
  for (let folder: string | null = workspace; folder !== null; folder = folderAbove(folder)) {
    const status = entryStatus(path.join(folder, '.git'));
    const isPassed =
      status?.isDirectory() === true && !isGitOrWorktreeFolder(path.join(folder, '.git'));
    if (status !== null && !isPassed) return repositoryAt(folder, status);
  }
  return { kind: 'none' };
};

// ---- Files of the workspace that git's configuration names ----
// Git runs or obeys the hooks, included files and programs that its configuration names, so a
// command may change them as little as the configuration. Conditions of `includeIf` count as true.
// Files elsewhere are passed over: no command can change them.

/** Keys that name a folder or file that git runs or obeys as a whole. */
const NAMES_PLACE =
  /^(?:core\.(?:hookspath|attributesfile)|init\.templatedir|include\.path|includeif\.\*\.path)$/;

// The bounds of one reading. What is beyond them is passed over.
const CONFIGS_MAX = 1_000;
const STAMPS_MAX = 2_000;
const PLACES_MAX = 200;

/** In bytes. A longer configuration is not read. */
export const CONFIG_MAX = 1024 * 1024;

const readEntries = (file: string | null): readonly ConfigEntry[] =>
  configEntries((file === null ? null : readBytes(file, CONFIG_MAX))?.toString() ?? '');

/** The last value of a setting in the configuration of a git folder. */
export const readSetting = (gitFolder: string, key: string): string | undefined =>
  readEntries(path.join(gitFolder, 'config')).findLast((entry) => entry.key === key)?.value;

/** Words of a command line that may be names of files: no options, variables and patterns. */
const fileWords = (command: string): readonly string[] =>
  command
    .split(/[\s'"`;|&()<>=]+/)
    .filter((word) => word !== '' && !/^-|[$*?%{}:]/.test(word.replace(/^[A-Za-z]:\//, '')));

/** Whether a word of a command line names a file although none is there yet. */
const namesFile = (word: string): boolean =>
  word.includes('/') || /^[\w-]+\.(?:[cm]?[jt]s|sh|bash|py|rb|pl|php|lua)$/.test(word);

export type NamedPlace = {
  readonly path: string;
  /** The key that names it. */
  readonly key: string;
};

/** One configuration file, with the folder in which git runs what it names. */
export type ConfigPlace = { readonly file: string; readonly top: string };

/** The configuration files of a repository, the worktree's own among them. */
export const listConfigs = ({ folder, common, top }: RepositoryPaths): readonly ConfigPlace[] =>
  [`${common}/config`, `${folder}/config.worktree`, `${folder}/config`].map((file) => ({
    file,
    top,
  }));

/** One reading of all configurations: its inputs, and its results so far. */
type Reading = {
  readonly workspace: string;
  readonly home: string;
  /** By path. */
  readonly named: Map<string, NamedPlace>;
  /** All that was looked at, with its stamp at that time: the results depend on nothing else. */
  readonly stamps: Map<string, string>;
  /** Files by the folder for which they were read, since includes may form a circle. */
  readonly visited: Set<string>;
};

/** A text that differs when what the path leads to was changed. */
const stampAt = (place: string): string => {
  const status = followStatus(place);
  return status === null ? '' : `${status.ino}:${status.ctimeMs}:${status.size}`;
};

const resolveFrom = (folder: string, word: string, home: string): string =>
  word.startsWith('~/') ? path.join(home, word.slice(2)) : path.resolve(folder, word);

/** Adds a place of the workspace, and what is behind it if it is a symlink. */
const addPlace = (reading: Reading, place: string, key: string): void => {
  const { workspace, named, stamps } = reading;
  stamps.set(place, stampAt(place));
  for (const one of new Set([place, realPath(place) ?? place])) {
    if (!isWithin(one, workspace) || one === workspace || named.size >= PLACES_MAX) continue;
    named.set(one, { path: one, key });
  }
};

const addCommandWords = (reading: Reading, command: string, top: string, key: string): void => {
  for (const word of fileWords(command)) {
    if (reading.stamps.size >= STAMPS_MAX) return;
    const place = resolveFrom(top, word, reading.home);
    const status = followStatus(place);
    if (status === null ? namesFile(word) : status.isFile()) addPlace(reading, place, key);
    else reading.stamps.set(place, stampAt(place)); // it may become a file
  }
};

/** Adds what one configuration names, and what those name that it includes. */
const readConfig = (reading: Reading, { file, top }: ConfigPlace): void => {
  const visit = `${top}\0${file}`;
  if (reading.visited.has(visit) || reading.visited.size >= CONFIGS_MAX) return;
  reading.visited.add(visit);
  reading.stamps.set(file, stampAt(file));
  const real = realPath(file);
  for (const { key, value } of readEntries(real)) {
    if (reading.stamps.size >= STAMPS_MAX) return;
    if (value === '') continue;
    const command = settingCommand(key, value);
    if (command !== null) addCommandWords(reading, command, top, key);
    if (!NAMES_PLACE.test(key)) continue;
    const isInclude = key.startsWith('include');
    const place = resolveFrom(isInclude ? path.dirname(file) : top, value, reading.home);
    addPlace(reading, place, key);
    if (isInclude) readConfig(reading, { file: place, top });
  }
};

/** The configuration files of the user and the machine. */
const userConfigs = (environment: ProcessEnvironment): readonly string[] => {
  const home = environment.HOME ?? homedir();
  const personal = [
    path.join(home, '.gitconfig'),
    path.join(environment.XDG_CONFIG_HOME || path.join(home, '.config'), 'git/config'),
  ];
  const global = environment.GIT_CONFIG_GLOBAL;
  return [...(global ? [global] : personal), environment.GIT_CONFIG_SYSTEM || '/etc/gitconfig'];
};

/**
 * Reads what configurations name: `configs`, those of repositories, and the user's in each folder
 * of `tops`.
 */
export type ReadPlaces = (
  configs: readonly ConfigPlace[],
  tops: readonly string[],
) => readonly NamedPlace[];

/** Reads configurations again only after one of them, or something that they name, has changed. */
export const createPlaceReader = (
  workspace: string,
  environment: ProcessEnvironment,
): ReadPlaces => {
  let cachedKey = '';
  let stamps: ReadonlyMap<string, string> = new Map();
  let places: readonly NamedPlace[] = [];
  return (configs, tops) => {
    const key = JSON.stringify([configs, tops]);
    const isSame = [...stamps].every(([place, stamp]) => stampAt(place) === stamp);
    if (key === cachedKey && isSame) return places;
    const reading: Reading = {
      workspace,
      home: environment.HOME ?? homedir(),
      named: new Map(),
      stamps: new Map(),
      visited: new Set(),
    };
    const user = userConfigs(environment).filter(path.isAbsolute);
    for (const config of configs) readConfig(reading, config);
    for (const top of tops) for (const file of user) readConfig(reading, { file, top });
    cachedKey = key;
    stamps = reading.stamps;
    places = [...reading.named.values()];
    return places;
  };
};

/**
 * What the configurations of the workspace's repository and of the user name, for tools that write
 * files themselves.
 */
export const createNamedPlaces = (
  workspace: string,
  environment: ProcessEnvironment,
): (() => readonly NamedPlace[]) => {
  const readPlaces = createPlaceReader(workspace, environment);
  return () => {
    const search = findRepository(workspace);
    if (search.kind !== 'found') return readPlaces([], [workspace]);
    const { repository } = search;
    return readPlaces(listConfigs(repository), [repository.top]);
  };
};

// ---- Git, run so that it starts no program that the repository names ----

const SAFE_SETTINGS = listWords(`
  core.hooksPath=/dev/null core.fsmonitor=false core.splitIndex=false core.commitGraph=false
  protocol.allow=never safe.directory=*
`).flatMap((setting) => ['-c', setting]);

const SAFE_ENVIRONMENT = {
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  LC_ALL: 'C',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_NO_LAZY_FETCH: '1',
  GIT_TERMINAL_PROMPT: '0',
};

/** Null: there is no git, it did not start, needed too long, or printed too much. */
export const askGit = (
  findGit: () => ProgramPath | null,
  gitFolder: string,
  words: readonly string[],
  options: { readonly input?: string; readonly timeoutMs: number; readonly bytesMax?: number },
): ReturnType<typeof askProgramSync> => {
  const git = findGit();
  if (git === null) return null;
  const globals = [`--git-dir=${gitFolder}`, `--work-tree=${gitFolder}`, '--no-replace-objects'];
  return askProgramSync(git, [...globals, ...SAFE_SETTINGS, ...words], {
    environment: SAFE_ENVIRONMENT,
    searchPath: ['/usr/bin', '/bin'],
    folder: gitFolder,
    ...options,
  });
};

// ---- Git's index, listed by git ----
// Git starts itself in the folder of each nested repository (gitlink) at `status`, `diff`, `add`
// and `commit`, and obeys the configuration there.

type IndexContents = {
  /** Paths of gitlinks, relative to the top of the worktree. */
  readonly gitlinks: readonly string[];
  /** Whether a path, relative to the top of the worktree, is tracked. */
  isTracked(place: string): boolean;
};

/**
 * In bytes. A larger index is not read: the walk through all folders finds its gitlinks, and none
 * of its files counts as tracked.
 */
const INDEX_MAX = 64 * 1024 * 1024;
const GITLINKS_MAX = 10_000;
/**
 * The mode of a gitlink, 160000, as an index holds it, and the mark of an index whose entries stand
 * in another file. Without these bytes git need not be asked.
 */
const GITLINK_MODE = Buffer.from([0, 0, 0xe0, 0]);
const SPLIT_MARK = Buffer.from('link');
const LIST_TIMEOUT_MS = 10_000;
const EMPTY: IndexContents = { gitlinks: [], isTracked: () => false };

/**
 * Reads the index of a git folder or worktree folder: gitlinks at once, tracked paths when first
 * asked. The result is kept until the index changes; a failure is not. `findGit`: null where there
 * is no git.
 */
export const createIndexReader = (findGit: () => ProgramPath | null) => {
  const cache = new Map<string, { readonly stamp: string; readonly contents: IndexContents }>();
  /** Null if git can't list it now. */
  const list = (gitFolder: string, ...words: readonly string[]): string | null => {
    const limits = { timeoutMs: LIST_TIMEOUT_MS, bytesMax: 2 * INDEX_MAX };
    const answer = askGit(findGit, gitFolder, ['ls-files', '-z', ...words], limits);
    return answer?.code === 0 ? answer.output : null;
  };
  return (gitFolder: string): IndexContents => {
    const file = path.join(gitFolder, 'index');
    const status = entryStatus(file);
    if (status === null || !status.isFile() || status.size > INDEX_MAX) return EMPTY;
    const stamp = stampAt(file);
    const cached = cache.get(file);
    if (cached?.stamp === stamp) return cached.contents;
    const bytes = readBytes(file, INDEX_MAX);
    if (bytes === null) return EMPTY; // it changes now
    const mayHoldLinks = [GITLINK_MODE, SPLIT_MARK].some((one) => bytes.includes(one));
    const listed = mayHoldLinks ? list(gitFolder, '-s') : '';
    const gitlinks = [...(listed ?? '').matchAll(/(?<=^|\0)160000 [^\t]*\t([^\0]+)/g)];
    let tracked: ReadonlySet<string> | null = null;
    const contents = {
      gitlinks: gitlinks.slice(0, GITLINKS_MAX).map(([, name = '']) => name),
      isTracked(place: string): boolean {
        const names = tracked === null ? list(gitFolder) : null;
        if (names !== null) tracked = new Set(names.split('\0'));
        return tracked?.has(place) === true;
      },
    };
    if (listed !== null) cache.set(file, { stamp, contents });
    return contents;
  };
};
