import path from 'node:path';
import { AUTHOR_PARTS, AUTHOR_VARIABLES, ownAuthor } from '../../platform/base/fallback-author.js';
import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';

/**
 * Chooses the settings of a repository that Pawl adopts.
 *
 * An allow list of settings that say how files and objects are stored; none of them names a program. A list of
 * dangerous settings could never be complete, since a filter may have any name.
 */

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
export const configFilesOf = (environment: ProcessEnvironment): readonly string[] => {
  const { HOME: home = '', GIT_CONFIG_GLOBAL: global, GIT_CONFIG_SYSTEM: system } = environment;
  const own = [path.join(home, '.gitconfig'), path.join(userFolder(environment), 'config')];
  return [...(global ? [global] : own), system || '/etc/gitconfig'].filter(path.isAbsolute);
};

/** The absolute path of a pattern file. Null for a relative one, which depends on git's working folder. */
const patternFile = (config: GitConfig, environment: ProcessEnvironment, name: string, usual: string) => {
  const folder = userFolder(environment);
  const set = config.get(name) ?? (folder === '' ? '' : path.join(folder, usual));
  const file = set.startsWith('~/') ? path.join(environment.HOME ?? '', set.slice(2)) : set;
  return path.isAbsolute(file) ? file : null;
};

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
 * Variables for author and committer, determined as git would, with Pawl's name as the default instead of the system's.
 */
export const authorVariables = (
  config: GitConfig,
  environment: ProcessEnvironment,
): Readonly<Record<string, string>> => {
  const variables: Record<string, string> = {};
  for (const part of AUTHOR_PARTS) {
    for (const [role, variable] of AUTHOR_VARIABLES[part].entries()) {
      const own = config.get(`${role === 0 ? 'author' : 'committer'}.${part}`);
      variables[variable] = environment[variable] || own || config.get(`user.${part}`) || ownAuthor(part);
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

/** Pawl's environment without variables that make git start programs, read other places, or ask questions. */
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
