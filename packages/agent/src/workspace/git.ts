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
import { type ProgramPath, searchPrograms } from '../platform/find-program.js';
import { hasEnded, identifyProcess, type ProcessIdentity } from '../platform/process-identity.js';
import { folderAbove, repositoryFolders } from '../platform/repository-folders.js';
import {
  type ProgramEnd,
  ProgramFailure,
  type ProgramOrder,
  runProgram,
  settleAll,
} from '../platform/run-program.js';
import { atExit, startProgram } from '../platform/start-program.js';
import { plural } from '../platform/text.js';
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

export type GitPlace = {
  /** Real absolute path. */
  readonly workspace: string;
  readonly environment: ProcessEnvironment;
  readonly signal: AbortSignal;
  /** Cached facts about the repository. Without it, git is asked each time. */
  readonly known?: KnownRepository;
};

type GitOptions = {
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
const askLocation = async (start: Start, workspace: string): Promise<RepositoryLocation | null> => {
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
    askLocation(start, workspace),
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

/**
 * Moves a ref with `git update-ref --stdin`, in two steps.
 *
 * 1. git first takes its locks and waits. So there is a moment at which we know exactly which locks it holds for us.
 * 2. If this program is killed before the second step, git reads the end of its input, changes nothing and removes its
 *    locks. It is not ended with this program, since it would then leave its locks behind.
 */

type RefMove = {
  /** A full name, or HEAD if it is detached. */
  readonly ref: string;
  /** Null: the ref must not exist. */
  readonly from: string | null;
  readonly to: string;
  /** For the reflog. */
  readonly why: string;
};

type RefWatcher = {
  /** Called before git takes any lock. */
  started(pid: number): void;
  /** Called while git holds its locks and has changed nothing. */
  locked(): void;
};

/** Whether git said that it has moved the ref, and what it said on stderr. */
type RefOutcome = { readonly moved: boolean; readonly errors: string };

type RefProgram = {
  readonly program: ProgramPath;
  /** Words before `update-ref`. */
  readonly words: readonly string[];
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly deadlineMs: number;
};

const ERRORS_MAX = 4_096;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

const orders = ({ ref, from, to }: RefMove): string =>
  [
    'start',
    ...(ref === 'HEAD' ? ['option no-deref'] : []),
    `update ${ref} ${to} ${from ?? '0'.repeat(to.length)}`,
    'prepare\n',
  ].join('\n');

const startUpdateRef = ({ program, words, folder, environment }: RefProgram, why: string): Child =>
  startProgram(program, [...words, 'update-ref', '-m', why, '--stdin'], {
    cwd: folder,
    env: environment,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    // three pipes, which the general type of startProgram does not say
  }) as Child;

/** Tells `prepared` once, when git says that it holds its locks. */
const awaitPrepared = (child: Child, prepared: () => void): void => {
  let said = '';
  let isPrepared = false;
  child.stdout.on('data', (piece: Buffer) => {
    if (isPrepared) return;
    said += piece.toString('latin1');
    isPrepared = said.includes('prepare: ok\n');
    if (isPrepared) prepared();
  });
};

/** Rejects only if git can't be started, or `watcher` throws: nothing has changed then. */
const moveRef = (order: RefProgram, move: RefMove, watcher: RefWatcher): Promise<RefOutcome> =>
  new Promise((resolve, reject) => {
    const child = startUpdateRef(order, move.why);
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
    const patience = setTimeout(() => child.kill('SIGTERM'), order.deadlineMs); // git removes its locks
    child.once('error', (error) => {
      if (pid !== undefined) return; // it is running and will still end
      clearTimeout(patience);
      reject(new ProgramFailure('missing', `${order.program} can't be started: ${error.message}`));
    });
    child.stdin.on('error', () => undefined); // it ended early: its exit code tells more
    child.stderr.on('data', (piece: Buffer) => {
      if (errors.length < ERRORS_MAX) errors += piece.toString('utf8').slice(0, ERRORS_MAX - errors.length);
    });
    child.once('close', (code) => {
      clearTimeout(patience);
      if (fault !== null) reject(fault);
      else resolve({ moved: code === 0, errors: errors.trim() });
    });
    if (pid === undefined) return;
    awaitPrepared(child, () =>
      attempt(() => {
        watcher.locked();
        child.stdin.end('commit\n');
      }),
    );
    attempt(() => {
      watcher.started(pid);
      child.stdin.write(orders(move));
    });
  });

/**
 * A temporary folder for one use of git. A killed program leaves it behind; the next one removes it.
 *
 * 1. A folder names its process. It is removed only if that process has certainly ended, and the folder is the user's.
 * 2. A folder that names nobody, since its program was killed at that moment, is removed after a day.
 */

const PREFIX = 'pawl-git-';
const OWNER = 'owner.json';
const OWNER_BYTES_MAX = 4_096;
const DAY_MS = 24 * 60 * 60 * 1000;

let isSwept = false;

const ownerOf = (folder: string): ProcessIdentity | null => {
  try {
    const value: unknown = JSON.parse(readTextOrEmptySync(path.join(folder, OWNER), OWNER_BYTES_MAX));
    const isIdentity = typeof value === 'object' && value !== null && 'pid' in value && 'pids' in value;
    return isIdentity ? (value as ProcessIdentity) : null; // only we write to it, and this is what we write
  } catch {
    return null;
  }
};

const isLeftBehind = (folder: string): boolean => {
  const status = lstatSync(folder, { throwIfNoEntry: false });
  if (status?.isDirectory() !== true || status.uid !== process.getuid?.()) return false;
  const owner = ownerOf(folder);
  return owner === null ? Date.now() - status.mtimeMs > DAY_MS : hasEnded(owner);
};

/** Removes what killed programs have left. A folder that can't be removed is left to the next one. */
const sweep = (parent: string): void => {
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(PREFIX)) continue;
    const folder = path.join(parent, name);
    try {
      if (isLeftBehind(folder)) rmSync(folder, { recursive: true, force: true });
    } catch {
      // another program removes it at the same moment, or may do what we may not
    }
  }
};

/** Makes the folder. The first one of a program removes those of killed programs. */
export const makeScratch = (): string => {
  const parent = tmpdir();
  const folder = mkdtempSync(path.join(parent, PREFIX));
  writeFileSync(path.join(folder, OWNER), JSON.stringify(identifyProcess()));
  if (!isSwept) {
    isSwept = true;
    sweep(parent);
  }
  return folder;
};

/**
 * Checks that a working tree's git folder is really its own.
 *
 * A hostile `.git` (a file, a symlink, a folder with `commondir`) may name another repository of the user. Commits
 * would go there, and the model could read its content. Git itself does not check this.
 */

const refused = (why: string): ProgramFailure => new ProgramFailure('refused', `git is not asked: ${why}`);

/** Throws a ProgramFailure if it is not. `shared`: the folder of the objects, according to git. */
const checkOwnRepository = (workspace: string, shared: string): void => {
  const own = findRepository(workspace);
  if (own.kind === 'refused') throw refused(own.why);
  if (own.kind === 'found' && realpathSync(own.repository.folder) !== realpathSync(shared)) {
    throw refused(`the repository in ${own.repository.top} names another one, ${shared}, as its own`);
  }
};

/** Finds repositories without starting a process. */

/** The nearest folder at or above `folder` that contains `.git`; null if there is none. */
export const markedFolder = (folder: string): string | null => {
  for (let place: string | null = folder; place !== null; place = folderAbove(place)) {
    if (existsSync(path.join(place, '.git'))) return place;
  }
  return null;
};

/** Makes names chosen by others safe to show to models and people. */

const SHOWN_MAX = 200;

/** A name or subject as one line of limited length, without control characters. */
export const oneLine = (text: string): string => {
  const line = text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/\p{Cf}/gu, '')
    .trim();
  const characters = [...line];
  return characters.length <= SHOWN_MAX ? line : `${characters.slice(0, SHOWN_MAX).join('')}…`;
};

/** `3 files, +10 -2`. */
export const statistics = (files: number, insertions: number, deletions: number): string =>
  `${plural(files, 'file')}, +${insertions} -${deletions}`;
