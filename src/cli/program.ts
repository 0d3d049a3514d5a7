import { Command } from 'commander';
import { type AskFlags, askFlags } from './ask-flags.js';
import { exitCodes } from './exit-codes.js';
import { type RunFlags, runFlags, usageStop } from './flags.js';
import type { Prompt } from './prompt.js';
import { addReaders, type End } from './reader-commands.js';
import { addSurroundings } from './surroundings-commands.js';

/** All commands and flags. Each loads what it needs and nothing else when it is asked for. */

const addRunFlags = (command: Command): Command => {
  for (const [flag, meaning] of runFlags) command.option(flag, meaning);
  return command;
};

/** A prompt from `-p TEXT`, from words that follow flags, or from stdin; undefined opens the terminal. */
const choosePrompt = async (flags: RunFlags, words: readonly string[]): Promise<Prompt | undefined> => {
  const given = typeof flags.print === 'string' ? [flags.print, ...words] : words;
  if (given.length === 0 && flags.print === undefined) return undefined;
  return (await import('./prompt.js')).readPrompt(given);
};

const run = async (flags: RunFlags, prompt: Prompt | undefined): Promise<number> => {
  if (prompt !== undefined) return (await import('./headless.js')).runHeadless(flags, prompt);
  if (flags.json) throw usageStop('--json needs a prompt: pawl -p "prompt" --json');
  return (await import('./terminal.js')).runTerminal(flags);
};

const runRoot = async (program: Command, words: readonly string[]): Promise<number> => {
  const flags = program.opts<RunFlags>();
  const [word] = words;
  if (word === 'help' && words.length === 1 && flags.print === undefined) {
    program.outputHelp();
    return exitCodes.done;
  }
  if (word !== undefined && flags.print === undefined) {
    throw usageStop(
      `unknown command '${word}'.${await suggestFor(program, word)}\nTo give a prompt: pawl -p "${words.join(' ')}"`,
    );
  }
  return run(flags, await choosePrompt(flags, words));
};

const KEY_ADVICE = 'A key is given in the environment: export ANTHROPIC_API_KEY=…';
const MODEL_ADVICE =
  '--model PROVIDER/NAME takes a model; /model in a session lists those that are known, with prices.';

/** What people look for that is no command here. */
const advice: Readonly<Record<string, string>> = {
  login: KEY_ADVICE,
  auth: KEY_ADVICE,
  key: KEY_ADVICE,
  model: MODEL_ADVICE,
  models: MODEL_ADVICE,
  continue: 'pawl --continue goes on with the last session of this folder.',
  resume: 'pawl --resume lists the sessions to go on with.',
  cost: '/cost in a session shows what it has cost.',
};

const FIRST_STEPS = `
First steps:
  export ANTHROPIC_API_KEY=…       a key; OPENAI_API_KEY or GEMINI_API_KEY for
                                   their models, none for ollama/NAME
  pawl                             a session in this folder: /help lists what it
                                   can, /model the models with their prices,
                                   Escape stops, Ctrl-D ends
  pawl --continue                  go on with it tomorrow
  pawl doctor                      is all set up?
`;

const suggestFor = async (program: Command, word: string): Promise<string> => {
  if (Object.hasOwn(advice, word)) return ` ${advice[word]}`;
  const { closestTo } = await import('../suggest.js');
  const close = closestTo(
    word,
    program.commands.map((command) => command.name()),
  );
  return close === undefined ? ' pawl --help lists them.' : ` Did you mean '${close}'?`;
};

const addRunners = (program: Command, end: End): void => {
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

/** The parser; man page and completion are made from it too. */
export const buildProgram = (end: End): Command => {
  const program = addRunFlags(new Command('pawl'))
    .description("A coding agent that can't lose its place.")
    .enablePositionalOptions()
    .argument('[words...]', 'the prompt, with -p')
    .helpCommand(false)
    .addHelpText('after', FIRST_STEPS)
    .option('-V, --version', 'print the version')
    .exitOverride()
    .configureOutput({ writeErr: (text) => process.stderr.write(text.replace(/^error: /, 'pawl: ')) })
    .showHelpAfterError('pawl --help lists commands and flags.')
    .action(async (words: readonly string[]) => {
      end(program.opts<{ version?: true }>().version ? await printVersion() : await runRoot(program, words));
    });
  addRunners(program, end);
  addReaders(program, end);
  addSurroundings(program, end);
  for (const command of program.commands) command.copyInheritedSettings(program);
  return program;
};

const printVersion = async (): Promise<number> => {
  const { packageVersion } = await import('./package-folder.js');
  process.stdout.write(`${packageVersion()}\n`);
  return exitCodes.done;
};
