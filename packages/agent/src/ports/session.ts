/**
 * What a program sees of sessions: the runtime that keeps them, their input and the steps that they
 * show. Types only.
 */

import type { Diagnostic, Edge } from '@pawl/machine/kernel/table';
import type { UserEvent } from '../machine/event.js';
import type { Settings } from '../machine/settings.js';
import type { State } from '../machine/state.js';
import type { AgentTypes, Entry, Header, MachineTypes, SessionInfo, StartedBy } from './journal.js';

/** Parameters of a new session. */
export type NewSession = {
  readonly settings: Settings;
  /** The system prompt; it stays the same for the whole session. */
  readonly instructions: string;
  /** The call of another session that starts this one; absent for a session of a user. */
  readonly startedBy?: StartedBy;
};

/**
 * Runs many sessions, in this process (`createAgent(…).runtime`) or on an engine, a service that
 * keeps the journals of sessions for several computers.
 * Sessions are addressed by their ids; every promise rejects if the session can't be reached.
 */
export type Runtime = {
  /** Creates a session and its journal, without any event yet. Resolves with its id. */
  create(session: NewSession): Promise<string>;
  /**
   * Sends a user event. When it resolves, the event is durable and applied; `seq` is its number in
   * the journal.
   */
  send(sessionId: string, input: Input): Promise<{ readonly seq: number }>;
  /** The journal from `from` (default 1), then each entry as it comes, until the session closes. */
  read(sessionId: string, from?: number): AsyncIterable<Entry>;
  /**
   * Calls the watcher with every step from now on; the returned function removes it. Deltas
   * (streaming text, output of a running command) are steps whose `seq` is null, since they are not
   * journaled one by one.
   */
  watch(sessionId: string, watcher: Watcher): () => void;
  /** The current state, the last seq, and the header, which is needed to replay the journal. */
  state(
    sessionId: string,
  ): Promise<{ readonly header: Header; readonly seq: number; readonly state: State }>;
  /** Creates a session with the conversation up to `seq`. Resolves with its id. */
  fork(sessionId: string, seq: number): Promise<string>;
  /** The sessions of these ids, by default all, the most recently changed first. */
  list(sessionIds?: readonly string[]): AsyncIterable<SessionInfo>;
  /** Shuts the session down; resolves when all its work has stopped. Its journal stays. */
  close(sessionId: string): Promise<void>;
};

type Without<E, K extends PropertyKey> = E extends unknown ? Omit<E, K> : never;
/** A user's event without its time, which the runtime stamps. */
export type Input = Without<UserEvent, 'at'>;

/** One step of the machine. `seq` is null for an event that is not journaled (a delta). */
export type Stepped<M extends MachineTypes = AgentTypes> = {
  readonly seq: number | null;
  readonly event: M['event'];
  /** The state after the event. */
  readonly state: M['state'];
  readonly actions: readonly M['action'][];
  /** The edges that were taken, in order; empty if the event had no effect. */
  readonly path: readonly Edge[];
  readonly diagnostics: readonly Diagnostic[];
};

/**
 * Receives every step in order, after its event is durable. It can neither block the session nor
 * change anything.
 */
export type Watcher<M extends MachineTypes = AgentTypes> = (stepped: Stepped<M>) => void;

/**
 * The user's stopping policy, called before every model call: null allows it; a sentence ends the
 * turn as the reason.
 */
export type StoppingPolicy = (state: State) => string | null | Promise<string | null>;
