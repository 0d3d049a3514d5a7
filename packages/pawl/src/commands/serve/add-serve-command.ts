import type { Command } from 'commander';
import type { End } from '../../sessions/add-reading-commands.js';
import { repeatedFlags, type ServeFlags, sessionFlags, singleFlags } from './serve-flags.js';

/** Collects the values of a flag that may be given several times. */
const collected = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

/** Adds the command `serve`. */
export const addServe = (program: Command, end: End): void => {
  const serve = program.command('serve');
  for (const [flag, meaning] of singleFlags) serve.option(flag, meaning);
  for (const [flag, meaning] of repeatedFlags) serve.option(flag, meaning, collected);
  for (const [flag, meaning] of sessionFlags) serve.option(flag, meaning);
  serve
    .description('run sessions for other programs, over HTTP with a token (docs/serve.md)')
    .action(async (own: ServeFlags, command: Command) => {
      const flags = { ...command.optsWithGlobals<ServeFlags>(), ...own };
      end(await (await import('./serve-command.js')).runServe(flags));
    });
};
