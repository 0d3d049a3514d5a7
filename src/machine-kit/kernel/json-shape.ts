import { isRecord, type Shape, type ShapeFault, shapeFault } from './shape.js';

/** The shape of arbitrary JSON: tool arguments, provider metadata. */

/** Larger than any real value: a value beyond these bounds is a cycle. */
const DEPTH_MAX = 100_000;
const PARTS_MAX = 5_000_000;

/** Whether the value can be JSON; the parts of an object are checked apart. */
const isPlain = (value: unknown): boolean => {
  const type = typeof value;
  return type === 'string' || type === 'boolean' || type === 'object' || Number.isFinite(value);
};

const ENDLESS: ShapeFault = { path: [], must: 'JSON', is: 'a circle, or too large' };

/** Finds the first part that is not JSON. Iterative, since deep recursion would end the process. */
const checkJson = (root: object): ShapeFault | null => {
  const open: { readonly value: object; readonly depth: number }[] = [{ value: root, depth: 1 }];
  let parts = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth } = next;
    if (depth > DEPTH_MAX) return ENDLESS;
    const isList = Array.isArray(value);
    for (const inner of isList ? value : Object.values(value)) {
      parts += 1;
      if (parts > PARTS_MAX) return ENDLESS;
      // Packages leave fields undefined; JSON leaves such fields out.
      if (inner === undefined && !isList) continue;
      if (!isPlain(inner)) return shapeFault(inner, 'JSON, with all that is in it');
      if (typeof inner === 'object' && inner !== null) open.push({ value: inner, depth: depth + 1 });
    }
  }
  return null;
};

/** Any JSON object. */
export const jsonObject = <T extends object>(): Shape<T> => ({
  check: (value) => (isRecord(value) ? checkJson(value) : shapeFault(value, 'an object')),
});
