/** Quoting for a POSIX shell. */

/** One quoted word. The text may contain everything except NUL. */
export const shellWord = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export const shellWords = (words: readonly string[]): string => words.map(shellWord).join(' ');

/** Name of the shell variable that holds a newline, for `shellWordInLine`. */
export const NEWLINE_VARIABLE = 'newline';

/** Like `shellWord`, on a single line. The shell needs a newline in its variable `newline`. */
export const shellWordInLine = (text: string): string =>
  text.split('\n').map(shellWord).join(`"$${NEWLINE_VARIABLE}"`);

/** Names that a shell treats specially, so they can't be exported, and those of our own scripts. */
const OWN =
  /^(?:_|go|newline|PPID|SHELLOPTS|BASHOPTS|BASH_.*|E?UID|IFS|OPTIND|LINENO|GROUPS|DIRSTACK|FUNCNAME)$/;

/** Whether a POSIX shell can export a variable of this name. */
export const isExportable = (name: string): boolean => /^[A-Za-z_]\w*$/.test(name) && !OWN.test(name);
