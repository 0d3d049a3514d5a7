/** The commands, skills and prompts that a user of an editor can type as `/name`. */

import type { AvailableCommand, ContentBlock, SessionUpdate } from '@agentclientprotocol/sdk';
import type { EditorCommand, EditorPrompts } from './acp-host.js';

const availableCommands = (
  commands: readonly EditorCommand[],
  { choices }: EditorPrompts,
): AvailableCommand[] => [
  ...commands.map(({ name, description, hint }) => ({
    name,
    description,
    ...(hint === null ? {} : { input: { hint } }),
  })),
  ...choices.map(({ text, about }) => ({
    name: text,
    description: about,
    input: { hint: 'words' },
  })),
];

export const commandsUpdate = (
  commands: readonly EditorCommand[],
  prompts: EditorPrompts,
): SessionUpdate => ({
  sessionUpdate: 'available_commands_update',
  availableCommands: availableCommands(commands, prompts),
});

export const unknownCommandText = (
  name: string,
  commands: readonly EditorCommand[],
  { choices }: EditorPrompts,
): string => {
  const names = [...commands.map((command) => command.name), ...choices.map(({ text }) => text)];
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
  prompts: EditorPrompts,
  typed: string,
): Promise<{ readonly text: string; readonly fault: string | null }> =>
  prompts.expands(typed) ? prompts.expand(typed) : Promise.resolve({ text: typed, fault: null });
