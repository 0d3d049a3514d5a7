import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import { isWithin } from '../../platform/files/is-within.js';
import { repositoryFolders } from '../../platform/files/repository-folders.js';
import { atExit } from '../../platform/programs/at-exit.js';
import { searchPrograms } from '../../platform/programs/find-program.js';
import { type ProgramEnd, ProgramFailure, type ProgramOrder, runProgram, settleAll } from '../run-program.js';
import { findWaitingFile } from './find-blocking-files.js';
import { moveRef, type RefMove, type RefOutcome, type RefWatcher } from './ref-transaction.js';
import { checkOwnRepository } from './refuse-redirected-repository.js';
import type { KnownRepository, LocatedRepository, RepositoryLocation } from './repository-cache.js';
import {
  authorVariables,
  cleanEnvironment,
  frozenConfig,
  type GitConfig,
  HARDENING,
  parseConfig,
} from './safe-git-config.js';
import { makeScratch } from './scratch-folder.js';

/**
 * Runs git. All of Pawl's own calls of git are here.
 *
 * 1. No program that a repository names ever runs: no hook, filter, fsmonitor, diff or merge program, textconv, pager,
 *    editor, alias, credential helper, transport or signature program.
 * 2. Only `rev-parse` and `config --list` see the repository's own configuration, and neither runs a program that it
 *    names. All other commands see the repository through a folder of links with our own configuration, a copy of the
 *    settings that say how files are stored. So names of filters, includes and later changes of the configuration have
 *    no effect. The exceptions are `moveRef` and `changeWorktrees`, which must write to the real folder: they could only
 *    run hooks, and those are turned off.
 * 3. Configuration is never written. Submodules are ignored.
 * 4. Without a `.git` in or above the workspace, or below another user's, no process is started.
 * 5. A git folder outside the working tree is used only if it names the working tree in return (refuse-redirected-repository.ts).
 * 6. HEAD and branches are read from their files (refs.ts). Git is asked only if these have an unusual form.
 */

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
  readonly atMax?: ProgramOrder['atMax'];
  /** Default: 10 s. */
  readonly deadlineMs?: number;
};

export type Repository = {
  /** Top folder of the working tree; the commands run there. */
  readonly top: string;
  readonly gitFolder: string;
  readonly indexFile: string;
  /** A private folder, removed together with this object. */
  readonly scratch: string;
  /** The configuration as it was when the repository was opened. */
  readonly config: GitConfig;
  /** Runs a command and returns its exit code and output. */
  run(words: readonly string[], options?: GitOptions): Promise<ProgramEnd>;
  /** Runs a command and returns its output. Rejects if the exit code is not 0. */
  ask(words: readonly string[], options?: GitOptions): Promise<string>;
  /** The folder that several working trees share; often the same as `gitFolder`. */
  readonly shared: string;
  /** Moves a ref. It is never stopped once begun, since it would leave its locks behind. */
  moveRef(move: RefMove, watcher: RefWatcher): Promise<RefOutcome>;
  /** Runs `git worktree` with these words. It must check nothing out. Rejects if the exit code is not 0. */
  changeWorktrees(words: readonly string[]): Promise<void>;
};

const CALL_DEADLINE_MS = 10_000;
/** Removing a worktree may remove many files. */
const WORKTREE_DEADLINE_MS = 120_000;
const BYTES_MAX = 16 * 1024 * 1024;

/** Links to the folder that worktrees share, without configuration and hooks. */
const SHARED = ['objects', 'refs', 'packed-refs', 'info', 'shallow', 'logs', 'reftable'];

/** Git's messages for a missing repository, or a bare one, which has no working tree. */
const NONE = /not a git repository|must be run in a work tree|cannot use bare repository/i;

type Start = (
  words: readonly string[],
  options: GitOptions,
  variables: ProcessEnvironment,
) => Promise<ProgramEnd>;

/** The git program and its variables. Throws a ProgramFailure if there is none. */
const findGit = ({ workspace, environment }: GitPlace) => {
  const programs = searchPrograms({ environment, workspace });
  const program = programs.find('git');
  if (program === null) {
    const skipped = programs.whyNot('git');
    const why =
      skipped === null
        ? 'git is not on the PATH (folders inside the workspace do not count): install it'
        : `git can't be used: ${skipped}. ${programs.folders.length === 0 ? 'Set PATH to the folders of your programs' : 'Install one that only you or the system can change'}`;
    throw new ProgramFailure('missing', why);
  }
  return { program, clean: cleanEnvironment(environment, programs.folders.join(path.delimiter)) };
};

const starter = (place: GitPlace): Start => {
  let found: ReturnType<typeof findGit> | null = null;
  return async (words, options, variables) => {
    found ??= findGit(place);
    return runProgram({
      program: found.program,
      words,
      title: `git ${words.find((word) => /^[a-z]+(-[a-z]+)*$/.test(word)) ?? ''}`.trim(),
      folder: variables.GIT_WORK_TREE ?? place.workspace,
      environment: withoutUndefined({ ...found.clean, ...variables }),
      input: options.input ?? null,
      bytesMax: options.bytesMax ?? BYTES_MAX,
      atMax: options.atMax ?? 'fail',
      deadlineMs: options.deadlineMs ?? CALL_DEADLINE_MS,
      signal: place.signal,
    });
  };
};

/** Rule 2: sees the real folder. */
const refMover =
  (place: GitPlace, { location, config }: LocatedRepository): Repository['moveRef'] =>
  async (move, watcher) => {
    if (place.signal.aborted) throw new ProgramFailure('stopped', 'git update-ref was stopped');
    const { program, clean } = findGit(place);
    const own = { GIT_DIR: location.gitFolder, ...authorVariables(config, place.environment) };
    const order = {
      program,
      words: HARDENING,
      folder: location.top,
      deadlineMs: CALL_DEADLINE_MS,
      environment: withoutUndefined({ ...clean, ...own }),
    };
    return moveRef(order, move, watcher);
  };

/** Rule 2: sees the real folder. */
const worktreeChanger =
  (start: Start, { location }: LocatedRepository): Repository['changeWorktrees'] =>
  async (words) => {
    const own = { GIT_DIR: location.gitFolder, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
    const end = await start([...HARDENING, 'worktree', ...words], { deadlineMs: WORKTREE_DEADLINE_MS }, own);
    if (end.code !== 0) throw refusal(['worktree', ...words], end);
  };

const withoutUndefined = (variables: ProcessEnvironment): Record<string, string> =>
  Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );

const refusal = (words: readonly string[], { code, errors }: ProgramEnd): ProgramFailure =>
  new ProgramFailure(
    'refused',
    `git ${words[0] ?? ''} failed (exit code ${code}): ${errors || 'it did not say why'}`,
  );

const OWN = ['--no-pager', '-c', 'safe.bareRepository=explicit'];
const LISTING = ['config', '--list', '-z'];

/** Asks git where the repository is. Git refuses one that belongs to another user. */
const findRepository = async (start: Start, workspace: string): Promise<RepositoryLocation | null> => {
  const words = ['rev-parse', '--path-format=absolute', '--show-toplevel', '--absolute-git-dir'];
  const end = await start([...OWN, ...words, '--git-common-dir', '--git-path', 'index'], {}, {});
  if (end.code !== 0) {
    if (NONE.test(end.errors)) return null;
    throw refusal(words, end);
  }
  const [top, gitFolder, shared, indexFile, ...more] = end.output
    .toString('utf8')
    .replace(/\n$/, '')
    .split('\n');
  if (top === undefined || gitFolder === undefined || shared === undefined || indexFile === undefined) {
    throw new ProgramFailure('refused', 'git did not say where its repository is');
  }
  if (more.length > 0)
    throw new ProgramFailure('refused', 'the path of the repository holds a line break: move it');
  // ignore a repository whose configured working tree is elsewhere
  return isWithin(workspace, top) ? { top, gitFolder, shared, indexFile } : null;
};

/**
 * Makes the folder of links (rule 2), and returns the variables that make git use it. Synchronous, since a dozen small
 * asynchronous calls took twenty times as long.
 */
const freeze = (
  { location: { top, gitFolder, shared }, config }: LocatedRepository,
  environment: ProcessEnvironment,
  scratch: string,
): ProcessEnvironment => {
  const folder = path.join(scratch, 'repository');
  const home = path.join(scratch, 'home');
  for (const place of [folder, home]) mkdirSync(place);
  writeFileSync(path.join(folder, 'config'), frozenConfig(config, environment));
  for (const name of SHARED) symlinkSync(path.join(shared, name), path.join(folder, name));
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

const openIn = (place: GitPlace, start: Start, located: LocatedRepository, scratch: string): Repository => {
  const { location, config } = located;
  const frozen = freeze(located, place.environment, scratch);
  const run: Repository['run'] = (words, options = {}) =>
    start([...HARDENING, ...words], options, { ...frozen, GIT_INDEX_FILE: options.indexFile });
  return {
    top: location.top,
    gitFolder: location.gitFolder,
    indexFile: location.indexFile,
    shared: location.shared,
    scratch,
    config,
    run,
    ask: async (words, options) => {
      const end = await run(words, options);
      if (end.code !== 0) throw refusal(words, end);
      return end.output.toString('utf8');
    },
    moveRef: refMover(place, located),
    changeWorktrees: worktreeChanger(start, located),
  };
};

const askGit = async (start: Start, workspace: string): Promise<LocatedRepository | null> => {
  const [location, listed] = await settleAll([
    findRepository(start, workspace),
    start([...OWN, ...LISTING], {}, {}),
  ]);
  if (location === null) return null;
  if (listed.code !== 0) throw refusal(LISTING, listed);
  return { location, config: parseConfig(listed.output.toString('utf8')) };
};

/**
 * Finds the repository around the workspace and its configuration; null if there is none. Starts no process while
 * cached facts are valid. Rejects with a ProgramFailure if git fails.
 */
export const locateRepository = async (place: GitPlace): Promise<LocatedRepository | null> => {
  const marked = repositoryFolders(place.workspace).top;
  if (marked === null) return null;
  const ask = async (): Promise<LocatedRepository | null> => {
    const waiting = findWaitingFile(marked, place.environment.HOME ?? '');
    if (waiting !== null) {
      const why = `git is not asked: ${waiting} is not a regular file, so git would wait for it. Remove it`;
      throw new ProgramFailure('refused', why);
    }
    const located = await askGit(starter(place), place.workspace);
    if (located !== null) checkOwnRepository(place.workspace, located.location.shared);
    return located;
  };
  return place.known?.locate(marked, ask) ?? ask();
};

/**
 * Runs `work` with the repository around the workspace; null if there is none. Rejects with a ProgramFailure if git
 * fails, and with the error of `work`.
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
  const callOff = atExit(clear);
  try {
    return await work(openIn(place, starter(place), located, scratch));
  } finally {
    clear();
    callOff();
  }
};
