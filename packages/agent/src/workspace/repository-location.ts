import { type BigIntStats, type Stats, statSync } from 'node:fs';
import path from 'node:path';
import {
  AUTHOR_PARTS,
  AUTHOR_VARIABLES,
  fallbackAuthor,
  type ProcessEnvironment,
} from '../platform/environment.js';
import { readTextOrEmptySync } from '../platform/files.js';

/**
 * Location and configuration of a repository: which settings Pawl adopts, which files git would
 * read, and how long an answer of git holds.
 */

/** The folders of a repository, as absolute paths. */
export type RepositoryLocation = {
  readonly top: string;
  readonly gitFolder: string;
  /** The folder that several working trees share; often the same as `gitFolder`. */
  readonly shared: string;
  readonly indexFile: string;
};

export type LocatedRepository = {
  readonly location: RepositoryLocation;
  readonly config: GitConfig;
};

/**
 * Caches the location and configuration of a repository until a relevant file changes. Asking git
 * would take two processes before and after every call.
 */
export class KnownRepository {
  readonly #environment: ProcessEnvironment;
  readonly #cache: FileCache<LocatedRepository>;
  readonly #now: () => number;

  /** `now`: the file system's time, in ms since 1970. */
  constructor(environment: ProcessEnvironment, now: () => number = Date.now) {
    this.#environment = environment;
    this.#now = now;
    this.#cache = new FileCache(now);
  }

  /**
   * The cached or new answer of `ask`. `marked`: the folder around the workspace that contains
   * `.git`.
   */
  async locate(
    marked: string,
    ask: () => Promise<LocatedRepository | null>,
  ): Promise<LocatedRepository | null> {
    const cached = this.cached(marked);
    if (cached !== null) return cached;
    const askedAt = this.#now();
    const located = await ask();
    const places = located === null ? null : this.#listPlaces(marked, located);
    if (located !== null && places !== null) this.#cache.set(marked, located, places, askedAt);
    return located;
  }

  /** The cached answer if it is still valid; otherwise null. */
  cached(marked: string): LocatedRepository | null {
    return this.#cache.get(marked) ?? null;
  }

  /**
   * All paths on which the answer depends; null if they can't be determined. Included files count
   * whether or not their condition holds, and so does HEAD, on which conditions may depend.
   */
  #listPlaces(marked: string, { location, config }: LocatedRepository): readonly string[] | null {
    const { top, gitFolder, shared } = location;
    const configs = [
      ...[path.join(shared, 'config'), path.join(gitFolder, 'config.worktree')],
      ...configFiles(this.#environment),
    ];
    const included = includedFiles(configs, this.#environment.HOME ?? '');
    const includes = [...config.keys()].some((name) => name.startsWith('include'));
    if (included === null || (includes && included.length === 0)) return null;
    return [
      ...[path.join(marked, '.git'), top, gitFolder, shared],
      ...['commondir', 'gitdir'].map((name) => path.join(gitFolder, name)),
      ...configs,
      ...included,
      ...(included.length === 0 ? [] : [path.join(gitFolder, 'HEAD')]),
    ];
  }
}

// ---- Values cached until a file changes ----

/** The status of a path; equal texts mean no change. `changedAt`: in ms since 1970. */
type Fingerprint = { readonly text: string; readonly changedAt: number };

/** Longer than the time resolution of any file system. */
const STILL_MS = 2_000;

/**
 * Values read from files, each cached until one of its files changes. A value is cached only if its
 * files had been unchanged for a while when it was read, so that no change meanwhile is missed.
 */
export class FileCache<T> {
  readonly #now: () => number;
  readonly #take: (place: string) => Fingerprint;
  readonly #known = new Map<string, { places: readonly string[]; fingerprint: string; value: T }>();

  /**
   * `now`: the file system's time, in ms since 1970. `listings`: the entries of a folder count too.
   */
  constructor(now: () => number = Date.now, listings?: 'listings') {
    this.#now = now;
    this.#take = listings === undefined ? takeFingerprint : takeListingFingerprint;
  }

  /** The value, if none of its files has changed. */
  get(key: string): T | undefined {
    const known = this.#known.get(key);
    if (known === undefined) return undefined;
    if (this.#fingerprint(known.places).text === known.fingerprint) return known.value;
    this.#known.delete(key);
    return undefined;
  }

  /** `readAt`: the time before the value was read. */
  set(key: string, value: T, places: readonly string[], readAt: number): void {
    const { text, changedAt } = this.#fingerprint(places);
    if (changedAt < readAt - STILL_MS) this.#known.set(key, { places, fingerprint: text, value });
  }

  /** The value of one file, read again if it has changed. */
  read(file: string, load: (file: string) => T): T {
    const known = this.get(file);
    if (known !== undefined) return known;
    const readAt = this.#now();
    const value = load(file);
    this.set(file, value, [file], readAt);
    return value;
  }

  #fingerprint(places: readonly string[]): Fingerprint {
    const all = places.map(this.#take);
    return {
      text: all.map(({ text }) => text).join('\n'),
      changedAt: Math.max(0, ...all.map(({ changedAt }) => changedAt)),
    };
  }
}

/** Fingerprint of a file. For a folder only identity and owner count, not its entries. */
export const takeFingerprint = (place: string): Fingerprint =>
  fingerprint(place, (entry) => {
    const { dev, ino, mode, uid } = entry;
    return entry.isDirectory()
      ? { text: [dev, ino, mode, uid].join(' '), changedAt: 0 }
      : whole(entry);
  });

/** Like `takeFingerprint`, but for a folder its list of entries counts too. */
const takeListingFingerprint = (place: string): Fingerprint => fingerprint(place, whole);

const ABSENT: Fingerprint = { text: 'absent', changedAt: 0 }; // its creation is a change

const fingerprint = (place: string, judge: (entry: BigIntStats) => Fingerprint): Fingerprint => {
  try {
    const entry = statSync(place, { bigint: true, throwIfNoEntry: false });
    return entry === undefined ? ABSENT : judge(entry);
  } catch (error) {
    // Its folder is a file. Node 24 says so without an error.
    if (error instanceof Error && 'code' in error && error.code === 'ENOTDIR') return ABSENT;
    return { text: 'unknown', changedAt: Number.POSITIVE_INFINITY }; // so it is never cached
  }
};

const whole = ({ dev, ino, mode, uid, size, mtimeNs, ctimeNs }: BigIntStats): Fingerprint => ({
  text: [dev, ino, mode, uid, size, mtimeNs, ctimeNs].join(' '),
  changedAt: Number(ctimeNs / 1_000_000n),
});

// ---- Files that git would read ----

const TEXT_BYTES_MAX = 1024 * 1024;
const CONFIGS_MAX = 50;
const OF_WORKTREE = [
  'HEAD',
  'index',
  'commondir',
  'gitdir',
  'config.worktree',
  'info/sparse-checkout',
];
const SHARED = [
  ...['config', 'packed-refs', 'shallow', 'info/exclude', 'info/attributes', 'info/grafts'],
  ...['objects/info/alternates', 'objects/info/commit-graph'],
];
const OF_TOP = ['.gitignore', '.gitattributes', '.gitmodules', '.mailmap'];

const followStatus = (place: string): Stats | null => {
  try {
    return statSync(place);
  } catch {
    return null; // absent, or git can't read it either
  }
};

const readText = (file: string): string => readTextOrEmptySync(file, TEXT_BYTES_MAX);

/** Whether git can read it without waiting. */
const isHarmless = (place: string): boolean => {
  const status = followStatus(place);
  return status === null || status.isFile() || status.isDirectory();
};

/** The files that a configuration includes, whether or not their condition holds. */
const includedBy = (file: string, home: string): readonly string[] => {
  let inInclude = false;
  return readText(file)
    .split('\n')
    .flatMap((line) => {
      if (/^\s*\[/.test(line)) inInclude = /^\s*\[\s*include(if\b|\s|\]|\.)/i.test(line);
      const written = inInclude
        ? /(?:^|\])\s*path\s*=\s*(.*)$/i.exec(line)?.[1]?.trim()
        : undefined;
      if (written === undefined || written === '') return [];
      const place = written.replace(/^"(.*)"$/, '$1').replace(/^~(?=\/)/, () => home);
      return [path.resolve(path.dirname(file), place)];
    });
};

/** A path without quotes, `%(prefix)` or other users' homes. */
const PLAIN_PATH = /^(~\/)?[^"'\\#;%~\s]+$/;
const ANY_INCLUDE = /\binclude(if)?\b/i;

/**
 * All files that these configurations include, directly or indirectly, whether or not conditions
 * hold. Null if an include is not understood, or there are too many.
 */
const includedFiles = (configs: readonly string[], home: string): readonly string[] | null => {
  const included = new Set<string>();
  const waiting = [...configs];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const text = readText(file);
    if (!ANY_INCLUDE.test(text)) continue;
    if (text.split('\n').some((line) => isOddPath(line)) || included.size > CONFIGS_MAX)
      return null;
    for (const place of includedBy(file, home)) {
      if (included.has(place)) continue;
      included.add(place);
      waiting.push(place);
    }
  }
  return [...included];
};

/** Whether a line of a file with includes names a path in a form that is not understood. */
const isOddPath = (line: string): boolean => {
  if (/^\s*\[\s*include/i.test(line))
    return !/^\s*\[\s*include(if\s+"[^"\\]*")?\s*\]\s*$/i.test(line);
  const named = /^\s*path\s*=\s*(.*?)\s*$/i.exec(line)?.[1];
  if (named === undefined) return /(^|\])\s*path\b/i.test(line) || line.trimEnd().endsWith('\\');
  return !PLAIN_PATH.test(named);
};

const badConfig = (first: readonly string[], home: string): string | null => {
  const waiting = [...first];
  const seen = new Set<string>();
  for (
    let file = waiting.pop();
    file !== undefined && seen.size < CONFIGS_MAX;
    file = waiting.pop()
  ) {
    if (seen.has(file)) continue;
    seen.add(file);
    if (!isHarmless(file)) return file;
    waiting.push(...includedBy(file, home));
  }
  return null;
};

/** The git folder of this working tree, and the one that it shares with others. */
const findGitFolders = (top: string): readonly [gitFolder: string, shared: string] => {
  const mark = path.join(top, '.git');
  if (followStatus(mark)?.isDirectory()) return [mark, mark];
  const gitFolder = path.resolve(
    top,
    readText(mark)
      .replace(/^gitdir:\s*/, '')
      .trim(),
  );
  const common = readText(path.join(gitFolder, 'commondir')).trim();
  return [gitFolder, common === '' ? gitFolder : path.resolve(gitFolder, common)];
};

/**
 * The first pipe, device or socket where git expects a file of the repository; null if there is
 * none.
 */
export const findWaitingFile = (top: string, home: string): string | null => {
  if (!isHarmless(path.join(top, '.git'))) return path.join(top, '.git');
  const [gitFolder, shared] = findGitFolders(top);
  const files = [
    ...OF_WORKTREE.map((name) => path.join(gitFolder, name)),
    ...SHARED.map((name) => path.join(shared, name)),
    ...OF_TOP.map((name) => path.join(top, name)),
  ];
  const bad = files.find((file) => !isHarmless(file));
  return (
    bad ?? badConfig([path.join(shared, 'config'), path.join(gitFolder, 'config.worktree')], home)
  );
};

// ---- Settings that Pawl adopts ----

/** Settings by name as git prints it. If there are several values, the last one counts. */
export type GitConfig = ReadonlyMap<string, string>;

const STORAGE = [
  'core.repositoryformatversion',
  'core.filemode',
  'core.symlinks',
  'core.ignorecase',
  'core.precomposeunicode',
  'core.protecthfs',
  'core.protectntfs',
  'core.trustctime',
  'core.checkstat',
  'core.autocrlf',
  'core.eol',
  'core.safecrlf',
  'core.checkroundtripencoding',
  'core.bigfilethreshold',
  'core.compression',
  'core.loosecompression',
  'core.sharedrepository',
  'core.sparsecheckout',
  'core.sparsecheckoutcone',
  'extensions.objectformat',
  'extensions.refstorage',
] as const;

/** The user's pattern files outside the repository, with their default names. */
const PATTERN_FILES = [
  { name: 'core.excludesfile', usual: 'ignore' },
  { name: 'core.attributesfile', usual: 'attributes' },
] as const;

/** Parses `git config --list -z`: name, line feed, value, NUL. A name alone means true. */
export const parseConfig = (output: string): GitConfig => {
  const config = new Map<string, string>();
  for (const entry of output.split('\0')) {
    if (entry === '') continue;
    const end = entry.indexOf('\n');
    if (end < 0) config.set(entry, 'true');
    else config.set(entry.slice(0, end), entry.slice(end + 1));
  }
  return config;
};

const quoted = (value: string): string =>
  `"${value.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`;

const userFolder = (environment: ProcessEnvironment): string => {
  const home = environment.HOME ?? '';
  const base = environment.XDG_CONFIG_HOME || (home === '' ? '' : path.join(home, '.config'));
  return base === '' ? '' : path.join(base, 'git');
};

/** The configuration files of the user and the machine. */
const configFiles = (environment: ProcessEnvironment): readonly string[] => {
  const { HOME: home = '', GIT_CONFIG_GLOBAL: global, GIT_CONFIG_SYSTEM: system } = environment;
  const usual = [path.join(home, '.gitconfig'), path.join(userFolder(environment), 'config')];
  return [...(global ? [global] : usual), system || '/etc/gitconfig'].filter(path.isAbsolute);
};

/**
 * The absolute path of a pattern file. Null for a relative one, which depends on git's working
 * folder.
 */
const patternFile = (
  config: GitConfig,
  environment: ProcessEnvironment,
  name: string,
  usual: string,
) => {
  const folder = userFolder(environment);
  const set = config.get(name) ?? (folder === '' ? '' : path.join(folder, usual));
  const file = set.startsWith('~/') ? path.join(environment.HOME ?? '', set.slice(2)) : set;
  return path.isAbsolute(file) ? file : null;
};

/** The user's own file of ignored names, as git finds it; null: none that is used. */
export const excludesFile = (config: GitConfig, environment: ProcessEnvironment): string | null =>
  patternFile(config, environment, 'core.excludesfile', 'ignore');

/** The text of a configuration file with the adopted settings of `config`, and nothing else. */
export const frozenConfig = (config: GitConfig, environment: ProcessEnvironment): string => {
  const lines = STORAGE.flatMap((name) => {
    const value = config.get(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  const files = PATTERN_FILES.flatMap(({ name, usual }) => {
    const file = patternFile(config, environment, name, usual);
    return file === null ? [] : [[name, file] as const];
  });
  return [...lines, ...files]
    .map(([name, value]) => {
      const [section, key] = name.split('.');
      return `[${section}]\n\t${key} = ${quoted(value)}\n`;
    })
    .join('');
};

/**
 * Variables for author and committer, determined as git would, with Pawl's name as the default
 * instead of the system's.
 */
export const authorVariables = (
  config: GitConfig,
  environment: ProcessEnvironment,
): Readonly<Record<string, string>> => {
  const variables: Record<string, string> = {};
  for (const part of AUTHOR_PARTS) {
    for (const [role, variable] of AUTHOR_VARIABLES[part].entries()) {
      const ofRole = config.get(`${role === 0 ? 'author' : 'committer'}.${part}`);
      variables[variable] =
        environment[variable] || ofRole || config.get(`user.${part}`) || fallbackAuthor(part);
    }
  }
  return variables;
};

/** Git's variables that are harmless and that no repository can set. */
const KEPT = new Set([
  'GIT_CONFIG_GLOBAL',
  'GIT_CONFIG_SYSTEM',
  'GIT_CONFIG_NOSYSTEM',
  'GIT_CEILING_DIRECTORIES',
  'GIT_DISCOVERY_ACROSS_FILESYSTEM',
  'GIT_AUTHOR_DATE',
  'GIT_COMMITTER_DATE',
]);

const ASKING = new Set(['SSH_ASKPASS', 'PAGER', 'EDITOR', 'VISUAL', 'BROWSER', 'DISPLAY']);

/**
 * Pawl's environment without variables that make git start programs, read other places, or ask
 * questions.
 */
export const cleanEnvironment = (
  environment: ProcessEnvironment,
  searchPath: string,
): Record<string, string> => {
  const clean: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    const foreign = (name.startsWith('GIT_') && !KEPT.has(name)) || ASKING.has(name);
    if (value !== undefined && !foreign) clean[name] = value;
  }
  return {
    ...clean,
    PATH: searchPath,
    LC_ALL: 'C',
    LANGUAGE: '',
    TERM: 'dumb',
    GIT_PAGER: 'cat',
    GIT_EDITOR: 'false',
    GIT_SEQUENCE_EDITOR: 'false',
    GIT_ASKPASS: 'false',
    GIT_SSH_COMMAND: 'false',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_NO_LAZY_FETCH: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_LITERAL_PATHSPECS: '1',
    // forbid all transports
    GIT_ALLOW_PROTOCOL: '',
    GIT_PROTOCOL_FROM_USER: '0',
  };
};

/** Options on every command line. They override all files, even those that change meanwhile. */
export const HARDENING: readonly string[] = [
  '--no-pager',
  ...[
    'core.hooksPath=/dev/null',
    'core.fsmonitor=false',
    'core.untrackedCache=false',
    'core.splitIndex=false',
    'core.pager=cat',
    'core.editor=false',
    'core.askPass=false',
    'core.sshCommand=false',
    'core.gitProxy=',
    'core.quotePath=false',
    'safe.bareRepository=explicit',
    'commit.gpgSign=false',
    'tag.gpgSign=false',
    'log.showSignature=false',
    'gpg.program=false',
    'gc.auto=0',
    'maintenance.auto=false',
    'protocol.allow=never',
    'credential.helper=',
    'submodule.recurse=false',
    'diff.ignoreSubmodules=all',
    'status.submoduleSummary=false',
    'fetch.recurseSubmodules=false',
  ].flatMap((setting) => ['-c', setting]),
];
