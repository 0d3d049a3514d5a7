import type { Session } from '../../agent-api.js';
import type { Look } from '../../terminal/print.js';
import type { Desk } from '../desk.js';
import type { RunFlags } from '../flags.js';

/** Where the terminal goes on. */
export type Destination = {
  /** The session to go on with; null for a new one. */
  readonly resume: string | null;
  /** The model of a new session. */
  readonly model?: string;
  /** Said when it is open. */
  readonly said: string;
  /** Put into the line. */
  readonly text?: string;
};

/** What a command of the terminal has at hand. */
export type Room = {
  readonly session: Session;
  /** Real absolute path. */
  readonly workspace: string;
  readonly flags: RunFlags;
  readonly look: Look;
  readonly desk: Desk;
  /** Opens the other session, then leaves this one; rejects, and nothing has changed, where it can't be opened. */
  move(to: Destination): Promise<void>;
  /** Puts the picture in the clipboard into the line; one at a time. */
  paste(): Promise<void>;
  quit(): void;
};

/** What a command does; a rejection is told to the user. `words` is what followed its name. */
export type Command = (room: Room, words: string) => void | Promise<void>;

/** Says that a command does not fit now, or was not understood. */
export class NotNow extends Error {}
