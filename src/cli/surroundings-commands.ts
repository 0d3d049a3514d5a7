import type { Command } from 'commander';
import { type ConfigFlags, configFlags } from './config-flags.js';
import type { DoctorFlags } from './doctor.js';
import { exitCodes } from './exit-codes.js';
import type { End } from './reader-commands.js';

/** Commands about what is around the agent: its settings, the machine that it is on, the shell. */
export const addSurroundings = (program: Command, end: End): void => {
  const config = program.command('config').description('every setting, and who says so');
  for (const [flag, meaning] of configFlags) config.option(flag, meaning);
  config.action(async (own: ConfigFlags, command: Command) =>
    end(
      await (await import('./config.js')).showConfig({ ...command.optsWithGlobals<ConfigFlags>(), ...own }),
    ),
  );
  program
    .command('doctor')
    .description('look at everything around the agent; each fault with its repair')
    .option('--online', 'ask the provider’s server too')
    .option('--model <provider/name>', 'the model that is meant')
    .option('--workspace <folder>', 'the folder that is meant (default: this one)')
    .option('--json', 'as JSON')
    .action(async (own: DoctorFlags, command: Command) =>
      end(
        await (await import('./doctor.js')).runDoctor({ ...command.optsWithGlobals<DoctorFlags>(), ...own }),
      ),
    );
  program
    .command('completion <shell>')
    .description('a script that completes commands and flags in bash, zsh or fish')
    .action(async (shell: string) => {
      const [{ completionScript }, { describeProgram }] = await Promise.all([
        import('./completion.js'),
        import('./described.js'),
      ]);
      process.stdout.write(completionScript(shell, describeProgram(program)));
      end(exitCodes.done);
    });
};
