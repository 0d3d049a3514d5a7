import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { atExit } from './at-exit.js';
import {
  authorVariables,
  cleanEnvironment,
  type Environment,
  frozenConfig,
  type GitConfig,
  HARDENING,
  parseConfig,
} from './git-config.js';
import type { Found, KnownRepository, Opened } from './known-repository.js';
import { findGit, isWithin, markedFolder, safeSearchPath } from './locate.js';
import { type ProgramEnd, ProgramFailure, type ProgramOrder, runProgram, settleAll } from './program.js';

/**
 * Every call of git that Pawl itself makes.
 *
 * 1. Nothing that a repository names is ever run: no hook, filter, fsmonitor, diff or merge program, textconv, pager,
 *    editor, alias, credential helper, transport, signature program.
 * 2. Two commands see the repository's own configuration, and neither runs anything that it names: `rev-parse` and
 *    `config --list`. All others see the repository through a folder of links in which the configuration is ours: a
 *    frozen copy of the settings that say how things are stored. So it does not matter how a filter is called, what
 *    is included from where, or whether the configuration changes meanwhile. `moveRef` is the one exception, since
 *    it must write to the real folder: it runs hooks only, and is told that there are none.
 * 3. No configuration is ever written. Submodules are not entered.
 * 4. Where there is no `.git` in the workspace or above, no process is started.
 */

export type GitPlace = {
  /** Real absolute path. */
  readonly workspace: string;
  readonly environment: Environment;
  readonly signal: AbortSignal;
  /** What is known from earlier times; git is asked each time if left out. */
  readonly known?: KnownRepository;
};

export type GitOptions = {
  /** What the command reads; nothing if left out. */
  readonly input?: string;
  /** An index of our own instead of the user's. */
  readonly indexFile?: string;
  readonly bytesMax?: number;
  readonly atMax?: ProgramOrder['atMax'];
};

export type Repository = {
  /** Top folder of the working tree; the commands run there. */
  readonly top: string;
  readonly gitFolder: string;
  readonly indexFile: string;
  /** A private folder that lives as long as this object. */
  readonly scratch: string;
  /** The configuration as it was when the repository was opened. */
  readonly config: GitConfig;
  /** Runs a command to its end, whatever its exit code. */
  run(words: readonly string[], options?: GitOptions): Promise<ProgramEnd>;
  /** What a command prints; rejects where it ends with another code than 0. */
  ask(words: readonly string[], options?: GitOptions): Promise<string>;
  /** `update-ref`. Once begun it is not stopped: killed, it would leave its lock to the user. */
  moveRef(words: readonly string[]): Promise<ProgramEnd>;
};

const UNSTOPPABLE = new AbortController().signal;
const CALL_DEADLINE_MS = 10_000;
const BYTES_MAX = 16 * 1024 * 1024;

/** What git finds in the folder that worktrees share. The configuration and the hooks are not among it. */
const SHARED = ['objects', 'refs', 'packed-refs', 'info', 'shallow', 'logs', 'reftable'];

/** git's words for "there is none here", also for a bare one, which has no working tree to look at. */
const NONE = /not a git repository|must be run in a work tree|cannot use bare repository/i;

type Start = (
  words: readonly string[],
  options: GitOptions,
  variables: Environment,
  stop?: AbortSignal,
) => Promise<ProgramEnd>;

const starter = (place: GitPlace): Start => {
  const { workspace, environment, signal } = place;
  const folders = safeSearchPath(environment.PATH ?? '', environment.HOME ?? '', workspace);
  const program = findGit(folders);
  const clean = cleanEnvironment(environment, folders.join(path.delimiter));
  return (words, options, variables, stop = signal) => {
    if (program === null) {
      const why = 'git is not on the PATH (folders inside the workspace do not count): install it';
      return Promise.reject(new ProgramFailure('missing', why));
    }
    return runProgram({
      program,
      words,
      title: `git ${words.find((word) => /^[a-z]+(-[a-z]+)*$/.test(word)) ?? ''}`.trim(),
      folder: variables.GIT_WORK_TREE ?? workspace,
      environment: withoutUndefined({ ...clean, ...variables }),
      input: options.input ?? null,
      bytesMax: options.bytesMax ?? BYTES_MAX,
      atMax: options.atMax ?? 'fail',
      deadlineMs: CALL_DEADLINE_MS,
      signal: stop,
    });
  };
};

const withoutUndefined = (variables: Environment): Record<string, string> =>
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

/** Where the repository is, asked of git itself, which also refuses one that belongs to somebody else. */
const findRepository = async (start: Start, workspace: string): Promise<Found | null> => {
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
  // a working tree set to some other place is not the one that the session works in
  return isWithin(workspace, top) ? { top, gitFolder, shared, indexFile } : null;
};

/**
 * The folder of links of invariant 2, and the variables that make git look through it. A dozen small calls with every
 * look: made as promises they took twenty times as long.
 */
const freeze = (
  { found: { top, gitFolder, shared }, config }: Opened,
  environment: Environment,
  scratch: string,
): Environment => {
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

const openIn = (place: GitPlace, start: Start, opened: Opened, scratch: string): Repository => {
  const { found, config } = opened;
  const frozen = freeze(opened, place.environment, scratch);
  const run: Repository['run'] = (words, options = {}) =>
    start([...HARDENING, ...words], options, { ...frozen, GIT_INDEX_FILE: options.indexFile });
  return {
    ...{ top: found.top, gitFolder: found.gitFolder, indexFile: found.indexFile, scratch, config, run },
    ask: async (words, options) => {
      const end = await run(words, options);
      if (end.code !== 0) throw refusal(words, end);
      return end.output.toString('utf8');
    },
    moveRef: (words) =>
      start(
        [...HARDENING, 'update-ref', ...words],
        {},
        { GIT_DIR: found.gitFolder, ...authorVariables(config, place.environment) },
        place.signal.aborted ? place.signal : UNSTOPPABLE,
      ),
  };
};

const askGit = async (start: Start, workspace: string): Promise<Opened | null> => {
  const [found, listed] = await settleAll([
    findRepository(start, workspace),
    start([...OWN, ...LISTING], {}, {}),
  ]);
  if (found === null) return null;
  if (listed.code !== 0) throw refusal(LISTING, listed);
  return { found, config: parseConfig(listed.output.toString('utf8')) };
};

/**
 * Works with the repository that the workspace lies in; null where there is none. Rejects with a ProgramFailure where git
 * can't be asked, and with what `work` rejects with.
 */
export const useRepository = async <T>(
  place: GitPlace,
  work: (repository: Repository) => Promise<T>,
): Promise<T | null> => {
  const marked = markedFolder(place.workspace);
  if (marked === null) return null;
  const start = starter(place);
  const ask = (): Promise<Opened | null> => askGit(start, place.workspace);
  const opened = await (place.known?.open(marked, ask) ?? ask());
  if (opened === null) return null;
  const scratch = mkdtempSync(path.join(tmpdir(), 'pawl-git-'));
  const clear = (): void => rmSync(scratch, { recursive: true, force: true });
  const callOff = atExit(clear);
  try {
    return await work(openIn(place, start, opened, scratch));
  } finally {
    clear();
    callOff();
  }
};
