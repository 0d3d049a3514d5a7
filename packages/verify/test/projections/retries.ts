import { countOf } from '../../../../test/kit/agent/rows.js';
import type { Walker } from '../../../../test/kit/agent/walker.js';

/** How long a walk waited before each retry, in milliseconds. */
export const delaysOf = (walker: Walker): readonly number[] =>
  walker.steps().flatMap(({ actions }, index) => {
    const at = walker.events()[index - 1]?.at ?? 0;
    return actions.flatMap((action) =>
      action.type === 'ScheduleTimer' ? [action.dueAt - at] : [],
    );
  });

/** Model calls of a walk. */
export const sentBy = (walker: Walker): number => countOf(walker, 'SendLlmRequest');
