/** JSON from outside, of which nothing is known yet. */
export type Loose = { readonly [key: string]: unknown };

export const isObject = (value: unknown): value is Loose => typeof value === 'object' && value !== null;

/** The object under a key, or an empty one: what is missing has no fields. */
export const objectIn = (value: unknown, key: string | number): Loose => {
  const found = isObject(value) ? value[key] : undefined;
  return isObject(found) ? found : {};
};

export const asText = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

export const asCount = (value: unknown): number => (typeof value === 'number' ? value : 0);
