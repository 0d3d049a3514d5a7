import type { Command } from 'commander';
import type { SessionsFlags } from './sessions-command.js';

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
    .action(async (given: string) => end(await (await import('./verify-session.js')).verifySession(given)));
  program
    .command('export <id> [file]')
    .description('write a session with its blobs to one file (ID.pawl)')
    .option('--html <file>', 'as a page for a browser, with secrets replaced; it needs no server')
    .action(async (id: string, file: string | undefined, { html }: { readonly html?: string }) =>
      end(
        html === undefined
          ? await (await import('./transfer-session.js')).exportTo(id, file)
          : await (await import('../commands/inspect/export-page.js')).exportPage(id, html, file),
      ),
    );
  program
    .command('import <file>')
    .description(
      'store a session from an exported file, or from a journal; performs nothing, replaces nothing',
    )
    .action(async (file: string) => end(await (await import('./transfer-session.js')).importFrom(file)));
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
      end(await (await import('./sessions-command.js')).runSessions(what, id, flags)),
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
      end(await (await import('../commands/diff/diff-command.js')).diffSessions(a, b, flags.json === true)),
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
      end(await (await import('./show/show-session.js')).showSession(id, flags)),
    );
  program
    .command('replay <id>')
    .description(
      'recompute a session from its journal without performing anything, check its hashes, and print the path through the states',
    )
    .option('--at <seq>', 'stop after this line of the journal')
    .option('--json', 'the path as JSON lines')
    .action(async (id: string, flags: AtFlags) =>
      end(await (await import('./show/replay-session.js')).replaySession(id, flags)),
    );
  addDiff(program, end);
  program
    .command('inspect [id]')
    .description('show a session in a browser while it runs or later, or the list of all (docs/inspector.md)')
    .action(async (id?: string) =>
      end(await (await import('../commands/inspect/inspect-command.js')).inspectSessions(id)),
    );
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
          ? await (await import('../commands/machine/check-machine.js')).checkMachine(flags)
          : await (await import('../commands/machine/show-machine.js')).showMachine(flags),
      ),
    );
};
