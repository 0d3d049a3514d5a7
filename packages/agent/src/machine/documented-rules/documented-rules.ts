import { hooks } from './after-tool-hooks.js';
import { alwaysRules } from './always-rules.js';
import { cancels } from './cancels.js';
import { compactions } from './compactions.js';
import { limits } from './limits.js';
import { failures } from './model-failures.js';
import { replies } from './replies.js';
import type { MachineRule, RuleSection } from './rule.js';
import { shutdownAndResume } from './shutdown-and-resume.js';
import { toolCalls } from './tool-calls.js';
import { turns } from './turns.js';

/** The source of docs/rules.md: all rules by subject. `npm run update` writes the page. */
export const ruleSections: Readonly<Record<string, RuleSection>> = {
  'Promises of every step': alwaysRules,
  'Turns and input': turns,
  Replies: replies,
  'Failed requests': failures,
  'Tool calls': toolCalls,
  'After the tools': hooks,
  Limits: limits,
  Cancelling: cancels,
  Compaction: compactions,
  'Shutdown and reopening': shutdownAndResume,
};

/** The anchor of a rule in docs/rules.md. */
export type RuleName =
  | keyof typeof alwaysRules
  | keyof typeof turns
  | keyof typeof replies
  | keyof typeof failures
  | keyof typeof toolCalls
  | keyof typeof hooks
  | keyof typeof limits
  | keyof typeof cancels
  | keyof typeof compactions
  | keyof typeof shutdownAndResume;

/** All rules by anchor. */
export const machineRules: ReadonlyMap<string, MachineRule> = new Map(
  Object.values(ruleSections).flatMap((section) => Object.entries(section)),
);
