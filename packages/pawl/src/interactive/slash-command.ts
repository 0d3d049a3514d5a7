/** What a slash command is and what it can use. slash-commands.ts has the list of them. */

import type { SessionRights } from '@pawl/agent/session/session-settings';
import type { Look } from '@pawl/terminal/paint';
import type { UiServers, UiSession } from '../detached/remote-session.js';
import type { SessionPrompts } from '../sessions/typed-input.js';
import type { RunFlags } from '../settings/flags.js';
import type { InteractiveView } from './view.js';

/** The session to open next in this terminal. */
export type NextSession = {
  /** The session to resume; null for a new one. */
  readonly resume: string | null;
  /** The model of a new session. */
  readonly model?: string;
  /** Of a fork: the rights of the session that it was made from. */
  readonly rights?: SessionRights;
  /** Printed when it is open. */
  readonly notice: string;
  /** Put into the input line. */
  readonly text?: string;
};

/** What commands use of a view. */
export type CommandView = Pick<
  InteractiveView,
  | 'state'
  | 'print'
  | 'pick'
  | 'pickPoint'
  | 'withLists'
  | 'editAgain'
  | 'askAgain'
  | 'isLeaving'
  | 'setLeaving'
  | 'redraw'
>;

/** The session, the view and the operations that a slash command can use. */
export type SlashCommandContext = {
  readonly session: UiSession;
  /** Real absolute path. */
  readonly workspace: string;
  readonly flags: RunFlags;
  readonly look: Look;
  readonly view: CommandView;
  readonly prompts: SessionPrompts;
  readonly servers: Pick<UiServers, 'status' | 'reconnect'>;
  /** Whether a command of the user runs, or a text is not in the journal yet. */
  hasWork(): boolean;
  /**
   * Opens the other session, then leaves this one. If it can't be opened, rejects and changes
   * nothing.
   */
  move(to: NextSession): Promise<void>;
  /** Attaches the clipboard's picture to the input line; one at a time. */
  paste(): Promise<void>;
  quit(): void;
  /** Leaves, and the session goes on in a separate process. */
  detach(): Promise<void>;
  /** A text of the conversation as it was typed: without the output of the user's commands. */
  typedText(text: string): string;
  /** The same, for a text that is typed again: the output goes with the next text. */
  takeBackText(text: string): string;
};

/** A slash command. `words` is the text after its name. A rejection is shown to the user. */
export type SlashCommand = (context: SlashCommandContext, words: string) => void | Promise<void>;

/**
 * A command that can't run now, or whose words were not understood. The message is for the user.
 */
export class NotNow extends Error {}
