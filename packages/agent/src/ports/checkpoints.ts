/**
 * Interface between a session and the checkpoints of its workspace: what is kept of files so that
 * changes can be taken back. Types only.
 */

import type { ChangeSummary, FileLeft } from '../machine/event.js';
import type { CommandLevel } from '../policy/decide.js';
import type { JudgedCall } from '../policy/judged-call.js';

/** `checkpoint`: sha256 of its manifest. */
export type TakenCheckpoint = {
  readonly checkpoint: string;
  readonly changes: ChangeSummary;
  /** Sentences about files that can't be taken back. Each is said once in a session. */
  readonly leftOut: readonly string[];
};

/** Who changed the files between a checkpoint and the one before. */
export type ChangedBy = 'agent' | 'user' | 'rewind';

/**
 * A checkpoint that a journal names. `isForeign`: it came with an import or a copy, so anybody may
 * have written it.
 */
export type NamedCheckpoint = { readonly id: string; readonly isForeign: boolean };

/** What checkpoints name: the changes together, and the files that no rewind touches, with why. */
export type DescribedCheckpoints = {
  /** With the names of all files. */
  readonly changes: ChangeSummary;
  readonly untouched: readonly FileLeft[];
};

export type RestoreRequest = {
  /** The session's checkpoints whose changes are to be taken back, the oldest first. */
  readonly takeBack: readonly NamedCheckpoint[];
  /** Also take back files with later changes of others; they are saved first. */
  readonly force: boolean;
  /** Take back only what tools for files wrote. Default: also what changed while commands ran. */
  readonly editsOnly?: boolean;
  /** Also take back where HEAD and branches are, and what is staged. */
  readonly refs?: boolean;
};

/** A file at a checkpoint. `path`: in the workspace. `at`: the number among its states there. */
export type FileVersion = {
  readonly checkpoint: NamedCheckpoint;
  readonly path: string;
  readonly at: number;
};

/** HEAD, a branch or the index. `text`: where it goes, in words. */
export type MovedRef = { readonly name: string; readonly text: string };

/**
 * What a restore would do. `plan`: sha256 of the stored plan; null if nothing is to be done.
 * `refusal`: why nothing may be done here, and what to do instead; null: it may. `changes` names
 * all files. `left`: files that stay as they are, and why.
 */
export type RestorePlan = {
  readonly plan: string | null;
  readonly refusal: string | null;
  readonly changes: ChangeSummary;
  readonly left: readonly FileLeft[];
  readonly refs: readonly MovedRef[];
};

/** What a restore has done. Its own changes are a checkpoint, so it can be taken back too. */
export type Restored = {
  readonly checkpoint: string | null;
  readonly changes: ChangeSummary;
  readonly left: readonly FileLeft[];
  readonly refs: readonly MovedRef[];
};

/** The checkpoints of one session's workspace. Nothing here rejects because of one file. */
export type Checkpoints = {
  /**
   * Called before a call takes effect that may change files; null: a command of the user. Resolves
   * when what it may change can be taken back, as far as it can. `level`: the sandbox of its
   * command; absent: none.
   */
  before(call: JudgedCall | null, level?: CommandLevel): Promise<void>;
  /**
   * Called when a call has ended for which `before` was called. What the model is to hear of
   * uncommitted text of the user that is gone since; empty: nothing. `hasEnded`: just now; false:
   * it is one of a killed process, at an unknown time.
   */
  after(call: JudgedCall, hasEnded?: boolean): Promise<string>;
  /** Called when a call for which `before` was called has not run. */
  withdraw(call: JudgedCall): Promise<void>;
  /**
   * Called when a batch has ended. Changes from before the first of its calls are changes of
   * others. Null: nothing changed, and there is no checkpoint.
   */
  take(ended: {
    readonly by: Exclude<ChangedBy, 'rewind'>;
    /**
     * What else may have changed files. `jobs`: commands in the background, at any time since the
     * last checkpoint. `killedCalls`: calls of a killed process, if it left any without a
     * checkpoint.
     */
    readonly alsoRan?: 'jobs' | 'killedCalls';
  }): Promise<TakenCheckpoint | null>;
  /**
   * Called at the end of a turn, after `take`: looks at all files where `take` looks only at those
   * that the system has reported. What changed while calls ran is theirs. Null: nothing did.
   */
  sweep(by: Exclude<ChangedBy, 'rewind'>): Promise<TakenCheckpoint | null>;
  /** Called when the last checkpoint is in the journal: until then a killed process has lost it. */
  recorded(): Promise<void>;
  /**
   * Which of these files and folders could not be taken back if a command lost them: real absolute
   * paths of the workspace. What git ignores is copied before a command that names it, as far as it
   * fits; below a folder that git does not ignore it does not count. Changes nothing.
   */
  unkept(paths: readonly string[]): Promise<readonly string[]>;
  /** What checkpoints name, by their manifests; null: none of them is here. Reads no file. */
  describe(checkpoints: readonly NamedCheckpoint[]): Promise<DescribedCheckpoints | null>;
  /** Changes no file. */
  plan(request: RestoreRequest): Promise<RestorePlan>;
  /** Like `plan`, for one file as a checkpoint has it. What is there now is stored. */
  planFile(version: FileVersion): Promise<RestorePlan>;
  /** Performs a stored plan, also an interrupted one: what is done already is left as it is. */
  restore(plan: string): Promise<Restored>;
  /** Ends scans; nothing is lost by it. */
  close(): Promise<void>;
};
