import type { Action } from '../../action.js';
import { type HookVerdict, type HookVerdicts, reasonOf } from '../../values/hook-verdict.js';

/** What the user sees of hooks. */

const shown = ({ hook, note, fault }: HookVerdict): readonly Action[] => [
  ...(fault === undefined
    ? []
    : [{ type: 'DisplayWarning', kind: 'hook', text: `hook ${hook}: ${fault}` } as const]),
  ...(note === undefined
    ? []
    : [{ type: 'DisplayNotice', kind: 'hook', text: `hook ${hook}: ${note}` } as const]),
];

/** For the user: the failures of hooks, and their notes. */
export const showHooks = (verdicts: HookVerdicts): readonly Action[] =>
  verdicts.length === 0 ? [] : verdicts.flatMap(shown);

/** Likewise, with their objections. The objection to a call stands in its result already. */
export const showObjections = (verdicts: HookVerdicts): readonly Action[] =>
  verdicts.flatMap((verdict) => {
    const { hook, decision, fault } = verdict;
    if (decision === 'allow' || fault !== undefined) return shown(verdict);
    return [
      ...shown(verdict),
      { type: 'DisplayWarning', kind: 'hook', text: `hook ${hook}: ${reasonOf(verdict)}` } as const,
    ];
  });
