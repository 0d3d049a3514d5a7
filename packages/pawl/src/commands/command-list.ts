/** Every command with its flags and the code that runs it, which is loaded when the command runs. */

import { writeResult } from '@pawl/terminal/write';
import type { Command } from 'commander';
import { exitCodes } from '../process/exit-codes.js';
import { type ConfigFlags, configFlags } from '../settings/flags.js';
import type { DoctorFlags } from './doctor.js';
import type { HooksFlags } from './hooks.js';
import type { McpFlags } from './mcp.js';
import type { PolicyFlags } from './policy.js';
import { repeatedFlags, type ServeFlags, sessionFlags, singleFlags } from './serve.js';
import type { SessionsFlags } from './sessions.js';
import type { SkillsFlags } from './skills.js';
import type { TrustFlags } from './trust.js';

type AtFlags = { readonly at?: string; readonly json?: true };
type ShowFlags = AtFlags & { readonly request?: true; readonly view?: string; readonly time?: true };
type MachineFlags = {
  readonly table?: true;
  readonly json?: true;
  readonly view?: string;
  readonly check?: true;
  readonly bounds?: string;
};

/** Sets the exit code of the program. */
export type End = (exit: number) => void;

const addTransfers = (program: Command, end: End): void => {
  program
    .command('verify <id>')
    .description('check every line of a session, or of a file; name the first fault')
    .action(async (given: string) => end(await (await import('./verify.js')).verifySession(given)));
  program
    .command('export <id> [file]')
    .description('write a session with its blobs to one file (ID.pawl)')
    .option('--html <file>', 'as a page for a browser, with secrets replaced; it needs no server')
    .action(async (id: string, file: string | undefined, { html }: { readonly html?: string }) =>
      end(
        html === undefined
          ? await (await import('./transfer.js')).exportTo(id, file)
          : await (await import('./inspect.js')).exportPage(id, html, file),
      ),
    );
  program
    .command('import <file>')
    .description(
      'store a session from an exported file, or from a journal; performs nothing, replaces nothing',
    )
    .action(async (file: string) => end(await (await import('./transfer.js')).importFrom(file)));
};

const addList = (program: Command, end: End): void => {
  program
    .command('sessions [what] [id]')
    .description(
      'list the sessions, newest first (list); delete one with the tasks that it started (delete ID)',
    )
    .option('--stats', 'sums over all sessions: by model, tool and day')
    .option('--json', 'as JSON lines; with --stats as one JSON object')
    .option('--yes', 'delete without a question')
    .action(async (what: string | undefined, id: string | undefined, flags: SessionsFlags) =>
      end(await (await import('./sessions.js')).runSessions(what, id, flags)),
    );
};

const addDiff = (program: Command, end: End): void => {
  program
    .command('diff <a> <b>')
    .description(
      'show where two sessions part, what differs there, and what follows; exit code 1 if they differ',
    )
    .option('--json', 'all fields that differ, and the figures, as one JSON object')
    .action(async (a: string, b: string, flags: AtFlags) =>
      end(await (await import('./diff.js')).diffSessions(a, b, flags.json === true)),
    );
};

/** Adds the commands that run nothing: `sessions`, `show`, `replay`, `diff`, `verify`, `inspect`, `export`, `import`, `machine`. */
export const addReadingCommands = (program: Command, end: End): void => {
  addList(program, end);
  program
    .command('show <id>')
    .description('print the conversation of a session, or the request that the model got')
    .option('--at <seq>', 'the state after this line of the journal')
    .option('--request', 'the exact request to the model, as JSON')
    .option('--time', 'where time and money went: by state, tool and request, and all of it in order')
    .option('--json', 'with --time: the figures as JSON')
    .option(
      '--view <name>',
      'the path through the states of a seed system (minimal, minimal-head, loom, sketch, tools)',
    )
    .action(async (id: string, flags: ShowFlags) =>
      end(await (await import('./show.js')).showSession(id, flags)),
    );
  program
    .command('replay <id>')
    .description(
      'recompute a session from its journal without performing anything, check its hashes, and print the path through the states',
    )
    .option('--at <seq>', 'stop after this line of the journal')
    .option('--json', 'the path as JSON lines')
    .action(async (id: string, flags: AtFlags) =>
      end(await (await import('./verify.js')).replaySession(id, flags)),
    );
  addDiff(program, end);
  program
    .command('inspect [id]')
    .description('show a session in a browser while it runs or later, or the list of all (docs/inspector.md)')
    .action(async (id?: string) => end(await (await import('./inspect.js')).inspectSessions(id)));
  addTransfers(program, end);
  program
    .command('machine')
    .description('print the state machine as a diagram or table')
    .option('--mermaid', 'as a Mermaid diagram (default)')
    .option('--table', 'as a Markdown table')
    .option('--json', 'as JSON edges')
    .option('--view <name>', "a seed system's own states (minimal, minimal-head, loom, sketch, tools)")
    .option('--check', 'explore every path within bounds and check every step')
    .option('--bounds <name=number,...>', 'limits for --check')
    .action(async (flags: MachineFlags) =>
      end(
        flags.check || flags.bounds !== undefined
          ? await (await import('./machine-check.js')).checkMachine(flags)
          : await (await import('./machine.js')).showMachine(flags),
      ),
    );
};

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
        import('./trust.js'),
        import('../sessions/project-trust.js'),
        import('../sessions/project-trust.js'),
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
        await (await import('./hooks.js')).runHooks(what, {
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
          await (await import('./skills.js')).runSkills(what, folder, {
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
          await (await import('./mcp.js')).runMcp(what, name, words, {
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
      await (await import('./config.js')).showConfig({
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
        await (await import('./doctor.js')).runDoctor({
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
        await (await import('./policy.js')).explainPolicy(what, text, {
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
        import('./shell-completion.js'),
        import('./shell-completion.js'),
      ]);
      writeResult(completionScript(shell, describeProgram(program)));
      end(exitCodes.done);
    });
};

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
      end(await (await import('./serve-node.js')).runServe(flags));
    });
};
