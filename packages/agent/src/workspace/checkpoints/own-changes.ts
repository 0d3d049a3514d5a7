/**
 * Which uncommitted changes of the workspace are the agent's: a function of what the checkpoints of
 * its session say, and of how a file and its last commit are now.
 *
 * A file is the agent's if its changes lead without a gap from the last commit to what is there
 * now, and each of them is certainly the session's. In doubt it is not. Changes that were committed
 * or undone count no more: they are settled.
 */

import path from 'node:path';
import type { JudgedCall } from '../../policy/judged-call.js';
import {
  type FileState,
  isSameState,
  type Manifest,
  type PathChange,
  showName,
  toName,
  UNOWNED,
} from './manifest.js';

/** Looks at the workspace between calls. */
export type WorkspaceObserver = {
  /** Before a call: keeps others' changes apart from its own, also where a look is slow. */
  lookBefore(call: JudgedCall): Promise<void>;
  /** Looks now. */
  observe(): Promise<Observation>;
  /** The changes so far are reported: they are not recent any more. */
  reported(): void;
  /** These files have no uncommitted changes of the agent any more. */
  settle(files: readonly string[]): Promise<void>;
};

export type Observation = {
  readonly changes: OwnChanges;
  /**
   * Files that changed since the last report and are certainly the agent's: real absolute paths,
   * each with its state before.
   */
  readonly recent: ReadonlyMap<string, FileState>;
  /** How a file of the workspace is now. */
  readNow(file: string): Promise<FileState>;
  /** A content that the checkpoints keep. */
  content(sha256: string): Promise<Buffer | null>;
};

/**
 * `during`: a command ran while the file changed, so others may have changed it too. `states`:
 * after and before each change, the last one first. `mayBeStaged`: a call since may have staged it.
 */
export type Whose =
  | {
      readonly kind: 'ours';
      readonly during: boolean;
      readonly states: readonly FileState[];
      readonly mayBeStaged: boolean;
    }
  | { readonly kind: 'unsure'; readonly why: string };

const unsureBecause = (why: string): Whose => ({ kind: 'unsure', why });

const SOMEBODY_ELSE = 'somebody else changed it too';
export const BEFORE = 'it had uncommitted changes before the agent changed it';
const UNRECORDED = 'no call of the agent is known to have changed it';
const AFTER_CALL = 'it changed when the call had just ended, nobody knows by whom';
const MIXED = 'it came with a switch of branches, a stash or an undone commit';
const CUT =
  'Pawl was killed or closed while a call of the agent ran, so nobody knows who changed ' +
  'what. Commit it yourself: auto-commit leaves it alone from now on';

type SeenChange = PathChange & {
  /** The number of its checkpoint. */
  readonly at: number;
  readonly manifest: Manifest;
  /** The session that claims it; null: none. */
  readonly claimedBy: string | null;
};

/** Why a change is not certainly the agent's; null: it is. */
const whyNotOurs = ({ origin, unsure, manifest, claimedBy }: SeenChange): string | null => {
  if (manifest.by !== 'agent') return SOMEBODY_ELSE;
  if (unsure) return manifest.killed === undefined ? AFTER_CALL : CUT; // present: it was killed
  if (origin === UNOWNED) return AFTER_CALL;
  if (claimedBy !== null) return `the session ${claimedBy} changed it too`;
  return manifest.mixed && origin === 'commands' ? MIXED : null;
};

/** What a formatter may touch: the content is the agent's, wherever it has it from. */
const NOT_OTHERS: ReadonlySet<string | null> = new Set([null, MIXED]);

/** When its calls began; those of a killed process when a later one found their changes. */
const beganAtMs = ({ killed, ran = { fromMs: 0, toMs: 0 } }: Manifest): number =>
  killed === undefined ? ran.fromMs : ran.toMs;

export class OwnChanges {
  readonly #workspace: string;
  /** By name, one after the other. */
  readonly #changes: Map<string, readonly SeenChange[]> = new Map();
  #count = 0;
  /** The last checkpoint of a call that was cut off and may have changed something. */
  #cutAt = -1;
  /** The last checkpoint of calls that may have changed git folders. */
  #gitWriterAt = -1;

  /** `earlier`: what is copied. */
  constructor(workspace: string, earlier?: OwnChanges) {
    this.#workspace = workspace;
    if (earlier === undefined) return;
    this.#changes = new Map(earlier.#changes);
    this.#count = earlier.#count;
    this.#cutAt = earlier.#cutAt;
    this.#gitWriterAt = earlier.#gitWriterAt;
  }

  /** How many checkpoints were added. */
  get count(): number {
    return this.#count;
  }

  /** Null: the checkpoint is not in the store any more. */
  add(manifest: Manifest | null, claimedBy: (change: PathChange) => string | null): void {
    const at = this.#count++;
    if (manifest === null) return;
    for (const change of manifest.changes) {
      const earlier = this.#changes.get(change.path) ?? [];
      const seen = { ...change, at, manifest, claimedBy: claimedBy(change) };
      this.#changes.set(change.path, [...earlier, seen]);
    }
    this.settle(manifest.settled ?? []);
    if (manifest.by === 'agent' && manifest.readsGit === undefined) this.#gitWriterAt = at;
    // true: a command ran when the process was killed
    if (manifest.killed && manifest.changes.some(({ unsure }) => unsure)) this.#cutAt = at;
  }

  settle(names: readonly string[]): void {
    for (const name of names) this.#changes.delete(name);
  }

  /** Files that calls may have changed: real absolute paths, without names that are no UTF-8. */
  files(): readonly string[] {
    return [...this.#changes].flatMap(([name, changes]) =>
      changes.some(({ manifest }) => manifest.by === 'agent') ? this.#toFile(name) : [],
    );
  }

  /** Names of such files that are no UTF-8, as they are shown: nobody can commit them. */
  unnameable(): readonly string[] {
    return [...this.#changes].flatMap(([name, changes]) =>
      this.#toFile(name).length === 0 && changes.some(({ manifest }) => manifest.by === 'agent')
        ? [path.join(this.#workspace, showName(name))]
        : [],
    );
  }

  /** The files that changed in calls that began then or later, each with its state before. */
  since(fromMs: number): ReadonlyMap<string, FileState> {
    const files = new Map<string, FileState>();
    for (const [name, changes] of this.#changes) {
      const recent = changes.filter(({ manifest }) => beganAtMs(manifest) >= fromMs);
      const [first, last] = [recent[0], recent.at(-1)];
      if (first === undefined || last?.after.kind === 'folder') continue;
      if (recent.every((change) => NOT_OTHERS.has(whyNotOurs(change))))
        for (const file of this.#toFile(name)) files.set(file, first.before);
    }
    return files;
  }

  /**
   * Whose the uncommitted changes of a file are. `now`: its state; `isCommitted`: whether HEAD has
   * a state of it.
   */
  async judge(
    file: string,
    now: FileState,
    isCommitted: (state: FileState) => Promise<boolean>,
  ): Promise<Whose> {
    let next = now;
    let during = false;
    const states: FileState[] = [];
    const name = toName(path.relative(this.#workspace, file));
    for (const change of (this.#changes.get(name) ?? []).toReversed()) {
      const why = whyNotOurs(change);
      if (why !== null) return unsureBecause(why);
      if (!isSameState(change.after, next)) return unsureBecause(SOMEBODY_ELSE);
      during ||= change.origin === 'commands';
      states.push(change.after, change.before);
      if (await isCommitted(change.before))
        return change.at <= this.#cutAt
          ? unsureBecause(CUT)
          : { kind: 'ours', during, states, mayBeStaged: change.at <= this.#gitWriterAt };
      next = change.before;
    }
    return unsureBecause(states.length === 0 ? UNRECORDED : BEFORE);
  }

  /** None for a name that is no UTF-8: nobody could name the file in a text. */
  #toFile(name: string): readonly string[] {
    const shown = showName(name);
    return toName(shown) === name ? [path.join(this.#workspace, shown)] : [];
  }
}
