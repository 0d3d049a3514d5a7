import { randomBytes } from 'node:crypto';
import { lstat, mkdir, realpath, rename, stat } from 'node:fs/promises';
import path from 'node:path';
import type { ProcessEnvironment } from '@pawl/agent/platform/base/process-environment-type';
import { isWithin } from '@pawl/agent/platform/files/is-within';
import { attempt } from '@pawl/agent/session/attempt';
import {
  addWorktree,
  hasWorktree,
  lookAtWorktree,
  newestKept,
  removeWorktree,
  resolveCommit,
  type WorktreePlace,
} from '@pawl/agent/workspace/git/session-worktrees';
import { ApiFault } from '../http/api-fault.js';
import type { NodeWorkspace } from './session-records.js';

/**
 * Where the sessions of a node work: in folders that the operator allowed, or in worktrees of repositories that the
 * operator offers, at the commit that the client names.
 */

export type WorkspaceOptions = {
  /** Real paths of the folders in which, and below which, sessions may work. */
  readonly folders: readonly string[];
  /** Real paths of the offered repositories by name. */
  readonly repositories: ReadonlyMap<string, string>;
  /** Holds the worktrees. */
  readonly dataFolder: string;
  readonly environment: ProcessEnvironment;
  readonly signal: AbortSignal;
};

export type WantedWorkspace =
  | { readonly folder: string }
  | { readonly repository: string; readonly commit: string };

/** What became of a workspace whose session was closed. */
export type ReleasedWorkspace =
  | { readonly kind: 'untouched' }
  | { readonly kind: 'removed' }
  | { readonly kind: 'kept'; readonly path: string; readonly why: string };

type Worktree = Extract<NodeWorkspace, { readonly kind: 'worktree' }>;

const listed = (names: Iterable<string>): string => [...names].join(', ') || 'none';

const NAMED_MAX = 5;
const someOf = (paths: readonly string[]): string =>
  paths.length <= NAMED_MAX
    ? paths.join(', ')
    : `${paths.slice(0, NAMED_MAX).join(', ')} and ${paths.length - NAMED_MAX} more`;

export class NodeWorkspaces {
  readonly #options: WorkspaceOptions;

  constructor(options: WorkspaceOptions) {
    this.#options = options;
  }

  /** Prepares the workspace of a new session. Rejects with an ApiFault if the operator has not allowed it. */
  async prepare(wanted: WantedWorkspace): Promise<NodeWorkspace> {
    return 'folder' in wanted ? this.#folder(wanted.folder) : this.#newWorktree(wanted);
  }

  /** Makes a worktree again that was removed with nothing lost. Rejects with an ApiFault if the workspace is gone. */
  async ensure(workspace: NodeWorkspace): Promise<NodeWorkspace> {
    if (workspace.kind === 'worktree' && workspace.state === 'removed') {
      await addWorktree(this.#place(workspace), workspace.commit);
      return { ...workspace, state: 'present' };
    }
    if (await this.isPresent(workspace)) return workspace;
    const repair =
      workspace.kind === 'worktree'
        ? 'Move the session to a fresh worktree: POST /v1/sessions/ID/move. What was not committed is lost.'
        : 'Put the folder back: only sessions in a worktree can be moved.';
    throw new ApiFault('workspaceGone', `The workspace ${workspace.path} of this session is gone. ${repair}`);
  }

  async isPresent({ kind, path: folder }: NodeWorkspace): Promise<boolean> {
    if (kind === 'worktree') return hasWorktree(folder);
    return (await attempt(async () => (await stat(folder)).isDirectory())).kind === 'done';
  }

  /** Removes a worktree if nothing would be lost by it. Never rejects. */
  async release(workspace: NodeWorkspace): Promise<ReleasedWorkspace> {
    if (workspace.kind === 'folder' || workspace.state === 'removed') return { kind: 'untouched' };
    const place = this.#place(workspace);
    const kept = (why: string): ReleasedWorkspace => ({ kind: 'kept', path: workspace.path, why });
    const looked = await attempt(() => lookAtWorktree(place, workspace.commit));
    if (looked.kind === 'fault') return kept(`git could not tell what is in it: ${looked.fault.message}`);
    const { changed, hasOwnCommits } = looked.value;
    if (changed.length > 0) return kept(`not committed: ${someOf(changed)}`);
    if (hasOwnCommits) return kept('it holds commits that no branch has');
    const removed = await attempt(() => removeWorktree(place));
    return removed.kind === 'done' ? { kind: 'removed' } : kept(removed.fault.message);
  }

  /**
   * A fresh worktree at the same path, in place of one that is gone. `commits`: those that the session made. What still
   * stands at the path is set aside and returned.
   */
  async renew(
    workspace: Worktree,
    commits: readonly string[],
  ): Promise<{ readonly workspace: Worktree; readonly setAside: string | null }> {
    const place = this.#place(workspace);
    const setAside = await this.#setAside(workspace.path);
    // Git may have no record of the old one: then there is nothing to remove.
    await attempt(() => removeWorktree(place));
    const commit = await newestKept(place, workspace.commit, commits);
    await addWorktree(place, commit);
    return { workspace: { ...workspace, commit, state: 'present' }, setAside };
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
    const isAllowed = real?.kind === 'done' && folders.some((allowed) => isWithin(real.value, allowed));
    if (!isAllowed)
      throw new ApiFault(
        'notAllowed',
        `The operator of this node has not allowed the folder ${folder}. Allowed: ${listed(folders)}.`,
      );
    if (!(await stat(real.value)).isDirectory())
      throw new ApiFault('badRequest', `${folder} is not a folder. Name the folder of a project.`);
    return { kind: 'folder', path: real.value };
  }

  async #newWorktree({ repository, commit }: { repository: string; commit: string }): Promise<NodeWorkspace> {
    const { repositories, dataFolder } = this.#options;
    if (!repositories.has(repository))
      throw new ApiFault(
        'notAllowed',
        `This node does not offer the repository ${repository}. It offers: ${listed(repositories.keys())}.`,
      );
    await mkdir(dataFolder, { recursive: true, mode: 0o700 });
    const folder = path.join(await realpath(dataFolder), `${repository}-${randomBytes(6).toString('hex')}`);
    const worktree: Worktree = { kind: 'worktree', path: folder, repository, commit, state: 'present' };
    const place = this.#place(worktree);
    const hash = await resolveCommit(place, commit);
    if (hash === null)
      throw new ApiFault(
        'badRequest',
        `The repository ${repository} of this node has no commit ${commit}. Fetch it there first, or name another one.`,
      );
    await addWorktree(place, hash);
    return { ...worktree, commit: hash };
  }

  #place({ repository, path: folder }: Worktree): WorktreePlace {
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
