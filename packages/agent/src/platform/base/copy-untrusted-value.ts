/** Copies untrusted values to plain data, so that their makers can't change them later. */

export type CopyLimits = {
  /** Maximum nesting of lists and objects. */
  readonly depthMax: number;
  /** Maximum length of all texts and field names together. */
  readonly charactersMax: number;
};

export type PlainCopy =
  | { readonly kind: 'ok'; readonly value: unknown }
  | { readonly kind: 'invalid'; readonly why: string };

/** Maximum number of fields and items: copying more costs too much. */
const VALUES_MAX = 500_000;

class NotPlain extends Error {}

const copyOf = (root: unknown, { depthMax, charactersMax }: CopyLimits): unknown => {
  let characters = 0;
  let values = 0;
  const spend = (more: number): void => {
    characters += more;
    values += 1;
    if (characters > charactersMax) throw new NotPlain(`it is larger than ${charactersMax} characters`);
    if (values > VALUES_MAX) throw new NotPlain(`it holds more than ${VALUES_MAX} values`);
  };
  const copyObject = (value: object, depth: number): object => {
    const copied = {};
    for (const key of Object.keys(value)) {
      const held = copy((value as Readonly<Record<string, unknown>>)[key], depth); // a key of it
      spend(key.length);
      if (held === undefined) continue;
      // An assignment to __proto__ would set the prototype.
      if (key === '__proto__')
        Object.defineProperty(copied, key, {
          value: held,
          enumerable: true,
          configurable: true,
          writable: true,
        });
      else (copied as Record<string, unknown>)[key] = held; // made here
    }
    return copied;
  };
  const copyList = (value: readonly unknown[], depth: number): readonly unknown[] => {
    const { length } = value; // once: a proxy can give another one each time
    if (length > VALUES_MAX) throw new NotPlain(`it holds more than ${VALUES_MAX} values`);
    const copied: unknown[] = [];
    for (let index = 0; index < length; index++) copied.push(copy(value[index], depth));
    return copied;
  };
  const copy = (value: unknown, depth: number): unknown => {
    switch (typeof value) {
      case 'string':
        spend(value.length);
        return value;
      case 'number':
        spend(0);
        return value === 0 ? 0 : value; // JSON has no -0
      case 'boolean':
      case 'undefined':
        spend(0);
        return value;
      case 'object':
        spend(0);
        if (value === null) return null;
        if (depth === depthMax) throw new NotPlain(`it is nested deeper than ${depthMax} levels`);
        return Array.isArray(value) ? copyList(value, depth + 1) : copyObject(value, depth + 1);
      default:
        throw new NotPlain(`it holds a ${typeof value}`);
    }
  };
  return copy(root, 0);
};

/** A copy that shares nothing with the value. Fields that are undefined are left out; numbers stay what they are. */
export const copyPlain = (value: unknown, limits: CopyLimits): PlainCopy => {
  try {
    return { kind: 'ok', value: copyOf(value, limits) };
  } catch (thrown) {
    // Nothing is lost: whoever asked refuses the value, and says why.
    if (thrown instanceof NotPlain) return { kind: 'invalid', why: thrown.message };
    return { kind: 'invalid', why: "it can't be read: looking at one of its fields throws" };
  }
};
