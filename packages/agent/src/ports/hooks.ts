/**
 * Interfaces between a session and its two kinds of hooks: `UserHooks`, the user's programs at
 * named moments, and `Hooks`, the phases of Pawl after a batch of tool calls.
 */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { HookPhase } from '../machine/action.js';
import type { HookEffect } from '../machine/event.js';
import type { Settings } from '../machine/settings.js';
import type { HookVerdicts, JudgedCall } from '../policy/judged-call.js';
import type { FileMemory } from './tool.js';

/** The moments at which the user's hooks run (docs/extend/user-hooks.md). */
export const HOOK_MOMENTS = [
  'session-start',
  'session-end',
  'before-tool',
  'after-tool',
  'after-batch',
  'before-request',
  'turn-end',
  'before-compaction',
  'ask-user',
] as const;
export type HookMoment = (typeof HOOK_MOMENTS)[number];

export type UserHooks = {
  /** Whether a hook is set for the moment, and for the tool, if it is about a call. */
  wants(moment: HookMoment, tool?: string): boolean;
  /**
   * Runs the hooks of a moment in order, up to the first that denies. Never rejects. Ends soon
   * after `signal` is aborted, and leaves no process.
   */
  run(moment: HookMoment, facts: JsonObject, signal: AbortSignal): Promise<HookVerdicts>;
};

/** Work between a batch of tool calls and the next model call: formatters, commits. */
export type Hooks = {
  /**
   * Called before a mutating call takes effect, to remember the state of the workspace. Never
   * rejects.
   */
  before(call: JudgedCall, settings: Settings): Promise<void>;
  /**
   * Called when a mutating call has ended, to remember its changes for the next phase: after each
   * cancelled call, also one that has not run, since its batch may get no phase, with auto-commit
   * after each call, with formatters after each that does not name its files, and when a resumed
   * session finds that the call had its effect, or still runs and then ends. Never rejects.
   */
  after(call: JudgedCall, settings: Settings): Promise<void>;
  /**
   * Performs one phase. A rejection is a failed hook. Ends soon after `signal` is aborted, and
   * leaves no process.
   */
  run(phase: HookPhase, context: HookContext): Promise<HookReport>;
  /**
   * Performs the phase synchronously if short reads of a few files are enough; null if it needs
   * `run`. Called before the results of the batch are durable, so it must change nothing but the
   * hooks' own memory.
   */
  runNow?(phase: HookPhase, context: BatchContext): HookReport | null;
  /** Time limit of each phase in ms. A phase that takes longer is aborted and counts as failed. */
  readonly deadlinesMs: Readonly<Record<HookPhase, number>>;
};

export type BatchContext = {
  /** Real absolute path. */
  readonly workspace: string;
  readonly settings: Settings;
  /**
   * Mutating calls of the batch that ran, in call order, including failed ones. The setting `hooks`
   * says after which batches there are phases.
   */
  readonly calls: readonly JudgedCall[];
};

export type HookContext = BatchContext & {
  /** Reports of the batch's earlier phases, in order; failed phases have none. */
  readonly reports: readonly HookReport[];
  /**
   * Null in the first run of a phase. After an interruption, the effects that the interrupted run
   * had prepared: each of them may have been had or not.
   */
  readonly interrupted: readonly HookEffect[] | null;
  /**
   * Writes an effect to the journal. Called before the effect; resolves when it is durable, rejects
   * if the phase is over and must not have it any more.
   */
  prepare(effect: HookEffect): Promise<void>;
  readonly files: FileMemory;
  readonly signal: AbortSignal;
  /**
   * Asks the session's model for one short text, without tools; null if it fails or takes too long.
   */
  write(instructions: string, text: string): Promise<string | null>;
};

/**
 * `note` is for the model, `warning` for the user; empty means none. `changedFiles` are real
 * absolute paths: files that the calls changed, or that formatters rewrote.
 */
export type HookReport = {
  readonly commits: readonly { readonly hash: string; readonly subject: string }[];
  readonly changedFiles: readonly string[];
  /** Changes that are not committed remain in the workspace. */
  readonly dirty: boolean;
  readonly note: string;
  readonly warning: string;
  /** False: the turn ends, without the later phases of this batch. */
  readonly proceed: boolean;
};
