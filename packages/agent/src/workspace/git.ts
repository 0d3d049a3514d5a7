/**
 * Runs git in a repository of the user, so that no program runs that the repository names: no hook,
 * filter, fsmonitor, diff or merge program, textconv, pager, editor, alias, credential helper,
 * transport or signature program.
 *
 * | function | called by | git subcommands | git folder | settings of |
 * |---|---|---|---|---|
 * | `locateRepository` | `useRepository` | `rev-parse`, `config` | found by git | all three |
 * | `includedBy` | `findGitFiles` | `config --file` | none | one file |
 * | `run` | `ask`, `askPart`, `tryAsk`, others | all others | real, with links | Pawl |
 * | `runReal` | `changeWorktrees`, `changeHead` | `worktree`, `symbolic-ref` | real | repository |
 * | `runDetached` | `moveRef`, `runScript` | `update-ref`, the script's | real | all three |
 *
 * "All three" are the repository, the user and the machine. The first two functions pass
 * LOCATE_OPTIONS, the others HARDENING.
 *
 * 1. `rev-parse` and `config` run no program that a configuration names.
 * 2. `run`: the folder that worktrees share is replaced by a folder of links (`makeLinks`) with our
 *    configuration, a copy of the settings about how files are stored. So names of filters,
 *    includes and later changes have no effect. The user's settings are left out, too: the
 *    attributes of a repository choose among the programs that they name.
 * 3. `runReal` and `runDetached` must write to the real folder. Their subcommands could only run
 *    hooks, and those are turned off.
 * 4. `runReal` leaves the user's settings out: with `worktree.useRelativePaths` git would write to
 *    the configuration. `runDetached` needs them: they say whether a ref has a reflog.
 *
 * Configuration is never written. Submodules are ignored. If no folder from the workspace up holds
 * a `.git`, or the nearest one is another user's, no process is started.
 *
 * From top to bottom: finding the repository; an open repository, with its folder of links; our
 * settings, variables and options; running git; running git detached; the cached location of a
 * repository; the files that git would read.
 */

import type { ChildProcessByStdio } from 'node:child_process';
import { mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Readable } from 'node:stream';
import {
  GIT_PATTERN_FILES,
  gitPatternFile,
  gitSettings,
  hooksOff,
  userGitFolder,
} from '../command/environment.js';
import { findRepository, gitFoldersAt } from '../command/sandbox/git-folders.js';
import {
  AUTHOR_PARTS,
  AUTHOR_VARIABLES,
  fallbackAuthor,
  type ProcessEnvironment,
} from '../platform/environment.js';
import { followStatus, isWithin, readRegularSync } from '../platform/files.js';
import { type ProgramPath, searchPrograms } from '../platform/find-program.js';
import {
  type ProgramEnd,
  ProgramFailure,
  type ProgramRequest,
  runProgram,
  settleAll,
} from '../platform/run-program.js';
import { atExit, SYSTEM_SHELL, startProgram } from '../platform/start-program.js';
import { repositoryFolders } from '../platform/trusted-folders.js';
import { FileCache } from './file-cache.js';
import { makeScratch } from './scratch-folder.js';

export type GitPlace = {
  /** Real absolute path. */
  readonly workspace: string;
  readonly environment: ProcessEnvironment;
  readonly signal: AbortSignal;
  /** Cached facts about the repository. Without it, git is asked each time. */
  readonly known?: KnownRepository;
};

export type GitOptions = {
  /** Text for stdin. Default: none. */
  readonly input?: string;
  /** A private index instead of the user's. */
  readonly indexFile?: string;
  readonly bytesMax?: number;
  /** More output than `bytesMax` fails the call, or is cut. Default: it fails. */
  readonly atMax?: ProgramRequest['atMax'];
  /** Default: 10 s. */
  readonly deadlineMs?: number;
};

/** The folders of a repository, as absolute paths. */
export type RepositoryLocation = {
  /** The top folder of the working tree. */
  readonly top: string;
  readonly gitFolder: string;
  /** The folder that several working trees share; often the same as `gitFolder`. */
  readonly shared: string;
  readonly indexFile: string;
};

export type LocatedRepository = {
  readonly location: RepositoryLocation;
  readonly config: GitConfig;
  /** All files that its configuration and the user's include, also those with a condition. */
  readonly included: readonly string[];
};

export type Repository = RepositoryLocation & {
  /** A private folder, removed together with this object. */
  readonly scratch: string;
  /** The configuration as it was when the repository was opened. */
  readonly config: GitConfig;
  /** Runs a subcommand in the top folder and returns its exit code and output. */
  run(args: readonly string[], options?: GitOptions): Promise<ProgramEnd>;
  /** Runs a subcommand and returns its output. Rejects if the exit code is not 0. */
  ask(args: readonly string[], options?: GitOptions): Promise<string>;
  /** Like `ask`, up to a number of bytes. `cut`: there are more. */
  askPart(args: readonly string[], bytesMax: number): Promise<Pick<ProgramEnd, 'output' | 'cut'>>;
  /** Trimmed output; null if the exit code is not 0: the answer is no, or git has failed. */
  tryAsk(args: readonly string[]): Promise<string | null>;
  /** Moves a ref, even if this program ends meanwhile. Code 0: it has moved. */
  moveRef(move: RefMove): Promise<RunEnd>;
  /**
   * Runs a shell script in the real folder, even if this program ends meanwhile. Its arguments are
   * `words`, then git with HARDENING. It must use only subcommands that run no program but hooks.
   */
  runScript(script: string, words: readonly string[]): Promise<RunEnd>;
  /**
   * Runs `git worktree` with these arguments. It must check nothing out, and remove only with
   * `--force`: git would run filters. Rejects if the exit code is not 0.
   */
  changeWorktrees(args: readonly string[]): Promise<void>;
  /** Puts HEAD on a branch, given by its full name. Changes no file. Rejects if git refuses. */
  changeHead(branch: string, why: string): Promise<void>;
};

// ---- Finding the repository ----

/**
 * Runs `work` with the repository around the workspace; null if there is none. Rejects with a
 * ProgramFailure if git fails, and with the error of `work`.
 */
export const useRepository = async <T>(
  place: GitPlace,
  work: (repository: Repository) => Promise<T>,
): Promise<T | null> => {
  const located = await locateRepository(place);
  return located === null ? null : workWith(place, located, work);
};

/** Like `useRepository`, with a repository that was located just before. */
export const workWith = async <T>(
  place: GitPlace,
  located: LocatedRepository,
  work: (repository: Repository) => Promise<T>,
): Promise<T> => {
  const scratch = makeScratch();
  const clear = (): void => rmSync(scratch, { recursive: true, force: true });
  const cancelAtExit = atExit(clear);
  try {
    return await work(openRepository(place, located, scratch));
  } finally {
    clear();
    cancelAtExit();
  }
};

/**
 * Finds the repository around the workspace and its configuration; null if there is none. Starts no
 * process while cached facts are valid. Rejects with a ProgramFailure if git fails.
 *
 * 1. `repositoryFolders`: is there a `.git`? Without one no process is started.
 * 2. `findGitFiles`: would git wait for a pipe in place of one of its files?
 * 3. `askLocation`: where is the repository, according to git?
 * 4. `checkOwnRepository`: is that the one in the folders above, or does a hostile `.git` name
 *    another one?
 */
export const locateRepository = async (place: GitPlace): Promise<LocatedRepository | null> => {
  const { top: holder } = repositoryFolders(place.workspace); // of `.git`, found without git
  if (holder === null) return null;
  const ask = async (): Promise<LocatedRepository | null> => {
    const { blocking, included } = await findGitFiles(place, holder);
    if (blocking !== null)
      throw refuseToAsk(`${blocking} is not a regular file, so git would wait for it. Remove it`);
    const run = createRunner(place);
    // like Promise.all, but waits for both even if one rejects
    const [location, listed] = await settleAll([
      askLocation(run, place.workspace),
      run([...LOCATE_OPTIONS, ...LIST_CONFIG], {}, {}),
    ]);
    if (location === null) return null;
    if (listed.code !== 0) throw refusal(LIST_CONFIG, listed);
    checkOwnRepository(place.workspace, location.shared);
    return { location, config: parseConfig(listed.output.toString('utf8')), included };
  };
  return place.known === undefined ? ask() : place.known.locate(holder, ask);
};

/** The commit that a revision names; null if there is none. */
export const findCommit = (repository: Repository, revision: string): Promise<string | null> =>
  repository.tryAsk(['rev-parse', '--verify', '--quiet', revision]);

export const hasCommit = async (repository: Repository, hash: string): Promise<boolean> =>
  (await repository.tryAsk(['cat-file', '-e', `${hash}^{commit}`])) !== null;

/** Whether `later` is the commit or a descendant of it. */
export const isAncestor = async (
  repository: Repository,
  commit: string,
  later: string,
): Promise<boolean> =>
  (await repository.tryAsk(['merge-base', '--is-ancestor', commit, later])) !== null;

const LOCATE_OPTIONS = ['--no-pager', '-c', 'safe.bareRepository=explicit'];
const LIST_CONFIG = ['config', '--list', '-z'];

/** Git's messages for a missing repository, or a bare one, which has no working tree. */
const NO_REPOSITORY = /not a git repository|must be run in a work tree|cannot use bare repository/i;

/** Asks git where the repository is. Git refuses one that belongs to another user. */
const askLocation = async (run: RunGit, workspace: string): Promise<RepositoryLocation | null> => {
  const args = ['rev-parse', '--path-format=absolute', '--show-toplevel', '--absolute-git-dir'];
  const end = await run(
    [...LOCATE_OPTIONS, ...args, '--git-common-dir', '--git-path', 'index'],
    {},
    {},
  );
  if (end.code !== 0) {
    if (NO_REPOSITORY.test(end.errors)) return null;
    throw refusal(args, end);
  }
  const lines = end.output.toString('utf8').replace(/\n$/, '').split('\n');
  const [top = '', gitFolder = '', shared = '', indexFile = '', ...more] = lines;
  if (lines.length < 4)
    throw new ProgramFailure('refused', 'git did not say where its repository is');
  if (more.length > 0)
    throw new ProgramFailure('refused', 'the path of the repository holds a line break: move it');
  // ignore a repository whose configured working tree is elsewhere
  return isWithin(workspace, top) ? { top, gitFolder, shared, indexFile } : null;
};

/**
 * Throws a ProgramFailure if the git folder belongs to another working tree. `shared`: the folder
 * of the objects, according to git.
 *
 * A hostile `.git` (a file, a symlink, a folder with `commondir`) may name another repository of
 * the user. Commits would go there, and the model could read its content. Git itself does not check
 * this.
 */
const checkOwnRepository = (workspace: string, shared: string): void => {
  const expected = findRepository(workspace);
  if (expected.kind === 'refused') throw refuseToAsk(expected.why);
  if (
    expected.kind === 'found' &&
    realpathSync(expected.repository.common) !== realpathSync(shared)
  )
    throw refuseToAsk(
      `the repository in ${expected.repository.top} names another one, ${shared}, as its own`,
    );
};

const refuseToAsk = (why: string): ProgramFailure =>
  new ProgramFailure('refused', `git is not asked: ${why}`);

const refusal = (args: readonly string[], { code, errors }: ProgramEnd): ProgramFailure => {
  const why = errors || 'it did not say why';
  return new ProgramFailure('refused', `git ${args[0] ?? ''} failed (exit code ${code}): ${why}`);
};

// ---- An open repository ----

/** Removing a worktree may delete many files. */
const WORKTREE_DEADLINE_MS = 120_000;

const openRepository = (
  place: GitPlace,
  located: LocatedRepository,
  scratch: string,
): Repository => {
  const { location, config } = located;
  const runGit = createRunner(place);
  const variables = makeLinks(located, place.environment, scratch);
  const run: Repository['run'] = (args, options = {}) =>
    runGit([...HARDENING, ...args], options, { ...variables, GIT_INDEX_FILE: options.indexFile });
  /** Runs in the real git folder, without the settings of the user and the machine. */
  const runReal = async (args: readonly string[], deadlineMs?: number): Promise<void> => {
    const own = {
      GIT_DIR: location.gitFolder,
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_NOSYSTEM: '1',
      ...realVariables(config, place.environment),
    };
    const options = deadlineMs === undefined ? {} : { deadlineMs };
    const end = await runGit([...HARDENING, ...args], options, own);
    if (end.code !== 0) throw refusal(args, end);
  };
  return {
    ...location,
    scratch,
    config,
    run,
    ask: async (args, options) => {
      const end = await run(args, options);
      if (end.code !== 0) throw refusal(args, end);
      return end.output.toString('utf8');
    },
    askPart: async (args, bytesMax) => {
      const end = await run(args, { bytesMax, atMax: 'cut' });
      if (end.code !== 0) throw refusal(args, end);
      return end;
    },
    tryAsk: async (args) => {
      const { code, output } = await run(args);
      return code === 0 ? output.toString('utf8').trim() : null;
    },
    moveRef: (move) => runDetached(place, located, (git) => [git, updateRefWords(move)]),
    runScript: (script, words) =>
      runDetached(place, located, (git) => [
        SYSTEM_SHELL,
        ['-c', script, 'sh', ...words, git, ...HARDENING],
      ]),
    changeWorktrees: async (args) => runReal(['worktree', ...args], WORKTREE_DEADLINE_MS),
    changeHead: async (branch, why) => runReal(['symbolic-ref', '-m', why, 'HEAD', branch]),
  };
};

/** Links to the folder that worktrees share, without configuration and hooks. */
const SHARED_LINKS = ['objects', 'refs', 'packed-refs', 'info', 'shallow', 'logs', 'reftable'];

/**
 * Makes the folder of links, and returns the variables that make git use it as the common folder:
 * git reads configuration and hooks from there, so it finds only ours. Synchronous, since a dozen
 * small asynchronous calls took twenty times as long.
 */
const makeLinks = (
  { location: { top, gitFolder, shared }, config }: LocatedRepository,
  environment: ProcessEnvironment,
  scratch: string,
): ProcessEnvironment => {
  const folder = path.join(scratch, 'repository');
  const home = path.join(scratch, 'home');
  for (const created of [folder, home]) mkdirSync(created);
  writeFileSync(path.join(folder, 'config'), frozenConfig(config, environment));
  for (const name of SHARED_LINKS) symlinkSync(path.join(shared, name), path.join(folder, name));
  return {
    GIT_DIR: gitFolder,
    GIT_COMMON_DIR: folder,
    GIT_WORK_TREE: top,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    HOME: home,
    XDG_CONFIG_HOME: home,
    ...authorVariables(config, environment),
  };
};

// ---- Our settings, variables and options ----

/** Settings by name as git prints it. If there are several values, the last one counts. */
export type GitConfig = ReadonlyMap<string, string>;

/** Settings that Pawl copies: they decide how files are stored, and name no program. */
const STORAGE_SETTINGS = [
  'core.repositoryformatversion',
  'core.filemode',
  'core.symlinks',
  'core.ignorecase',
  'core.precomposeunicode',
  'core.protecthfs',
  'core.protectntfs',
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

const quote = (value: string): string =>
  `"${value.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`;

/** The user's file of ignored names, as git finds it; null: none. */
export const excludesFile = (config: GitConfig, environment: ProcessEnvironment): string | null =>
  gitPatternFile(config, environment, GIT_PATTERN_FILES.ignore);

/** The files of attributes outside the repository: the user's, and the machine's. */
export const attributesFiles = (
  config: GitConfig,
  environment: ProcessEnvironment,
): readonly string[] => {
  const users = gitPatternFile(config, environment, GIT_PATTERN_FILES.attributes);
  return [...(users === null ? [] : [users]), '/etc/gitattributes'];
};

/**
 * The text of the configuration file in the folder of links: the storage settings of `config` as
 * they are now, so later changes of the real file have no effect.
 */
export const frozenConfig = (config: GitConfig, environment: ProcessEnvironment): string => {
  const lines = STORAGE_SETTINGS.flatMap((name) => {
    const value = config.get(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  const files = Object.values(GIT_PATTERN_FILES).flatMap((one) => {
    const file = gitPatternFile(config, environment, one);
    return file === null ? [] : [[one.name, file] as const];
  });
  return [...lines, ...files]
    .map(([name, value]) => {
      const [section, key] = name.split('.');
      return `[${section}]\n\t${key} = ${quote(value)}\n`;
    })
    .join('');
};

/**
 * Variables for author and committer, determined as git would, with Pawl's name as the default
 * instead of the system's.
 */
const authorVariables = (
  config: GitConfig,
  environment: ProcessEnvironment,
): Readonly<Record<string, string>> => {
  const variables: Record<string, string> = {};
  for (const part of AUTHOR_PARTS) {
    const [author, committer] = AUTHOR_VARIABLES[part];
    for (const [variable, role] of [[author, 'author'] as const, [committer, 'committer'] as const])
      variables[variable] =
        environment[variable] ||
        config.get(`${role}.${part}`) ||
        config.get(`user.${part}`) ||
        fallbackAuthor(part);
  }
  return variables;
};

/** Git's variables that are harmless and can't be set by a repository. */
const ALLOWED = new Set([
  'GIT_CONFIG_GLOBAL',
  'GIT_CONFIG_SYSTEM',
  'GIT_CONFIG_NOSYSTEM',
  'GIT_CEILING_DIRECTORIES',
  'GIT_DISCOVERY_ACROSS_FILESYSTEM',
  'GIT_AUTHOR_DATE',
  'GIT_COMMITTER_DATE',
]);

/** Variables that let programs ask the user something. */
const INTERACTIVE = new Set(['SSH_ASKPASS', 'PAGER', 'EDITOR', 'VISUAL', 'BROWSER', 'DISPLAY']);

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
    const isDropped = (name.startsWith('GIT_') && !ALLOWED.has(name)) || INTERACTIVE.has(name);
    if (value !== undefined && !isDropped) clean[name] = value;
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

/**
 * Options of every command in an open repository. They override all files, even those that change
 * meanwhile.
 */
export const HARDENING: readonly string[] = [
  '--no-pager',
  ...[
    'core.hooksPath=/dev/null',
    'core.fsmonitor=false',
    // a file counts as unchanged only if all its cached facts are the same
    'core.trustctime=true',
    'core.checkStat=default',
    'core.ignoreStat=false',
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

/** Variables for git that reads the real configuration, whose hooks are off. */
const realVariables = (config: GitConfig, environment: ProcessEnvironment): ProcessEnvironment => {
  const hooks = [...config.keys()].flatMap((key) => /^hook\.(.*)\.\w+$/s.exec(key)?.[1] ?? []);
  return { ...gitSettings(hooksOff([...new Set(hooks)])), ...authorVariables(config, environment) };
};

// ---- Running git ----

const CALL_DEADLINE_MS = 10_000;
const BYTES_MAX = 16 * 1024 * 1024;

type RunGit = (
  args: readonly string[],
  options: GitOptions,
  variables: ProcessEnvironment,
) => Promise<ProgramEnd>;

/** Runs git. The program is searched at the first use. */
const createRunner = (place: GitPlace): RunGit => {
  let git: ReturnType<typeof findGit> | null = null;
  return async (args, { input, bytesMax, atMax, deadlineMs }, variables) => {
    git ??= findGit(place);
    return runProgram({
      program: git.program,
      words: args,
      // the first plain word is the subcommand, after options with their values
      title: `git ${args.find((word) => /^[a-z]+(-[a-z]+)*$/.test(word)) ?? ''}`.trim(),
      folder: variables.GIT_WORK_TREE ?? place.workspace,
      environment: withoutUndefined({ ...git.clean, ...variables }),
      input: input ?? null,
      bytesMax: bytesMax ?? BYTES_MAX,
      atMax: atMax ?? 'fail',
      deadlineMs: deadlineMs ?? CALL_DEADLINE_MS,
      signal: place.signal,
    });
  };
};

/** The git program and its variables. Throws a ProgramFailure if there is none. */
const findGit = ({ workspace, environment }: GitPlace) => {
  const programs = searchPrograms({ environment, workspace });
  const program = programs.find('git');
  if (program !== null)
    return { program, clean: cleanEnvironment(environment, programs.folders.join(path.delimiter)) };
  const skipped = programs.whyNot('git');
  const advice =
    programs.folders.length === 0
      ? 'Set PATH to the folders of your programs'
      : 'Install one that only you or the system can change';
  const why =
    skipped === null
      ? 'git is not on the PATH (folders inside the workspace do not count): install it'
      : `git can't be used: ${skipped}. ${advice}`;
  throw new ProgramFailure('missing', why);
};

const withoutUndefined = (variables: ProcessEnvironment): Record<string, string> =>
  Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  );

// ---- Running git detached, to move a ref: a branch, HEAD or a ref of our own ----

export type RefMove = {
  /** A full name, or HEAD if it is detached. */
  readonly ref: string;
  /** Null: the ref must not exist. `any`: not checked. A ref that is removed needs its hash. */
  readonly from: string | null | 'any';
  /** Null: the ref is removed. */
  readonly to: string | null;
  /** For the reflog. */
  readonly why: string;
};

/** Exit code, null after a signal, and the beginning of its stderr. */
export type RunEnd = { readonly code: number | null; readonly errors: string };

const ERRORS_MAX = 4_096;

/** The words of `git update-ref` for a move. */
const updateRefWords = ({ ref, from, to, why }: RefMove): readonly string[] => {
  if (to === null && (from === null || from === 'any'))
    throw new TypeError(`${ref} is removed only with the hash that it has`);
  // a hash of zeros: the ref must not exist
  const old = from ?? '0'.repeat(to?.length ?? 0);
  const target = to === null ? ['-d', ref] : [ref, to];
  // for refs outside of refs/heads git writes a reflog only with this option
  const log = ref.startsWith('refs/pawl/') ? ['--create-reflog'] : [];
  const deref = ref === 'HEAD' ? ['--no-deref'] : [];
  return [
    ...[...HARDENING, 'update-ref', ...log, ...deref],
    ...['-m', why, ...target, ...(old === 'any' ? [] : [old])],
  ];
};

/**
 * Runs a program in the real folder of the repository. Neither an abort nor the end of this program
 * stops it, since a killed git leaves its locks. After CALL_DEADLINE_MS it gets SIGTERM, on which
 * git removes them. Rejects if the signal was aborted before, git is missing, `choose` throws, or
 * the program can't be started.
 */
const runDetached = (
  place: GitPlace,
  { location, config }: LocatedRepository,
  choose: (git: ProgramPath) => readonly [program: ProgramPath, words: readonly string[]],
): Promise<RunEnd> =>
  new Promise((resolve, reject) => {
    if (place.signal.aborted) throw new ProgramFailure('stopped', 'git was stopped');
    const { program: git, clean } = findGit(place);
    const [program, words] = choose(git);
    const variables = {
      GIT_DIR: location.gitFolder,
      ...realVariables(config, place.environment),
    };
    const child = startProgram(program, words, {
      cwd: location.top,
      env: withoutUndefined({ ...clean, ...variables }),
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
      // one pipe, which the type of startProgram does not express
    }) as ChildProcessByStdio<null, null, Readable>;
    const { pid } = child;
    let errors = '';
    const deadline = setTimeout(() => pid !== undefined && askToEnd(pid), CALL_DEADLINE_MS);
    child.once('error', (error) => {
      if (pid !== undefined) return; // it is running, so `close` follows
      clearTimeout(deadline);
      reject(new ProgramFailure('missing', `${program} can't be started: ${error.message}`));
    });
    child.stderr.on('data', (piece: Buffer) => {
      if (errors.length < ERRORS_MAX)
        errors += piece.toString('utf8').slice(0, ERRORS_MAX - errors.length);
    });
    child.once('close', (code) => {
      clearTimeout(deadline);
      resolve({ code, errors: errors.trim() });
    });
  });

const askToEnd = (leader: number): void => {
  try {
    process.kill(-leader, 'SIGTERM');
  } catch {
    // the group has already ended
  }
};

// ---- The location and configuration of a repository, cached ----

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

  /** The cached or new answer of `ask`. `holder`: the folder that contains `.git`. */
  async locate(
    holder: string,
    ask: () => Promise<LocatedRepository | null>,
  ): Promise<LocatedRepository | null> {
    const cached = this.cached(holder);
    if (cached !== null) return cached;
    const askedAt = this.#now();
    const located = await ask();
    const paths = located === null ? null : this.#listPaths(holder, located);
    if (located !== null && paths !== null) this.#cache.set(holder, located, paths, askedAt);
    return located;
  }

  /** The cached answer if it is still valid; otherwise null. */
  cached(holder: string): LocatedRepository | null {
    return this.#cache.get(holder) ?? null;
  }

  /**
   * All paths on which the answer depends; null: unknown. Included files count even if their
   * condition is false, and so does HEAD, on which conditions may depend.
   */
  #listPaths(
    holder: string,
    { location, config, included }: LocatedRepository,
  ): readonly string[] | null {
    const { top, gitFolder, shared } = location;
    const configs = [
      ...[path.join(shared, 'config'), path.join(gitFolder, 'config.worktree')],
      ...configFiles(this.#environment),
    ];
    const hasInclude = [...config.keys()].some((name) => name.startsWith('include'));
    // git reports an include that we did not find
    if (hasInclude && included.length === 0) return null;
    return [
      ...[path.join(holder, '.git'), top, gitFolder, shared],
      ...['commondir', 'gitdir'].map((name) => path.join(gitFolder, name)),
      ...configs,
      ...included,
      ...(included.length === 0 ? [] : [path.join(gitFolder, 'HEAD')]),
    ];
  }
}

// ---- Files that git would read, searched before it runs ----

const TEXT_BYTES_MAX = 1024 * 1024;
const INCLUDED_MAX = 200;
/** Files that git reads: in the git folder of a working tree, the shared one, the holder. */
const WORKTREE_FILES = [
  'HEAD',
  'index',
  'commondir',
  'gitdir',
  'config.worktree',
  'info/sparse-checkout',
];
const SHARED_FILES = [
  ...['config', 'packed-refs', 'shallow', 'info/exclude', 'info/attributes', 'info/grafts'],
  ...['objects/info/alternates', 'objects/info/commit-graph'],
];
const HOLDER_FILES = ['.gitignore', '.gitattributes', '.gitmodules', '.mailmap'];

/**
 * `blocking`: the first pipe, device or socket where git expects a file of the repository: git
 * would wait for it forever. Null if there is none. `included`: all files that configurations
 * include, also those with a condition.
 */
export const findGitFiles = async (
  place: GitPlace,
  holder: string,
): Promise<{ readonly blocking: string | null; readonly included: readonly string[] }> => {
  const dotGit = path.join(holder, '.git');
  if (!isReadable(dotGit)) return { blocking: dotGit, included: [] };
  const { folder: gitFolder, common: shared } = gitFoldersAt(dotGit) ?? {
    folder: dotGit, // it leads nowhere, as git says when it is asked
    common: dotGit,
  };
  const files = [
    ...WORKTREE_FILES.map((name) => path.join(gitFolder, name)),
    ...SHARED_FILES.map((name) => path.join(shared, name)),
    ...HOLDER_FILES.map((name) => path.join(holder, name)),
  ];
  const bad = files.find((file) => !isReadable(file));
  if (bad !== undefined) return { blocking: bad, included: [] };
  const included = await findIncluded(place, [
    ...[path.join(shared, 'config'), path.join(gitFolder, 'config.worktree')],
    ...configFiles(place.environment),
  ]);
  return { blocking: included.find((file) => !isReadable(file)) ?? null, included };
};

/** The configuration files of the user and the machine. */
const configFiles = (environment: ProcessEnvironment): readonly string[] => {
  const { HOME: home = '', GIT_CONFIG_GLOBAL: global, GIT_CONFIG_SYSTEM: system } = environment;
  const usual = [path.join(home, '.gitconfig'), path.join(userGitFolder(environment), 'config')];
  return [...(global ? [global] : usual), system || '/etc/gitconfig'].filter(path.isAbsolute);
};

/** Whether git can read a path without waiting. */
const isReadable = (file: string): boolean => {
  const status = followStatus(file);
  return status === null || status.isFile() || status.isDirectory();
};

/** The files that these configurations include, directly or indirectly. */
const findIncluded = async (
  place: GitPlace,
  configs: readonly string[],
): Promise<readonly string[]> => {
  const run = createRunner(place);
  const included = new Set<string>();
  for (const config of configs)
    for (const file of await includedBy(run, config)) included.add(file);
  // A set visits the files that are added meanwhile.
  for (const config of included) {
    for (const file of await includedBy(run, config)) included.add(file);
    if (included.size > INCLUDED_MAX)
      throw refuseToAsk(`its configuration includes more than ${INCLUDED_MAX} files`);
  }
  return [...included];
};

/** So that git reads no configuration but the file that is named. */
const ONE_FILE = { GIT_DIR: '/dev/null', GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
const LIST_INCLUDES = [
  ...['--no-includes', '-z', '--type=path'],
  ...['--get-regexp', '^include(if\\..*)?\\.path$'],
];

/** The files that a configuration names in its includes, according to git, which opens none. */
const includedBy = async (run: RunGit, config: string): Promise<readonly string[]> => {
  const loaded = readRegularSync(config, TEXT_BYTES_MAX);
  const mayInclude =
    loaded.kind === 'file'
      ? /include/i.test(loaded.bytes.toString('latin1'))
      : loaded.kind === 'unusable' && loaded.isTooLarge === true;
  if (!mayInclude) return []; // the usual case needs no process
  const words = ['config', '--file', config, ...LIST_INCLUDES];
  const end = await run([...LOCATE_OPTIONS, ...words], {}, ONE_FILE);
  if (end.code === 1) return []; // it has none
  if (end.code !== 0) throw refusal(words, end);
  const entries = end.output.toString('utf8').split('\0').slice(0, -1); // name, line feed, path
  const names = entries.map((entry) => entry.slice(entry.indexOf('\n') + 1));
  return names.map((name) => path.resolve(path.dirname(config), name));
};
