import type { Session } from '@pawl/agent/api/create-agent';
import type { State } from '@pawl/agent/machine/state';
import type { Look } from '@pawl/terminal/paint-text';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import type { RunFlags } from '../flags.js';
import { NO_PROMPTS } from '../skills/session-prompts.js';
import { type CommandContext, type CommandView, NotNow } from '../slash/command-context.js';
import { type CommandName, readTypedInput, slashCommands } from '../slash/command-table-and-parser.js';
import { runCommand } from '../slash/run-slash-command.js';
import type { EditorCommand } from './host-interface.js';

/** The slash commands that an editor offers: those that need no screen and stay in the session. */

const OFFERED: ReadonlySet<string> = new Set<CommandName>([
  'compact',
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

export const editorCommands: readonly EditorCommand[] = slashCommands
  .filter(([name]) => OFFERED.has(name))
  .map(([name, words, description]) => ({ name, description, hint: words === '' ? null : words }));

const look: Look = { colour: 'no', columns: 100, plain: 'yes' };

const elsewhere = async (): Promise<never> => {
  throw new NotNow('This is done in the editor.');
};

/** A view that collects what is printed. A choice is only listed: the command's argument makes it. */
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
        print(makeSafe([title, ...choices.map(({ text, about }) => `  ${text}  ${about}`)].join('\n')));
        return null;
      },
      redraw: () => undefined,
    },
    printed: () => joinSafe(rows, safe`\n`),
  };
};

/** Runs a command; resolves with what it prints. Never rejects. */
export const runEditorCommand = async (
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
  const context: CommandContext = {
    session,
    workspace,
    flags,
    look,
    view,
    prompts: NO_PROMPTS,
    servers: null,
    move: elsewhere,
    paste: elsewhere,
    quit: () => undefined,
  };
  try {
    await runCommand(context, typed.name, typed.words);
  } finally {
    unwatch();
  }
  return printed();
};
