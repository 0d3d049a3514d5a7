import { sha256 } from '@pawl/agent/journal/read/hash-state';
import { AppendList } from '@pawl/machine/kernel/append-list';
import type { Tree } from '../tree/tree-state.js';

/**
 * Hashes the states of a tree of runs, incrementally.
 *
 * 1. A state shares nearly all of its objects with the one before, and objects never change: each is serialized once.
 * 2. An object with a long serialization is represented by its hash in its parent, so no text is hashed twice.
 * 3. Keys are sorted, so the insertion order of fields does not matter.
 */
const SUMMED_FROM = 512;

const isField = ([, value]: [string, unknown]): boolean => value !== undefined;

/** Returns a hash function for the states of one tree; it caches the serialization of shared objects. */
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
    if (value instanceof AppendList) return `[${value.toArray().map(write).join(',')}]`;
    if (Array.isArray(value)) return `[${value.map(write).join(',')}]`;
    const fields = Object.entries(value)
      .filter(isField)
      .sort(([left], [right]) => (left < right ? -1 : 1));
    return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${write(field)}`).join(',')}}`;
  };
  return (tree) => sha256(write(tree));
};
