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
    .map((name) => ({ name, line: readProc(`${name}/cmdline`).replaceAll('\0', ' ') }))
    // Threads of the kernel have no command line, nor have processes that have ended.
    .filter(
      ({ name, line }) =>
        line !== '' &&
        (line.includes(text) ||
          readProc(`${name}/environ`).includes(text) ||
          workingFolder(name).includes(text)),
    )
    .map(({ line }) => line);

/** Waits until `isTrue`; fails loudly after half a minute. Looks less often the longer it waits. */
export const until = async (what: string, isTrue: () => boolean): Promise<void> => {
  const endsAt = Date.now() + 30_000;
  for (let pauseMs = 10; Date.now() < endsAt; pauseMs = Math.min(pauseMs * 1.2, 100)) {
    if (isTrue()) return;
    await sleep(pauseMs);
  }
  throw new Error(`waited in vain: ${what}`);
};
