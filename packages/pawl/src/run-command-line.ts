import { homedir } from 'node:os';
import { isAbsolute } from 'node:path';
import { homeFolder } from '@pawl/agent/platform/base/user-folders';
import { attemptNow } from '@pawl/agent/session/attempt';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError } from '@pawl/terminal/write';
import { CommanderError } from 'commander';
import { tiePrompt } from './ambiguous-and-foreign-flags.js';
import { buildProgram } from './build-program.js';
import { flushSpans } from './commands/telemetry/flush-at-exit.js';
import { endingOfError, exitCodes, Stop } from './exit-codes.js';

/** Prints an error and returns its exit code. A closed pipe is not reported: the reader has gone. */
export const reportError = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  const { exit, message } = endingOfError(error);
  if (exit !== exitCodes.closedPipe) writeError(safe`pawl: ${makeSafe(message)}\n`);
  return exit;
};

const run = async (words: readonly string[]): Promise<number> => {
  let exit: number = exitCodes.done;
  try {
    if (!words.some((word) => word === '-h' || word === '--help')) settleHome(process.env);
    const program = buildProgram((code) => {
      exit = code;
    });
    const flags = program.options.flatMap(({ short, long }) => [short ?? '', long ?? '']);
    await program.parseAsync(tiePrompt(words, [...flags, '-h', '--help']), { from: 'user' });
    return exit;
  } catch (error) {
    return reportError(error);
  }
};

/** A home that is never there, as Debian gives it to accounts without one. */
const NO_HOME = '/nonexistent';

/**
 * A user id without an account has no home (containers with `--user`). Where the XDG variables name the folders for
 * sessions and settings, nothing else of a home is needed.
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
      `There is no home folder: HOME is not set, and the user id ${process.getuid?.()} has no account. Set HOME to a folder of yours, or ${missing.join(' and ')}.`,
    );
  environment.HOME = NO_HOME;
};

/** Replaces a HOME that is missing or relative, for this process and the programs that it starts. */
const settleHome = (environment: NodeJS.ProcessEnv): void => {
  const { HOME = '' } = environment;
  if (HOME === '') replaceMissingHome(environment);
  if (HOME === '' || isAbsolute(HOME)) return;
  const home = attemptNow(() => homeFolder(environment));
  if (home.kind === 'fault')
    throw new Stop(
      exitCodes.configuration,
      'configuration',
      `HOME is not an absolute path (${HOME}), and this account has no home folder. Set HOME to a folder of yours.`,
    );
  environment.HOME = home.value;
  writeError(
    safe`pawl: HOME is not an absolute path (${makeSafe(HOME)}): ${makeSafe(home.value)} is used instead. Set HOME to your home folder.\n`,
  );
};

/** Parses the command line, runs its command, and returns the exit code. Never rejects. */
export const runCommandLine = async (words: readonly string[]): Promise<number> => {
  const exit = await run(words);
  await flushSpans();
  return exit;
};
