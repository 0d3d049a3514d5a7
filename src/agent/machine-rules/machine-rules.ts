import { afterTools } from './after-tools.js';
import { promises } from './always-rules.js';
import { cancels } from './cancels.js';
import { compactions } from './compactions.js';
import { failures } from './failures.js';
import { limits } from './limits.js';
import { openings } from './openings.js';
import { replies } from './replies.js';
import type { MachineRule, RuleSection } from './rule.js';
import { toolCalls } from './tool-calls.js';
import { turns } from './turns.js';

/** The source of docs/rules.md: all rules by subject. `npm run update` writes the page. */
export const ruleSections: Readonly<Record<string, RuleSection>> = {
  'Promises of every step': promises,
  'Turns and input': turns,
  Replies: replies,
  'Failed requests': failures,
  'Tool calls': toolCalls,
  'After the tools': afterTools,
  Limits: limits,
  Cancelling: cancels,
  Compaction: compactions,
  'Shutdown and reopening': openings,
};

/** The anchor of a rule in docs/rules.md. */
export type RuleName =
  | keyof typeof promises
  | keyof typeof turns
  | keyof typeof replies
  | keyof typeof failures
  | keyof typeof toolCalls
  | keyof typeof afterTools
  | keyof typeof limits
  | keyof typeof cancels
  | keyof typeof compactions
  | keyof typeof openings;

/** All rules by anchor. */
export const machineRules: ReadonlyMap<string, MachineRule> = new Map(
  Object.values(ruleSections).flatMap((section) => Object.entries(section)),
);
