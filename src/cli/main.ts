import { Command, CommanderError } from 'commander';
import { type AskFlags, askFlags } from './ask-flags.js';
import { endingOfError, exitCodes } from './exit-codes.js';
import { type RunFlags, runFlags, usageStop } from './flags.js';
import { exitOnSignals } from './signals.js';

/**
 * The program's entry: reads the command line, loads what one command needs and nothing else, and ends with its code.
 */

type AtFlags = { readonly at?: string; readonly json?: true };
type MachineFlags = {
  readonly table?: true;
  readonly json?: true;
  readonly view?: string;
  readonly check?: true;
  readonly bounds?: string;
};

const addRunFlags = (command: Command): Command => {
  for (const [flag, meaning] of runFlags) command.option(flag, meaning);
  return command;
};

/** A prompt from `-p TEXT`, from words that follow flags, or from stdin; undefined opens the terminal. */
const choosePrompt = async (flags: RunFlags, words: readonly string[]): Promise<string | undefined> => {
  const given = typeof flags.print === 'string' ? [flags.print, ...words] : words;
  if (given.length === 0 && flags.print === undefined) return undefined;
  return (await import('./prompt.js')).readPrompt(given);
};

const run = async (flags: RunFlags, prompt: string | undefined): Promise<number> => {
  if (prompt !== undefined) return (await import('./headless.js')).runHeadless(flags, prompt);
  if (flags.json) throw usageStop('--json needs a prompt: pawl -p "prompt" --json');
  return (await import('./terminal.js')).runTerminal(flags);
};

const runRoot = async (program: Command, words: readonly string[]): Promise<number> => {
  const flags = program.opts<RunFlags>();
  const [word] = words;
  if (word !== undefined && flags.print === undefined) {
    throw usageStop(
      `unknown command '${word}'.${await suggestFor(program, word)}\nTo give a prompt: pawl -p "${words.join(' ')}"`,
    );
  }
  return run(flags, await choosePrompt(flags, words));
};

const suggestFor = async (program: Command, word: string): Promise<string> => {
  const { closestTo } = await import('./suggest.js');
  const close = closestTo(
    word,
    program.commands.map((command) => command.name()),
  );
  return close === undefined ? ' pawl --help lists them.' : ` Did you mean '${close}'?`;
};

/** Commands that look at journals, each loaded when it is asked for. */
const addReaders = (program: Command, end: (exit: number) => void): void => {
  program
    .command('sessions')
    .description('list the sessions, newest first')
    .option('--json', 'as JSON lines')
    .action(async (flags: AtFlags) => end(await (await import('./sessions.js')).listSessions(flags)));
  program
    .command('show <id>')
    .description('the conversation of a session, or what the model was sent')
    .option('--at <seq>', 'as it was after this line of the journal')
    .option('--request', 'exactly what the model was sent, as JSON')
    .option(
      '--view <name>',
      'the path in the words of a seed system (minimal, minimal-head, loom, sketch, tools)',
    )
    .action(async (id: string, flags: AtFlags & { readonly request?: true; readonly view?: string }) =>
      end(await (await import('./show.js')).showSession(id, flags)),
    );
  program
    .command('replay <id>')
    .description('fold a journal, perform nothing, check its hashes, print the path through the states')
    .option('--at <seq>', 'up to this line of the journal')
    .option('--json', 'the path as JSON lines')
    .action(async (id: string, flags: AtFlags) =>
      end(await (await import('./replay.js')).replaySession(id, flags)),
    );
  program
    .command('machine')
    .description('the statechart, drawn from the table')
    .option('--mermaid', 'as a Mermaid diagram (default)')
    .option('--table', 'as a Markdown table')
    .option('--json', 'as JSON edges')
    .option('--view <name>', 'the own chart of a seed system (minimal, minimal-head, loom, sketch, tools)')
    .option('--check', 'walk every way through it within bounds, and look at every step')
    .option('--bounds <name=number,...>', 'how much of what, for --check')
    .action(async (flags: MachineFlags) =>
      end(
        flags.check || flags.bounds !== undefined
          ? await (await import('./check-machine.js')).checkMachine(flags)
          : await (await import('./show-machine.js')).showMachine(flags),
      ),
    );
};

const addRunners = (program: Command, end: (exit: number) => void): void => {
  addRunFlags(program.command('run [prompt...]'))
    .description('the same as -p')
    .action(async (words: readonly string[], own: RunFlags, command: Command) => {
      const flags = { print: true as const, ...command.optsWithGlobals<RunFlags>(), ...own };
      end(await run(flags, await choosePrompt(flags, words)));
    });
  program
    .command('demo')
    .description('no key, no network: watch the agent repair a small project')
    .action(async () => end(await (await import('./demo.js')).runDemo()));
  const ask = program.command('ask [question...]');
  for (const [flag, meaning] of askFlags) ask.option(flag, meaning);
  ask
    .description('a question about inputs that are far larger than the model’s window')
    .action(async (words: readonly string[], own: AskFlags, command: Command) => {
      const flags = { ...command.optsWithGlobals<AskFlags>(), ...own };
      end(await (await import('./ask.js')).runAsk(flags, words));
    });
  addRunFlags(program.command('fork <id> [prompt...]'))
    .description('a new session from a line of an old one')
    .requiredOption('--at <seq>', 'the last line of the journal that it shares')
    .action(
      async (id: string, words: readonly string[], own: RunFlags & { at: string }, command: Command) => {
        const flags = { ...command.optsWithGlobals<RunFlags>(), ...own };
        const prompt = await choosePrompt(flags, words);
        end(await (await import('./fork.js')).forkSession(id, flags.at, flags, prompt));
      },
    );
};

const buildProgram = (end: (exit: number) => void): Command => {
  const program = addRunFlags(new Command('pawl'))
    .description("A coding agent that can't lose its place.")
    .enablePositionalOptions()
    .argument('[words...]', 'the prompt, with -p')
    .helpCommand(false)
    .option('-V, --version', 'print the version')
    .exitOverride()
    .configureOutput({ writeErr: (text) => process.stderr.write(text.replace(/^error: /, 'pawl: ')) })
    .showHelpAfterError('pawl --help lists commands and flags.')
    .action(async (words: readonly string[]) => {
      end(program.opts<{ version?: true }>().version ? await printVersion() : await runRoot(program, words));
    });
  addRunners(program, end);
  addReaders(program, end);
  for (const command of program.commands) command.copyInheritedSettings(program);
  return program;
};

const printVersion = async (): Promise<number> => {
  const { packageVersion } = await import('./package-folder.js');
  process.stdout.write(`${packageVersion()}\n`);
  return exitCodes.done;
};

/** Turns whatever ended the program into its code; the only place that does. A closed pipe is nothing to talk about. */
const codeOf = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  const { exit, message } = endingOfError(error);
  if (exit !== exitCodes.closedPipe) process.stderr.write(`pawl: ${message}\n`);
  return exit;
};

const main = async (words: readonly string[]): Promise<number> => {
  let exit: number = exitCodes.done;
  try {
    await buildProgram((code) => {
      exit = code;
    }).parseAsync(words, { from: 'user' });
    return exit;
  } catch (error) {
    return codeOf(error);
  }
};

// Progress that nobody can read any more is no reason to fail.
process.stderr.on('error', () => undefined);
exitOnSignals();
// The end is said below. If nothing is left to wait for before that, something waits for what can never come.
process.once('beforeExit', () => {
  process.stderr.write(
    'pawl: an internal fault: nothing is left to wait for, and the work is not done. Please report it.\n',
  );
  process.exit(exitCodes.internal);
});
void main(process.argv.slice(2)).then((exit) => process.exit(exit));
