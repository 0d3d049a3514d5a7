/**
 * The command line: parses it, runs the command, returns the exit code.
 *
 * From top to bottom: `runCommandLine`; a HOME that is missing; words without a command; the
 * parser; and flags beyond the parser: prompts that look like flags, and flag names of other
 * agents.
 */

import { homedir } from 'node:os';
import { isAbsolute } from 'node:path';
import { defaultProvider } from '@pawl/agent/models/provider-table';
import { attemptNow } from '@pawl/agent/platform/attempt';
import { homeFolder } from '@pawl/agent/platform/environment';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { CommanderError, Command as Parser } from 'commander';
import { errorEnding, exitCodes, flushSpans, Stop } from '../process/exit-codes.js';
import { type RunFlags, runFlags, usageStop, WORKER_WORD } from '../settings/flags.js';
import { commands, type Flag, type PawlCommand, runAgent } from './command-list.js';
import { firstHelp, helpFormat, topicHelp } from './help.js';

/** Parses the command line, runs its command, and returns the exit code. Never rejects. */
export const runCommandLine = async (words: readonly string[]): Promise<number> => {
  const exit = await parseAndRun(words);
  await flushSpans(); // sends the telemetry that is left
  return exit;
};

/**
 * Prints an error and returns its exit code. A closed pipe is not reported: the reader has gone.
 */
export const reportError = (error: unknown): number => {
  if (error instanceof CommanderError)
    return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  const { exit, message } = errorEnding(error);
  if (exit !== exitCodes.closedPipe) writeError(safe`pawl: ${makeSafe(message)}\n`);
  return exit;
};

const parseAndRun = async (words: readonly string[]): Promise<number> => {
  let exit: number = exitCodes.done;
  // this process is that of a detached session
  if (words.length === 1 && words[0] === WORKER_WORD)
    return (await import('../detached/worker.js')).runWorker();
  try {
    // help needs no home
    if (!words.some((word) => word === '-h' || word === '--help')) ensureHome(process.env);
    const program = buildProgram((code) => {
      exit = code;
    }, neededCommands(words));
    await program.parseAsync(joinPrompt(words, program), { from: 'user' });
    return exit;
  } catch (error) {
    return reportError(error);
  }
};

/** Most starts name no command: then the parser, which takes time to build, need not know any. */
const neededCommands = (words: readonly string[]): readonly PawlCommand[] =>
  words.some((word) => word === 'help' || commands.some(({ name }) => name === word))
    ? commands
    : [];

/** A home that is never there, as Debian gives it to accounts without one. */
const NO_HOME_FOLDER = '/nonexistent';

/**
 * A user id without an account has no home (containers with `--user`). Where the XDG variables name
 * the folders for sessions and settings, nothing else of a home is needed.
 */
const replaceMissingHome = (environment: NodeJS.ProcessEnv): void => {
  if (attemptNow(homedir).kind === 'done') return;
  const missing = ['XDG_STATE_HOME', 'XDG_CONFIG_HOME'].filter(
    (name) => !isAbsolute(environment[name] ?? ''),
  );
  if (missing.length > 0)
    throw new Stop(
      exitCodes.cannotWrite,
      'cannotWrite',
      `There is no home folder: HOME is not set, and the user id ${process.getuid?.()} has ` +
        `no account. Set HOME to a folder of yours, or ${missing.join(' and ')}.`,
    );
  environment.HOME = NO_HOME_FOLDER;
};

/**
 * Replaces a HOME that is missing or relative, for this process and the programs that it starts.
 */
const ensureHome = (environment: NodeJS.ProcessEnv): void => {
  const { HOME = '' } = environment;
  if (HOME === '') replaceMissingHome(environment);
  if (HOME === '' || isAbsolute(HOME)) return;
  const home = attemptNow(() => homeFolder(environment));
  if (home.kind === 'fault')
    throw new Stop(
      exitCodes.configuration,
      'configuration',
      `HOME is not an absolute path (${HOME}), and this account has no home folder. Set HOME ` +
        'to a folder of yours.',
    );
  environment.HOME = home.value;
  writeError(
    safe`pawl: HOME is not an absolute path (${makeSafe(HOME)}): ${makeSafe(home.value)} is used instead. Set HOME to your home folder.\n`,
  );
};

const runWithoutCommand = async (program: Parser, words: readonly string[]): Promise<number> => {
  const flags = program.opts<RunFlags>();
  const [word] = words;
  if (word === 'help' && words.length <= 2 && flags.print === undefined)
    return showHelp(program, words[1]);
  if (flags.print === undefined) await refuseCommand(words);
  return runAgent(flags, words);
};

/** `pawl help`, `pawl help all`, `pawl help rewind`, `pawl help max-usd`. */
const showHelp = (program: Parser, topic: string | undefined): number => {
  const text = topic === undefined ? firstHelp() : topicHelp(program, topic);
  if (text === null)
    throw usageStop(
      `There is no command and no flag '${topic}'. pawl help all lists them.\nTo give a prompt: ` +
        `pawl "…" in the terminal, or pawl -p "help ${topic}"`,
    );
  writeOut(makeSafe(text));
  return exitCodes.done;
};

const KEY_ADVICE = `Set the key in the environment: export ${defaultProvider.keyVariables[0]}=…`;
const MODEL_ADVICE =
  '--model PROVIDER/NAME chooses a model; /model in a session lists the known models with ' +
  'their prices.';

/** Hints for words that users try as commands. */
const wordAdvice: Readonly<Record<string, string>> = {
  login: KEY_ADVICE,
  auth: KEY_ADVICE,
  key: KEY_ADVICE,
  model: MODEL_ADVICE,
  continue: 'pawl --continue continues the last session of this folder.',
  cost: '/cost in a session shows its cost.',
};

/** What was probably meant by a word that is no command; null if it can begin a prompt. */
const findAdvice = async (word: string): Promise<string | null> => {
  if (Object.hasOwn(wordAdvice, word)) return wordAdvice[word] ?? null;
  const { nearestWord } = await import('@pawl/agent/platform/text');
  const close = nearestWord(
    word,
    commands.map(({ name }) => name),
  );
  return close === undefined ? null : `Did you mean '${close}'?`;
};

/**
 * Refuses words that look like a wrong command: as a prompt they would cost a request. A text with
 * a space in it is a prompt in any case.
 */
const refuseCommand = async ([word, ...more]: readonly string[]): Promise<void> => {
  if (word === undefined) return;
  const advice = await findAdvice(word);
  if (advice === null) return;
  throw usageStop(
    `unknown command '${word}'. ${advice}\nTo give a prompt: pawl "…" in the terminal, or pawl -p ` +
      `"${[word, ...more].join(' ')}"`,
  );
};

/** Takes the exit code of the command that was run: the parser itself returns nothing. */
type End = (exit: number) => void;

/** Collects the values of a repeated flag. */
const collectValues = (value: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  value,
];

const addFlags = (parser: Parser, flags: readonly Flag[]): Parser => {
  for (const [form, help, count] of flags) {
    if (count === 'required') parser.requiredOption(form, help);
    else if (count === 'repeated') parser.option(form, help, collectValues);
    else parser.option(form, help);
  }
  return parser;
};

const addCommand = (
  program: Parser,
  { name, words, summary, flags, run }: PawlCommand,
  end: End,
): void => {
  const parser = addFlags(program.command(`${name} ${words}`.trim()), flags).description(summary);
  parser.action(async () => {
    const ownFlags = parser.opts();
    const allFlags = { ...parser.optsWithGlobals(), ...ownFlags };
    end(await run({ words: parser.args, flags: allFlags, ownFlags, program }));
  });
  parser.copyInheritedSettings(program); // among them how help is formatted
};

/** Builds the parser. Man page and completion are generated from it. */
export const buildProgram = (end: End, among = commands): Parser => {
  const program = addFlags(new Parser('pawl'), runFlags)
    .description("A coding agent that can't lose its place.")
    .enablePositionalOptions()
    .argument('[words...]', 'the prompt: with -p for one turn, else the first of a session')
    .helpCommand(false)
    .configureHelp(helpFormat)
    .option('-V, --version', 'print the version')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => writeOut(makeSafe(text)),
      writeErr: (text) => writeError(makeSafe(withAdvice(text).replace(/^error: /, 'pawl: '))),
    })
    .showHelpAfterError('pawl help all lists commands and flags.')
    .action(async (words: readonly string[]) => {
      end(
        program.opts<{ version?: true }>().version
          ? await printVersion()
          : await runWithoutCommand(program, words),
      );
    });
  for (const command of among) addCommand(program, command, end);
  program.helpInformation = firstHelp;
  return program;
};

const printVersion = async (): Promise<number> => {
  const { packageVersion } = await import('../process/package-folder.js');
  writeOut(safe`${makeSafe(packageVersion())}\n`);
  return exitCodes.done;
};

// Flags beyond the parser: prompts that look like flags, and flag names of other agents.

/** Whether the word is `-p`, `--print`, or short flags of which the last is `-p`, such as `-cp`. */
const isPromptFlag = (word: string, { options }: Parser): boolean => {
  const takesValue = (letter: string): boolean =>
    !options.some(({ short, required, optional }) => short === letter && !required && !optional);
  if (word === '--print') return true;
  return /^-[^-]*p$/.test(word) && ![...word.slice(1, -1)].some((one) => takesValue(`-${one}`));
};

/**
 * Joins the prompt to its flag: `-p X` becomes `--print=X`. A prompt may come from a script's
 * variable and begin with `-`; it must never be read as a flag. A prompt that equals one of our
 * flags, or one of a command, is ambiguous, and throws a usage error; `--detach` is a flag if a
 * prompt follows.
 */
const joinPrompt = (words: readonly string[], program: Parser): readonly string[] => {
  const end = words.indexOf('--');
  const index = words.findIndex((word, at) => isPromptFlag(word, program) && (end < 0 || at < end));
  const [flag = '', prompt, after] = words.slice(index);
  if (index < 0 || prompt === undefined || !/^-./.test(prompt) || prompt === '--') return words;
  const others = /^-[^-]+p$/.test(flag) ? [flag.slice(0, -1)] : []; // beside -p
  const before = [...words.slice(0, index), ...others];
  if (prompt === '--detach' && after !== undefined && !after.startsWith('-'))
    return [...before, prompt, `--print=${after}`, ...words.slice(index + 3)];
  const all = buildProgram(() => undefined);
  const flags = [all, ...all.commands].flatMap(({ options }) =>
    options.flatMap(({ short, long }) => [short, long]),
  );
  if ([...flags, '-h', '--help'].includes(prompt.split('=')[0]))
    throw usageStop(
      `'${prompt}' after ${flag} could be the prompt or a flag.\nIf it is a flag: ` +
        `pawl ${prompt} ${flag} "prompt"\nIf it is the prompt: pawl ${flag} -- "${prompt}"`,
    );
  return [...before, `--print=${prompt}`, ...words.slice(index + 2)];
};

/** Flags of other agents, and the flag that does the same here. */
const foreignFlags: Readonly<Record<string, string>> = {
  '--max-turns': '--max-rounds',
  '--max-steps': '--max-rounds',
  '--max-iterations': '--max-rounds',
  '--max-budget-usd': '--max-usd',
  '--max-cost': '--max-usd',
  '--timeout': '--max-minutes',
  '--output-format': '--json',
  '--output-schema': '--json-schema',
  '--reasoning-effort': '--effort',
  '--permission-mode': '--preset',
  '--approval-mode': '--preset',
  '--ask-for-approval': '--preset',
  '--full-auto': '--preset auto',
  '--yolo': '--preset auto',
  '--dangerously-skip-permissions': '--preset auto',
  '--cwd': '--workspace',
  '--cd': '--workspace',
  '--session': '--resume',
};

/**
 * The parser's error for an unknown flag. It suggests our flag with the same effect rather than one
 * with a similar name.
 */
const withAdvice = (complaint: string): string => {
  const flag = /unknown option '(--[\w-]+)/.exec(complaint)?.[1] ?? '';
  if (!Object.hasOwn(foreignFlags, flag)) return complaint;
  return (
    `${complaint.replace(/\n?\(Did you mean .*\?\)/, '').trimEnd()}\n(Did you mean ` +
    `${foreignFlags[flag]}?)\n`
  );
};
