/**
 * Where git keeps a repository, which of its files git obeys or runs, and what of them is harmless.
 * Runs git (`askGit`) so that it starts no program that the repository names.
 *
 * A git folder holds configuration, hooks and objects: `.git`, a bare repository, or the folder
 * that a `.git` file names. Such a file can name any folder of the machine. It counts only if that
 * folder names the workspace in return, which only git itself could have written there.
 *
 * From top to bottom: the git folders of a workspace (`codePlaces`, `findRepository`); the files
 * that git's configuration names (`createNamedPlaces`); what may stay of a repository that a
 * command made; and git's index (`createIndexReader`).
 *
 * What may stay is asked by protected-files.ts, when a command has made or changed a git folder:
 * `leadsInside` of a new `.git` file, `isHarmlessInWorktree` of a file in the folder of a worktree,
 * `cleanConfig` of a configuration, whose harmless part it then writes, and whose `removed` part
 * the user and the model are told of.
 */

import type { Stats } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import type { ProcessEnvironment } from '../../platform/environment.js';
import {
  entryStatus,
  isFolder,
  isWithin,
  readBytes,
  readRegularSync,
  readSmall,
  realPath,
} from '../../platform/files.js';
import type { ProgramPath } from '../../platform/find-program.js';
import { listFolder } from '../../platform/replaceable-files.js';
import { askProgramSync } from '../../platform/start-program.js';
import { folderAbove, isOwnOrSystem } from '../../platform/trusted-folders.js';
import { listWords, settingCommand, settingKey } from '../../policy/paths.js';

/**
 * Files of a git folder that git obeys or runs. `commondir` names another folder whose
 * configuration counts.
 */
const CODE = ['config', 'config.worktree', 'hooks', 'info/attributes', 'commondir'];
/** The same for the folder of a linked worktree, below `worktrees`. */
const WORKTREE_CODE = [...CODE, 'gitdir'];
/** Folders above such files. A symlink in their place is looked at as a whole. */
const ABOVE_CODE = ['info', 'modules', 'worktrees'];
/**
 * Most folders and links that are looked at for one git folder, and their depth, in case it is
 * meant to cost us time. What lies beyond counts as a whole.
 */
const MODULES_DEPTH_MAX = 8;
const LOOKED_MAX = 1_000;

const isGitFolder = (folder: string): boolean =>
  entryStatus(path.join(folder, 'HEAD')) !== null &&
  entryStatus(path.join(folder, 'objects')) !== null;

/**
 * Whether git takes a folder named `.git` for a repository. It passes over an empty one and looks
 * further up.
 */
const isRepository = (folder: string): boolean =>
  isGitFolder(folder) ||
  ['HEAD', 'commondir'].every((name) => entryStatus(path.join(folder, name)) !== null);

/**
 * Paths in a git folder that git obeys or runs, whether they exist or not, with those of submodules
 * and worktrees.
 */
export const codePlaces = (gitFolder: string): readonly string[] => {
  const places: string[] = [];
  let free = LOOKED_MAX;
  const foldersIn = (folder: string): readonly string[] => {
    const entries = listFolder(folder);
    const at = (entry: { readonly name: string }): string => path.join(folder, entry.name);
    const links = entries.filter((entry) => entry.isSymbolicLink()).map(at);
    const folders = entries.filter((entry) => entry.isDirectory()).map(at);
    free -= links.length + folders.length;
    places.push(...(free < 0 ? [folder] : links));
    return free < 0 ? [] : folders;
  };
  /** Names of submodules may contain slashes. */
  const addModules = (folder: string, depth: number): void => {
    for (const inner of foldersIn(folder)) {
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
    for (const inner of foldersIn(at('worktrees'))) {
      places.push(...WORKTREE_CODE.map((name) => path.join(inner, name)));
      addModules(path.join(inner, 'modules'), depth + 1);
    }
  };
  addFolder(gitFolder, 0);
  return places;
};

/** The git folder that a path like `hooks` or `info/attributes` belongs to. */
const findGitFolder = (place: string): string => {
  const parent = path.dirname(place);
  // a worktree may be called `info`, too
  return place.endsWith('/info/attributes') ? path.dirname(parent) : parent;
};

/** Whether a path lies in the git folder of a linked worktree. */
export const isInWorktreeFolder = (place: string): boolean => {
  const above = path.dirname(findGitFolder(place));
  return path.basename(above) === 'worktrees' && isGitFolder(path.dirname(above));
};

/** The path in a file of git, as git reads it. */
const pathIn = (file: string): string => readSmall(file).replace(/[\r\n]+$/, '');

/** The real folder that a `.git` file in this folder names; null if it names none. */
const folderNamedIn = (file: string, folder: string): string | null => {
  const [, named] = /^gitdir: (.+)$/s.exec(pathIn(file)) ?? [];
  return named === undefined ? null : realPath(path.resolve(folder, named));
};

/**
 * The git folder behind a `.git`, and the one that it shares its configuration with. Null if it
 * leads nowhere.
 */
export const gitFoldersAt = (
  place: string,
): { readonly folder: string; readonly common: string } | null => {
  const status = entryStatus(place);
  // git follows a symlink, also to a file that names a folder
  const target = status?.isSymbolicLink() ? realPath(place) : place;
  if (status === null || target === null) return null;
  const folder = isFolder(target) ? target : folderNamedIn(target, path.dirname(place));
  if (folder === null) return null;
  const shared = pathIn(path.join(folder, 'commondir'));
  const common = shared === '' ? folder : realPath(path.resolve(folder, shared));
  return { folder, common: common ?? folder };
};

/**
 * The folder that a linked worktree shares with its repository; null if it does not name this
 * worktree in return.
 */
const commonFolder = (gitFolder: string, top: string): string | null => {
  const back = pathIn(path.join(gitFolder, 'gitdir'));
  const common = realPath(path.resolve(gitFolder, pathIn(path.join(gitFolder, 'commondir'))));
  if (back === '' || common === null || path.dirname(gitFolder) !== path.join(common, 'worktrees'))
    return null;
  return realPath(path.resolve(gitFolder, back)) === path.join(top, '.git') ? common : null;
};

/** Whether the configuration of a submodule's git folder names this folder as its worktree. */
const isModule = (gitFolder: string, top: string): boolean => {
  const named = readSetting(gitFolder, 'core.worktree');
  return named !== undefined && realPath(path.resolve(gitFolder, named)) === top;
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

/** The repository of a folder `top` with a `.git` file. */
const behindFile = (top: string, file: string): FoundRepository => {
  const folder = folderNamedIn(file, top);
  if (folder === null) return refused(`${file} names no folder`);
  const common = commonFolder(folder, top);
  // the git folder that holds the configuration: of a linked worktree the one that it shares
  const main = common ?? folder;
  const status = entryStatus(main);
  if (status === null || !isOwnOrSystem(status)) return refused(`${main} belongs to somebody else`);
  if (!isGitFolder(main)) return refused(`${main} is no repository`);
  // A folder below `top` shows nothing more of the machine, so it need not name `top`.
  if (common !== null || isModule(folder, top) || isWithin(folder, top))
    return { kind: 'found', repository: { top, folder: main } };
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
  if (status.isDirectory()) return { kind: 'found', repository: { top, folder: place } };
  const folder = realPath(place);
  if (folder === null || !isWithin(folder, top))
    return refused(`${place} is a symlink that leads out of it`);
  if (!isFolder(folder)) return behindFile(top, folder);
  return { kind: 'found', repository: { top, folder } };
};

/** The repository that the workspace, a real path, lies in. */
export const findRepository = (workspace: string): FoundRepository => {
  for (let folder: string | null = workspace; folder !== null; folder = folderAbove(folder)) {
    const status = entryStatus(path.join(folder, '.git'));
    const isPassed = status?.isDirectory() === true && !isRepository(path.join(folder, '.git'));
    if (status !== null && !isPassed) return repositoryAt(folder, status);
  }
  return { kind: 'none' };
};

// ---- Files of the workspace that git's configuration names ----
// Hooks, included files, programs. Git runs or obeys them, so a command may change them as little
// as the configuration. Conditions of `includeIf` count as true.

/** Keys that name a folder or file that git runs or obeys as a whole. */
const NAMES_PLACE =
  /^(?:core\.(?:hookspath|attributesfile)|init\.templatedir|include\.path|includeif\.\*\.path)$/;

const FILES_MAX = 1_000;
const PLACES_MAX = 200;

/** One setting in a configuration. */
type Entry = {
  /** As of `settingKey`. */
  readonly key: string;
  readonly value: string;
  /** The head of its section, and its name there. */
  readonly head: string;
  readonly name: string;
};

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', b: '\b', '\n': '' };

/** A value as git reads it: without quotes and continuations. A NUL ends it. */
const plainValue = (text: string): string => {
  let value = '';
  let length = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? '';
    const isSpace = !isQuoted && /[ \t\r]/.test(character);
    if (character === '\\') {
      at += 1;
      value += ESCAPES[text[at] ?? ''] ?? text[at] ?? '';
    } else if (character === '"') isQuoted = !isQuoted;
    else if (!isSpace || value !== '') value += character;
    if (!isSpace) length = value.length;
  }
  return value.slice(0, length).replace(/\0.*/s, '');
};

// One item of a configuration in git's own grammar: space, a comment, a head, or a setting.
const HEAD = String.raw`\[(?=[^\]])([A-Za-z0-9.-]*)(?:[ \t\r]+"((?:[^"\\\n]|\\[^\n])*)")?\]`;
const QUOTED = String.raw`"(?:[^"\\\n]|\\[\n"\\tbn])*"`;
const VALUE = String.raw`=((?:[^"\\\n#;]|\\(?:[\n"\\tbn]|$)|${QUOTED})*)(?:[#;][^\n]*)?`;
const SETTING = String.raw`([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:${VALUE})?(?:\n|$)`;
const ITEM = new RegExp(String.raw`[ \t\r\n]+|[#;][^\n]*|(${HEAD})|${SETTING}`, 'gy');

/** All settings of a configuration, up to the first item that git would refuse. */
export const configEntries = (text: string): readonly Entry[] => {
  const entries: Entry[] = [];
  let head = '';
  let section = '';
  const plain = text.replace(/^\ufeff/, '').replaceAll('\r\n', '\n');
  for (const [, newHead, base = '', quoted, name, value] of plain.matchAll(ITEM)) {
    if (newHead !== undefined) {
      head = newHead;
      const inner = quoted === undefined ? '' : `.${quoted.replace(/\\(.)/gs, '$1')}`;
      section = `${base}${inner}.`;
    } else if (name !== undefined) {
      const key = settingKey(`${section}${name}`.replace(/\0.*/s, ''));
      entries.push({ key, value: value === undefined ? 'true' : plainValue(value), head, name });
    }
  }
  return entries;
};

/** In bytes. A longer configuration is not read. */
const CONFIG_MAX = 1024 * 1024;

const readEntries = (file: string | null): readonly Entry[] =>
  configEntries((file === null ? null : readBytes(file, CONFIG_MAX))?.toString() ?? '');

/** The last value of a setting in the configuration of a git folder. */
export const readSetting = (gitFolder: string, key: string): string | undefined =>
  readEntries(path.join(gitFolder, 'config')).findLast((entry) => entry.key === key)?.value;

/** Words of a command line that may be names of files. */
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

/** One reading of all configurations: its bounds, and its results so far. */
type Reading = {
  readonly workspace: string;
  readonly home: string;
  readonly named: Map<string, NamedPlace>;
  /** The files that were read, as they were then. */
  readonly statuses: Map<string, string>;
  /** Files by the folder for which they were read, since includes may form a circle. */
  readonly visited: Set<string>;
};

/** Differs when the file was changed, or the one behind a symlink. */
const keyOfStatus = (file: string): string => {
  const status = entryStatus(realPath(file) ?? file);
  return status === null ? '' : `${status.ino}:${status.ctimeMs}:${status.size}`;
};

const resolveFrom = (folder: string, word: string, home: string): string =>
  word.startsWith('~/') ? path.join(home, word.slice(2)) : path.resolve(folder, word);

/** Adds a place, and what is behind it if it is a symlink. */
const addPlace = (reading: Reading, place: string, key: string): void => {
  const { workspace, named } = reading;
  for (const one of new Set([place, realPath(place) ?? place])) {
    if (!isWithin(one, workspace) || one === workspace || named.size >= PLACES_MAX) continue;
    named.set(one, { path: one, key });
  }
};

const addCommandWords = (reading: Reading, command: string, top: string, key: string): void => {
  for (const word of fileWords(command)) {
    const place = resolveFrom(top, word, reading.home);
    const status = entryStatus(realPath(place) ?? place);
    if (status === null ? namesFile(word) : status.isFile()) addPlace(reading, place, key);
  }
};

/** Adds what one configuration names, and what those name that it includes. */
const readConfig = (reading: Reading, { file, top }: ConfigPlace): void => {
  const visit = `${top}\0${file}`;
  if (reading.visited.has(visit) || reading.visited.size >= FILES_MAX) return;
  reading.visited.add(visit);
  reading.statuses.set(file, keyOfStatus(file));
  const real = realPath(file);
  for (const { key, value } of readEntries(real)) {
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

/** Reads configurations again only after one of them has changed. */
export const createConfiguredPlaces = (
  workspace: string,
  environment: ProcessEnvironment,
): ReadPlaces => {
  let cachedKey = '';
  let statuses = new Map<string, string>();
  let places: readonly NamedPlace[] = [];
  return (configs, tops) => {
    const key = JSON.stringify([configs, tops]);
    const isSame = [...statuses].every(([file, status]) => keyOfStatus(file) === status);
    if (key === cachedKey && isSame) return places;
    const reading: Reading = {
      workspace,
      home: environment.HOME ?? homedir(),
      named: new Map(),
      statuses: new Map(),
      visited: new Set(),
    };
    const user = userConfigs(environment).filter(path.isAbsolute);
    const all = [...configs, ...tops.flatMap((top) => user.map((file) => ({ file, top })))];
    for (const config of all) readConfig(reading, config);
    cachedKey = key;
    statuses = reading.statuses;
    places = [...reading.named.values()];
    return places;
  };
};

/** What git's configuration names in the workspace, for tools that write files themselves. */
export const createNamedPlaces = (
  workspace: string,
  environment: ProcessEnvironment,
): (() => readonly NamedPlace[]) => {
  const readPlaces = createConfiguredPlaces(workspace, environment);
  return () => {
    const located = findRepository(workspace);
    if (located.kind !== 'found') return readPlaces([], [workspace]);
    const { top, folder } = located.repository;
    const configs = ['config', 'config.worktree'].map((name) => ({
      file: path.join(folder, name),
      top,
    }));
    return readPlaces(configs, [top]);
  };
};

// ---- What may stay of a repository that a command makes: all by which git runs no program ----
// `git init`, `git clone` and `git worktree add` make such repositories. Anything unknown counts as
// harmful.

/** Keys as in Entry. */
const HARMLESS_KEYS: ReadonlySet<string> = new Set(
  listWords(`
  core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase
  core.precomposeunicode core.symlinks core.sharedrepository core.autocrlf core.eol
  core.safecrlf core.quotepath core.abbrev core.compression core.protectntfs core.protecthfs
  core.untrackedcache core.preloadindex core.longpaths core.commitgraph core.whitespace
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

const isHarmlessEntry = ({ key, value }: Entry, folder: string, workspace: string): boolean =>
  key === 'core.worktree'
    ? isWithin(path.resolve(folder, value), workspace)
    : HARMLESS_KEYS.has(key) && (!ADDRESS.test(key) || isHarmlessAddress(value));

/** A value as git writes it. */
const written = (value: string): string => {
  const escaped = value.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\t', '\\t');
  return /^ |[;#\r]| $/.test(value) ? `"${escaped}"` : escaped;
};

/** What may stay of a configuration. */
export type CleanedConfig = {
  readonly text: Buffer;
  /** The text is what the file holds: so git reads the same entries in it as we do. */
  readonly isSame: boolean;
  /** The keys of the other entries. */
  readonly removed: readonly string[];
};

/** What may stay of a configuration that a command made; null if it can't be read. */
export const cleanConfig = (file: string, workspace: string): CleanedConfig | null => {
  const loaded = readRegularSync(file, CONFIG_MAX, { follow: 'none' });
  if (loaded.kind !== 'file') return null;
  const before = loaded.bytes.toString('utf8');
  const removed: string[] = [];
  let text = '';
  let section = '';
  for (const entry of configEntries(before)) {
    const { key, value, head, name } = entry;
    if (isHarmlessEntry(entry, path.dirname(file), workspace)) {
      text += `${head === section ? '' : `${head}\n`}\t${name} = ${written(value)}\n`;
      section = head;
    } else removed.push(key);
  }
  return { text: Buffer.from(text), isSame: text === before, removed };
};

/** Whether a worktree outside the workspace, where no command can write, names this folder. */
const isNamedOutside = (folder: string, file: string): boolean =>
  entryStatus(file)?.isFile() === true &&
  path.resolve(path.dirname(file), pathIn(file).replace(/^gitdir: /, '')) === folder;

/**
 * Whether a file in the folder of a linked worktree is as git creates it: it names its repository,
 * or a worktree that is inside the workspace or names the folder in turn. An empty one is just
 * being written.
 */
export const isHarmlessInWorktree = (place: string, workspace: string): boolean => {
  const folder = findGitFolder(place);
  const back = pathIn(path.join(folder, 'gitdir'));
  const worktree = path.resolve(folder, back);
  const isBack =
    back === '' ||
    (path.basename(back) === '.git' &&
      (isWithin(worktree, workspace) || isNamedOutside(folder, worktree)));
  if (path.basename(place) === 'gitdir') return isBack;
  return path.basename(place) === 'commondir' && isBack && /^(?:\.\.\/\.\.)?$/.test(pathIn(place));
};

/**
 * Whether a new `.git` is a folder, or a file that names one inside the workspace. What git obeys
 * there is judged by itself. An empty file is just being written.
 */
export const leadsInside = (place: string, workspace: string): boolean => {
  if (isFolder(place) || pathIn(place) === '') return true;
  const folder = folderNamedIn(place, path.dirname(place));
  return folder !== null && isWithin(folder, workspace);
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

/** In bytes. The walk through all folders finds the gitlinks of a larger index. */
const INDEX_MAX = 64 * 1024 * 1024;
const GITLINKS_MAX = 10_000;
/** How an index holds the mode of a gitlink. Without these bytes git need not be asked. */
const GITLINK_MODE = Buffer.from([0, 0, 0xe0, 0]);
const LIST_TIMEOUT_MS = 10_000;
const EMPTY: IndexContents = { gitlinks: [], isTracked: () => false };

/** Runs git on a git folder so that it starts no program that the repository names. */
export const askGit = (
  findGit: () => ProgramPath | null,
  gitFolder: string,
  words: readonly string[],
  more: { readonly input?: string; readonly timeoutMs?: number; readonly bytesMax?: number },
): ReturnType<typeof askProgramSync> => {
  const git = findGit();
  if (git === null) return null;
  const settings = [
    ...['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'core.splitIndex=false'],
    ...['core.commitGraph=false', 'protocol.allow=never', 'safe.directory=*'],
  ].flatMap((setting) => ['-c', setting]);
  const options = [`--git-dir=${gitFolder}`, `--work-tree=${gitFolder}`, '--no-replace-objects'];
  return askProgramSync(git, [...options, ...settings, ...words], {
    environment: {
      ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', LC_ALL: 'C' },
      ...{ GIT_OPTIONAL_LOCKS: '0', GIT_NO_LAZY_FETCH: '1', GIT_TERMINAL_PROMPT: '0' },
    },
    searchPath: ['/usr/bin', '/bin'],
    folder: gitFolder,
    ...more,
  });
};

/** Lists an index again after it has changed, or a failure. `findGit`: null where there is no git. */
export const createIndexReader = (findGit: () => ProgramPath | null) => {
  const cache = new Map<string, { readonly key: string; readonly contents: IndexContents }>();
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
    const key = keyOfStatus(file);
    const cached = cache.get(file);
    if (cached?.key === key) return cached.contents;
    const mayHoldLinks = readBytes(file, INDEX_MAX)?.includes(GITLINK_MODE) ?? false;
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
    if (listed !== null) cache.set(file, { key, contents });
    return contents;
  };
};
