import type { JournalStep } from '@pawl/agent/journal/read/steps';
import { type Look, paint, paintTyped, shortened } from '@pawl/terminal/paint-text';
import { joinSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import type { Transcript } from '@pawl/terminal/transcript/transcript';
import type { RecentTurns } from '../sessions/open-for-resume.js';

/** Draws the last turns of a resumed session by the same code as live ones. */

/** Limit on the rows that are printed again. */
const ROWS_MAX = 200;

/** The reasoning stored with a reply; its deltas are not in the journal. */
const reasoningIn = ({ event }: JournalStep): string =>
  event.type === 'LlmCompleted'
    ? (event.message?.parts ?? [])
        .flatMap((part) => (part.type === 'reasoning' ? [part.text] : []))
        .join('\n')
    : '';

/** Inserts the reasoning of each reply before its first text. */
const withReasoning = (steps: readonly JournalStep[]): readonly JournalStep[] => {
  const texts = new Map<string, string>();
  for (const stepped of steps) {
    const text = reasoningIn(stepped);
    if (text !== '' && stepped.event.type === 'LlmCompleted') texts.set(stepped.event.requestId, text);
  }
  return steps.flatMap((stepped): readonly JournalStep[] => {
    const { event, before } = stepped;
    if (event.type !== 'TextDelta' && event.type !== 'LlmCompleted') return [stepped];
    const { requestId, at } = event;
    const text = texts.get(requestId);
    texts.delete(requestId);
    if (text === undefined) return [stepped];
    const delta = { type: 'ReasoningDelta', at, requestId, text } as const;
    return [{ ...stepped, event: delta, state: before, actions: [], path: [], diagnostics: [] }, stepped];
  });
};

/** The lines as they were printed originally. `transcript` is then ready for the live steps. */
export const renderRecentTurns = (
  { before, steps, left }: RecentTurns,
  transcript: Transcript,
  look: Look,
): Safe => {
  transcript.startFrom(before);
  const lines = withReasoning(steps).flatMap((stepped) => {
    const { event } = stepped;
    const typed = event.type === 'UserInput' ? [paintTyped(look, shortened(event.text))] : [];
    const text = transcript.see(stepped);
    return text === '' ? typed : [...typed, text];
  });
  const rows = joinSafe(lines, safe`\n`).split('\n');
  const isCut = left === 'some' || rows.length > ROWS_MAX;
  const note = isCut
    ? [safe``, paint(look, 'dim', safe`… earlier turns are not shown; /export FILE writes all of them`)]
    : [];
  return lines.length === 0 ? safe`` : joinSafe([...note, ...rows.slice(-ROWS_MAX)], safe`\n`);
};
