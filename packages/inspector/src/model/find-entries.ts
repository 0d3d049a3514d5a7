import type { JournalStep } from '@pawl/agent/journal/read/steps';

/** Search over the events of a session: what was typed, answered, called and returned is all in them. */

export type FoundEntry = {
  readonly seq: number;
  readonly type: string;
  /** The text around the first place that fits. */
  readonly before: string;
  readonly hit: string;
  readonly after: string;
};

const AROUND = 60;

const textsOf = function* (value: unknown): Generator<string, undefined> {
  if (typeof value === 'string') yield value;
  else if (Array.isArray(value)) for (const one of value) yield* textsOf(one);
  else if (typeof value === 'object' && value !== null)
    for (const one of Object.values(value)) yield* textsOf(one);
};

/** The texts of an event on which a search looks: all of them, its type first. */
const searchedTexts = ({ event }: Pick<JournalStep, 'event'>): readonly string[] => [...textsOf(event)];

/** The first text of the event that holds `wanted`, in any case; null if none does. */
const findIn = (step: Pick<JournalStep, 'seq' | 'event'>, wanted: string): FoundEntry | null => {
  const lower = wanted.toLowerCase();
  for (const text of searchedTexts(step)) {
    const at = text.toLowerCase().indexOf(lower);
    if (at < 0) continue;
    return {
      seq: step.seq,
      type: step.event.type,
      before: `${at > AROUND ? '…' : ''}${text.slice(Math.max(0, at - AROUND), at)}`,
      hit: text.slice(at, at + wanted.length),
      after: text.slice(at + wanted.length, at + wanted.length + AROUND),
    };
  }
  return null;
};

/** One line about an event: its longest text, shortened. */
const summaryOf = (step: Pick<JournalStep, 'event'>): string => {
  const [, ...texts] = searchedTexts(step);
  const longest = texts.reduce((long, text) => (text.length > long.length ? text : long), '');
  return longest.slice(0, 160).replace(/\s+/g, ' ');
};

/** All entries that hold the text; all entries for an empty one. */
export const findEntries = (steps: readonly JournalStep[], wanted: string): readonly FoundEntry[] =>
  steps.flatMap((step) => {
    if (wanted === '')
      return [{ seq: step.seq, type: step.event.type, before: summaryOf(step), hit: '', after: '' }];
    const found = findIn(step, wanted);
    return found === null ? [] : [found];
  });
