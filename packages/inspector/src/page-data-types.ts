/**
 * The data of the page, from the inspector's server or an exported file. Types only. An entry is a
 * line of the session's journal: one event, with its number `seq`.
 */

import type { UsageTotals } from '@pawl/agent/machine/settings';
import type { StateName } from '@pawl/agent/machine/state';
import type { Entry, Header, SessionInfo } from '@pawl/agent/ports/journal';

/** The fixed part of a session. `prompt` is null if its blobs are missing. */
export type InspectedSession = {
  readonly header: Header;
  readonly prompt: {
    readonly instructions: string;
    readonly tools: string;
    /** Tool declarations that later requests have instead, by the sha256 of their blob. */
    readonly laterTools?: Readonly<Record<string, string>>;
  } | null;
  /** The Pawl that shows it. */
  readonly version: string;
  /** Another version of the machine ran it: the states shown may differ from those it had. */
  readonly foreignMachine: boolean;
};

/** One message of the feed of entries. `caughtUp`: these are the last ones so far. */
export type FeedPiece =
  | { readonly kind: 'entries'; readonly entries: readonly Entry[]; readonly caughtUp: boolean }
  /** The journal was replaced, or is shorter: start again from the first entry. */
  | { readonly kind: 'restart' }
  /** Nothing more will come. */
  | { readonly kind: 'damaged'; readonly why: string };

/** A session inside an exported file. */
export type ExportedSession = InspectedSession & {
  readonly entries: readonly Entry[];
  /** Why the entries end early; null if they don't. */
  readonly damage: string | null;
};

/** One line of the list of sessions. */
export type SessionSummary = {
  readonly seq: number;
  readonly state: StateName;
  readonly usage: UsageTotals;
  readonly turns: number;
  /** Time of the first and the last event. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly damage: string | null;
};

export type SessionList = { readonly version: string; readonly sessions: readonly SessionInfo[] };

/** A question of a detached session. `text`: the rows that a terminal shows. */
export type LiveQuestionText = {
  readonly batchId: string;
  readonly callId: string;
  /** Names this question with this content: its answer carries it. */
  readonly code: string;
  readonly tool: string;
  /** Whether a call may run, what the model asks the user, or a plan of the model. */
  readonly about: 'call' | 'question' | 'plan';
  readonly text: string;
  /** What a question of the model offers. */
  readonly choices: readonly string[];
};

/** An answer to such a question. `reply`: to a question of the model alone. */
export type LiveAnswer =
  | { readonly kind: 'allow' }
  | { readonly kind: 'deny'; readonly reason: string }
  | { readonly kind: 'reply'; readonly text: string };

/** A session that runs in a separate process. `state` is in words; times are in ms. */
export type LiveRow = {
  readonly sessionId: string;
  readonly title: string;
  readonly state: string;
  /** null: the price of a call is unknown. */
  readonly costUsd: number | null;
  readonly rounds: number;
  readonly workspace: string;
  readonly startedAtMs: number;
  readonly questions: readonly LiveQuestionText[];
  /** Why its questions can't be shown now; null if they are. */
  readonly unread: string | null;
};

/** The sessions that run in processes of their own, as the program behind the page knows them. */
export type LiveSessions = {
  list(): Promise<readonly LiveRow[]>;
  /** Rejects with the reason if the answer changed nothing. */
  answer(sessionId: string, body: unknown): Promise<void>;
};
