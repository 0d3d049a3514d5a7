/** Finds the row of a program, what a command means beside its words, and builtins. */

import { namedRows, programName, wordSet } from '../paths.js';
import { DEVELOPMENT_PROGRAMS } from './development.js';
import { FILE_PROGRAMS } from './files.js';
import { GIT_PROGRAM } from './git.js';
import { wrapped } from './meanings.js';
import { NETWORK_PROGRAMS } from './network.js';
import type { Meaning, Program, Rows, Words } from './program.js';
import { RUNNERS } from './runners.js';
import { SHELLS } from './shells.js';
import { WRAPPERS } from './wrappers.js';

/** All rows. A name stands in one of them, which a test checks. */
export const PROGRAM_ROWS: readonly Rows[] = [
  GIT_PROGRAM,
  ...FILE_PROGRAMS,
  ...DEVELOPMENT_PROGRAMS,
  NETWORK_PROGRAMS,
  SHELLS,
  WRAPPERS,
  RUNNERS,
];

/** The rows by name. */
export const programs: ReadonlyMap<string, Program> = new Map(PROGRAM_ROWS.flatMap(namedRows));
const rows = [...programs.values()];

/** The row of the program that a word starts; undefined if nothing is known of it. */
export const findRow = (word: string | null | undefined): Program | undefined => {
  const name = programName(word ?? '');
  return programs.get(name) ?? rows.find(({ alsoNamed }) => alsoNamed?.test(name) === true);
};

/** Whether a command starts git. */
export const isGit = ([program]: Words): boolean => findRow(program) === findRow('git');

/** The special meaning of a command; empty for an ordinary one. */
export const commandMeaning = (words: Words): Meaning => {
  const [first] = words;
  if (first === null) return { unclear: 'the program is named when it runs' };
  const { runs = () => ({}) } = findRow(first) ?? {};
  return typeof runs === 'function' ? runs(words) : wrapped(words, runs);
};

/** No program is searched for these. */
const BUILTINS = wordSet(`
  . : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare
  dirs disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill let
  local logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt source
  suspend test times trap true type typeset ulimit umask unalias unset wait`);

/** Whether bash runs a command of this name itself. */
export const isBuiltin = (name: string): boolean => BUILTINS.has(name);
