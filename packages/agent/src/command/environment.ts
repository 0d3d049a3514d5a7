/**
 * The environment variables of commands.
 *
 * A fenced command (one that runs in the sandbox) gets only the variables on the list below and
 * those that the user passes by name. It never gets a secret that was not passed. An unfenced
 * command gets the user's variables without secrets. All commands run without a terminal,
 * questions, a pager or colours.
 *
 * From top to bottom: the variables that commands share (`fencedEnvironment`, `openEnvironment`);
 * those of one command (`createCommandVariables`); hardened settings of git; and a name for the
 * author of commits where none is configured.
 */

import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import type { ProcessEnvironment } from '../platform/environment.js';
import {
  AUTHOR_PARTS,
  AUTHOR_VARIABLES,
  type AuthorPart,
  fallbackAuthor,
} from '../platform/environment.js';
import { readTextOrEmptySync } from '../platform/files.js';
import { repositoryFolders } from '../platform/trusted-folders.js';
import { listWords } from '../policy/paths.js';
import { passwordsIn, secretVariables } from '../secrets/redactor.js';
import { MARKER } from './end-processes.js';

/**
 * Variables that an unfenced command does not get either: they force colours in spite of NO_COLOR,
 * or make a test runner believe that it is nested.
 */
const UNFIT: ReadonlySet<string> = new Set(['FORCE_COLOR', 'CLICOLOR_FORCE', 'NODE_TEST_CONTEXT']);

/** Variables that make programs quiet and unattended. */
const QUIET = {
  CI: '1',
  TERM: 'dumb',
  NO_COLOR: '1',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  MANPAGER: 'cat',
  SYSTEMD_PAGER: 'cat',
  // `true` leaves the text as it is: a merge keeps its message, a commit without one fails.
  EDITOR: 'true',
  VISUAL: 'true',
  GIT_EDITOR: 'true',
  GIT_SEQUENCE_EDITOR: 'true',
  GIT_TERMINAL_PROMPT: '0',
  SSH_ASKPASS_REQUIRE: 'never',
  DEBIAN_FRONTEND: 'noninteractive',
} as const;

/** Variables that a fenced command gets. */
const FENCED: readonly RegExp[] = [
  // The user, the language, the time.
  /^(?:USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|SOURCE_DATE_EPOCH|EMAIL)$/,
  // Authors and dates of commits, but no programs that git runs.
  /^GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)$/,
  // Compilers and make.
  /^(?:CC|CXX|CPP|AR|AS|LD|NM|RANLIB|STRIP|FC|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|FFLAGS|LDLIBS|MAKEFLAGS|MAKE|ARCH|CROSS_COMPILE)$/,
  /^(?:PKG_CONFIG_\w+|LD_LIBRARY_PATH|LIBRARY_PATH|CPATH|C_INCLUDE_PATH|CPLUS_INCLUDE_PATH|CMAKE_\w+|NINJA_STATUS|CTEST_\w+|CCACHE_DISABLE|CUDA_\w+)$/,
  // Node.
  /^(?:NODE_(?:ENV|OPTIONS|PATH|DEBUG|NO_WARNINGS|EXTRA_CA_CERTS|USE_SYSTEM_CA|TLS_REJECT_UNAUTHORIZED)|NVM_(?:DIR|BIN|INC)|VOLTA_HOME|FNM_\w+|N_PREFIX|COREPACK_\w+|PNPM_HOME|BUN_INSTALL|DENO_INSTALL(?:_ROOT)?|UV_THREADPOOL_SIZE)$/,
  /^npm_config_(?:registry|nodedir|arch|platform|target|disturl|python|legacy_peer_deps|fund|audit|engine_strict|strict_ssl|cafile|maxsockets|fetch_\w+)$/i,
  /^(?:pnpm_config_fetch_\w+|YARN_HTTP_(?:RETRY|TIMEOUT))$/i,
  /^(?:PLAYWRIGHT|PUPPETEER|CYPRESS|ELECTRON)_\w+$/,
  // Python.
  /^(?:PYTHON(?:PATH|HOME|UNBUFFERED|DONTWRITEBYTECODE|WARNINGS|HASHSEED|UTF8|IOENCODING|FAULTHANDLER|BREAKPOINT)|VIRTUAL_ENV|CONDA_(?:PREFIX|DEFAULT_ENV|EXE|PYTHON_EXE)|PYENV_(?:ROOT|VERSION|SHELL)|POETRY_VIRTUALENVS_\w+)$/,
  /^(?:PIP_(?:INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|CERT|DEFAULT_TIMEOUT|RETRIES|DISABLE_PIP_VERSION_CHECK|TRUSTED_HOST|REQUIRE_VIRTUALENV)|UV_(?:INDEX_URL|DEFAULT_INDEX|PYTHON|SYSTEM_PYTHON|LINK_MODE|HTTP_RETRIES|HTTP_TIMEOUT)|TOX_\w+|NOX_\w+|PYTEST_\w+)$/,
  // Rust, Go, Java and its kin.
  /^(?:RUST(?:UP_HOME|UP_TOOLCHAIN|UP_AUTO_INSTALL|FLAGS|DOCFLAGS|C|C_WRAPPER|_LOG|_BACKTRACE|_TEST_THREADS)|CARGO_(?:BUILD_\w+|PROFILE_\w+|TARGET_\w+|INCREMENTAL|NET_\w+|TERM_\w+|HTTP_CAINFO))$/,
  /^(?:GO(?:ROOT|FLAGS|PROXY|PRIVATE|NOPROXY|SUMDB|NOSUMDB|NOSUMCHECK|OS|ARCH|ARM|AMD64|MAXPROCS|TOOLCHAIN|EXPERIMENT|DEBUG|TRACEBACK|111MODULE)|CGO_\w+)$/,
  /^(?:JAVA_HOME|JAVA_OPTS|JDK_HOME|JDK_JAVA_OPTIONS|MAVEN_(?:HOME|OPTS)|M2_HOME|GRADLE_(?:HOME|OPTS)|KOTLIN_HOME|SCALA_HOME|SBT_OPTS|JVM_OPTS|SDKMAN_(?:DIR|CANDIDATES_DIR)|ANDROID_(?:HOME|SDK_ROOT|NDK_HOME|NDK_ROOT))$/,
  // Other languages and versions of tools.
  /^(?:GEM_(?:HOME|PATH)|RUBY(?:OPT|LIB)|RAILS_ENV|RACK_ENV|RBENV_(?:ROOT|VERSION)|BUNDLE_(?:PATH|WITHOUT|JOBS|GEMFILE|RETRY)|PERL5LIB|PERL5OPT|PHP_INI_SCAN_DIR|LUA_PATH|LUA_CPATH|DOTNET_\w+|MIX_ENV|OPAM_SWITCH_PREFIX|CAML_LD_LIBRARY_PATH|JULIA_\w+|GHCUP_\w+)$/,
  /^(?:ASDF_(?:DIR|DATA_DIR)|MISE_DATA_DIR|HOMEBREW_(?:PREFIX|CELLAR|REPOSITORY)|NIX_(?:PATH|PROFILES|SSL_CERT_FILE)|LOCALE_ARCHIVE|GUIX_\w+)$/,
  // Certificates, and ways through a proxy.
  /^(?:SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_CAINFO|AWS_CA_BUNDLE)$/,
  /^(?:https?|ftp|all|no)_proxy$/i,
  // Parallelism and verbosity.
  /^(?:JOBS|NPROC|OMP_NUM_THREADS|MKL_NUM_THREADS|OPENBLAS_NUM_THREADS|VERBOSE|DEBUG|LOG_LEVEL|TEST_\w+)$/,
];

const isForFenced = (name: string, value: string): boolean =>
  FENCED.some((pattern) => pattern.test(name)) && passwordsIn(name, value).length === 0;

/**
 * The quiet variables, and those that `passes` accepts beside them. A variable that the user passes
 * by name is included as it is.
 */
const selectVariables = (
  environment: ProcessEnvironment,
  passed: readonly string[],
  passes: (name: string, value: string) => boolean,
): Readonly<Record<string, string>> => {
  const secret = new Set(secretVariables(environment));
  const variables: Record<string, string> = { ...QUIET };
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined) continue;
    const isSelected = !Object.hasOwn(QUIET, name) && !secret.has(name) && passes(name, value);
    if (passed.includes(name) || isSelected) variables[name] = value;
  }
  return variables;
};

/**
 * Retries of package managers, which wait up to a minute between two attempts. Without a network
 * each attempt fails in the same way.
 */
const NO_RETRIES = {
  npm_config_fetch_retries: '0',
  pnpm_config_fetch_retries: '0',
  YARN_HTTP_RETRY: '0',
  PIP_RETRIES: '0',
  UV_HTTP_RETRIES: '0',
  CARGO_NET_RETRY: '0',
  BUNDLE_RETRY: '0',
} as const;

/** `NO_RETRIES` without what the user has set, in upper or lower case: npm reads both. */
const retryVariables = (environment: ProcessEnvironment): ProcessEnvironment => {
  const set = new Set(Object.keys(environment).map((name) => name.toLowerCase()));
  return Object.fromEntries(
    Object.entries(NO_RETRIES).filter(([name]) => !set.has(name.toLowerCase())),
  );
};

/** The environment of a fenced command. */
export const fencedEnvironment = (
  environment: ProcessEnvironment,
  passed: readonly string[],
  hasNetwork: boolean,
): Readonly<Record<string, string>> => {
  const selected = selectVariables(environment, passed, isForFenced);
  return hasNetwork ? selected : withVariables(selected, retryVariables(environment));
};

/** The environment of an unfenced command. */
export const openEnvironment = (
  environment: ProcessEnvironment,
  passed: readonly string[],
): Readonly<Record<string, string>> =>
  selectVariables(environment, passed, (name) => !UNFIT.has(name));

/** `base` with `more` on top; an undefined value removes the variable. */
export const withVariables = (
  base: ProcessEnvironment,
  more: ProcessEnvironment,
): Readonly<Record<string, string>> => {
  const all: Record<string, string> = {};
  for (const [name, value] of [...Object.entries(base), ...Object.entries(more)]) {
    if (value === undefined) delete all[name];
    else all[name] = value;
  }
  return all;
};

// ---- The variables of one command, in addition to the shared ones ----

/** `marker`: identifies the processes of the command, see end-processes.ts. */
export type CommandVariables = (
  workspace: string,
  command: string,
  marker: string,
) => ProcessEnvironment;

export const createCommandVariables = (environment: ProcessEnvironment): CommandVariables => {
  // This Pawl may itself run in a command of another one, whose marker then stands first: the
  // outer Pawl still finds all processes of its command.
  const outer = environment[MARKER] === undefined ? '' : `${environment[MARKER]} `;
  const identity = createIdentityFinder(environment);
  return (workspace, command, marker) => ({
    ...identity(workspace, command),
    PWD: workspace,
    [MARKER]: `${outer}${marker}`,
  });
};

// ---- Hardened settings of git ----

/**
 * Settings of git for a command that runs without the sandbox because a rule allows it, so that no
 * user has looked at it. Git then runs no hook and no file watcher, since a fenced command may have
 * put them into the repository, and enters no submodule.
 * Transports, credentials and signatures stay the user's.
 */
const HARDENED_GIT = [
  ['core.fsmonitor', 'false'],
  ['core.hooksPath', '/dev/null'],
  ['safe.bareRepository', 'explicit'],
  ['protocol.ext.allow', 'never'],
  ['submodule.recurse', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  ['diff.ignoreSubmodules', 'dirty'],
  ['status.submoduleSummary', 'false'],
] as const;

/**
 * Events of hooks. Since 2.54 a hook may also stand in git's configuration (`hook.NAME.command`),
 * where `core.hooksPath` does not reach it. Source: githooks(5), git-hook(1) of git 2.54 to 2.56.
 */
const HOOK_EVENTS = listWords(`
  applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg
  commit-msg post-commit pre-rebase post-checkout post-merge pre-push pre-receive update
  proc-receive post-receive post-update reference-transaction push-to-checkout pre-auto-gc
  post-rewrite sendemail-validate fsmonitor-watchman p4-changelist p4-prepare-changelist
  p4-post-changelist p4-pre-submit post-index-change`);

type GitSetting = readonly [key: string, value: string];

/**
 * Settings that switch off the hooks of git's configuration: of each event, and those with these
 * names, since git 2.54 knows only names.
 */
export const hooksOff = (names: readonly string[] = []): readonly GitSetting[] =>
  [...HOOK_EVENTS, ...names].map((name) => [`hook.${name}.enabled`, 'false']);

/** The variables that give git these settings. `before`: how many others have been given so. */
export const gitSettings = (settings: readonly GitSetting[], before = 0): ProcessEnvironment => ({
  ...Object.fromEntries(
    settings.flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${before + index}`, key],
      [`GIT_CONFIG_VALUE_${before + index}`, value],
    ]),
  ),
  GIT_CONFIG_COUNT: String(before + settings.length),
});

/** The hardened settings, counted on from those that the user has given so. */
export const hardenedGit = (environment: ProcessEnvironment): ProcessEnvironment =>
  gitSettings([...HARDENED_GIT, ...hooksOff()], Number(environment.GIT_CONFIG_COUNT ?? 0) || 0);

// ---- The user's own files of git ----

/** The user's folder for git's files; empty without a home. */
export const userGitFolder = (environment: ProcessEnvironment): string => {
  const home = environment.HOME ?? '';
  const base = environment.XDG_CONFIG_HOME || (home === '' ? '' : path.join(home, '.config'));
  return base === '' ? '' : path.join(base, 'git');
};

/** The user's pattern files outside the repository: their settings, and their default names. */
export const GIT_PATTERN_FILES = {
  ignore: { name: 'core.excludesfile', usual: 'ignore' },
  attributes: { name: 'core.attributesfile', usual: 'attributes' },
} as const;

/**
 * The absolute path of a pattern file, as git finds it by these settings. Null for a relative one,
 * which depends on git's working folder.
 */
export const gitPatternFile = (
  config: ReadonlyMap<string, string>,
  environment: ProcessEnvironment,
  { name, usual }: (typeof GIT_PATTERN_FILES)[keyof typeof GIT_PATTERN_FILES],
): string | null => {
  const folder = userGitFolder(environment);
  const set = config.get(name) ?? (folder === '' ? '' : path.join(folder, usual));
  const file = set.startsWith('~/') ? path.join(environment.HOME ?? '', set.slice(2)) : set;
  return path.isAbsolute(file) ? file : null;
};

// ---- An author for commits where none is configured ----

const NONE: Readonly<Record<string, string>> = {};

/**
 * Creates the finder for one session, which gives the variables of a missing name or address. It
 * searches before each command until it finds an identity, since any command may configure one. A
 * command that configures an identity itself gets no variables.
 */
const createIdentityFinder = (
  environment: ProcessEnvironment,
): ((workspace: string, command: string) => Readonly<Record<string, string>>) => {
  let isConfigured = false;
  return (workspace, command) => {
    if (isConfigured || /\buser\.(name|email)\b|GIT_CONFIG/.test(command)) return NONE;
    const missing = missingIdentity(environment, workspace);
    isConfigured = Object.keys(missing).length === 0;
    return missing;
  };
};

/** Variables for the parts (name, address) that neither variables of git nor its files set. */
const missingIdentity = (
  environment: ProcessEnvironment,
  workspace: string,
): Readonly<Record<string, string>> => {
  const set = configuredParts(environment, workspace);
  const variables: Record<string, string> = {};
  for (const part of AUTHOR_PARTS) {
    if (set.has(part) || (part === 'email' && environment.EMAIL)) continue;
    for (const name of AUTHOR_VARIABLES[part]) {
      if (environment[name] === undefined) variables[name] = fallbackAuthor(part);
    }
  }
  return variables;
};

/** In bytes. A longer configuration file of git counts as empty. */
const CONFIG_BYTES_MAX = 1024 * 1024;

// Most of these files don't exist, and a thrown error costs ten times as much as this check. The
// path of a file in the home or the repository is relative if there is none.
const readOrEmpty = (file: string): string =>
  path.isAbsolute(file) && existsSync(file) ? readTextOrEmptySync(file, CONFIG_BYTES_MAX) : '';

/**
 * The folder with the repository's configuration. Worktrees and submodules refer to it with a file.
 */
const findConfigFolder = (workspace: string): string | null => {
  const top = repositoryFolders(workspace).top ?? workspace;
  const place = path.join(top, '.git');
  const status = statSync(place, { throwIfNoEntry: false });
  if (status === undefined) return null;
  if (status.isDirectory()) return place;
  const gitFolder = path.resolve(
    top,
    readOrEmpty(place)
      .replace(/^gitdir:\s*/, '')
      .trim(),
  );
  return path.resolve(gitFolder, readOrEmpty(path.join(gitFolder, 'commondir')).trim());
};

const configFiles = (environment: ProcessEnvironment, workspace: string): readonly string[] => {
  const { HOME: home = '', GIT_CONFIG_GLOBAL: global, GIT_CONFIG_SYSTEM: system } = environment;
  const usual = [path.join(userGitFolder(environment), 'config'), path.join(home, '.gitconfig')];
  return [
    system ?? '/etc/gitconfig',
    ...(global === undefined ? usual : [global]),
    path.join(findConfigFolder(workspace) ?? '', 'config'),
  ];
};

/**
 * The parts that a config file sets. Includes are not followed; a file with includes counts as
 * setting both.
 */
const partsIn = (file: string): readonly AuthorPart[] => {
  const config = readOrEmpty(file);
  if (/^\s*\[\s*include/im.test(config)) return AUTHOR_PARTS;
  const sections = config
    .split(/^\s*(?=\[)/m)
    .filter((section) => /^\[\s*(user|author|committer)\s*\]/i.test(section));
  return AUTHOR_PARTS.filter((part) =>
    sections.some((section) => new RegExp(`^[^#;]*\\b${part}\\s*=`, 'im').test(section)),
  );
};

/**
 * The configured parts; both if the repository can't be read, because git then reports the problem
 * itself.
 */
const configuredParts = (
  environment: ProcessEnvironment,
  workspace: string,
): ReadonlySet<AuthorPart> => {
  try {
    return new Set(configFiles(environment, workspace).flatMap(partsIn));
  } catch {
    // e.g. `.git` is a loop of links, or a parent folder is not accessible
    return new Set(AUTHOR_PARTS);
  }
};
