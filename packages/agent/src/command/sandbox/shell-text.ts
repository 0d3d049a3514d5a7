/**
 * Shell text around commands: what a parked shell is told, and the marks in what a command prints.
 *
 * A parked shell (command-shell.sh) waits in its fence, the sandbox around one command, for one
 * line on its stdin. launcher.sh writes the line: the word `go` and our shell text. In the mode
 * `parked` the shell then runs the file with the command, which evaluates the line; in the mode
 * `open` the line itself is the command. In the mode `run` nothing waits. The end of the output is
 * marked twice: by command-shell.sh with an `EndReport`, by launcher.sh with `ENDED`. A command may
 * print the marks itself: `ENDED` counts only with an exit code, and a false report changes a note
 * in its result.
 */

import { readFileSync } from 'node:fs';
import type { ProgramPath } from '../../platform/find-program.js';
import { SYSTEM_SHELL } from '../../platform/start-program.js';

/** One quoted word. The text may contain everything except NUL. */
export const shellWord = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export const shellWords = (words: readonly string[]): string => words.map(shellWord).join(' ');

/** Like `shellWord`, on a single line. The shell needs a newline in its variable `newline`. */
const shellWordInLine = (text: string): string =>
  text.split('\n').map(shellWord).join('"$newline"');

/** The arguments of the program that makes a fence, with this command line inside. */
export const wrapCommand = (
  { words, seals }: { readonly words: readonly string[]; readonly seals: readonly string[] },
  command: readonly string[],
): readonly string[] => [...words, ...seals, '--', ...command];

/** Names that a shell treats specially, so they can't be exported, and those of our scripts. */
const RESERVED =
  /^(?:_|go|newline|PPID|SHELLOPTS|BASHOPTS|BASH_.*|E?UID|IFS|OPTIND|LINENO|GROUPS|DIRSTACK|FUNCNAME)$/;

/** Whether a POSIX shell can export a variable of this name. */
const isExportable = (name: string): boolean => /^[A-Za-z_]\w*$/.test(name) && !RESERVED.test(name);

/** A script without its comments, so that lists of processes stay readable. */
export const withoutComments = (script: string): string => script.replace(/^ *#.*\n/gm, '');

/** Path inside the fence of the file with the command. */
export const COMMAND_INSIDE = '/run/pawl/command';

type ShellMode = 'parked' | 'open' | 'run';

/** Read with the first command. */
let commandScript: string | null = null;

/** `mode`: wait in a fence, wait without one, or run at once. */
const commandShell = (mode: ShellMode, words: readonly string[]): readonly string[] => {
  // the bundler puts the text in place of the call
  commandScript ??= withoutComments(
    readFileSync(new URL('./command-shell.sh', import.meta.url), 'utf8'),
  );
  return [SYSTEM_SHELL, '-c', commandScript, 'sh', mode, ...words];
};

/** Program and arguments of the parked shell inside the fence. */
export const parkedShell = (): readonly string[] => commandShell('parked', [COMMAND_INSIDE]);

/** The same for a command whose line says everything, since it may see no file of ours. */
export const openParkedShell = (): readonly string[] => commandShell('open', []);

/** Runs a program in a fence, and reports processes that it leaves. */
export const reportingLeftovers = (
  program: ProgramPath,
  words: readonly string[],
): { readonly program: ProgramPath; readonly words: readonly string[] } => ({
  program: SYSTEM_SHELL,
  words: commandShell('run', [program, ...words]).slice(1),
});

export type CommandLine = {
  readonly program: ProgramPath;
  readonly words: readonly string[];
  /** All variables except PWD. Their names are exportable. */
  readonly environment: Readonly<Record<string, string>>;
  /** Names of variables that must not be written to disk. */
  readonly unwritten: readonly string[];
};

/** In bytes. Linux accepts at most 128 kB per argument. */
const WORD_MAX = 100_000;

/** Whether a parked shell can run this command. */
export const canBeParked = ({ words, environment }: CommandLine): boolean =>
  Object.keys(environment).every(isExportable) &&
  [...words, ...Object.values(environment)].every((word) => Buffer.byteLength(word) < WORD_MAX);

type Variable = readonly [name: string, value: string];

const exportLine = (variables: readonly Variable[]): string =>
  variables.map(([name, value]) => `export ${name}=${shellWordInLine(value)}`).join(';');

/**
 * `file`: content of the file from which a parked shell reads its command; `line`: the line that
 * starts it.
 */
export type ShellText = { readonly file: string; readonly line: string };

/**
 * Runs the line that let the parked shell go, which command-shell.sh has read into `go`: exports of
 * variables that must not be written to disk. The line begins with the word `go`, which is taken
 * off. The text is in two parts since the linter takes `${…}` for a forgotten template.
 */
const RUN_LINE = 'eval "$' + '{go#go}"';

/**
 * The command in a subshell. Both of its outputs go to descriptor 3, the stream that we read.
 * `check`: shell text that runs before it, and ends the shell if the command must not start. Its
 * last character is `;` or a line break.
 */
export const fencedCommand = (command: CommandLine, check = ''): ShellText => {
  const { program, words, environment, unwritten } = command;
  const variables = Object.entries(environment);
  const written = variables.filter(([name]) => !unwritten.includes(name));
  const file = [
    '(',
    ...(check === '' ? [] : [`{ ${check}} 2>&3`]),
    ...written.map(([name, value]) => `export ${name}=${shellWord(value)}`),
    RUN_LINE,
    `exec ${shellWords([program, ...words])} >&3 2>&1 3>&-`,
    ')\n',
  ];
  const line = exportLine(variables.filter(([name]) => unwritten.includes(name)));
  return { file: file.join('\n'), line };
};

/**
 * The same for a shell that becomes the command, in this folder: all in the line. So no variable is
 * written to a disk, and a fence of macOS, in which files have their usual paths, shows none.
 */
export const openCommand = (
  { program, words, environment }: CommandLine,
  folder: string,
): ShellText => {
  const steps = [
    exportLine(Object.entries(environment)),
    `cd -- ${shellWordInLine(folder)} || exit 126`,
    'unset OLDPWD',
    `exec ${[program, ...words].map(shellWordInLine).join(' ')} 2>&1`,
  ];
  return { file: '', line: steps.filter((step) => step !== '').join(';') };
};

/**
 * What command-shell.sh reports in a fence when the command has ended: whether processes are left.
 * `missing`: the shell has not come that far, so the command may never have started.
 */
export type EndReport = 'leftBehind' | 'noneLeft' | 'missing';

/** The reports as they end the output. */
const REPORTS = { leftBehind: '\0left behind\n', noneLeft: '\0none left\n' } as const;

/**
 * Follows everything that the command itself has written; launcher.sh writes it. Processes that the
 * command has detached may write after it.
 */
const ENDED = '\0ended\n';

/**
 * Takes the marks out of a stream. Bytes that may begin a mark are held back until more come.
 */
export type MarkReader = {
  /** The mark `ENDED` has come. */
  readonly hasEnded: boolean;
  add(bytes: Buffer): void;
  /** Call it at the end of the stream. */
  end(): EndReport;
};

export const createMarkReader = (pass: (bytes: Buffer) => void): MarkReader => {
  let held = Buffer.alloc(0);
  let report: EndReport = 'missing';
  const passWithoutReport = (bytes: Buffer): void => {
    const found = reportAtEnd(bytes);
    if (found !== 'missing') report = found;
    const text = found === 'missing' ? bytes : bytes.subarray(0, -REPORTS[found].length);
    if (text.length > 0) pass(text);
  };
  const reader = {
    hasEnded: false,
    add(bytes: Buffer) {
      let rest = held.length === 0 ? bytes : Buffer.concat([held, bytes]);
      for (let at = rest.indexOf(ENDED); at !== -1; at = rest.indexOf(ENDED)) {
        reader.hasEnded = true;
        passWithoutReport(rest.subarray(0, at));
        rest = rest.subarray(at + ENDED.length);
      }
      const end = rest.length - markStart(rest);
      held = Buffer.from(rest.subarray(end));
      if (end > 0) pass(rest.subarray(0, end));
    },
    end() {
      passWithoutReport(held);
      held = Buffer.alloc(0);
      return report;
    },
  };
  return reader;
};

const reportAtEnd = (bytes: Buffer): EndReport => {
  for (const report of ['leftBehind', 'noneLeft'] as const) {
    const mark = REPORTS[report];
    if (bytes.toString('latin1', bytes.length - mark.length) === mark) return report;
  }
  return 'missing';
};

/** What may stand at the end of the output. */
const MARKS = [REPORTS.leftBehind + ENDED, REPORTS.noneLeft + ENDED, ENDED] as const;

/** Length of the longest end of `bytes` that may be the beginning of a mark. */
const markStart = (bytes: Buffer): number => {
  for (let length = Math.min(bytes.length, MARKS[0].length); length > 0; length--) {
    const end = bytes.toString('latin1', bytes.length - length);
    if (MARKS.some((mark) => mark.startsWith(end))) return length;
  }
  return 0;
};
