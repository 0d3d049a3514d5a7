import type { Command } from 'commander';

type AtFlags = { readonly at?: string; readonly json?: true };
type MachineFlags = {
  readonly table?: true;
  readonly json?: true;
  readonly view?: string;
  readonly check?: true;
  readonly bounds?: string;
};

/** Sets the exit code of the program. */
export type End = (exit: number) => void;

/** Adds the commands that only read: `sessions`, `show`, `replay`, `machine`. */
export const addReaders = (program: Command, end: End): void => {
  program
    .command('sessions')
    .description('list the sessions, newest first')
    .option('--json', 'as JSON lines')
    .action(async (flags: AtFlags) => end(await (await import('./sessions-command.js')).listSessions(flags)));
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
      end(await (await import('./show-session.js')).showSession(id, flags)),
    );
  program
    .command('replay <id>')
    .description('fold a journal, perform nothing, check its hashes, print the path through the states')
    .option('--at <seq>', 'up to this line of the journal')
    .option('--json', 'the path as JSON lines')
    .action(async (id: string, flags: AtFlags) =>
      end(await (await import('./replay-session.js')).replaySession(id, flags)),
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
          ? await (await import('../machine/check-machine.js')).checkMachine(flags)
          : await (await import('../machine/show-machine.js')).showMachine(flags),
      ),
    );
};
