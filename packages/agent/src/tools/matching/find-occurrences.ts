/** Finds a sequence in another one in linear time (Knuth, Morris, Pratt). */

/** Limit for `String.indexOf`. It is fast on ordinary text, but quadratic on long text made for that purpose. */
const PLAIN_SEARCH_MAX = 200;

type Sequence = { readonly length: number; at(index: number): number };

/** Failure table: for each prefix the length of its longest proper prefix that is also a suffix. */
const bordersOf = (sought: Sequence): Int32Array => {
  const borders = new Int32Array(sought.length);
  let length = 0;
  for (let index = 1; index < sought.length; index++) {
    while (length > 0 && sought.at(index) !== sought.at(length)) length = borders[length - 1] ?? 0;
    if (sought.at(index) === sought.at(length)) length += 1;
    borders[index] = length;
  }
  return borders;
};

const searchLinear = (all: Sequence, sought: Sequence, most: number): number[] => {
  const borders = bordersOf(sought);
  const found: number[] = [];
  let length = 0;
  for (let index = 0; index < all.length && found.length < most; index++) {
    while (length > 0 && all.at(index) !== sought.at(length)) length = borders[length - 1] ?? 0;
    if (all.at(index) === sought.at(length)) length += 1;
    if (length < sought.length) continue;
    found.push(index - sought.length + 1);
    length = borders[length - 1] ?? 0;
  }
  return found;
};

const searchPlain = (text: string, sought: string, most: number): number[] => {
  const found: number[] = [];
  for (let at = text.indexOf(sought); at >= 0 && found.length < most; at = text.indexOf(sought, at + 1))
    found.push(at);
  return found;
};

const unitsOf = (text: string): Sequence => ({
  length: text.length,
  at: (index) => text.charCodeAt(index),
});

const numbersOf = (numbers: ArrayLike<number>): Sequence => ({
  length: numbers.length,
  at: (index) => numbers[index] ?? -1,
});

/** Offsets of the non-empty text `sought`, overlapping ones included, at most `most`. */
export const textOccurrences = (text: string, sought: string, most: number): number[] =>
  sought.length <= PLAIN_SEARCH_MAX
    ? searchPlain(text, sought, most)
    : searchLinear(unitsOf(text), unitsOf(sought), most);

/** The same for numbers. */
export const numberOccurrences = (
  all: ArrayLike<number>,
  sought: ArrayLike<number>,
  most: number,
): number[] => searchLinear(numbersOf(all), numbersOf(sought), most);
