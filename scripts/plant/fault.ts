/** A fault that is planted in a copy of the machine, and what has to catch it. */

export type Catcher =
  /** Random walks, by a promise of a state or a rule of a step (invariants.ts). */
  | { readonly kind: 'walks' }
  /** The explorer, in one of its configurations. */
  | { readonly kind: 'explorer'; readonly configuration: string; readonly statesMax: number }
  /** One case or rule: its file in packages/agent/test/machine, as `rules-calls`, and its title. */
  | { readonly kind: 'case'; readonly file: string; readonly title: string };

export type Fault = {
  /** The wrong behaviour, as a sentence. */
  readonly name: string;
  /** Path from the root, in packages/agent/src/machine or policy. */
  readonly file: string;
  /** Texts, each of which stands in the file once, whatever its line breaks are. */
  readonly edits: readonly { readonly from: string; readonly to: string }[];
  /** The consequence. */
  readonly why: string;
  readonly caughtBy: Catcher;
};

export const walks: Catcher = { kind: 'walks' };
/** As many states of an exploration as a moment allows. */
export const STATES_MAX = 500;
export const explorer = (configuration: string, statesMax = STATES_MAX): Catcher => ({
  kind: 'explorer',
  configuration,
  statesMax,
});
export const byCase = (file: string, title: string): Catcher => ({ kind: 'case', file, title });

/** A catcher in words: each has its own. */
export const wordsOf = (catcher: Catcher): string => {
  switch (catcher.kind) {
    case 'walks':
      return 'random walks';
    case 'explorer':
      return `the explorer, '${catcher.configuration}'`;
    case 'case':
      return `${catcher.file}, '${catcher.title}'`;
    default:
      return catcher satisfies never;
  }
};

/**
 * Finds a text of TypeScript in a file however the formatter has broken its lines: white space may
 * differ, and a list may end with a comma. Matches all places.
 */
const sourcePattern = (source: string): RegExp => {
  const tokens = source.match(/\w+|[^\w\s]/gu) ?? [];
  const escaped = tokens.map((token) => {
    const literal = /\w/.test(token) ? token : `\\u{${token.codePointAt(0)?.toString(16)}}`;
    return /[)\]}]/.test(token) ? `(?:,\\s*)?${literal}` : literal;
  });
  return new RegExp(escaped.join('\\s*'), 'gu');
};

/** Replaces a text of TypeScript, which must stand in `source` once. Throws if it does not. */
export const replaceSource = (
  source: string,
  { from, to }: { readonly from: string; readonly to: string },
  whose: string,
): string => {
  const pattern = sourcePattern(from);
  const places = [...source.matchAll(pattern)].length;
  if (places !== 1) throw new Error(`${whose}: its text stands there ${places} times: ${from}`);
  return source.replace(pattern, () => to);
};
