/** The last turns of a resumed session, drawn by the same code as live ones. */

import type { JournalStep } from '@pawl/agent/journal/steps';
import { isIgnored } from '@pawl/agent/machine/state';
import { type Look, paint, paintTyped, shortened } from '@pawl/terminal/paint';
import { joinSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { createSentPrompts, type Transcript } from '@pawl/terminal/transcript';
import type { RecentTurns } from '../sessions/open-session.js';

/** Limit on the rows that are printed again. */
const RESUMED_ROWS_MAX = 200;

/** The reasoning stored with a reply; its deltas are not in the journal. */
const reasoningIn = ({ event }: JournalStep): string =>
  event.type === 'LlmCompleted'
    ? (event.message?.parts ?? [])
        .flatMap((part) => (part.type === 'reasoning' ? [part.text] : []))
        .join('\n')
    : '';

/** Takes the reasoning of each reply once: before its first text. Empty for other steps. */
const reasoningTaker = (steps: readonly JournalStep[]): ((step: JournalStep) => string) => {
  const texts = new Map<string, string>();
  for (const step of steps)
    if (step.event.type === 'LlmCompleted') texts.set(step.event.requestId, reasoningIn(step));
  return (step) => {
    const { event } = step;
    if ((event.type !== 'TextDelta' && event.type !== 'LlmCompleted') || isIgnored(step)) return '';
    const text = texts.get(event.requestId) ?? '';
    texts.delete(event.requestId);
    return text;
  };
};

/** The lines as they were printed originally. `transcript` is then ready for the live steps. */
export const renderRecentTurns = (
  { before, turnStart, steps, earlierTurns }: RecentTurns,
  transcript: Transcript,
  look: Look,
): Safe => {
  transcript.startFrom(before, turnStart);
  const prompts = createSentPrompts(look);
  const takeReasoning = reasoningTaker(steps);
  const lines = steps.flatMap((step) => {
    transcript.addReasoning(takeReasoning(step));
    const { event } = step;
    if (event.type === 'UserInput')
      prompts.typed(event.text, paintTyped(look, shortened(event.text)));
    const text = transcript.see(step);
    return [...(text === '' ? [] : [text]), ...prompts.see(step.before, step)];
  });
  const rows = joinSafe(lines, safe`\n`).split('\n');
  const isCut = earlierTurns === 'some' || rows.length > RESUMED_ROWS_MAX;
  const note = isCut
    ? [
        safe``,
        paint(look, 'dim', safe`… earlier turns are not shown; /export FILE writes all of them`),
      ]
    : [];
  return lines.length === 0
    ? safe``
    : joinSafe([...note, ...rows.slice(-RESUMED_ROWS_MAX)], safe`\n`);
};
