/**
 * Finds many texts in a longer one in a single pass (Wu-Manber search with blocks of two characters).
 *
 * 1. The time is linear in the length of the text, and independent of the number of sought texts.
 * 2. Of several matches at one place the longest counts. The search continues behind a match.
 */

export type SearchText = { readonly text: string; readonly name: string };
export type FoundText = { readonly start: number; readonly end: number; readonly name: string };

export type Finder = {
  /** In the order of the text, never overlapping. */
  find(text: string): readonly FoundText[];
  /** Number of characters at the end of a text that may begin a sought text. */
  pendingAt(text: string): number;
};

const BLOCKS = 1 << 14;

/** Table index of the two characters before `end`. */
const blockAt = (text: string, end: number): number =>
  ((text.charCodeAt(end - 2) * 131) ^ text.charCodeAt(end - 1)) & (BLOCKS - 1);

type Tables = {
  readonly shortest: number;
  readonly shifts: Uint16Array;
  readonly ending: Map<number, SearchText[]>;
};

const tablesOf = (sought: readonly SearchText[]): Tables => {
  const shortest = Math.min(...sought.map(({ text }) => text.length));
  const shifts = new Uint16Array(BLOCKS).fill(shortest - 1);
  const ending = new Map<number, SearchText[]>();
  for (const one of sought) {
    for (let end = 2; end <= shortest; end++) {
      const block = blockAt(one.text, end);
      shifts[block] = Math.min(shifts[block] ?? 0, shortest - end);
    }
    const last = blockAt(one.text, shortest);
    ending.set(last, [...(ending.get(last) ?? []), one]);
  }
  for (const all of ending.values()) all.sort((one, other) => other.text.length - one.text.length);
  return { shortest, shifts, ending };
};

const findIn = (text: string, { shortest, shifts, ending }: Tables): readonly FoundText[] => {
  const found: FoundText[] = [];
  let end = shortest;
  while (end <= text.length) {
    const block = blockAt(text, end);
    const shift = shifts[block] ?? 1;
    if (shift > 0) {
      end += shift;
      continue;
    }
    const start = end - shortest;
    const hit = ending.get(block)?.find((one) => text.startsWith(one.text, start));
    if (hit === undefined) end++;
    else {
      found.push({ start, end: start + hit.text.length, name: hit.name });
      end = start + hit.text.length + shortest;
    }
  }
  return found;
};

const NOTHING: Finder = { find: () => [], pendingAt: () => 0 };

/** Every sought text must have at least two characters. */
export const createFinder = (sought: readonly SearchText[]): Finder => {
  if (sought.length === 0) return NOTHING;
  const tables = tablesOf(sought);
  const longest = Math.max(...sought.map(({ text }) => text.length));
  const firsts = new Set(sought.map(({ text }) => text.charAt(0)));
  return {
    find: (text) => findIn(text, tables),
    pendingAt(text) {
      for (let start = Math.max(0, text.length - longest + 1); start < text.length; start++) {
        if (!firsts.has(text.charAt(start))) continue;
        const rest = text.slice(start);
        if (sought.some((one) => one.text.startsWith(rest))) return rest.length;
      }
      return 0;
    },
  };
};
