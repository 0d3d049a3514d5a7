import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const readProc = (name: string): string => {
  try {
    return readFileSync(`/proc/${name}`, 'latin1');
  } catch {
    return ''; // it ended meanwhile
  }
};

const workingFolder = (name: string): string => {
  try {
    return readlinkSync(`/proc/${name}/cwd`);
  } catch {
    return ''; // it ended meanwhile
  }
};

/** Command lines of the living processes whose command line, environment or folder holds `text`, this one excepted. */
export const processesWith = (text: string): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      const line = readProc(`${name}/stat`);
      const isZombie = line.slice(line.lastIndexOf(')') + 2).startsWith('Z');
      return (
        !isZombie &&
        [readProc(`${name}/environ`), readProc(`${name}/cmdline`), workingFolder(name)].some((one) =>
          one.includes(text),
        )
      );
    })
    .map((name) => readProc(`${name}/cmdline`).replaceAll('\0', ' '));

/** Waits until `isTrue`; fails loudly after half a minute. */
export const until = async (what: string, isTrue: () => boolean): Promise<void> => {
  for (let round = 0; round < 1_500; round++) {
    if (isTrue()) return;
    await sleep(20);
  }
  throw new Error(`waited in vain: ${what}`);
};
