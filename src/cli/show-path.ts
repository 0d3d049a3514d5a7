import { initialState } from '../agent/machine.js';
import { follow } from '../agent/views/follow.js';
import type { View, ViewStep } from '../agent/views/view.js';
import type { Stepped } from '../needs.js';
import { foldStored } from './stored.js';

/** A session's path in the words of a seed system. */

const stepLine = (first: string, event: string, { from, to, action }: ViewStep): string =>
  `${first.padStart(4)}  ${event.padEnd(22)} ${from} → ${to}${action === null ? '' : ` / ${action}`}`;

/** One line for each step of the seed's machine; the journal's line stands before the first of its own. */
const linesOf = (view: View, stepped: Stepped, steps: readonly ViewStep[]): readonly string[] =>
  steps.map((step, index) => {
    // A seed that names no events is told by ours.
    const unnamed = Object.keys(view.events).length === 0 && index === 0 ? stepped.event.type : '';
    return stepLine(index === 0 ? String(stepped.seq ?? '') : '', step.event ?? unnamed, step);
  });

/** The steps of the seed's machine, up to the entry `at`; what none of its arrows allows is said. */
export const showPath = async (sessionId: string, at: number | undefined, view: View): Promise<string> => {
  const taken: Stepped[] = [];
  const { header } = await foldStored(sessionId, at, (stepped) => taken.push(stepped));
  const lines: string[] = [];
  let { begin: cursor } = view;
  let before: Stepped['state'] = initialState(header.settings);
  for (const stepped of taken) {
    const followed = follow(view, cursor, before, stepped.event, stepped);
    lines.push(
      ...linesOf(view, stepped, followed.steps),
      ...followed.faults.map((fault) => `!     ${fault}`),
    );
    cursor = followed.cursor;
    before = stepped.state;
  }
  return lines.join('\n');
};
