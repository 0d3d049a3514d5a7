import type { Settings } from '../machine/settings.js';
import type { State } from '../machine/state.js';
import type { Entry, Header, SessionInfo, StartedBy } from './journal.js';
import type { Input, Watcher } from './session-input-output.js';

/** Parameters of a new session. */
export type NewSession = {
  readonly settings: Settings;
  /** The system prompt; it stays the same for the whole session. */
  readonly instructions: string;
  /** The call of another session that starts this one; absent for a session of a user. */
  readonly startedBy?: StartedBy;
};

/**
 * Runs many sessions, in this process (`createAgent(…).runtime`) or in an engine on many computers. Sessions are
 * addressed by their ids; every promise rejects if the session can't be reached.
 */
export type Runtime = {
  /** Creates a session and its journal, without any event yet. Resolves with its id. */
  create(session: NewSession): Promise<string>;
  /** Sends a user event. When it resolves, the event is durable and applied; `seq` is its number in the journal. */
  send(sessionId: string, input: Input): Promise<{ readonly seq: number }>;
  /** The journal from `from` (default 1), then each entry as it comes, until the session closes. */
  read(sessionId: string, from?: number): AsyncIterable<Entry>;
  /**
   * Calls the watcher with every step from now on; the returned function removes it. Deltas (streaming text, output of a
   * running command) are steps whose `seq` is null, since they are not journaled one by one.
   */
  watch(sessionId: string, watcher: Watcher): () => void;
  /** The current state, the last seq, and the header, which `steps` needs. */
  state(sessionId: string): Promise<{ readonly header: Header; readonly seq: number; readonly state: State }>;
  /** Creates a session with the conversation up to `seq`. Resolves with its id. */
  fork(sessionId: string, seq: number): Promise<string>;
  /** All sessions, the most recently changed first. */
  list(): AsyncIterable<SessionInfo>;
  /** Shuts the session down; resolves when all its work has stopped. Its journal stays. */
  close(sessionId: string): Promise<void>;
};
