import type { State } from '../../agent/state.js';
import type { JournalStep } from '../../journal/read/steps.js';
import { type Look, paint, paintTyped, shortened } from '../../terminal/print.js';
import { joinSafe, type Safe, safe } from '../../terminal/safe-text.js';
import type { Transcript } from '../../terminal/transcript/transcript.js';
import { foldStored } from '../sessions/stored-sessions.js';

/** The last turns of a resumed session. They are read from the journal and drawn by the same code as live ones. */

/** `left`: whether earlier turns are left out. */
export type RecentTurns = {
  readonly before: State;
  readonly steps: readonly JournalStep[];
  readonly left: 'some' | 'none';
};

/** Limits on what is printed again. While reading, up to twice as many steps are kept. */
const TURNS_MAX = 4;
const STEPS_MAX = 1_000;
const ROWS_MAX = 200;

type Turn = { readonly before: State; readonly steps: JournalStep[] };

const isOpening = ({ event }: JournalStep): boolean => event.type === 'Resumed';

/** Collects the last turns of a stream of steps. */
export const collectRecentTurns = () => {
  let turns: Turn[] = [];
  let left: RecentTurns['left'] = 'none';
  let turn = 0;
  const stepsIn = (): number => turns.reduce((sum, one) => sum + one.steps.length, 0);
  /** Drops the first turn if there are too many, and the first steps of a turn that is too long. */
  const shorten = (): void => {
    const [first, ...later] = turns;
    if (first === undefined || (turns.length <= TURNS_MAX && stepsIn() <= 2 * STEPS_MAX)) return;
    left = 'some';
    if (later.length > 0) turns = later;
    else
      turns = [
        { before: first.steps[STEPS_MAX - 1]?.state ?? first.before, steps: first.steps.slice(STEPS_MAX) },
      ];
  };
  return {
    see(stepped: JournalStep): void {
      const { seq, before, state } = stepped;
      const isNewTurn = turns.length === 0 || state.session.counters.turn !== turn;
      turn = state.session.counters.turn;
      if (seq === 1) return; // the session is new
      if (isNewTurn) turns.push({ before, steps: [] });
      turns.at(-1)?.steps.push(stepped);
      shorten();
    },
    /** null for a session without a turn. */
    past(): RecentTurns | null {
      const [first] = turns;
      if (first === undefined) return null;
      const steps = turns.flatMap((one) => one.steps);
      // The last Resumed event is from this run. Its results arrive as live steps.
      const opening = steps.findLastIndex(isOpening);
      return { before: first.before, steps: opening < 0 ? steps : steps.slice(0, opening), left };
    },
  };
};

/** Reads the last turns from the journal. Rejects if it can't be read. */
export const loadRecentTurns = async (sessionId: string): Promise<RecentTurns | null> => {
  const { see, past } = collectRecentTurns();
  await foldStored(sessionId, undefined, see);
  return past();
};

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
    ? [safe``, paint(look, 'dim', safe`… what came before: /export FILE writes all of it`)]
    : [];
  return lines.length === 0 ? safe`` : joinSafe([...note, ...rows.slice(-ROWS_MAX)], safe`\n`);
};
