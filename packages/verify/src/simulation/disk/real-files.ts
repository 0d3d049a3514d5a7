import fs from 'node:fs';
import { systemError } from './disk.js';

export type AnyFunction = (...args: unknown[]) => unknown;

/** What a simulated process must not do to the real system. */
const CHANGES = new Set(['mkdtemp', 'mkdir', 'writeFile', 'appendFile', 'rename', 'link', 'unlink', 'rm']);

/** A file of the real system, read at once: a simulated process must not wait for real time. */
export const realFile = async (
  name: string,
  original: AnyFunction,
  args: readonly unknown[],
): Promise<unknown> => {
  const now: unknown = Reflect.get(fs, `${name}Sync`);
  if (CHANGES.has(name)) throw systemError('EROFS', name);
  return typeof now === 'function' && name !== 'open' ? Reflect.apply(now, fs, args) : original(...args);
};
