import type { JournalStep } from '@pawl/agent/journal/read/steps';
import { makeSafe, type Safe } from '@pawl/terminal/safe-text';
import type { Projection, ProjectionStep } from '@pawl/verify/projections/projection';
import { checkRefinement } from '@pawl/verify/projections/refinement-check';
import { foldStored } from '../stored-sessions.js';

/** `pawl show --view`: a session's path in the states of a seed system. */

const stepLine = (first: string, event: string, { from, to, action, origin }: ProjectionStep): string =>
  `${first.padStart(4)}  ${event.padEnd(22)} ${from} → ${to}${action === null ? '' : ` / ${action}`}${origin === undefined ? '' : ` (origin ${origin})`}`;

/** One line for each step of the seed's machine. The first one carries the number of the journal line. */
const linesOf = (
  view: Projection,
  { seq, event }: JournalStep,
  steps: readonly ProjectionStep[],
): readonly string[] =>
  steps.map((step, index) => {
    // Some seeds name no events: then the agent's event is shown.
    const unnamed = Object.keys(view.events).length === 0 && index === 0 ? event.type : '';
    return stepLine(index === 0 ? String(seq) : '', step.event ?? unnamed, step);
  });

/** The path up to entry `at`. Steps that the seed's machine does not allow are marked with `!`. */
export const showPath = async (
  sessionId: string,
  at: number | undefined,
  view: Projection,
): Promise<Safe> => {
  const lines: string[] = [];
  let { begin: cursor } = view;
  await foldStored(sessionId, at, (step) => {
    const followed = checkRefinement(view, cursor, step.before, step.event, step);
    ({ cursor } = followed);
    lines.push(...linesOf(view, step, followed.steps), ...followed.faults.map((fault) => `!     ${fault}`));
  });
  return makeSafe(lines.join('\n'));
};
