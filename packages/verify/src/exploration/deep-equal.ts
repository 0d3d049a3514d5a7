import { AppendList } from '@pawl/machine/kernel/append-list';

/** Whether two values of plain data are equal. Shared parts are not compared. */
export const deepEqual = (one: unknown, other: unknown): boolean => {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (one instanceof AppendList) return other instanceof AppendList && isSameLog(one, other);
  // Both are objects, so their fields have names.
  const [fields, others] = [one as Record<string, unknown>, other as Record<string, unknown>];
  let count = 0;
  for (const name in fields) {
    if (!deepEqual(fields[name], others[name])) return false;
    count += 1;
  }
  for (const _ in others) count -= 1;
  return count === 0;
};

/** A step adds at most two messages, or makes a list of at most two. */
const isSameLog = (one: AppendList<unknown>, other: AppendList<unknown>): boolean =>
  one.length === other.length &&
  deepEqual(one.at(one.length - 1), other.at(one.length - 1)) &&
  deepEqual(one.at(one.length - 2), other.at(one.length - 2));
