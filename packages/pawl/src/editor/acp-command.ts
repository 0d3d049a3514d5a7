/**
 * `pawl acp`: the agent of an editor, over stdin and stdout. Its sessions are opened from flags and
 * configuration; its slash commands are those that need no screen and stay in the session.
 */

import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import { setTimeout as pause } from 'node:timers/promises';
import type { State } from '@pawl/agent/machine/state';
import { knownModels } from '@pawl/agent/models/catalogue';
import { keyIn, providerOfModel } from '@pawl/agent/models/provider-table';
import type { Session } from '@pawl/agent/session/create-agent';
import type { Look } from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { reserveStdout, writeError } from '@pawl/terminal/write';
import {
  type CommandView,
  NotNow,
  type SlashCommandContext,
} from '../interactive/slash-command.js';
import { runCommand } from '../interactive/slash-commands.js';
import { type ExitCode, errorEnding, exitCodes, listenToSignals } from '../process/exit-codes.js';
import { packageVersion } from '../process/package-folder.js';
import { openFromFlags } from '../sessions/open-session.js';
import { refuseBadFlags } from '../sessions/session-settings.js';
import { storedJournals } from '../sessions/stored-sessions.js';
import {
  type CommandName,
  NO_PROMPTS,
  readTypedInput,
  slashCommands,
} from '../sessions/typed-input.js';
import { newSessionFlags, type RunFlags, storedSessionFlags } from '../settings/flags.js';
import { type AcpConnection, serveClient } from './acp-agent.js';
import type { AcpHost, EditorCommand } from './acp-host.js';

/** Sessions have this long to end after the editor has gone. */
const HARD_END_MS = 2_000;

/** Waits until the editor has gone and all sessions are closed. */
const untilEnded = async (connection: AcpConnection): Promise<ExitCode> => {
  const reason = await connection.closed;
  await Promise.race([connection.ended, pause(HARD_END_MS)]);
  // A message that is nested too deep overflows the stack of the package, which then ends the
  // connection.
  if (reason instanceof RangeError) {
    writeError(
      safe`pawl: the editor sent a message that is nested too deep: ${makeSafe(reason.message)}\n`,
    );
    return exitCodes.badInput;
  }
  if (!(reason instanceof Error) || reason.name !== 'MessageTooLargeError') return exitCodes.done;
  writeError(
    safe`pawl: the editor sent a message that is too large: ${makeSafe(reason.message)}\n`,
  );
  return exitCodes.badInput;
};

/** `pawl acp`: serves the editor until it has gone. Returns the exit code. */
export const runAcp = async (allFlags: RunFlags): Promise<number> => {
  const flags = newSessionFlags(allFlags); // those that count for an editor's sessions
  refuseBadFlags(flags); // throws a usage error
  if (process.stdin.isTTY)
    writeError(
      safe`pawl acp is started by an editor and speaks with it over stdin and stdout. docs/use/editors.md says how to set it up. Ctrl-D ends it.\n`,
    );
  const output = await reserveStdout();
  // Node's own type of the same stream
  const input = Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>;
  const connection = serveClient(createHost(flags), { output, input });
  let exit: ExitCode | null = null;
  const endWith = (code: ExitCode): void => {
    exit ??= code;
    connection.close();
  };
  const stopListening = listenToSignals({
    interrupt: () => endWith(exitCodes.interrupted),
    interruptAgain: () => process.exit(exitCodes.interrupted),
    terminate: () => endWith(exitCodes.terminated),
  });
  const ended = await untilEnded(connection);
  stopListening();
  return exit ?? ended;
};

// Opens sessions for an editor, from flags and configuration.

/** The known models of providers that there is a key for. */
const usableModels = (): readonly string[] =>
  knownModels().filter((id) => {
    const provider = providerOfModel(id);
    return provider !== undefined && keyIn(process.env, provider.keyVariables) !== null;
  });

export const createHost = (flags: RunFlags): AcpHost => ({
  version: packageVersion(),
  journals: storedJournals(),
  commands: editorCommands,
  models: usableModels,
  async open({ workspace, resume, servers, watcher, warn }) {
    const sessionFlags = { ...flags, workspace };
    if (resume === null) return openFromFlags(sessionFlags, 'editor', { watcher, warn, servers });
    const { id, visit, accept, rights } = resume;
    return openFromFlags(sessionFlags, 'editor', {
      watcher,
      warn,
      servers,
      resume: id,
      ...(visit === null ? {} : { visit }),
      ...(rights === undefined ? {} : { rights }),
      async flagsFor({ settings, origin }) {
        await accept(settings.workspace); // throws if it works in another folder
        // A session of this user keeps its model. One from elsewhere is not believed that far.
        return {
          ...(origin === 'own'
            ? storedSessionFlags(flags, (settings.primary ?? settings).model)
            : newSessionFlags(flags)),
          workspace,
        };
      },
    });
  },
  async trustQuestions(workspace, warn) {
    const { projectQuestions } = await import('../sessions/project-trust.js');
    return projectQuestions(workspace, warn);
  },
  runCommand: (session, name, words) => runEditorCommand(session, flags, name, words),
  describeError(error) {
    const { exit, reason, message } = errorEnding(error);
    return { kind: exit === exitCodes.configuration ? 'configuration' : 'other', reason, message };
  },
});

// The slash commands that an editor offers: those that need no screen and stay in the session.

const OFFERED_COMMANDS: ReadonlySet<string> = new Set<CommandName>([
  'compact',
  'rewind',
  'redo',
  'cost',
  'budget',
  'permissions',
  'jobs',
  'diff',
  'export',
  'retry',
  'model',
  'effort',
  'preset',
]);

const editorCommands: readonly EditorCommand[] = slashCommands
  .filter(([name]) => OFFERED_COMMANDS.has(name))
  .map(([name, words, description]) => ({ name, description, hint: words === '' ? null : words }));

const look: Look = { colour: 'no', columns: 100, plain: 'yes' };

const elsewhere = async (): Promise<never> => {
  throw new NotNow('This is done in the editor.');
};

/**
 * A view that collects what is printed. A choice is only listed: the command's argument makes it.
 */
const collectingView = (state: () => State): { readonly view: CommandView; printed(): string } => {
  const rows: Safe[] = [];
  const print = (text: Safe): void => void rows.push(text);
  return {
    view: {
      get state() {
        return state();
      },
      print,
      async pick(title, choices) {
        print(
          makeSafe([title, ...choices.map(({ text, about }) => `  ${text}  ${about}`)].join('\n')),
        );
        return null;
      },
      pickPoint: async () => null,
      withLists: (work) => work(),
      editAgain: (text) => print(safe`  You wrote: ${makeSafe(text)}`),
      isLeaving: false,
      setLeaving: () => undefined,
      redraw: () => undefined,
    },
    printed: () => joinSafe(rows, safe`\n`),
  };
};

/** Runs a command; resolves with what it prints. Rejects only if the session has failed. */
const runEditorCommand = async (
  session: Session,
  flags: RunFlags,
  name: string,
  words: string,
): Promise<string> => {
  const typed = readTypedInput(`/${name} ${words}`, 'steer');
  if (typed.kind === 'refused') return typed.why;
  if (typed.kind !== 'command') return '';
  let state = await session.state();
  const unwatch = session.watch((stepped) => {
    state = stepped.state;
  });
  const { view, printed } = collectingView(() => state);
  const { workspace } = state.session.settings;
  const context: SlashCommandContext = {
    session,
    workspace,
    flags,
    look,
    view,
    prompts: NO_PROMPTS,
    servers: { status: async () => null, reconnect: async () => undefined },
    hasWork: () => false,
    move: elsewhere,
    paste: elsewhere,
    quit: () => undefined,
    detach: elsewhere,
    typedText: (text) => text,
    takeBackText: (text) => text,
  };
  try {
    await runCommand(context, typed.name, typed.words);
  } finally {
    unwatch();
  }
  return printed();
};
