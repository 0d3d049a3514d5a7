import type { JudgedCall } from './agent/call.js';
import type { HookPhase } from './agent/purpose.js';
import type { Settings } from './agent/settings.js';
import type { FileMemory } from './needs.js';

/** What the runtime asks of the hooks after tools. Types only. */

/** What happens between the tools and the next model call (rules R40-R46). */
export type Hooks = {
  /** Called before a mutating call takes effect: remember what must be known of the world before it. Never rejects. */
  before(call: JudgedCall, workspace: string): Promise<void>;
  /** Performs one phase. A rejection is a failed hook. Ends soon after `signal` is aborted, and leaves no process. */
  run(phase: HookPhase, context: HookContext): Promise<HookReport>;
  /** A phase that takes longer is aborted, and has failed. */
  readonly deadlinesMs: Readonly<Record<HookPhase, number>>;
};

export type HookContext = {
  /** Real absolute path. */
  readonly workspace: string;
  readonly settings: Settings;
  /** Mutating calls of the batch that ended ok, in call order. */
  readonly calls: readonly JudgedCall[];
  /** What the phases before this one reported of the batch, in order; of one that failed there is none. */
  readonly reports: readonly HookReport[];
  /**
   * sha256 of the file that a call was about to change, by the call's id, as the journal has it. Of a session that was
   * opened in the middle of the batch; in others the hooks have looked themselves.
   */
  readonly recorded: ReadonlyMap<string, string>;
  readonly files: FileMemory;
  readonly signal: AbortSignal;
  /** One short text from the session's model, without tools; null if it could not be had in time. */
  write(instructions: string, text: string): Promise<string | null>;
};

/**
 * `note` is told to the model, `warning` shown to the user; both empty for nothing. `changedFiles` are real absolute
 * paths: files that the calls changed, and of the formatters those that they rewrote.
 */
export type HookReport = {
  readonly commits: readonly { readonly hash: string; readonly subject: string }[];
  readonly changedFiles: readonly string[];
  readonly dirty: boolean;
  readonly note: string;
  readonly warning: string;
  readonly proceed: boolean;
};
