import { homedir } from 'node:os';
import path from 'node:path';
import {
  findRepositoryProgram,
  type ProgramPath,
  type SearchPlace,
  searchPrograms,
} from '../../platform/programs/find-program.js';

/** The program of a server: a name is searched like the agent's programs, a whole path is taken as it is. */
export const findServerProgram = (command: string, place: SearchPlace): ProgramPath => {
  const whole = command.startsWith('~/')
    ? path.join(place.environment.HOME || homedir(), command.slice(2))
    : command;
  if (path.isAbsolute(whole)) {
    const named = findRepositoryProgram([path.dirname(whole)], path.basename(whole));
    if (named !== null) return named;
    throw new Error(`there is no program ${whole}`);
  }
  if (whole.includes('/'))
    throw new Error(
      `its command ${command} is a relative path. Write the whole path, or the name of a program`,
    );
  const programs = searchPrograms(place);
  const found = programs.find(whole);
  if (found !== null) return found;
  const why = programs.whyNot(whole);
  throw new Error(`there is no program ${whole}${why === null ? ' in PATH' : `: ${why}`}`);
};
