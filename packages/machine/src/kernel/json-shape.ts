import { isRecord, type Shape, type ShapeFault, shapeFault } from './shape.js';

/** The shape of arbitrary JSON: tool arguments, provider metadata. */

/** Twice what models may nest. What stores, hashes and compares values recurses through them. */
const DEPTH_MAX = 200;
/** More than any real value has: one with more is a circle. */
const PARTS_MAX = 5_000_000;

/** Whether the value can be JSON; the parts of an object are checked apart. */
const isPlain = (value: unknown): boolean => {
  const type = typeof value;
  return type === 'string' || type === 'boolean' || type === 'object' || Number.isFinite(value);
};

const ENDLESS: ShapeFault = { path: [], must: 'JSON', is: 'too large' };
const TOO_DEEP: ShapeFault = {
  path: [],
  must: 'JSON',
  is: `a circle, or nested deeper than ${DEPTH_MAX} levels`,
};

/** Finds the first part that is not JSON. Iterative, since deep recursion would end the process. */
const checkJson = (root: object): ShapeFault | null => {
  const open: { readonly value: object; readonly depth: number }[] = [{ value: root, depth: 1 }];
  let parts = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth } = next;
    if (depth > DEPTH_MAX) return TOO_DEEP;
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
