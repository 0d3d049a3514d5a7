import type { InputMode } from '@pawl/agent/machine/event';
import type { TypedInput } from '../slash/command-table-and-parser.js';
import type { ScopedAnswer } from './read-approval-answer.js';

/** Requests of the user to the session. The view does not wait for them; their results arrive as steps. */
export type ViewHandlers = {
  say(text: string, mode: InputMode): void;
  cancel(): void;
  answer(batchId: string, callId: string, answer: ScopedAnswer): void;
  /** Runs a slash command or a shell command. */
  runCommand(wish: Extract<TypedInput, { readonly kind: 'command' | 'shell' }>): void;
  /** Stops the user's shell command; false if none runs. */
  stopUserCommand(): boolean;
  /** Queued texts as they were typed, without attached shell output. */
  withoutShellOutput(texts: readonly string[]): readonly string[];
  /** Inserts the clipboard's picture into the input line. */
  pastePicture(): void;
  /** Opens the last input for editing in a fork of the session. */
  editLast(): void;
  /** Gives the terminal back to the shell until SIGCONT. */
  suspend(): void;
  /** `hard`: at once, and children are killed. */
  end(how: 'clean' | 'hard'): void;
};
