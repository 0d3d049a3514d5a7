import type { JsonObject } from '../machine/message.js';
import type { HookVerdicts } from '../machine/values/hook-verdict.js';

/** Interface between the runtime and the hooks of a user. */

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
   * Runs the hooks of a moment in order, up to the first that denies. Never rejects. Ends soon after `signal` is aborted,
   * and leaves no process.
   */
  run(moment: HookMoment, facts: JsonObject, signal: AbortSignal): Promise<HookVerdicts>;
};
