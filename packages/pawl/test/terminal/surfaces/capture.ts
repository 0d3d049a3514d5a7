import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import tty from 'node:tty';

/** Takes what this process writes to stdout and stderr, as if both were a terminal, until the returned function is called. */
export const captureOutput = (take: (text: string) => void): (() => void) => {
  const { writeSync } = fs;
  const { isatty } = tty;
  const taken = (descriptor: number, bytes: Buffer, ...rest: readonly number[]): number => {
    if (descriptor !== 1 && descriptor !== 2) return writeSync(descriptor, bytes, ...rest);
    take(bytes.toString('utf8'));
    return bytes.length;
  };
  Object.assign(fs, { writeSync: taken });
  Object.assign(tty, { isatty: () => true });
  syncBuiltinESMExports();
  return () => {
    Object.assign(fs, { writeSync });
    Object.assign(tty, { isatty });
    syncBuiltinESMExports();
  };
};
