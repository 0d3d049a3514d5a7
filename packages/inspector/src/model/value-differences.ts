/** The differences of two values of JSON, for people. */

/** `path`: names and indexes, `session.queue[0].text`. undefined: not there. */
export type ValueDifference = { readonly path: string; readonly before: unknown; readonly after: unknown };

/** As JSON has it: lists of our own become arrays. */
const plain = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return value;
  return 'toJSON' in value && typeof value.toJSON === 'function' ? value.toJSON() : value;
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

const collect = (path: string, left: unknown, right: unknown, found: ValueDifference[]): void => {
  if (left === right) return;
  const [before, after] = [plain(left), plain(right)];
  if (Array.isArray(before) && Array.isArray(after)) {
    for (let index = 0; index < Math.max(before.length, after.length); index++)
      collect(`${path}[${index}]`, before[index], after[index], found);
    return;
  }
  if (isObject(before) && isObject(after) && !Array.isArray(before) && !Array.isArray(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
      collect(path === '' ? key : `${path}.${key}`, before[key], after[key], found);
    return;
  }
  if (!Object.is(before, after)) found.push({ path, before, after });
};

/** Every leaf that differs, in the order of the values. What only one of them has is one difference. */
export const valueDifferences = (before: unknown, after: unknown): readonly ValueDifference[] => {
  const found: ValueDifference[] = [];
  collect('', before, after, found);
  return found;
};
