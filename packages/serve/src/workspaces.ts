/**
 * Where the sessions of a node work, and what a session loses with its worktree.
 *
 * From top to bottom: `NodeWorkspaces`; `collectPastWork`, the files, commits and commands of a
 * session from its journal; and which of it a fresh worktree lacks, in words for the model.
 */

import { randomBytes } from 'node:crypto';
import { lstat, mkdir, realpath, rename, stat } from 'node:fs/promises';
import path from 'node:path';
import { collectPastFiles, type PastFiles } from '@pawl/agent/machine/seen-files';
import { attempt } from '@pawl/agent/platform/attempt';
import type { ProcessEnvironment } from '@pawl/agent/platform/environment';
import { entriesIn, entryStatus, isWithin } from '@pawl/agent/platform/files';
import { cut } from '@pawl/agent/platform/text';
import type { Entry } from '@pawl/agent/ports/journal';
import { hashLoaded, loadFile } from '@pawl/agent/tools/files';
import {
  addWorktree,
  findNewestCommit,
  hasWorktree,
  releaseWorktree,
  removeWorktree,
  resolveCommit,
  type WorktreePlace,
} from '@pawl/agent/workspace/session-worktrees';
import { ApiFault } from './api-fault.js';
import type { KeyPlaces, ServeKey } from './keys.js';
import type { NodeWorkspace } from './node-runtime.js';

/** The places, as real paths, are for keys that name none. */
export type WorkspaceOptions = KeyPlaces & {
  /** Holds the worktrees. */
  readonly dataFolder: string;
  readonly environment: ProcessEnvironment;
  readonly signal: AbortSignal;
};

type WantedWorktree = { readonly repository: string; readonly commit: string };
export type WantedWorkspace = { readonly folder: string } | WantedWorktree;

/** Fate of the workspace of a closed session. */
export type ReleasedWorkspace =
  | { readonly kind: 'untouched' }
  | { readonly kind: 'removed' }
  | { readonly kind: 'kept'; readonly path: string; readonly why: string };

type Worktree = Extract<NodeWorkspace, { readonly kind: 'worktree' }>;

const joinNames = (names: Iterable<string>): string => [...names].join(', ') || 'none';

/**
 * Where the sessions of a node work: in folders that the operator allowed, or in worktrees of
 * repositories that the operator offers, at the commit that the client names.
 */
export class NodeWorkspaces {
  readonly #options: WorkspaceOptions;
  /** `alone`: the repositories share no objects with others. */
  readonly #use: 'together' | 'alone';

  constructor(options: WorkspaceOptions, use: 'together' | 'alone' = 'together') {
    this.#options = options;
    this.#use = use;
  }

  /** Those of a key: in the places that it names, if it names any. */
  forKey({ places }: Pick<ServeKey, 'places'>): NodeWorkspaces {
    return places === undefined
      ? this
      : new NodeWorkspaces({ ...this.#options, ...places }, 'alone');
  }

  /**
   * Prepares the workspace of a new session. Rejects with an ApiFault if the operator has not
   * allowed it.
   */
  async prepare(request: WantedWorkspace): Promise<NodeWorkspace> {
    return 'folder' in request ? this.#folder(request.folder) : this.#newWorktree(request);
  }

  /**
   * Makes a worktree again that was removed with nothing lost. Rejects with an ApiFault if the
   * workspace is gone.
   */
  async ensure(workspace: NodeWorkspace): Promise<NodeWorkspace> {
    if (workspace.kind === 'worktree' && workspace.state === 'removed') {
      await this.#add(this.#worktreePlace(workspace), workspace.commit);
      return { ...workspace, state: 'present' };
    }
    if (await this.isPresent(workspace)) {
      // the operator may have changed the places since, and somebody the links on the way
      const { path: folder } =
        workspace.kind === 'worktree' ? workspace : await this.#folder(workspace.path);
      if (folder !== workspace.path) throw this.#refused(workspace.path);
      if (workspace.kind === 'worktree') this.#worktreePlace(workspace);
      return workspace;
    }
    const repair =
      workspace.kind === 'worktree'
        ? 'Move the session to a fresh worktree: POST /v1/sessions/ID/move. What was not ' +
          'committed is lost.'
        : 'Put the folder back: only sessions in a worktree can be moved.';
    throw new ApiFault(
      'workspaceGone',
      `The workspace ${workspace.path} of this session is gone. ${repair}`,
    );
  }

  async isPresent({ kind, path: folder }: NodeWorkspace): Promise<boolean> {
    if (kind === 'worktree') return hasWorktree(folder);
    const found = await attempt(() => stat(folder));
    return found.kind === 'done' && found.value.isDirectory();
  }

  /** Throws if the operator has taken the place: for a workspace that is on another node. */
  refuseTaken(workspace: NodeWorkspace): void {
    if (workspace.kind === 'worktree') this.#worktreePlace(workspace);
    else if (!this.#options.folders.some((allowed) => isWithin(workspace.path, allowed)))
      throw this.#refused(workspace.path);
  }

  /** Removes a worktree if nothing would be lost by it. Never rejects. */
  async release(workspace: NodeWorkspace): Promise<ReleasedWorkspace> {
    if (workspace.kind === 'folder' || workspace.state === 'removed') return { kind: 'untouched' };
    // Why it was kept; null if it was removed.
    const released = await attempt(async () =>
      releaseWorktree(this.#worktreePlace(workspace), workspace.commit),
    );
    const why = released.kind === 'done' ? released.value : released.fault.message;
    return why === null ? { kind: 'removed' } : { kind: 'kept', path: workspace.path, why };
  }

  /**
   * A fresh worktree at the same path, in place of one that is gone. `commits`: those of the
   * session. What still stands at the path is set aside and returned.
   */
  async renew(
    workspace: Worktree,
    commits: readonly string[],
  ): Promise<{ readonly workspace: Worktree; readonly setAside: string | null }> {
    const place = this.#worktreePlace(workspace);
    const setAside = await this.#setAside(workspace.path);
    // Git may have no record of the old one: then there is nothing to remove.
    await attempt(() => removeWorktree(place));
    const commit = await findNewestCommit(place, workspace.commit, commits);
    await this.#add(place, commit);
    return { workspace: { ...workspace, commit, state: 'present' }, setAside };
  }

  /** A worktree of a repository that shares no objects, before and after git has read them. */
  async #add(place: WorktreePlace, commit: string): Promise<void> {
    this.#refuseShared(place);
    await addWorktree(place, commit);
    this.#refuseShared(place);
  }

  #refuseShared({ repository }: WorktreePlace): void {
    const why = this.#use === 'alone' ? sharedObjects(repository) : null;
    if (why !== null) throw new ApiFault('notAllowed', `The repository can't be used: ${why}.`);
  }

  async #setAside(folder: string): Promise<string | null> {
    if ((await attempt(() => lstat(folder))).kind === 'fault') return null; // nothing stands there
    const aside = `${folder}.kept-${randomBytes(4).toString('hex')}`;
    await rename(folder, aside);
    return aside;
  }

  async #folder(folder: string): Promise<NodeWorkspace> {
    const real = path.isAbsolute(folder) ? await attempt(() => realpath(folder)) : null;
    const { folders } = this.#options;
    const isAllowed =
      real?.kind === 'done' && folders.some((allowed) => isWithin(real.value, allowed));
    if (!isAllowed) throw this.#refused(folder);
    if (!(await stat(real.value)).isDirectory())
      throw new ApiFault('badRequest', `${folder} is not a folder. Name the folder of a project.`);
    return { kind: 'folder', path: real.value };
  }

  #refused(folder: string): ApiFault {
    return new ApiFault(
      'notAllowed',
      `The operator of this node has not allowed the folder ${folder}. Allowed: ` +
        `${joinNames(this.#options.folders)}.`,
    );
  }

  async #newWorktree({ repository, commit }: WantedWorktree): Promise<NodeWorkspace> {
    const { repositories, dataFolder } = this.#options;
    if (!repositories.has(repository))
      throw new ApiFault(
        'notAllowed',
        `This node does not offer the repository ${repository}. It offers: ` +
          `${joinNames(repositories.keys())}.`,
      );
    await mkdir(dataFolder, { recursive: true, mode: 0o700 });
    const folder = path.join(
      await realpath(dataFolder),
      `${repository}-${randomBytes(6).toString('hex')}`,
    );
    const where = { kind: 'worktree', path: folder, repository } as const;
    const worktree: Worktree = { ...where, commit, state: 'present' };
    const place = this.#worktreePlace(worktree);
    this.#refuseShared(place);
    const hash = await resolveCommit(place, commit);
    if (hash === null)
      throw new ApiFault(
        'badRequest',
        `The repository ${repository} of this node has no commit ${commit}. Fetch it there ` +
          'first, or name another one.',
      );
    await this.#add(place, hash);
    return { ...worktree, commit: hash };
  }

  #worktreePlace({ repository, path: folder }: Worktree): WorktreePlace {
    const { repositories, environment, signal } = this.#options;
    const source = repositories.get(repository);
    if (source === undefined)
      throw new ApiFault(
        'conflict',
        `This node no longer offers the repository ${repository} of this session.`,
      );
    return { repository: source, path: folder, environment, signal };
  }
}

/**
 * Why a repository may share objects with another one, whose commits it would show; null if it
 * does not. A session can write there, so this is looked at before each use.
 */
export const sharedObjects = (repository: string): string | null => {
  const git = path.join(repository, '.git');
  const objects = path.join(git, 'objects');
  if (entryStatus(git)?.isDirectory() !== true || entryStatus(objects)?.isDirectory() !== true)
    return `${git} is no git folder with objects. Name a clone with a working tree`;
  const below = entriesIn(objects).filter((entry) => entry.isDirectory());
  const places = [objects, ...below.map(({ name }) => path.join(objects, name))];
  for (const folder of places) {
    const link = entriesIn(folder).find((entry) => entry.isSymbolicLink());
    if (link !== undefined)
      return `${path.join(folder, link.name)} is a link: put what it leads to in its place`;
  }
  const borrowing = ['commondir', 'objects/info/alternates'].map((name) => path.join(git, name));
  const borrowed = borrowing.find((file) => entryStatus(file) !== null);
  return borrowed === undefined
    ? null
    : `${borrowed} lends it the objects of another one. Clone it with --no-local, without ` +
        '--shared and --reference';
};

// ---- Work that a session loses with its worktree, from its journal ----

type PastWork = {
  /** sha256 of the files that its tools read or wrote, by real path. */
  readonly seen: PastFiles['seen'];
  /** The commits that were found after its calls, the oldest first. */
  readonly commits: readonly string[];
  readonly commands: readonly PastCommand[];
};

/** A command that may have changed files. `commits`: number of commits before it. */
type PastCommand = { readonly text: string; readonly commits: number };

/** Reads the entries up to `last`. */
export const collectPastWork = async (
  entries: AsyncIterable<Entry>,
  last: number,
): Promise<PastWork> => {
  const files = collectPastFiles();
  const commits: string[] = [];
  const commands = collectCommands();
  if (last > 0)
    for await (const { seq, event } of entries) {
      files.see(event); // notes the hashes of files in it
      commands.see(event, commits.length); // and the commands
      if (event.type === 'HookCompleted') commits.push(...event.commits.map(({ hash }) => hash));
      if (seq >= last) break;
    }
  return { seen: files.past().seen, commits, commands: commands.started };
};

/** Collects the commands that were started and may have changed files. */
const collectCommands = () => {
  /** The calls of the last reply that may: their text, by their id. */
  const judged = new Map<string, string>();
  const started: PastCommand[] = [];
  return {
    started,
    see(event: Entry['event'], commits: number): void {
      if (event.type === 'LlmCompleted') {
        judged.clear();
        for (const { callId, facts, traits } of event.calls)
          if (facts.shell !== undefined && traits.effect !== 'pure')
            judged.set(callId, facts.shape);
      } else if (event.type === 'ToolStarted') {
        const text = judged.get(event.callId);
        if (text !== undefined) started.push({ text, commits });
      }
    },
  };
};

/**
 * The files of the worktree that are not as the session last saw them, relative to it and sorted.
 */
export const lostFiles = async (
  { seen }: PastWork,
  worktree: string,
): Promise<readonly string[]> => {
  const lost: string[] = [];
  for (const { path: file, sha256 } of seen.values()) {
    if (!isWithin(file, worktree) || hashLoaded(await loadFile(file)) === sha256) continue;
    lost.push(path.relative(worktree, file));
  }
  return lost.toSorted();
};

/**
 * The commands that ran after the commit that the fresh worktree has: what they changed may be
 * lost.
 */
export const lostCommands = (
  { commits, commands }: PastWork,
  commit: string,
): readonly string[] => {
  const firstSince = commits.lastIndexOf(commit) + 1;
  return [
    ...new Set(commands.filter((command) => command.commits >= firstSince).map(({ text }) => text)),
  ];
};

type LostWork = {
  readonly commit: string;
  readonly files: readonly string[];
  readonly commands: readonly string[];
};

const LISTED_MAX = 100;
const TEXT_MAX = 200;

const inOneLine = (text: string): string => {
  const quoted = JSON.stringify(text).slice(1, -1);
  return cut(quoted, TEXT_MAX);
};

/** One line a text. Of many the last ones are listed, which matter most. */
const list = (texts: readonly string[]): readonly string[] => {
  const more = texts.length - LISTED_MAX;
  return [
    ...texts.slice(-LISTED_MAX).map((text) => `- ${inOneLine(text)}`),
    ...(more > 0 ? [`- and ${more} more`] : []),
  ];
};

/** Text for the model, before the next input. */
export const moveNotice = ({ commit, files, commands }: LostWork): string =>
  [
    `[The workspace was lost. It is now a fresh worktree at commit ${commit.slice(0, 12)}, ` +
      'at the same path.',
    ...(files.length === 0
      ? ['No file that you read or wrote with a tool is lost.']
      : [
          'These files are not as you last saw them, since their changes were not committed:',
          ...list(files),
        ]),
    ...(commands.length === 0
      ? []
      : ['What these commands changed since that commit may be lost too:', ...list(commands)]),
    'Ignored files such as installed packages are gone, and background commands have ended. ' +
      'Read files again before you rely on them.]',
  ].join('\n');
