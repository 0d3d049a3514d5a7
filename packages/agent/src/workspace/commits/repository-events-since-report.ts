import type { JudgedCall } from '../../machine/call.js';
import type { CallChanges } from '../call-changes.js';
import { type GitPlace, useRepository } from '../git/git.js';
import type { Refs } from '../git/refs.js';
import type { WorktreeSnapshot } from '../worktree-snapshot.js';
import { filesMade, type HeadChange, headChangeOf, isSameHead } from './head-movement.js';
import type { HeadMove, HeadMover } from './head-movement-notes.js';

/** One move of HEAD. */
type HeadStep = { readonly by: HeadMover; readonly from: Refs; readonly to: Refs };

/** The refs of a repository before its first commit. */
export const unborn = ({ top, gitFolder, head }: Refs): Refs => ({
  top,
  gitFolder,
  head: { ...head, hash: null },
  tips: [],
  remoteTips: [],
  stash: null,
});

/** Everything that happened to the repository since the last report. */
export class RepositoryEvents {
  #steps: readonly HeadStep[] = [];
  #callChanges: readonly CallChanges[] = [];
  #began: WorktreeSnapshot | null = null;

  /** The first snapshot before a call; null if there is none. */
  get began(): WorktreeSnapshot | null {
    return this.#began;
  }

  begin(snapshot: WorktreeSnapshot | null): void {
    this.#began ??= snapshot;
  }

  /** Records a move of HEAD. Successive moves by the same mover are merged. */
  move(by: HeadMover, from: Refs, to: Refs): void {
    if (isSameHead(from.head, to.head)) return;
    const last = this.#steps.at(-1);
    this.#steps =
      last?.by === by ? [...this.#steps.slice(0, -1), { ...last, to }] : [...this.#steps, { by, from, to }];
  }

  add(changes: CallChanges): void {
    this.#callChanges = [...this.#callChanges, changes];
  }

  /** Whether calls of earlier batches wait for a report. */
  isOwing(): boolean {
    return this.#callChanges.length > 0;
  }

  /** Whether nothing is recorded. */
  isEmpty(): boolean {
    return this.#steps.length + this.#callChanges.length === 0 && this.#began === null;
  }

  clear(): void {
    this.#steps = [];
    this.#callChanges = [];
    this.#began = null;
  }

  async moved(place: GitPlace): Promise<readonly HeadMove[]> {
    const moved: HeadMove[] = [];
    for (const { by, from, to } of this.#steps) {
      const change = await useRepository(place, (repository) => headChangeOf(repository, from, to.head));
      if (change !== null) moved.push({ by, change });
    }
    return moved;
  }

  /** Files that commits of the calls changed, relative to the top; empty without snapshots. */
  async made(place: GitPlace, now: WorktreeSnapshot | null, within: HeadChange): Promise<readonly string[]> {
    const began = this.#began;
    if (began === null || now === null || within.commits.length === 0) return [];
    return (await useRepository(place, (repository) => filesMade(repository, began, now, within))) ?? [];
  }

  /** The changes of a call; undefined without a snapshot before and after it. */
  changesOf({ callId }: JudgedCall): CallChanges | undefined {
    return this.#callChanges.find(({ call }) => call.callId === callId);
  }

  /** Calls of earlier batches without a report, then those of this batch. */
  toReport(calls: readonly JudgedCall[]): readonly JudgedCall[] {
    const isOwn = new Set(calls.map(({ callId }) => callId));
    const earlier = this.#callChanges.map(({ call }) => call).filter(({ callId }) => !isOwn.has(callId));
    return [...earlier, ...calls];
  }
}
