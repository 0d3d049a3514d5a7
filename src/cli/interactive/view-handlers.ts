import type { InputMode } from '../../agent/event.js';
import type { Wish } from '../slash/slash-commands.js';
import type { ScopedAnswer } from './read-answer.js';

/** What the user asks of the session. The view waits for none of it: results come back as steps. */
export type ViewHandlers = {
  say(text: string, mode: InputMode): void;
  cancel(): void;
  answer(batchId: string, callId: string, answer: ScopedAnswer): void;
  /** A slash command, or a shell command of the user's own. */
  runCommand(wish: Extract<Wish, { readonly kind: 'command' | 'shell' }>): void;
  /** Stops the user's own shell command; false if none runs. */
  stopUserCommand(): boolean;
  /** Texts from the queue as they were typed, without the shell output that was attached. */
  withoutShellOutput(texts: readonly string[]): readonly string[];
  /** Puts the picture in the clipboard into the input line. */
  pastePicture(): void;
  /** Opens the last input for editing, in a fork of the session. */
  editLast(): void;
  /** Gives the terminal back to the shell until SIGCONT. */
  suspend(): void;
  /** `hard`: at once, with children killed. */
  end(how: 'clean' | 'hard'): void;
};
