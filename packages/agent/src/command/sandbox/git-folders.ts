/**
 * Where git keeps a repository, and which of its files git obeys or runs. All of it reads files and
 * never runs git, since git itself would obey what is in doubt here.
 *
 * A git folder holds configuration, hooks and objects: `.git`, a bare repository, or the folder
 * that a `.git` file names. Such a file can name any folder of the machine. It counts only if that
 * folder names the workspace in return, which only git itself could have written there.
 *
 * From top to bottom: the git folders of a workspace (`codePlaces`, `findRepository`); the files
 * that git's configuration names (`createNamedPlaces`); whether a new repository of a command may
 * stay (`isHarmlessRepository`); and git's index (`createIndexReader`).
 */

import { readFileSync, type Stats } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import type { ProcessEnvironment } from '../../platform/environment.js';
import {
  entriesIn,
  entryStatus,
  isOwnOrSystem,
  isWithin,
  namesIn,
  readNames,
  readSmall,
  realPath,
} from '../../platform/files.js';
import { folderAbove } from '../../platform/repository-folders.js';
import { listWords } from '../../policy/paths.js';

/**
 * Files of a git folder that git obeys or runs. `commondir` names another folder whose
 * configuration counts.
 */
const CODE = ['config', 'config.worktree', 'hooks', 'info/attributes', 'commondir'];
/** The same for the folder of a linked worktree, below `worktrees`. */
const WORKTREE_CODE = [
  'commondir',
  'gitdir',
  'config.worktree',
  'info/attributes',
  'hooks',
  'config',
];
/** Bounds, in case a repository is meant to cost us time. */
const MODULES_DEPTH_MAX = 4;
const FOLDERS_MAX = 200;

const foldersIn = (folder: string): readonly string[] =>
  entriesIn(folder)
    .filter((entry) => entry.isDirectory())
    .map((entry) => path.join(folder, entry.name))
    .slice(0, FOLDERS_MAX);

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

/** Git folders of submodules, at any depth because their names may contain slashes. */
const moduleFolders = (folder: string, depth = 1): readonly string[] =>
  foldersIn(folder).flatMap((inner) => {
    if (isGitFolder(inner))
      return [inner, ...moduleFolders(path.join(inner, 'modules'), depth + 1)];
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
  if (status === null) return null;
  const behind = (): string | null =>
    status.isFile() ? folderNamedIn(place, path.dirname(place)) : realPath(place);
  const folder = status.isDirectory() ? place : behind();
  if (folder === null) return null;
  const shared = readSmall(path.join(folder, 'commondir')).trim();
  const common = shared === '' ? folder : realPath(path.resolve(folder, shared));
  return { folder, common: common ?? folder };
};

/**
 * The folder that a linked worktree shares with its repository; null if it does not name this
 * worktree in return.
 */
const commonFolder = (gitFolder: string, top: string): string | null => {
  const back = readSmall(path.join(gitFolder, 'gitdir')).trim();
  const common = realPath(
    path.resolve(gitFolder, readSmall(path.join(gitFolder, 'commondir')).trim()),
  );
  if (back === '' || common === null || path.dirname(gitFolder) !== path.join(common, 'worktrees'))
    return null;
  return realPath(path.resolve(gitFolder, back)) === path.join(top, '.git') ? common : null;
};

/** Whether the configuration of a submodule's git folder names this folder as its worktree. */
const isModule = (gitFolder: string, top: string): boolean => {
  const named = /^\s*worktree\s*=\s*(.+?)\s*$/m.exec(
    readSmall(path.join(gitFolder, 'config')),
  )?.[1];
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
  const owned = (real: string): FoundRepository => ({
    kind: 'found',
    repository: { top, folder: real },
  });
  const common = commonFolder(folder, top);
  const owner = common ?? folder;
  const status = entryStatus(owner);
  if (status === null || !isOwnOrSystem(status))
    return refused(`${owner} belongs to somebody else`);
  if (!isGitFolder(owner)) return refused(`${owner} is no repository`);
  // A folder below `top` shows nothing more of the machine, so it need not name `top`.
  if (common !== null || isModule(folder, top) || isWithin(folder, top)) return owned(owner);
  return refused(`${file} names ${folder}, which does not name this folder in turn`);
};

/** The repository of a folder with a `.git`. `status`: that of `.git`. */
const repositoryAt = (top: string, status: Stats): FoundRepository => {
  const place = path.join(top, '.git');
  const owner = entryStatus(top);
  if (!isOwnOrSystem(status) || owner === null || !isOwnOrSystem(owner)) {
    return refused(`${top} belongs to somebody else`);
  }
  if (status.isFile()) return behindFile(top, place);
  if (status.isDirectory()) return { kind: 'found', repository: { top, folder: place } };
  const folder = realPath(place);
  if (folder === null || !isWithin(folder, top))
    return refused(`${place} is a symlink that leads out of it`);
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
/** Keys whose value is a command line. */
const NAMES_COMMAND: readonly RegExp[] = [
  /^core\.(?:fsmonitor|askpass|sshcommand|gitproxy|editor|pager)$/,
  /^(?:sequence\.editor|diff\.external|interactive\.difffilter|uploadpack\.packobjectshook)$/,
  /^filter\.\*\.(?:clean|smudge|process)$/,
  /^diff\.\*\.(?:command|textconv)$/,
  /^merge\.\*\.driver$/,
  /^(?:mergetool|difftool|browser|man)\.\*\.(?:cmd|path)$/,
  /^gpg(?:\.\*)?\.(?:program|defaultkeycommand)$/,
  /^(?:credential|credential\.\*)\.helper$/,
  /^(?:alias|pager)\.[a-z0-9-]+$/,
  /^alias\.\*\.command$/,
  /^remote\.\*\.(?:uploadpack|receivepack|url|pushurl)$/,
  /^submodule\.\*\.update$/,
  /^(?:trailer\.\*\.(?:command|cmd)|tar\.\*\.command|gc\.recentobjectshook|web\.browser|core\.alternaterefscommand)$/,
  /^(?:hook|hook\.\*)\.command$/,
  /^sendemail(?:\.\*)?\.\w+$/,
];

const FILES_MAX = 1_000;
const PLACES_MAX = 200;

/** `key`: `section.key`, or `section.*.key` for a section with a quoted name. In lower case. */
type Entry = { readonly key: string; readonly value: string };

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', b: '\b' };

/** A value without quotes, comments and continuations. */
const plainValue = (text: string): string => {
  let value = '';
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? '';
    if (character === '\\') {
      at += 1;
      value += ESCAPES[text[at] ?? ''] ?? text[at] ?? '';
    } else if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (character === '#' || character === ';')) break;
    else value += character;
  }
  return value.trim();
};

/**
 * All entries of a configuration. Lines that git would refuse are skipped: then it obeys nothing of
 * the file.
 */
export const configEntries = (text: string): readonly Entry[] => {
  const entries: Entry[] = [];
  let section = '';
  for (const line of text
    .replace(/^\ufeff/, '')
    .replace(/\\\r?\n/g, '')
    .split(/\r?\n/)) {
    let rest = line.trim();
    const head = /^\[\s*([A-Za-z0-9.-]+)\s*("(?:[^"\\]|\\.)*")?\s*\]\s*/.exec(rest);
    if (head !== null) {
      const [name = '', ...dotted] = (head[1] ?? '').toLowerCase().split('.');
      section = head[2] === undefined && dotted.length === 0 ? name : `${name}.*`;
      rest = rest.slice(head[0].length);
    }
    const entry = /^([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$/.exec(rest);
    if (entry === null || section === '') continue;
    entries.push({
      key: `${section}.${(entry[1] ?? '').toLowerCase()}`,
      value: plainValue(entry[2] ?? ''),
    });
  }
  return entries;
};

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

/** Differs when the file was changed. */
const keyOfStatus = (file: string): string => {
  const status = entryStatus(file);
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

/**
 * Whether git runs this value as a command line. Of aliases only those with a `!`, of addresses
 * only those with a helper (`ext::…`), and no switch like `core.fsmonitor = true`.
 */
const isCommand = ({ key, value }: Entry): boolean => {
  if (!NAMES_COMMAND.some((pattern) => pattern.test(key))) return false;
  if (key.startsWith('alias.')) return value.startsWith('!');
  return /url$/.test(key)
    ? value.includes('::')
    : !/^(?:true|false|yes|no|on|off|\d+)$/i.test(value);
};

/** Adds what one configuration names, and what those name that it includes. */
const readConfig = (reading: Reading, { file, top }: ConfigPlace): void => {
  const visit = `${top}\0${file}`;
  if (reading.visited.has(visit) || reading.visited.size >= FILES_MAX) return;
  reading.visited.add(visit);
  reading.statuses.set(file, keyOfStatus(file));
  const real = realPath(file);
  for (const entry of configEntries(real === null ? '' : readSmall(real))) {
    const { key, value } = entry;
    if (value === '') continue;
    if (isCommand(entry)) addCommandWords(reading, value.replace(/^(?:!|\w+::)/, ''), top, key);
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

export type ConfiguredPlaces = {
  /**
   * `configs`: those of the repositories; `tops`: folders in which the user's configuration counts.
   */
  read(configs: readonly ConfigPlace[], tops: readonly string[]): readonly NamedPlace[];
};

/** Reads configurations again only after one of them has changed. */
export const createConfiguredPlaces = (
  workspace: string,
  environment: ProcessEnvironment,
): ConfiguredPlaces => {
  let [cachedKey, statuses] = ['', new Map<string, string>()];
  let places: readonly NamedPlace[] = [];
  return {
    read(configs, tops) {
      const key = JSON.stringify([configs, tops]);
      const isSame =
        key === cachedKey && [...statuses].every(([file, status]) => keyOfStatus(file) === status);
      if (isSame) return places;
      const home = environment.HOME ?? homedir();
      const reading: Reading = {
        workspace,
        home,
        named: new Map(),
        statuses: new Map(),
        visited: new Set<string>(),
      };
      const user = userConfigs(environment).filter(path.isAbsolute);
      const all = [...configs, ...tops.flatMap((top) => user.map((file) => ({ file, top })))];
      for (const config of all) readConfig(reading, config);
      [cachedKey, statuses, places] = [key, reading.statuses, [...reading.named.values()]];
      return places;
    },
  };
};

/** What git's configuration names in the workspace, for tools that write files themselves. */
export const createNamedPlaces = (
  workspace: string,
  environment: ProcessEnvironment,
): (() => readonly NamedPlace[]) => {
  const places = createConfiguredPlaces(workspace, environment);
  return () => {
    const located = findRepository(workspace);
    if (located.kind !== 'found') return places.read([], [workspace]);
    const { top, folder } = located.repository;
    const configs = ['config', 'config.worktree'].map((name) => ({
      file: path.join(folder, name),
      top,
    }));
    return places.read(configs, [top]);
  };
};

// ---- Whether a new repository of a command may stay: git must run no program in it ----
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

/** Whether an address runs no program: no `ext::sh -c …`, no option in place of a host. */
const isHarmlessAddress = (value: string): boolean =>
  !value.includes('::') && !/(?:^|\/\/|@)-/.test(value);

/** In bytes. A longer file would be read only in part. */
const CONFIG_MAX = 32 * 1024;

/**
 * The same as `configEntries`, but null for all that it would guess: if a line is not a plain
 * section, entry or comment, or continues on the next one.
 */
const strictEntries = (config: string): readonly Entry[] | null => {
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
  const status = entryStatus(file);
  if (status === null) return true;
  if (!status.isFile() || status.size > CONFIG_MAX) return false;
  const entries = strictEntries(readSmall(file));
  const folder = path.dirname(file);
  return entries?.every((entry) => isHarmlessEntry(entry, folder, workspace)) ?? false;
};

/**
 * Whether a hooks folder holds only git's samples. Git runs no hook whose name has an extension.
 */
export const areHarmlessHooks = (folder: string): boolean => {
  const status = entryStatus(folder);
  if (status === null) return true;
  return (
    status.isDirectory() && (readNames(folder)?.every((name) => name.endsWith('.sample')) ?? false)
  );
};

const isAbsent = (place: string): boolean => entryStatus(place) === null;

/** Whether a worktree outside the workspace, where no command can write, names this folder. */
const isNamedOutside = (folder: string, file: string): boolean =>
  entryStatus(file)?.isFile() === true &&
  path.resolve(
    path.dirname(file),
    readSmall(file)
      .trim()
      .replace(/^gitdir: /, ''),
  ) === folder;

/**
 * Whether a worktree folder looks as git creates it: it names its repository and a worktree, which
 * is inside the workspace or names the folder in turn.
 */
export const isHarmlessWorktree = (folder: string, workspace: string): boolean => {
  const back = readSmall(path.join(folder, 'gitdir')).trim();
  return (
    readSmall(path.join(folder, 'commondir')).trim() === '../..' &&
    path.basename(back) === '.git' &&
    (isWithin(path.resolve(folder, back), workspace) ||
      isNamedOutside(folder, path.resolve(folder, back))) &&
    ['config.worktree', 'config', 'hooks', 'info'].every((name) =>
      isAbsent(path.join(folder, name)),
    )
  );
};

/** Checks a git folder and those of its submodules and worktrees. */
const isHarmlessFolder = (folder: string, workspace: string, depth = 1): boolean => {
  const at = (name: string): string => path.join(folder, name);
  const inner = namesIn(at('modules'));
  return (
    entryStatus(folder)?.isDirectory() === true &&
    isHarmlessConfig(at('config'), workspace) &&
    areHarmlessHooks(at('hooks')) &&
    ['config.worktree', 'commondir', 'info/attributes'].every((name) => isAbsent(at(name))) &&
    namesIn(at('worktrees')).every((name) =>
      isHarmlessWorktree(at(`worktrees/${name}`), workspace),
    ) &&
    depth < 4 &&
    inner.every((name) => isHarmlessFolder(at(`modules/${name}`), workspace, depth + 1))
  );
};

/**
 * Checks a new `.git`: a folder, or a file that names a folder inside the workspace or in a known
 * repository.
 */
export const isHarmlessRepository = (
  place: string,
  workspace: string,
  known: readonly string[],
): boolean => {
  const status = entryStatus(place);
  if (status === null) return true;
  if (status.isDirectory()) return isHarmlessFolder(place, workspace);
  if (!status.isFile()) return false;
  const named = /^gitdir:\s*(.+?)\s*$/.exec(readSmall(place))?.[1];
  const folder = named === undefined ? null : realPath(path.resolve(path.dirname(place), named));
  if (folder === null) return false;
  const owner = known.find((one) => isWithin(folder, one));
  if (owner === undefined && !isWithin(folder, workspace)) return false;
  return path.basename(path.dirname(folder)) === 'worktrees'
    ? isHarmlessWorktree(folder, workspace)
    : isHarmlessFolder(folder, workspace);
};

// ---- Git's index: the nested repositories (gitlinks) and the tracked files ----
// Git starts itself in each gitlink's folder at `status`, `diff`, `add` and `commit`, and obeys the
// configuration there.

export type IndexContents = {
  /** Paths of gitlinks, relative to the top of the worktree. */
  readonly gitlinks: readonly string[];
  /** Whether a path, relative to the top of the worktree, is tracked. */
  isTracked(place: string): boolean;
};

/** In bytes. The walk through all folders finds the gitlinks of a larger index. */
const INDEX_MAX = 64 * 1024 * 1024;
const GITLINKS_MAX = 10_000;
const GITLINK_TYPE = 0xe;
const EMPTY: IndexContents = { gitlinks: [], isTracked: () => false };
/** Bytes of an entry before its object name. */
const STATUS_BYTES = 40;
/** Bits of the flags after the object name. */
const FLAG_EXTENDED = 0x4000;
const FLAG_LENGTH = 0x0fff;

/** `hashBytes`: length of an object name. */
type IndexForm = { readonly version: number; readonly hashBytes: number };

/** `prefix`: bytes of the name before, which version 4 repeats. `nameAt` to `end`: the rest. */
type IndexEntry = {
  readonly isGitlink: boolean;
  readonly prefix: number;
  readonly nameAt: number;
  readonly end: number;
  readonly next: number;
};

/** A number of one to several bytes, as version 4 writes it. */
const readOffset = (
  bytes: Buffer,
  start: number,
): { readonly value: number; readonly next: number } => {
  let at = start;
  let byte = bytes.readUInt8(at++);
  let value = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    byte = bytes.readUInt8(at++);
    value = (value + 1) * 128 + (byte & 0x7f);
  }
  return { value, next: at };
};

/** `before`: length of the name of the previous entry. */
const readEntry = (bytes: Buffer, start: number, form: IndexForm, before: number): IndexEntry => {
  const isGitlink = bytes.readUInt32BE(start + 24) >>> 12 === GITLINK_TYPE;
  const flagsAt = start + STATUS_BYTES + form.hashBytes;
  const flags = bytes.readUInt16BE(flagsAt);
  let nameAt = flagsAt + ((flags & FLAG_EXTENDED) === 0 ? 2 : 4);
  let prefix = 0;
  if (form.version === 4) {
    const { value, next } = readOffset(bytes, nameAt);
    prefix = before - value;
    nameAt = next;
  }
  const length = flags & FLAG_LENGTH;
  const end =
    form.version < 4 && length < FLAG_LENGTH ? nameAt + length : bytes.indexOf(0, nameAt, 'latin1');
  if (end < nameAt || end > bytes.length || prefix < 0)
    throw new RangeError('an entry without an end');
  const next = form.version === 4 ? end + 1 : start + Math.ceil((end - start + 1) / 8) * 8;
  return { isGitlink, prefix, nameAt, end, next };
};

/** The names of an index: of gitlinks, or of all. */
const parseIndex = (bytes: Buffer, hashBytes: number, which: 'gitlinks' | 'all'): string[] => {
  const names: string[] = [];
  if (bytes.length < 12 || bytes.toString('latin1', 0, 4) !== 'DIRC') return names;
  const form = { version: bytes.readUInt32BE(4), hashBytes };
  if (form.version < 2 || form.version > 4) return names;
  const isPrefixed = form.version === 4;
  let at = 12;
  let length = 0;
  let name = '';
  try {
    for (let count = bytes.readUInt32BE(8); count > 0; count--) {
      const { isGitlink, prefix, nameAt, end, next } = readEntry(bytes, at, form, length);
      const isWanted = which === 'all' || (isGitlink && names.length < GITLINKS_MAX);
      // making the texts is what takes long, so only those are made that are needed
      if (isPrefixed || isWanted)
        name = name.slice(0, prefix) + bytes.toString('latin1', nameAt, end);
      if (isWanted) names.push(Buffer.from(name, 'latin1').toString('utf8'));
      length = prefix + end - nameAt;
      at = next;
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // A cut index: git does not read it either.
  }
  return names;
};

const usesSha256 = (gitFolder: string): boolean =>
  /^\s*objectformat\s*=\s*sha256\s*$/im.test(readSmall(path.join(gitFolder, 'config')));

const readIndex = (file: string, gitFolder: string): IndexContents => {
  try {
    const bytes = readFileSync(file);
    const hashBytes = usesSha256(gitFolder) ? 32 : 20;
    let tracked: ReadonlySet<string> | null = null;
    return {
      gitlinks: parseIndex(bytes, hashBytes, 'gitlinks'),
      isTracked(place) {
        tracked ??= new Set(parseIndex(bytes, hashBytes, 'all'));
        return tracked.has(place);
      },
    };
  } catch {
    return EMPTY; // it is gone, or closed to us
  }
};

export type IndexReader = { read(gitFolder: string): IndexContents };

/** Parses an index only again after it has changed. */
export const createIndexReader = (): IndexReader => {
  const cache = new Map<string, { readonly key: string; readonly contents: IndexContents }>();
  return {
    read(gitFolder) {
      const file = path.join(gitFolder, 'index');
      const status = entryStatus(file);
      if (status === null || !status.isFile() || status.size > INDEX_MAX) return EMPTY;
      const key = `${status.ino}:${status.ctimeMs}:${status.size}`;
      const cached = cache.get(file);
      if (cached?.key === key) return cached.contents;
      const contents = readIndex(file, gitFolder);
      cache.set(file, { key, contents });
      return contents;
    },
  };
};
