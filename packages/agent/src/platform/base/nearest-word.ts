/** Edit distance: the number of letters to add, drop, change or swap. */
const distance = (left: string, right: string): number => {
  const rows: number[][] = [Array.from({ length: right.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number): number => rows[row]?.[column] ?? Number.POSITIVE_INFINITY;
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
export const closestTo = (word: string, names: readonly string[]): string | undefined => {
  const ranked = names
    .map((name) => ({ name, far: distance(word, name) }))
    .sort((one, other) => one.far - other.far);
  const [best] = ranked;
  return best !== undefined && best.far <= Math.max(1, Math.floor(best.name.length / 3))
    ? best.name
    : undefined;
};
