/**
 * The commands, skills and prompts that a user of an editor can type as `/name`.
 *
 * From top to bottom: the slash commands of Pawl that an editor offers; what was typed; and running
 * a command.
 */

import type { ContentBlock, SessionUpdate } from '@agentclientprotocol/sdk';
import type { State } from '@pawl/agent/machine/state';
import type { Session } from '@pawl/agent/session/create-agent';
import type { Look } from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import {
  type CommandView,
  NotNow,
  type SlashCommandContext,
} from '../interactive/slash-command.js';
import { runCommand } from '../interactive/slash-commands.js';
import {
  type CommandName,
  type ExpandedText,
  NO_PROMPTS,
  readTypedInput,
  type SessionPrompts,
  slashCommands,
} from '../sessions/typed-input.js';
import type { RunFlags } from '../settings/flags.js';

/** Skills and commands of the session's folder. */
type Choices = Pick<SessionPrompts, 'choices'>;

/** Those that need no screen and stay in the session. */
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

const offeredCommands = slashCommands.filter(([name]) => OFFERED_COMMANDS.has(name));

/** Whether it is a command of Pawl that an editor offers. */
export const isOffered = (name: string): boolean => OFFERED_COMMANDS.has(name);

export const commandsUpdate = ({ choices }: Choices): SessionUpdate => ({
  sessionUpdate: 'available_commands_update',
  availableCommands: [
    ...offeredCommands.map(([name, words, description]) => ({
      name,
      description,
      ...(words === '' ? {} : { input: { hint: words } }),
    })),
    ...choices.map(({ text, about }) => ({
      name: text,
      description: about,
      input: { hint: 'words' },
    })),
  ],
});

export const unknownCommandText = (name: string, { choices }: Choices): string => {
  const names = [...offeredCommands.map(([one]) => one), ...choices.map(({ text }) => text)];
  return `There is no /${name} here. There are ${names.map((one) => `/${one}`).join(', ')}.`;
};

/** `/name words` in the first block; null for any other prompt. */
export const commandIn = ([first]: readonly ContentBlock[]): {
  readonly name: string;
  readonly words: string;
} | null => {
  const match =
    first?.type === 'text' ? /^\/([\w:-]+)(?:\s+(.*))?$/s.exec(first.text.trim()) : null;
  return match === null ? null : { name: match[1] ?? '', words: (match[2] ?? '').trim() };
};

/** The typed text with its skill, command or prompt in place. */
export const expandTyped = (
  prompts: Pick<SessionPrompts, 'expands' | 'expand'>,
  typed: string,
): Promise<ExpandedText> =>
  prompts.expands(typed) ? prompts.expand(typed) : Promise.resolve({ text: typed, fault: null });

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
      askAgain: () => undefined,
      redraw: () => undefined,
    },
    printed: () => joinSafe(rows, safe`\n`),
  };
};

/** Runs a command; resolves with what it prints. Rejects only if the session has failed. */
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
