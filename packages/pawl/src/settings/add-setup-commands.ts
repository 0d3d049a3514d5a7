import { writeResult } from '@pawl/terminal/write';
import type { Command } from 'commander';
import type { DoctorFlags } from '../commands/doctor/doctor.js';
import type { HooksFlags } from '../commands/hooks/hooks-command.js';
import type { McpFlags } from '../commands/mcp/mcp-command.js';
import { exitCodes } from '../exit-codes.js';
import type { End } from '../sessions/add-reading-commands.js';
import type { SkillsFlags } from '../skills/skills-command.js';
import type { TrustFlags } from '../trust/trust-command.js';
import { type ConfigFlags, configFlags } from './config-command-flags.js';
import type { PolicyFlags } from './explain-policy.js';

const addTrust = (program: Command, end: End): void => {
  program
    .command('trust [words...]')
    .description('what this project may run on your machine: list, allow KIND NAME, revoke KIND NAME')
    .option('--all', 'list the answers for all projects')
    .option('--workspace <folder>', 'the folder of the project (default: this one)')
    .option(
      '--sandbox <level>',
      'where an MCP server may run: read-only (default), read-only+net, workspace, workspace+net, or off: as you',
    )
    .action(async (words: readonly string[], own: TrustFlags, command: Command) => {
      const [{ runTrust }, { serverSource }, { hookSource }] = await Promise.all([
        import('../trust/trust-command.js'),
        import('../trust/project-servers.js'),
        import('../trust/project-hooks.js'),
      ]);
      const flags = { ...command.optsWithGlobals<TrustFlags>(), ...own };
      end(await runTrust(words, flags, [serverSource, hookSource]));
    });
};

const addHooks = (program: Command, end: End): void => {
  program
    .command('hooks [what]')
    .description('list your own hooks and those of this project (list)')
    .option('--workspace <folder>', 'the folder of the project (default: this one)')
    .action(async (what: string | undefined, own: HooksFlags, command: Command) =>
      end(
        await (await import('../commands/hooks/hooks-command.js')).runHooks(what, {
          ...command.optsWithGlobals<HooksFlags>(),
          ...own,
        }),
      ),
    );
};

const addSkills = (program: Command, end: End): void => {
  program
    .command('skills [what] [folder]')
    .description(
      'list the skills and commands of this folder and of yours (list); check a skill strictly (check)',
    )
    .option('--workspace <folder>', 'the folder to list (default: this one)')
    .action(
      async (what: string | undefined, folder: string | undefined, own: SkillsFlags, command: Command) =>
        end(
          await (await import('../skills/skills-command.js')).runSkills(what, folder, {
            ...command.optsWithGlobals<SkillsFlags>(),
            ...own,
          }),
        ),
    );
};

/** Collects the values of a flag that may be given several times. */
const collected = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

const addMcp = (program: Command, end: End): void => {
  program
    .command('mcp [what] [name] [words...]')
    .description(
      'list the MCP servers of your configuration (list); connect one or all, and show their tools (test); add one to your config.toml (add NAME -- COMMAND ARGS, or add NAME --url URL) or remove it (remove); log in at one over HTTP (login NAME), or forget the login (logout NAME); be an MCP server for other agents (serve)',
    )
    .option('--url <url>', 'the address of the server to add')
    .option('--header <line>', 'a header for the server to add: "Name: value"; may be repeated', collected)
    .option(
      '--env <variable>',
      'a variable for the program of the server to add: NAME=value; may be repeated',
      collected,
    )
    .option('--oauth-client-id <id>', 'how Pawl is registered at the login of the server to add')
    // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
    .option('--oauth-client-secret <variable>', 'the secret of that client, by its variable: "${NAME}"')
    .option(
      '--oauth-redirect-port <port>',
      'the port of the redirect to 127.0.0.1 that it is registered with',
    )
    .option('--workspace <folder>', 'the folder to start them in (default: this one)')
    .option('--model <provider/name>', 'the model of the sessions of serve')
    .option('--http [port]', 'serve over HTTP on 127.0.0.1, with a token, instead of stdin and stdout')
    .action(
      async (
        what: string | undefined,
        name: string | undefined,
        words: readonly string[],
        own: McpFlags,
        command: Command,
      ) =>
        end(
          await (await import('../commands/mcp/mcp-command.js')).runMcp(what, name, words, {
            ...command.optsWithGlobals<McpFlags>(),
            ...own,
          }),
        ),
    );
};

/** Adds the commands for the setup: `config`, `doctor`, `policy`, `skills`, `mcp`, `trust`, `completion`. */
export const addSetupCommands = (program: Command, end: End): void => {
  const config = program.command('config').description('print every setting and its source');
  for (const [flag, meaning] of configFlags) config.option(flag, meaning);
  config.action(async (own: ConfigFlags, command: Command) =>
    end(
      await (await import('./show-config-command.js')).showConfig({
        ...command.optsWithGlobals<ConfigFlags>(),
        ...own,
      }),
    ),
  );
  program
    .command('doctor')
    .description("check the agent's surroundings; name each problem and its repair")
    .option('--online', "also send a request to the provider's server")
    .option('--model <provider/name>', 'the model to check')
    .option('--workspace <folder>', 'the folder to check (default: this one)')
    .option('--json', 'as JSON')
    .action(async (own: DoctorFlags, command: Command) =>
      end(
        await (await import('../commands/doctor/doctor.js')).runDoctor({
          ...command.optsWithGlobals<DoctorFlags>(),
          ...own,
        }),
      ),
    );
  program
    .command('policy [explain] [command]')
    .description('print which rule decides about a command, why, and where it would run, without running it')
    .option(
      '--needs <what>',
      'assume that the command needs to leave the sandbox for: network, outside or repository',
    )
    .option('--preset <name>', 'plan, careful (default), auto or ci')
    .option('--sandbox <level>', 'workspace, workspace+net, read-only or off')
    .option('--workspace <folder>', 'the folder to check (default: this one)')
    .option('--json', 'as JSON')
    .action(async (what: string | undefined, text: string | undefined, own: PolicyFlags, command: Command) =>
      end(
        await (await import('./explain-policy.js')).explainPolicy(what, text, {
          ...command.optsWithGlobals<PolicyFlags>(),
          ...own,
        }),
      ),
    );
  addHooks(program, end);
  addSkills(program, end);
  addMcp(program, end);
  addTrust(program, end);
  program
    .command('completion <shell>')
    .description('print a script that completes commands and flags in bash, zsh or fish')
    .action(async (shell: string) => {
      const [{ completionScript }, { describeProgram }] = await Promise.all([
        import('../shell-completion.js'),
        import('../describe-commands.js'),
      ]);
      writeResult(completionScript(shell, describeProgram(program)));
      end(exitCodes.done);
    });
};
