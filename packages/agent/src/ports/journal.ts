/** Interface between the runtime and the journals with their store. Types only. */

import type { Action } from '../machine/action.js';
import type { Event, MachineUpgrade } from '../machine/event.js';
import type { PastFiles } from '../machine/seen-files.js';
import type { Prices, Settings } from '../machine/settings.js';
import type { State } from '../machine/state.js';

/**
 * The types of one machine as one type parameter. Generic types default to the agent's
 * (AgentTypes).
 */
export type MachineTypes = {
  readonly kind: 'agent' | 'ask';
  readonly event: { readonly type: string; readonly at: number };
  readonly state: { readonly name: string };
  readonly action: { readonly type: string };
  /** `question`: the question of a run (`pawl ask`), if the settings hold it. */
  readonly settings: { readonly model: string; readonly question?: string };
};

export type AgentTypes = {
  readonly kind: 'agent';
  readonly event: Event;
  readonly state: State;
  readonly action: Action;
  readonly settings: Settings;
};

export type Blobs = {
  /** Stores a text and returns its sha256 (hex), which is its key. Durable when it resolves. */
  put(text: string): Promise<string>;
  get(sha256: string): Promise<string | undefined>;
};

/**
 * A call that starts a session: that of a task. The batch and the call together are unique in their
 * session.
 */
export type StartedBy = {
  readonly sessionId: string;
  readonly batchId: string;
  readonly callId: string;
};

/** The first line of a journal. */
export type Header<M extends MachineTypes = AgentTypes> = {
  readonly version: 1;
  /** The kind of machine that wrote the journal; absent for the agent. */
  readonly kind?: Exclude<M['kind'], 'agent'>;
  readonly sessionId: string;
  readonly createdAt: number;
  readonly workspace: string;
  /** The session that this one is a copy of, up to the entry `seq`. */
  readonly parent: { readonly sessionId: string; readonly seq: number } | null;
  /** The call of another session that started this one; absent for a session of a user. */
  readonly startedBy?: StartedBy;
  /** Fingerprint of the machine: a hash of its edges. */
  readonly machine: string;
  /**
   * Version of the machine that began the journal; absent: 1. A later one says so in an event
   * (`Resumed`).
   */
  readonly machineVersion?: number;
  readonly settings: M['settings'];
  /** sha256 of the blob of the system prompt. */
  readonly instructions: string;
  /** sha256 of the blob of the tool declarations. */
  readonly tools: string;
  /**
   * The price used until the model changes (SettingsChanged), stored so that costs can be checked
   * later.
   */
  readonly prices: Prices | null;
};

/** The fixed part of every request: the system prompt, and the tool declarations as JSON. */
export type FrozenPrompt = { readonly instructions: string; readonly tools: string };

export type Entry<M extends MachineTypes = AgentTypes> = {
  readonly seq: number;
  readonly event: M['event'];
};

/**
 * An entry to write: the event, and the state after it, from which the journal computes its state
 * checks.
 */
export type EntryDraft<M extends MachineTypes = AgentTypes> = {
  readonly event: M['event'];
  readonly state: M['state'];
};

export type Journal<M extends MachineTypes = AgentTypes> = {
  readonly header: Header<M>;
  /** seq of the last entry; 0 for an empty journal. */
  readonly seq: number;
  /**
   * Writes entries in order; resolves when they are durable. If it rejects, none of them may be
   * acted on.
   */
  append(drafts: readonly EntryDraft<M>[]): Promise<void>;
  /**
   * Set once the disk is full and entries were written to reserved space: they are durable, but few
   * others will be. Nothing may be started any more.
   */
  readonly full?: Error | null;
  read(from?: number): AsyncIterable<Entry<M>>;
  readonly blobs: Blobs;
  /** Reads the prompt, whose hashes the header has; rejects with `damaged` if a blob is missing. */
  frozen(): Promise<FrozenPrompt>;
  /**
   * Makes a foreign session one of this store; its entries so far stay foreign. Absent for a
   * session that was created here.
   */
  adopt?(): Promise<void>;
  /** The last entry that came from elsewhere; Infinity: all do, until `adopt`. Absent: none. */
  readonly foreignUntil?: number;
  /** Releases the lock. */
  close(): Promise<void>;
};

export type OpenJournal<M extends MachineTypes = AgentTypes> = {
  readonly journal: Journal<M>;
  /** The state after all entries. */
  readonly state: M['state'];
  /**
   * The incomplete last line, if a crash interrupted its writing: removed from the journal and
   * saved as `keptAs`.
   */
  readonly tornTail: { readonly bytes: number; readonly keptAs: string } | null;
  /**
   * The session was not created in this store: it was imported, or its file was put there. Nothing
   * that is pending in it may start.
   */
  readonly isForeign?: true;
  /** What the entries tell of files. Without it a resumed session reads the entries again. */
  readonly past?: PastFiles;
  /** Set if an earlier machine wrote the last entry: then `Resumed` must carry it. */
  readonly upgrade?: MachineUpgrade;
};

export type OpenJournalOptions = {
  /**
   * Open the session even if another process may have it open. That process stops before it writes
   * again.
   */
  readonly takeOver?: boolean;
};

export type SessionInfo = {
  readonly sessionId: string;
  /** The kind of machine that wrote the journal. */
  readonly kind: MachineTypes['kind'];
  readonly workspace: string;
  readonly createdAt: number;
  readonly changedAt: number;
  readonly parent: Header['parent'];
  /** As in the header. */
  readonly startedBy?: StartedBy;
  readonly model: string;
  /** The user's first words, for lists; empty for a session without input. */
  readonly title: string;
  /** As in OpenJournal. */
  readonly isForeign?: true;
  /** Set if the header can't be read: then id and `changedAt` are all that is known. */
  readonly unreadable?: 'damaged' | 'newerVersion';
};

/**
 * The journals of one machine; journals of other machines can only be listed and forked. Errors are
 * JournalErrors (see journal/journal-error.ts) of the kinds locked, damaged, newerVersion,
 * otherMachine, notFound, cannotWrite, foreignChange, takenOver.
 */
export type JournalStore<M extends MachineTypes = AgentTypes> = {
  /** Blobs of all sessions; usable before the first session exists. */
  readonly blobs: Blobs;
  /**
   * Creates a journal. Store the blobs that the header names first: without them the session can't
   * be opened again.
   */
  create(header: Header<M>): Promise<Journal<M>>;
  open(sessionId: string, options?: OpenJournalOptions): Promise<OpenJournal<M>>;
  /** Reads the current state without taking the lock or changing anything. */
  peek(
    sessionId: string,
  ): Promise<{ readonly header: Header<M>; readonly seq: number; readonly state: M['state'] }>;
  /**
   * Creates a session that starts with a copy of the entries up to `seq`; durable when it resolves.
   */
  fork(sessionId: string, seq: number, newSessionId: string, createdAt: number): Promise<void>;
  read(sessionId: string, from?: number): AsyncIterable<Entry<M>>;
  /**
   * The sessions of these ids, newest first; by default all, including those of other machines.
   */
  list(sessionIds?: readonly string[]): AsyncIterable<SessionInfo>;
};
