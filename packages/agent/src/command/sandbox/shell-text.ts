/** Shell text around commands: the parked shell, its quoting, and the report about processes that stay behind. */

import { SYSTEM_SHELL } from '../../platform/start-program.js';

/**
 * The shell around a fenced command.
 *
 * All processes of a fence end with its first one, so that nobody outside can see what the command left running. This
 * shell is the first one. When the command has ended, it looks for other processes in the fence's /proc, and reports
 * them as the last output of a stream that we read.
 */

const LEFT_BEHIND = '\0left behind\n';

/**
 * `look` sets `left` if processes remain. Process 1 is bubblewrap; a zombie does not count. A process that is about to
 * end, such as a process substitution, gets 50 ms. The exit code is the command's own.
 */
const LOOK = `look() {
  left=
  set -- /proc/[0-9]*
  [ $# -gt 2 ] || return
  for process; do
    case $process in /proc/1 | /proc/$$) continue ;; esac
    { read -r _ && read -r _ && read -r _ state _; } < "$process/status" || continue
    case $state in [ZX]) ;; *) left=1 ;; esac
  done
}`;
const END = `code=$?
look
[ -z "$left" ] || { sleep 0.05; look; }
[ -z "$left" ] || printf '\\0left behind\\n' >&3
exit $code`;

/** Runs the command in its arguments. The command's output is stdout, our report goes to stderr. */
const WATCHING = `${LOOK}
exec 3>&2 2>/dev/null
(exec "$@" 2>&3 3>&-)
${END}`;

/** Path inside the fence of the file with the command. */
export const COMMAND_INSIDE = '/run/pawl/command';

export type ShellCommand = {
  /** Absolute path. */
  readonly program: string;
  readonly words: readonly string[];
  /** All variables except PWD. Their names are exportable. */
  readonly environment: Readonly<Record<string, string>>;
  /** Names of variables that must not be written to disk. */
  readonly unwritten: readonly string[];
};

/** In bytes. Linux accepts at most 128 kB per argument. */
const WORD_MAX = 100_000;

/** Whether a parked shell can run this command. */
export const canBeParked = ({ words, environment }: ShellCommand): boolean =>
  Object.keys(environment).every(isExportable) &&
  [...words, ...Object.values(environment)].every((word) => Buffer.byteLength(word) < WORD_MAX);

const exportOf = (name: string, value: string): string => `export ${name}=${value}`;

/** Content of the file from which a parked shell reads its command. `check`: see CommandFence. */
export const commandText = ({ program, words, environment, unwritten }: ShellCommand, check = ''): string => {
  const variables = Object.entries(environment).filter(([name]) => !unwritten.includes(name));
  return [
    '(',
    ...(check === '' ? [] : [`{ ${check}} 2>&3`]),
    ...variables.map(([name, value]) => exportOf(name, shellWord(value))),
    'eval "$' + '{go#go}"',
    `exec ${shellWords([program, ...words])} >&3 2>&1 3>&-`,
    ')\n',
  ].join('\n');
};

const exportLine = (variables: readonly (readonly [string, string])[]): string =>
  variables.map(([name, value]) => exportOf(name, shellWordInLine(value))).join(';');

/** The line that starts a parked command. */
export const goLine = ({ environment, unwritten }: ShellCommand): string =>
  exportLine(Object.entries(environment).filter(([name]) => unwritten.includes(name)));

/** Name of the shell variable that holds a newline, for `shellWordInLine`. */
const NEWLINE_VARIABLE = 'newline';

/**
 * Waits for a line on stdin (shell text), then runs the command in the file. Both outputs are one stream. If no line
 * comes, the shell kills itself, so that no exit code is mistaken for the command's.
 */
const PARKED = `${LOOK}
${NEWLINE_VARIABLE}='
'
IFS= read -r go || kill -9 $$
exec 3>&1 </dev/null >/dev/null 2>&1
. ${COMMAND_INSIDE}
${END}`;

/** Program and arguments of the parked shell inside the fence. */
export const PARKED_SHELL: readonly string[] = [SYSTEM_SHELL, '-c', PARKED, 'sh'];

/** The same for a command without a fence: the shell becomes the command. */
export const openCommandText = ({ program, words }: ShellCommand, folder: string): string =>
  [
    `cd -- ${shellWord(folder)} || exit 126`,
    'unset OLDPWD',
    'eval "$' + '{go#go}"',
    `exec ${shellWords([program, ...words])} 2>&1`,
    '',
  ].join('\n');

/** No variable is written to a disk, since nobody has chosen which ones an open command gets. */
export const openGoLine = ({ environment }: ShellCommand): string => exportLine(Object.entries(environment));

/** Like PARKED, for a command without a fence, whose file is `$1`. */
const PARKED_OPEN = `${NEWLINE_VARIABLE}='
'
IFS= read -r go || kill -9 $$
exec </dev/null
. "$1"`;

export const openParkedShell = (command: string): readonly string[] => [
  ...[SYSTEM_SHELL, '-c', PARKED_OPEN, 'sh', command],
];

/** Number of processes between the one that we start and the command: bubblewrap, process 1, this shell. */
export const FENCE_DEPTH = 3;

export const reportingLeftovers = (
  program: string,
  words: readonly string[],
): { readonly program: string; readonly words: readonly string[] } => ({
  program: SYSTEM_SHELL,
  words: ['-c', WATCHING, 'sh', program, ...words],
});

/** Splits a stream from the mark at its end. Bytes that may begin the mark are held back until more come. */
type MarkReader = {
  add(bytes: Buffer): void;
  /** Call it at the end of the stream. Passes on the held bytes unless they are the mark. Returns whether they are. */
  end(): boolean;
};

/** Length of the longest end of `bytes` that begins the mark. */
const markStart = (bytes: Buffer): number => {
  for (let length = Math.min(bytes.length, LEFT_BEHIND.length); length > 0; length--) {
    if (bytes.toString('latin1', bytes.length - length) === LEFT_BEHIND.slice(0, length)) return length;
  }
  return 0;
};

export const createMarkReader = (tell: (bytes: Buffer) => void): MarkReader => {
  let held = Buffer.alloc(0);
  return {
    add(bytes) {
      const all = held.length === 0 ? bytes : Buffer.concat([held, bytes]);
      const at = all.length - markStart(all);
      held = Buffer.from(all.subarray(at));
      if (at > 0) tell(all.subarray(0, at));
    },
    end() {
      const isMark = held.toString('latin1') === LEFT_BEHIND;
      if (!isMark && held.length > 0) tell(held);
      held = Buffer.alloc(0);
      return isMark;
    },
  };
};

/** Quoting for a POSIX shell. */

/** One quoted word. The text may contain everything except NUL. */
export const shellWord = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export const shellWords = (words: readonly string[]): string => words.map(shellWord).join(' ');

/** Like `shellWord`, on a single line. The shell needs a newline in its variable `newline`. */
const shellWordInLine = (text: string): string =>
  text.split('\n').map(shellWord).join(`"$${NEWLINE_VARIABLE}"`);

/** Names that a shell treats specially, so they can't be exported, and those of our own scripts. */
const OWN =
  /^(?:_|go|newline|PPID|SHELLOPTS|BASHOPTS|BASH_.*|E?UID|IFS|OPTIND|LINENO|GROUPS|DIRSTACK|FUNCNAME)$/;

/** Whether a POSIX shell can export a variable of this name. */
const isExportable = (name: string): boolean => /^[A-Za-z_]\w*$/.test(name) && !OWN.test(name);
