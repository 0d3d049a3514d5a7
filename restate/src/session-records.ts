/** The stored values of a session, and the messages of its nodes: plain JSON. */

import type { Serde } from '@restatedev/restate-sdk';
import type { Action, Entry, Header, HookMoment, Posted, SessionBegin } from 'pawl/engine';

/** The names of the values of one session. */
export const HEADER = 'header';
export const HEAD = 'head';
const CHUNK = 'entries-';
export const LIVE = 'live-';
export const TITLE = 'title';

/** Changes with every event, so it stays small: only the last entries are in it. */
export type Head = {
  readonly seq: number;
  /** The time of the last entry. */
  readonly lastAt: number;
  /** The entries after the last chunk. */
  readonly tail: readonly Entry[];
  /** The node with the session's workspace. */
  readonly node: string;
  /**
   * The text of the current reply that is in the journal already, although the reply has not ended.
   */
  readonly kept: { readonly requestId: string; readonly length: number } | null;
  /** Whether the session was shut down. */
  readonly over: boolean;
  /** Whether a first event must be preceded by Resumed: a fork was cut off somewhere. */
  readonly isFork: boolean;
  /** Whether the list of sessions has the title. */
  readonly titled: boolean;
  /** Absent: models are called on any node, and no hook of the user runs. */
  readonly bound?: Bound;
  /** Whether hooks of the user still run about the end of the session. */
  readonly ending?: boolean;
  /** The version of the machine that wrote the last entries. */
  readonly decidedBy?: number;
  /** Whether a turn runs: the same version decides until it ends. */
  readonly inTurn?: boolean;
};

/**
 * The parts of a session that work only on the node with its workspace, so that its models are
 * called there too.
 */
export type Bound = {
  /** The moments of hooks that are no part of other work. */
  readonly moments: readonly HookMoment[];
};

export type BegunSession = { readonly header: Header; readonly bound?: Bound };

/** Hooks of the user that are no part of other work. */
export type HooksRequest = {
  readonly sessionId: string;
  /** The journal up to this entry holds all facts for the hooks. */
  readonly seq: number;
  readonly node: string;
  readonly about:
    | { readonly moment: 'session-start'; readonly source: SessionBegin }
    | { readonly moment: 'ask-user'; readonly action: Action }
    | { readonly moment: 'session-end' };
};

export const chunkName = (seq: number): string => `${CHUNK}${String(seq).padStart(9, '0')}`;

/** The number of the first entry of a chunk. */
export const chunkStart = (name: string): number => Number(name.slice(CHUNK.length));

/** A tail this long becomes a chunk. */
const TAIL_ENTRIES_MAX = 32;
const TAIL_BYTES_MAX = 16_384;

/** The tail with new entries: as the new tail, or as a chunk. */
export const withEntries = (
  tail: readonly Entry[],
  entries: readonly Entry[],
): { readonly tail: readonly Entry[]; readonly chunk: readonly Entry[] | null } => {
  const all = [...tail, ...entries];
  if (all.length < TAIL_ENTRIES_MAX && JSON.stringify(all).length < TAIL_BYTES_MAX)
    return { tail: all, chunk: null };
  return { tail: [], chunk: all };
};

/** The first text of the user, cut, and the entry that it is in. */
export type StoredTitle = { readonly seq: number; readonly title: string };

/** Text of a reply so far. */
export type ShownText = { readonly requestId: string; readonly text: string };

/** Events on their way to their session. */
export type Arrival = {
  /** Version of the machine that asked for them; absent: 1. */
  readonly machineVersion?: number;
  readonly posted: readonly Posted[];
  /** When they were posted, by the clock there. */
  readonly at: number;
  /** All text of a reply that has failed: what is not journaled yet precedes the events. */
  readonly shown?: ShownText;
  /** Work that ended with them, and the invocation that did it, if none of them says so. */
  readonly ended?: { readonly workId: string; readonly invocationId: string };
};

/** Work of a session that a node does: an action whose result comes back as events. */
export type Work = {
  readonly sessionId: string;
  /** Version of the machine that asks for it; absent: 1. */
  readonly machineVersion?: number;
  /** The journal up to this entry holds all that the work needs. */
  readonly seq: number;
  readonly action: Action;
  /** Unique in the session; the same when the work is repeated. */
  readonly workId: string;
  /** The node with the session's workspace. */
  readonly node: string;
  /** Whether the session is bound to its node, as `Head.bound` says. */
  readonly isBound: boolean;
  /** The work was begun before an interruption: it must be found, not repeated. */
  readonly isRecovered: boolean;
};

/** One page of the entries. */
export type EntriesPage = {
  readonly entries: readonly Entry[];
  readonly seq: number;
  readonly over: boolean;
};

export type StoredSession = {
  readonly header: Header;
  readonly seq: number;
  /** It is closed: only its last hooks may still add entries. */
  readonly over: boolean;
  readonly node: string;
  /** The session is over, and its last hooks still run. */
  readonly ending: boolean;
  readonly inTurn: boolean;
};

/** A call by name, of an object if it has a `key`, with JSON both ways. */
export const jsonCall = <Answer = unknown>(
  service: string,
  method: string,
  parameter: unknown,
  key?: string,
) => ({
  service,
  method,
  parameter,
  ...(key === undefined ? {} : { key }),
  inputSerde: json<unknown>(),
  outputSerde: json<Answer>(),
});

/** JSON for calls by name, whose default is bytes. An empty answer is undefined. */
const json = <T>(): Serde<T> => ({
  contentType: 'application/json',
  serialize: (value) => new TextEncoder().encode(JSON.stringify(value ?? null)),
  deserialize: (bytes) =>
    // written by `serialize`
    (bytes.length === 0 ? undefined : JSON.parse(new TextDecoder().decode(bytes))) as T,
});

// The shards of the list of sessions.

const SHARDS = 16;
export const allShards: readonly string[] = Array.from({ length: SHARDS }, (_, shard) =>
  String(shard),
);

/** The shard with this name has nothing of a session: it stands for all. */
export const EVERY_SHARD = 'every-shard';

export const findShard = (sessionId: string): string => {
  let sum = 0;
  for (const character of sessionId) sum = (sum * 31 + character.charCodeAt(0)) % 65_521;
  return String(sum % SHARDS);
};
