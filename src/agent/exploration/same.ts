import { Log } from '../../kernel/log.js';

/** Whether two values of plain data are the same in all their parts; what both share is not looked into. */
export const isSame = (one: unknown, other: unknown): boolean => {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (one instanceof Log) return other instanceof Log && isSameLog(one, other);
  // Two objects: their fields can be looked at by name.
  const [fields, others] = [one as Record<string, unknown>, other as Record<string, unknown>];
  let count = 0;
  for (const name in fields) {
    if (!isSame(fields[name], others[name])) return false;
    count += 1;
  }
  for (const _ in others) count -= 1;
  return count === 0;
};

/** A step adds at most two messages, or makes a list of at most two. */
const isSameLog = (one: Log<unknown>, other: Log<unknown>): boolean =>
  one.length === other.length &&
  isSame(one.at(one.length - 1), other.at(one.length - 1)) &&
  isSame(one.at(one.length - 2), other.at(one.length - 2));
