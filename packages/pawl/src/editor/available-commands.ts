import type { AvailableCommand, SessionUpdate } from '@agentclientprotocol/sdk';
import type { EditorCommand, EditorPrompts } from './host-interface.js';

/** The commands, skills and prompts that can be typed in a session. */

const availableCommands = (
  commands: readonly EditorCommand[],
  { choices }: EditorPrompts,
): AvailableCommand[] => [
  ...commands.map(({ name, description, hint }) => ({
    name,
    description,
    ...(hint === null ? {} : { input: { hint } }),
  })),
  ...choices.map(({ text, about }) => ({ name: text, description: about, input: { hint: 'words' } })),
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
