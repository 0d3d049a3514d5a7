import { existsSync } from 'node:fs';
import { ownPrograms } from '../../../platform/programs/find-program.js';
import { askProgram } from '../../../platform/programs/start-program.js';

/** The shared libraries that a program needs to run. */

/** Library folders to use if `ldd` is missing. */
const LIBRARY_FOLDERS: readonly string[] = ['/lib', '/lib64', '/usr/lib', '/usr/lib64'];

/** `libm.so.6 => /lib/…/libm.so.6 (0x…)` or `/lib64/ld-linux-x86-64.so.2 (0x…)`. */
const libraryOf = (line: string): readonly string[] => {
  const found = /^\s*(?:\S+ => )?(\/\S+)(?: \(0x[0-9a-f]+\))?$/.exec(line)?.[1];
  return found === undefined ? [] : [found];
};

/** Paths of a program's libraries. The program must be trusted, since `ldd` may start it. Never rejects. */
export const librariesOf = async (program: string): Promise<readonly string[]> => {
  const programs = ownPrograms();
  const ldd = programs.find('ldd');
  const environment = { ...process.env, LC_ALL: 'C' };
  const answer =
    ldd === null ? null : await askProgram(ldd, [program], { environment, searchPath: programs.folders });
  // There is no ldd, or the program is linked statically and may still load files from these folders.
  if (answer === null || answer.code !== 0) return LIBRARY_FOLDERS.filter((folder) => existsSync(folder));
  return answer.output.split('\n').flatMap(libraryOf);
};
