import { defaultProvider, keylessProvider, providers } from '@pawl/agent/models/provider-table';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { Command } from 'commander';
import { withAdvice } from './ambiguous-and-foreign-flags.js';
import { type AskFlags, askFlags } from './commands/ask/ask-flags.js';
import { addServe } from './commands/serve/add-serve-command.js';
import { acpFlags } from './editor/acp-flags.js';
import { exitCodes } from './exit-codes.js';
import { type RunFlags, runFlags, usageStop } from './flags.js';
import type { Prompt } from './headless/headless-prompt.js';
import { addReadingCommands, type End } from './sessions/add-reading-commands.js';
import { addSetupCommands } from './settings/add-setup-commands.js';

/** All commands and flags. A command's modules are loaded only when it runs, to keep the start quick. */

const addRunFlags = (command: Command): Command => {
  for (const [flag, meaning] of runFlags) command.option(flag, meaning);
  return command;
};

/** The prompt from `-p TEXT`, from words after the flags, or from stdin; undefined starts a session in the terminal. */
const choosePrompt = async (flags: RunFlags, words: readonly string[]): Promise<Prompt | undefined> => {
  const given = typeof flags.print === 'string' ? [flags.print, ...words] : words;
  if (given.length === 0 && flags.print === undefined) return undefined;
  return (await import('./headless/headless-prompt.js')).readPrompt(given);
};

const run = async (flags: RunFlags, prompt: Prompt | undefined): Promise<number> => {
  if (prompt !== undefined) return (await import('./headless/headless.js')).runHeadless(flags, prompt);
  if (flags.json) throw usageStop('--json needs a prompt: pawl -p "prompt" --json');
  return (await import('./run-terminal-sessions.js')).runTerminal(flags);
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

const KEY_ADVICE = `Set the key in the environment: export ${defaultProvider.keyVariables[0]}=…`;
const MODEL_ADVICE =
  '--model PROVIDER/NAME chooses a model; /model in a session lists the known models with their prices.';

/** Hints for words that users try as commands. */
const advice: Readonly<Record<string, string>> = {
  login: KEY_ADVICE,
  auth: KEY_ADVICE,
  key: KEY_ADVICE,
  model: MODEL_ADVICE,
  models: MODEL_ADVICE,
  continue: 'pawl --continue continues the last session of this folder.',
  resume: 'pawl --resume lists the sessions to continue.',
  cost: '/cost in a session shows its cost.',
};

/** One entry of "First steps": the command, then its meaning in lines of at most 45 characters. */
const describeStep = (command: string, meaning: string): string =>
  [...meaning.matchAll(/(.{1,45})(?:\s|$)/g)]
    .map(([, line], index) => `  ${(index === 0 ? command : '').padEnd(33)}${line}`)
    .join('\n');

const otherKeys = providers
  .filter(({ key, name }) => key === 'required' && name !== defaultProvider.name)
  .map(({ keyVariables }) => keyVariables.at(-1));

const FIRST_STEPS = `
First steps:
${describeStep(
  `export ${defaultProvider.keyVariables[0]}=…`,
  `set a key; ${otherKeys.join(' or ')} for their models, none for ${keylessProvider.name}/NAME`,
)}
  pawl                             start a session in this folder: /help lists the
                                   commands, /model the models and prices,
                                   Escape stops, Ctrl-D ends
  pawl --continue                  continue it later
  pawl doctor                      check that everything is set up
`;

const suggestFor = async (program: Command, word: string): Promise<string> => {
  if (Object.hasOwn(advice, word)) return ` ${advice[word]}`;
  const { closestTo } = await import('@pawl/agent/platform/base/nearest-word');
  const close = closestTo(
    word,
    program.commands.map((command) => command.name()),
  );
  return close === undefined ? ' pawl --help lists them.' : ` Did you mean '${close}'?`;
};

const addRunners = (program: Command, end: End): void => {
  addRunFlags(program.command('run [prompt...]'))
    .description('the same as pawl -p')
    .action(async (words: readonly string[], own: RunFlags, command: Command) => {
      const flags = { print: true as const, ...command.optsWithGlobals<RunFlags>(), ...own };
      end(await run(flags, await choosePrompt(flags, words)));
    });
  program
    .command('demo')
    .description('watch the agent repair a small project; needs no key and no network')
    .option(
      '--crash',
      'kill Pawl in the middle of a command instead, and resume: the command went on, and its result is found',
    )
    .action(async ({ crash }: { readonly crash?: true }) =>
      end(
        crash
          ? await (await import('./commands/demo/crash-demo.js')).runCrashDemo()
          : await (await import('./commands/demo/repair-demo.js')).runDemo(),
      ),
    );
  const ask = program.command('ask [question...]');
  for (const [flag, meaning] of askFlags) ask.option(flag, meaning);
  ask
    .description("ask a question about inputs far larger than the model's context window")
    .action(async (words: readonly string[], own: AskFlags, command: Command) => {
      const flags = { ...command.optsWithGlobals<AskFlags>(), ...own };
      end(await (await import('./commands/ask/ask-command.js')).runAsk(flags, words));
    });
  const acp = program.command('acp');
  for (const [flag, meaning] of acpFlags) acp.option(flag, meaning);
  acp
    .description('be the agent of an editor that speaks the Agent Client Protocol (docs/editors.md)')
    .action(async (own: RunFlags, command: Command) => {
      const flags = { ...command.optsWithGlobals<RunFlags>(), ...own };
      end(await (await import('./editor/acp-command.js')).runAcp(flags));
    });
  addRunFlags(program.command('fork <id> [prompt...]'))
    .description('start a new session from a line of an old one')
    .requiredOption('--at <seq>', 'the last line of the journal that both sessions share')
    .action(
      async (id: string, words: readonly string[], own: RunFlags & { at: string }, command: Command) => {
        const flags = { ...command.optsWithGlobals<RunFlags>(), ...own };
        const prompt = await choosePrompt(flags, words);
        end(await (await import('./sessions/fork-session.js')).forkSession(id, flags.at, flags, prompt));
      },
    );
};

/** Builds the parser. Man page and completion are generated from it. */
export const buildProgram = (end: End): Command => {
  const program = addRunFlags(new Command('pawl'))
    .description("A coding agent that can't lose its place.")
    .enablePositionalOptions()
    .argument('[words...]', 'the prompt, with -p')
    .helpCommand(false)
    .addHelpText('after', FIRST_STEPS)
    .option('-V, --version', 'print the version')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => writeOut(makeSafe(text)),
      writeErr: (text) => writeError(makeSafe(withAdvice(text).replace(/^error: /, 'pawl: '))),
    })
    .showHelpAfterError('pawl --help lists commands and flags.')
    .action(async (words: readonly string[]) => {
      end(program.opts<{ version?: true }>().version ? await printVersion() : await runRoot(program, words));
    });
  addRunners(program, end);
  addServe(program, end);
  addReadingCommands(program, end);
  addSetupCommands(program, end);
  for (const command of program.commands) command.copyInheritedSettings(program);
  return program;
};

const printVersion = async (): Promise<number> => {
  const { packageVersion } = await import('./package-folder.js');
  writeOut(safe`${makeSafe(packageVersion())}\n`);
  return exitCodes.done;
};
