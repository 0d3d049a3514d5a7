import type { ChildProcessByStdio } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { findRepository } from '../command/sandbox/git-folders.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { isWithin, readTextOrEmptySync } from '../platform/files.js';
import { searchPrograms } from '../platform/find-program.js';
import { hasEnded, identifyProcess, type ProcessIdentity } from '../platform/process-identity.js';
import { folderAbove, repositoryFolders } from '../platform/repository-folders.js';
import {
  type ProgramEnd,
  ProgramFailure,
  type ProgramRequest,
  runProgram,
  settleAll,
} from '../platform/run-program.js';
import { atExit, startProgram } from '../platform/start-program.js';
import {
  authorVariables,
  cleanEnvironment,
  findWaitingFile,
  frozenConfig,
  type GitConfig,
  HARDENING,
  type KnownRepository,
  type LocatedRepository,
  parseConfig,
  type RepositoryLocation,
} from './repository-location.js';

/**
 * Runs git. All calls of git by Pawl are here.
 *
 * No program that a repository names ever runs: no hook, filter, fsmonitor, diff or merge program,
 * textconv, pager, editor, alias, credential helper, transport or signature program. Only
 * `rev-parse` and `config --list` see the configuration of the repository, and neither runs a
 * program that it names. All other commands see the repository through a folder of links with our
 * own configuration, a copy of the settings that say how files are stored. So names of filters,
 * includes and later changes of the configuration have no effect. The exceptions are `moveRef`,
 * `changeHead` and `changeWorktrees`, which must write to the real folder: they could only run
 * hooks, and those are turned off.
 *
 * Configuration is never written. Submodules are ignored. Without a `.git` in or above the
 * workspace, or below another user's, no process is started.
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
  readonly atMax?: ProgramRequest['atMax'];
  /** Default: 10 s. */
  readonly deadlineMs?: number;
};

export type Repository = RepositoryLocation & {
  /** A private folder, removed together with this object. */
  readonly scratch: string;
  /** The configuration as it was when the repository was opened. */
  readonly config: GitConfig;
  /** Runs a command in the top folder of the working tree and returns its exit code and output. */
  run(args: readonly string[], options?: GitOptions): Promise<ProgramEnd>;
  /** Runs a command and returns its output. Rejects if the exit code is not 0. */
  ask(args: readonly string[], options?: GitOptions): Promise<string>;
  /** Runs a command and returns its trimmed output; null if the exit code is not 0. */
  tryAsk(args: readonly string[]): Promise<string | null>;
  /** Moves a ref. Nothing stops it after its start, since it would leave its locks behind. */
  moveRef(move: RefMove, watcher: RefWatcher): Promise<RefOutcome>;
  /**
   * Runs `git worktree` with these arguments. It must check nothing out. Rejects if the exit code
   * is not 0.
   */
  changeWorktrees(args: readonly string[]): Promise<void>;
  /** Puts HEAD on a branch, given by its full name. Changes no file. Rejects if git refuses. */
  changeHead(branch: string, why: string): Promise<void>;
};

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
 */
export const locateRepository = async (place: GitPlace): Promise<LocatedRepository | null> => {
  const marked = repositoryFolders(place.workspace).top;
  if (marked === null) return null;
  const ask = async (): Promise<LocatedRepository | null> => {
    const waiting = findWaitingFile(marked, place.environment.HOME ?? '');
    if (waiting !== null)
      throw notAsked(`${waiting} is not a regular file, so git would wait for it. Remove it`);
    const run = createRunner(place);
    const [location, listed] = await settleAll([
      askLocation(run, place.workspace),
      run([...OWN, ...LISTING], {}, {}),
    ]);
    if (location === null) return null;
    if (listed.code !== 0) throw refusal(LISTING, listed);
    checkOwnRepository(place.workspace, location.shared);
    return { location, config: parseConfig(listed.output.toString('utf8')) };
  };
  return place.known?.locate(marked, ask) ?? ask();
};

/** The commit that a revision names; null if there is none. */
export const findCommit = (repository: Repository, revision: string): Promise<string | null> =>
  repository.tryAsk(['rev-parse', '--verify', '--quiet', revision]);

export const hasCommit = async (repository: Repository, hash: string): Promise<boolean> =>
  (await repository.tryAsk(['cat-file', '-e', `${hash}^{commit}`])) !== null;

/** Whether `later` is the commit or comes after it. */
export const isAncestor = async (
  repository: Repository,
  commit: string,
  later: string,
): Promise<boolean> =>
  (await repository.tryAsk(['merge-base', '--is-ancestor', commit, later])) !== null;

const OWN = ['--no-pager', '-c', 'safe.bareRepository=explicit'];
const LISTING = ['config', '--list', '-z'];

/** Git's messages for a missing repository, or a bare one, which has no working tree. */
const NONE = /not a git repository|must be run in a work tree|cannot use bare repository/i;

/** Asks git where the repository is. Git refuses one that belongs to another user. */
const askLocation = async (run: RunGit, workspace: string): Promise<RepositoryLocation | null> => {
  const args = ['rev-parse', '--path-format=absolute', '--show-toplevel', '--absolute-git-dir'];
  const end = await run([...OWN, ...args, '--git-common-dir', '--git-path', 'index'], {}, {});
  if (end.code !== 0) {
    if (NONE.test(end.errors)) return null;
    throw refusal(args, end);
  }
  const lines = end.output.toString('utf8').replace(/\n$/, '').split('\n');
  const [top, gitFolder, shared, indexFile, ...more] = lines;
  if (
    top === undefined ||
    gitFolder === undefined ||
    shared === undefined ||
    indexFile === undefined
  )
    throw new ProgramFailure('refused', 'git did not say where its repository is');
  if (more.length > 0)
    throw new ProgramFailure('refused', 'the path of the repository holds a line break: move it');
  // ignore a repository whose configured working tree is elsewhere
  return isWithin(workspace, top) ? { top, gitFolder, shared, indexFile } : null;
};

/**
 * Throws a ProgramFailure if a working tree's git folder belongs to another one. `shared`: the
 * folder of the objects, according to git.
 *
 * A hostile `.git` (a file, a symlink, a folder with `commondir`) may name another repository of
 * the user. Commits would go there, and the model could read its content. Git itself does not check
 * this.
 */
const checkOwnRepository = (workspace: string, shared: string): void => {
  const expected = findRepository(workspace);
  if (expected.kind === 'refused') throw notAsked(expected.why);
  if (
    expected.kind === 'found' &&
    realpathSync(expected.repository.folder) !== realpathSync(shared)
  )
    throw notAsked(
      `the repository in ${expected.repository.top} names another one, ${shared}, as its own`,
    );
};

const notAsked = (why: string): ProgramFailure =>
  new ProgramFailure('refused', `git is not asked: ${why}`);

const refusal = (args: readonly string[], { code, errors }: ProgramEnd): ProgramFailure => {
  const why = errors || 'it did not say why';
  return new ProgramFailure('refused', `git ${args[0] ?? ''} failed (exit code ${code}): ${why}`);
};

// ---- An open repository ----

/** Removing a worktree may remove many files. */
const WORKTREE_DEADLINE_MS = 120_000;

const openRepository = (
  place: GitPlace,
  located: LocatedRepository,
  scratch: string,
): Repository => {
  const { location, config } = located;
  const runGit = createRunner(place);
  const frozen = freeze(located, place.environment, scratch);
  const run: Repository['run'] = (args, options = {}) =>
    runGit([...HARDENING, ...args], options, { ...frozen, GIT_INDEX_FILE: options.indexFile });
  // sees the real folder
  const runReal = async (words: readonly string[], deadlineMs?: number): Promise<void> => {
    const variables = {
      GIT_DIR: location.gitFolder,
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_NOSYSTEM: '1',
      ...authorVariables(config, place.environment),
    };
    const options = deadlineMs === undefined ? {} : { deadlineMs };
    const end = await runGit([...HARDENING, ...words], options, variables);
    if (end.code !== 0) throw refusal(words, end);
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
    tryAsk: async (args) => {
      const { code, output } = await run(args);
      return code === 0 ? output.toString('utf8').trim() : null;
    },
    moveRef: async (move, watcher) => moveRef(place, located, move, watcher),
    changeWorktrees: async (args) => runReal(['worktree', ...args], WORKTREE_DEADLINE_MS),
    changeHead: async (branch, why) => runReal(['symbolic-ref', '-m', why, 'HEAD', branch]),
  };
};

/** Links to the folder that worktrees share, without configuration and hooks. */
const SHARED_LINKS = ['objects', 'refs', 'packed-refs', 'info', 'shallow', 'logs', 'reftable'];

/**
 * Makes the folder of links, and returns the variables that make git use it. Synchronous, since a
 * dozen small asynchronous calls took twenty times as long.
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

// ---- The program ----

const CALL_DEADLINE_MS = 10_000;
const BYTES_MAX = 16 * 1024 * 1024;

type RunGit = (
  args: readonly string[],
  options: GitOptions,
  variables: ProcessEnvironment,
) => Promise<ProgramEnd>;

/** Runs git, which is looked for at the first use. */
const createRunner = (place: GitPlace): RunGit => {
  let git: ReturnType<typeof findGit> | null = null;
  return async (args, { input, bytesMax, atMax, deadlineMs }, variables) => {
    git ??= findGit(place);
    return runProgram({
      program: git.program,
      words: args,
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

// ---- Moving a ref ----

export type RefMove = {
  /** A full name, or HEAD if it is detached. */
  readonly ref: string;
  /** Null: the ref must not exist. `any`: it is not looked at. */
  readonly from: string | null | 'any';
  /** Null: the ref is removed. */
  readonly to: string | null;
  /** For the reflog. */
  readonly why: string;
};

export type RefWatcher = {
  /** Called before git takes any lock. */
  started(pid: number): void;
  /** Called while git holds its locks and has changed nothing. */
  locked(): void;
};

/** Whether git reports that it has moved the ref, and its stderr. */
export type RefOutcome = { readonly moved: boolean; readonly errors: string };

const ERRORS_MAX = 4_096;

/**
 * Moves a ref of the real repository with `git update-ref --stdin`, in two steps. Git first takes
 * its locks and waits, so there is a moment at which we know exactly which locks it holds for us.
 * If this program is killed before the second step, git reads the end of its input, changes nothing
 * and removes its locks. It is not ended with this program, since it would then leave its locks
 * behind.
 *
 * Rejects only if git can't be started, or `watcher` throws: nothing has changed then.
 */
const moveRef = (
  place: GitPlace,
  located: LocatedRepository,
  move: RefMove,
  watcher: RefWatcher,
): Promise<RefOutcome> =>
  new Promise((resolve, reject) => {
    if (place.signal.aborted) throw new ProgramFailure('stopped', 'git update-ref was stopped');
    const { program, child } = startUpdateRef(place, located, move);
    const { pid } = child;
    let errors = '';
    let fault: unknown = null;
    /** Runs a step of the watcher; its failure ends the input, so that git changes nothing. */
    const attempt = (step: () => void): void => {
      try {
        step();
      } catch (error) {
        fault = error;
        child.stdin.end();
      }
    };
    // git removes its locks
    const patience = setTimeout(() => child.kill('SIGTERM'), CALL_DEADLINE_MS);
    child.once('error', (error) => {
      if (pid !== undefined) return; // it is running and will still end
      clearTimeout(patience);
      reject(new ProgramFailure('missing', `${program} can't be started: ${error.message}`));
    });
    child.stdin.on('error', () => undefined); // it ended early: its exit code tells more
    child.stderr.on('data', (piece: Buffer) => {
      if (errors.length < ERRORS_MAX)
        errors += piece.toString('utf8').slice(0, ERRORS_MAX - errors.length);
    });
    child.once('close', (code) => {
      clearTimeout(patience);
      if (fault !== null) reject(fault);
      else resolve({ moved: code === 0, errors: errors.trim() });
    });
    if (pid === undefined) return;
    onPrepared(child, () =>
      attempt(() => {
        watcher.locked();
        child.stdin.end('commit\n');
      }),
    );
    attempt(() => {
      watcher.started(pid);
      child.stdin.write(updateRefInput(move));
    });
  });

type UpdateRef = ChildProcessByStdio<Writable, Readable, Readable>;

const startUpdateRef = (
  place: GitPlace,
  { location, config }: LocatedRepository,
  { ref, why }: RefMove,
) => {
  const { program, clean } = findGit(place);
  // of our own refs git keeps no log by itself
  const log = ref.startsWith('refs/pawl/') ? ['--create-reflog'] : [];
  const variables = { GIT_DIR: location.gitFolder, ...authorVariables(config, place.environment) };
  const child = startProgram(program, [...HARDENING, 'update-ref', ...log, '-m', why, '--stdin'], {
    cwd: location.top,
    env: withoutUndefined({ ...clean, ...variables }),
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    // three pipes, which the general type of startProgram does not say
  }) as UpdateRef;
  return { program, child };
};

const updateRefInput = ({ ref, from, to }: RefMove): string =>
  [
    'start',
    ...(ref === 'HEAD' ? ['option no-deref'] : []),
    to === null
      ? `delete ${ref} ${from ?? ''}`
      : `update ${ref} ${to}${from === 'any' ? '' : ` ${from ?? '0'.repeat(to.length)}`}`,
    'prepare\n',
  ].join('\n');

/** Calls `prepared` once, when git says that it holds its locks. */
const onPrepared = (child: UpdateRef, prepared: () => void): void => {
  let output = '';
  let isPrepared = false;
  child.stdout.on('data', (piece: Buffer) => {
    if (isPrepared) return;
    output += piece.toString('latin1');
    isPrepared = output.includes('prepare: ok\n');
    if (isPrepared) prepared();
  });
};

// ---- Temporary folders ----

const SCRATCH_PREFIX = 'pawl-git-';
const OWNER = 'owner.json';
const OWNER_BYTES_MAX = 4_096;
const DAY_MS = 24 * 60 * 60 * 1000;

let isSwept = false;

/**
 * Makes a temporary folder for one use of git, which names its process. A killed program leaves it
 * behind; the first use of the next program removes it.
 */
export const makeScratch = (): string => {
  const parent = tmpdir();
  const folder = mkdtempSync(path.join(parent, SCRATCH_PREFIX));
  writeFileSync(path.join(folder, OWNER), JSON.stringify(identifyProcess()));
  if (!isSwept) {
    isSwept = true;
    sweep(parent);
  }
  return folder;
};

/** Removes the folders of killed programs. The next one retries a folder that can't be removed. */
const sweep = (parent: string): void => {
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(SCRATCH_PREFIX)) continue;
    const folder = path.join(parent, name);
    try {
      if (isLeftBehind(folder)) rmSync(folder, { recursive: true, force: true });
    } catch {
      // another program removes it at the same moment, or may do what we may not
    }
  }
};

/**
 * Whether a folder of this user is of a process that has certainly ended; without a name, whether
 * it is a day old.
 */
const isLeftBehind = (folder: string): boolean => {
  const status = lstatSync(folder, { throwIfNoEntry: false });
  if (status?.isDirectory() !== true || status.uid !== process.getuid?.()) return false;
  const owner = readOwner(folder);
  return owner === null ? Date.now() - status.mtimeMs > DAY_MS : hasEnded(owner);
};

const readOwner = (folder: string): ProcessIdentity | null => {
  try {
    const value: unknown = JSON.parse(
      readTextOrEmptySync(path.join(folder, OWNER), OWNER_BYTES_MAX),
    );
    const isIdentity =
      typeof value === 'object' && value !== null && 'pid' in value && 'pids' in value;
    // only we write to it, and this is what we write
    return isIdentity ? (value as ProcessIdentity) : null;
  } catch {
    return null;
  }
};

// ---- Folders and names ----

/**
 * The nearest folder at or above `folder` that contains `.git`; null if there is none. Starts no
 * process.
 */
export const markedFolder = (folder: string): string | null => {
  for (let place: string | null = folder; place !== null; place = folderAbove(place)) {
    if (existsSync(path.join(place, '.git'))) return place;
  }
  return null;
};

const SHOWN_MAX = 200;

/**
 * A name or subject that others chose, safe to show to models and people: one line of limited
 * length, without control characters.
 */
export const oneLine = (text: string): string => {
  const line = text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/\p{Cf}/gu, '')
    .trim();
  const characters = [...line];
  return characters.length <= SHOWN_MAX ? line : `${characters.slice(0, SHOWN_MAX).join('')}…`;
};
