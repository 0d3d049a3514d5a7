import { repositoryFolders } from '../platform/files/repository-folders.js';
import { isSameHead } from './commits/head-movement.js';
import { type GitPlace, locateRepository, workWith } from './git/git.js';
import { RefFiles, type Refs } from './git/refs.js';
import type { KnownRepository } from './git/repository-cache.js';
import { askRefs, type ChangedFiles, takeSnapshot, type WorktreeSnapshot } from './worktree-snapshot.js';

/** One observation of a repository: its refs and, if requested, its uncommitted changes. */
export type RepositoryView =
  | { readonly kind: 'none' }
  | { readonly kind: 'seen'; readonly refs: Refs; readonly tree: ChangedFiles | null };

/** The snapshot of a view; null if it has none. */
export const snapshotOf = (view: RepositoryView | undefined): WorktreeSnapshot | null =>
  view?.kind === 'seen' && view.tree !== null ? { ...view.refs, changed: view.tree } : null;

/** Whether HEAD is the same in both views. */
export const isSameView = (one: RepositoryView, other: RepositoryView): boolean =>
  one.kind === 'none' || other.kind === 'none'
    ? one.kind === other.kind
    : one.refs.top === other.refs.top && isSameHead(one.refs.head, other.refs.head);

/** Observes the repository of one session, with a cache of unchanged files. */
export class RepositoryViews {
  readonly #files = new RefFiles();

  /** A synchronous view without the tree; null if git has to be asked. */
  lookNow(workspace: string, known: KnownRepository): RepositoryView | null {
    const marked = repositoryFolders(workspace).top;
    if (marked === null) return { kind: 'none' };
    const located = known.kept(marked);
    const refs = located === null ? null : this.#files.read(located);
    return refs === null ? null : { kind: 'seen', refs, tree: null };
  }

  /**
   * Observes the repository. Starts no process without the tree if the refs are plain files. Rejects like
   * `useRepository`.
   */
  async look(place: GitPlace, withTree: boolean): Promise<RepositoryView> {
    const located = await locateRepository(place);
    if (located === null) return { kind: 'none' };
    const read = this.#files.read(located);
    if (withTree) {
      const { changed, ...refs } = await workWith(place, located, (repository) =>
        takeSnapshot(repository, read),
      );
      return { kind: 'seen', refs, tree: changed };
    }
    return { kind: 'seen', refs: read ?? (await workWith(place, located, askRefs)), tree: null };
  }
}
