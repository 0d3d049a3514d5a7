/** Number of letters to add, drop, change or swap to make `left` of `right`. */
const distance = (left: string, right: string): number => {
  let above: number[] = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let row = 1; row <= left.length; row++) {
    const line = [row];
    for (let column = 1; column <= right.length; column++) {
      const change = (above[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      line.push(Math.min(change, (above[column] ?? 0) + 1, (line[column - 1] ?? 0) + 1));
    }
    above = line;
  }
  return above[right.length] ?? 0;
};

/** The name that was probably meant, or undefined where none is close. */
export const closestTo = (word: string, names: readonly string[]): string | undefined => {
  const ranked = names
    .map((name) => ({ name, far: distance(word, name) }))
    .sort((one, other) => one.far - other.far);
  const [best] = ranked;
  return best !== undefined && best.far <= Math.max(1, Math.floor(best.name.length / 3))
    ? best.name
    : undefined;
};
