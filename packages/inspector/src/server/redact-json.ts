import type { Redactor } from '@pawl/agent/platform/secrets/redactor';

/**
 * A JSON value with the secrets in its texts and keys replaced. Values of other types stay as they are, so the result
 * has the type of what was given.
 */
export const redactJson = <T>(redactor: Pick<Redactor, 'isIdle' | 'clean'>, value: T): T =>
  // Safe: only texts change, and they stay texts.
  redactor.isIdle ? value : (cleanValue(redactor, value) as T);

const cleanValue = (redactor: Pick<Redactor, 'clean'>, value: unknown): unknown => {
  if (typeof value === 'string') return redactor.clean(value);
  if (Array.isArray(value)) return value.map((one) => cleanValue(redactor, one));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [redactor.clean(key), cleanValue(redactor, one)]),
  );
};
