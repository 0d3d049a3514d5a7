import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';

/** The shared libraries that a program is linked with: what it needs beside itself to run. */

/** Folders that hold the libraries of any program, where there is no `ldd` to ask. */
const LIBRARY_FOLDERS: readonly string[] = ['/lib', '/lib64', '/usr/lib', '/usr/lib64'];

/** `libm.so.6 => /lib/…/libm.so.6 (0x…)` or `/lib64/ld-linux-x86-64.so.2 (0x…)`. */
const libraryOf = (line: string): readonly string[] => {
  const found = /^\s*(?:\S+ => )?(\/\S+)(?: \(0x[0-9a-f]+\))?$/.exec(line)?.[1];
  return found === undefined ? [] : [found];
};

/** Paths of the libraries of a program that is trusted (asking for them may start it). Never rejects. */
export const librariesOf = (program: string): Promise<readonly string[]> =>
  new Promise((resolve) => {
    execFile(
      'ldd',
      [program],
      { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } },
      (error, stdout) => {
        // No ldd, or a program that is linked with nothing: it may find what it needs in the folders, too.
        resolve(
          error === null
            ? stdout.split('\n').flatMap(libraryOf)
            : LIBRARY_FOLDERS.filter((folder) => existsSync(folder)),
        );
      },
    );
  });
