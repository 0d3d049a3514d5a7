import { Log } from '../kernel/log.js';
import type { Tree } from '../recursive/tree-state.js';
import { sha256 } from './check.js';

/**
 * The check of the states of a tree of runs.
 *
 * 1. A state shares nearly all of its parts with the one before, and parts never change: each is written out once.
 * 2. A part that is longer than a sum stands in what holds it as its sum, so that no text is ever summed twice.
 * 3. Keys are sorted: the order in which an object was built does not count.
 */
const SUMMED_FROM = 512;

const isField = ([, value]: [string, unknown]): boolean => value !== undefined;

/** Makes checks of one tree's states. */
export const createTreeCheck = (): ((tree: Tree) => string) => {
  const written = new WeakMap<object, string>();
  const write = (value: unknown): string => {
    if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
    const known = written.get(value);
    if (known !== undefined) return known;
    const text = compose(value);
    const short = text.length > SUMMED_FROM ? `#${sha256(text)}` : text;
    written.set(value, short);
    return short;
  };
  const compose = (value: object): string => {
    if (value instanceof Log) return `[${value.toArray().map(write).join(',')}]`;
    if (Array.isArray(value)) return `[${value.map(write).join(',')}]`;
    const fields = Object.entries(value)
      .filter(isField)
      .sort(([left], [right]) => (left < right ? -1 : 1));
    return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${write(field)}`).join(',')}}`;
  };
  return (tree) => sha256(write(tree));
};
