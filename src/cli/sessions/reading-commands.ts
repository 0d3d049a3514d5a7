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

const addTransfers = (program: Command, end: End): void => {
  program
    .command('verify <id>')
    .description('check every line of a session, or of a file; name the first fault')
    .action(async (given: string) => end(await (await import('./verify-session.js')).verifySession(given)));
  program
    .command('export <id> [file]')
    .description('write a session with its blobs to one file (ID.pawl)')
    .action(async (id: string, file?: string) =>
      end(await (await import('./transfer-session.js')).exportTo(id, file)),
    );
  program
    .command('import <file>')
    .description(
      'store a session from an exported file, or from a journal; performs nothing, replaces nothing',
    )
    .action(async (file: string) => end(await (await import('./transfer-session.js')).importFrom(file)));
};

/** Adds the commands that run nothing: `sessions`, `show`, `replay`, `verify`, `export`, `import`, `machine`. */
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
  addTransfers(program, end);
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
