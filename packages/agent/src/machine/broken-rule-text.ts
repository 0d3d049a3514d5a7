import type { RuleName } from './documented-rules/documented-rules.js';

/** Describes a broken rule, beginning with its anchor in docs/rules.md. */
export const brokenRule = (rule: RuleName, what: string): string => `${rule}: ${what}`;
