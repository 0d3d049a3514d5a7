import { guardScript } from '../../platform/programs/end-with-pawl.js';
import type { ProgramPath } from '../../platform/programs/find-program.js';
import { closingOthers } from './close-inherited-descriptors.js';

/** The pipe of the guard, after the standard descriptors. */
const GUARD_PIPE = 3;

/**
 * `--norc`, `-p`: bash runs neither ~/.bashrc nor the file in BASH_ENV. Unlike other shells it passes on variables with any
 * name.
 */
const GUARDED = ['--norc', '-p', '-c', `${guardScript(GUARD_PIPE)}exec "$@"`, 'pawl-guard'];

type Start<P extends string = string> = { readonly program: P; readonly words: readonly string[] };

/** The start of a program with a guard. */
export const guarded = ({ program, words }: Start, bash: ProgramPath): Start<ProgramPath> => ({
  program: bash,
  words: [...GUARDED, program, ...words],
});

/** How to start a command without a fence. A guard needs bash: `isGuarded` in the result says whether there is one. */
export const openStart = (
  { program, words }: Start,
  bash: ProgramPath | null,
  isGuarded: boolean,
): Start & { readonly isGuarded: boolean } =>
  bash === null || !isGuarded
    ? { ...closingOthers({ program, words }, GUARD_PIPE - 1, bash), isGuarded: false }
    : {
        ...closingOthers(guarded({ program, words }, bash), GUARD_PIPE, bash),
        isGuarded: true,
      };
