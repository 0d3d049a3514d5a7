import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export { until } from '../../until.js';

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
