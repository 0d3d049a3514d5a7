import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

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

export type LivingProcess = { readonly pid: number; readonly line: string };

/** The living processes whose command line, environment or folder holds `text`, this one excepted. */
export const livingWith = (text: string): readonly LivingProcess[] =>
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
    .map(({ name, line }) => ({ pid: Number(name), line: line.trim() }));

/** Their command lines. */
export const processesWith = (text: string): readonly string[] =>
  livingWith(text).map(({ line }) => line);

/** Kills them and what they start meanwhile. Gives the command lines of those that lived. */
export const killProcessesWith = (text: string): readonly string[] => {
  const lines: string[] = [];
  for (let living = livingWith(text); living.length > 0; living = livingWith(text))
    for (const { pid, line } of living) {
      if (!lines.includes(line)) lines.push(line);
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // it has ended since it was listed
      }
    }
  return lines;
};
