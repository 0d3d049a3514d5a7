/** JSON from outside that is not checked yet. */
export type Loose = { readonly [key: string]: unknown };

export const isObject = (value: unknown): value is Loose =>
  typeof value === 'object' && value !== null;

/** The object under a key, or an empty object. */
export const objectIn = (value: unknown, key: string | number): Loose => {
  const field = isObject(value) ? value[key] : undefined;
  return isObject(field) ? field : {};
};

/** The objects of a list; none if the value is no list. */
export const listIn = (value: unknown): readonly Loose[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

export const asText = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

/** Tokens that no cache served. A total below the cached count does not include it. */
export const withoutCached = (total: number, cached: number): number =>
  total < cached ? total : total - cached;

export const asCount = (value: unknown): number => (typeof value === 'number' ? value : 0);
