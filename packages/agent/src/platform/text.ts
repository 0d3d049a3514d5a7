/**
 * Small functions for texts that people and models read. Pure, since pages in a browser use them
 * too.
 */

/** `1 line`, `2 lines`; `2 entries` with a plural of its own. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;

/**
 * The words of a text, separated by blanks and newlines: a list that is easier to read than one of
 * strings.
 */
export const listWords = (text: string): readonly string[] => text.trim().split(/\s+/);

/**
 * A whole number as people read it, 1,234,567. The platform's own formatter takes 16 ms to load at
 * its first use.
 */
export const groupDigits = (count: number): string =>
  String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');

/** A Markdown code block whose fence is longer than any run of backticks in the text. */
export const codeFence = (text: string, language = ''): string => {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n$/, '')}\n${fence}`;
};

/** Edit distance: the number of letters to add, drop, change or swap. */
const editDistance = (left: string, right: string): number => {
  const rows: number[][] = [Array.from({ length: right.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number): number =>
    rows[row]?.[column] ?? Number.POSITIVE_INFINITY;
  for (let row = 1; row <= left.length; row++) {
    const line = [row];
    rows.push(line);
    for (let column = 1; column <= right.length; column++) {
      const [here, there] = [left[row - 1], right[column - 1]];
      const change = at(row - 1, column - 1) + (here === there ? 0 : 1);
      const isSwapped = here === right[column - 2] && left[row - 2] === there;
      const swap = isSwapped ? at(row - 2, column - 2) + 1 : change;
      line.push(Math.min(change, swap, at(row - 1, column) + 1, at(row, column - 1) + 1));
    }
  }
  return at(left.length, right.length);
};

/** The name that was probably meant; undefined if none is similar. */
export const nearestWord = (word: string, names: readonly string[]): string | undefined => {
  const ranked = names
    .map((name) => ({ name, far: editDistance(word, name) }))
    .sort((one, other) => one.far - other.far);
  const [best] = ranked;
  return best !== undefined && best.far <= Math.max(1, Math.floor(best.name.length / 3))
    ? best.name
    : undefined;
};

/** Plain words for the errors of paths that users cause most often. */
const PATH_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  ENOTDIR: 'a part of its path is not a folder',
  EACCES: 'its permissions do not allow it',
  ELOOP: 'its symlinks lead in a circle',
  ENAMETOOLONG: 'its name is too long',
};

/** Why a path can't be used, without the name of a system call; null for other errors. */
export const pathErrorText = (error: unknown): string | null =>
  error instanceof Error && 'code' in error ? (PATH_ERRORS[String(error.code)] ?? null) : null;
