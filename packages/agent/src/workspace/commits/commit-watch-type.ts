import type { JudgedCall } from '../../machine/call.js';
import type { Settings } from '../../machine/settings.js';
import type { BatchContext, HookContext, HookReport } from '../../ports/after-tool-hooks.js';
import type { AgentChanges } from '../agent-changes.js';
import type { GitPlace } from '../git/git.js';
import type { WorktreeSnapshot } from '../worktree-snapshot.js';

/** Observes what the agent's calls do to the repository; one per session (create-commit-watch.ts). */
export type CommitWatch = {
  /** Observes the repository before a call. Never rejects, and delays the call by at most BEFORE_MS. */
  before(call: JudgedCall, settings: Settings): Promise<void>;
  /**
   * Observes the repository after a call: the runtime knows that the call made the changes since the observation before
   * it. Never rejects.
   */
  after(call: JudgedCall, settings: Settings): Promise<void>;
  /**
   * Runs the phase. `changedFiles` are real absolute paths of files that the calls changed, some possibly deleted
   * since. Without a snapshot of the tree they are the files that the calls name. A git failure is reported once.
   */
  check(context: HookContext): Promise<HookReport>;
  /**
   * The report, if it can be given synchronously because nothing happened except that calls named files; null: use
   * `check`.
   */
  checkNow(context: BatchContext): HookReport | null;
  /** The snapshot before the agent changed a file, in the last checked batch; null if there is none. */
  snapshotBefore(file: string): WorktreeSnapshot | null;
  readonly agentChanges: AgentChanges;
  /** Records what is known, for a later process of the session. */
  save(settings: Settings): void;
  /** The observed repository. */
  place(workspace: string, signal: AbortSignal): GitPlace;
  /** Announces our own commit, which is not reported as new. */
  expectCommit(hash: string): void;
  /** The text; empty if it equals the previous one. */
  unlessRepeated(text: string): string;
};

/** The report if nothing happened. */
export const QUIET: HookReport = {
  commits: [],
  changedFiles: [],
  dirty: false,
  note: '',
  warning: '',
  proceed: true,
};
