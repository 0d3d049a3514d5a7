/** What the strict servers share: a fault is thrown where it is found, and is what the request is rejected with. */

export type Loose = { readonly [key: string]: unknown };

class Fault extends Error {}

export const isObject = (value: unknown): value is Loose =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const demand: (holds: boolean, fault: string) => asserts holds = (holds, fault) => {
  if (!holds) throw new Fault(fault);
};

export const demandObject: (value: unknown, at: string) => asserts value is Loose = (value, at) =>
  demand(isObject(value), `${at}: should be an object`);

export const demandText: (value: unknown, at: string) => asserts value is string = (value, at) =>
  demand(
    typeof value === 'string' && value.trim() !== '',
    `${at}: should be a text that is not empty`,
  );

/** No field that the wire does not know. */
export const demandFields = (value: Loose, known: readonly string[], at: string): void => {
  const extra = Object.keys(value).find((key) => !known.includes(key));
  demand(extra === undefined, `${at}.${extra}: unknown field`);
};

export const demandList: (value: unknown, at: string) => asserts value is readonly Loose[] = (
  value,
  at,
) => {
  demand(Array.isArray(value) && value.length > 0, `${at}: should be a list that is not empty`);
  demand(value.every(isObject), `${at}: should hold objects`);
};

/** The arguments of a call, as JSON text of an object. */
export const demandArguments = (value: unknown, at: string): void => {
  demand(typeof value === 'string', `${at}: should be a text`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(value);
  } catch {
    parsed = null; // no JSON: said below
  }
  demand(isObject(parsed), `${at}: should be JSON of an object`);
};

/** What `check` finds wrong, or null. */
export const faultOf = (check: () => void): string | null => {
  try {
    check();
    return null;
  } catch (error) {
    if (error instanceof Fault) return error.message;
    throw error;
  }
};
