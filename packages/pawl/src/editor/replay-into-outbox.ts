import type { AgentContext, SessionUpdate } from '@agentclientprotocol/sdk';
import type { JournalStep } from '@pawl/agent/journal/read/steps';
import type { AcpHost, ResumeRequest, SessionRequest } from './host-interface.js';
import { Outbox } from './outbox.js';
import { type ClientFeatures, SessionUpdates } from './session-updates.js';

/** One client: how to reach it, and what it can show. */
export type Client = { readonly context: AgentContext; readonly features: ClientFeatures };

export type SessionOpening = Pick<SessionRequest, 'workspace' | 'servers'> & {
  /** Null for a new session. `shows`: whether the client wants the conversation so far. */
  readonly resume: (Omit<ResumeRequest, 'visit'> & { readonly shows: 'conversation' | 'nothing' }) | null;
};

export const createUpdates = (
  { journals: { blobs } }: AcpHost,
  { features }: Client,
  outbox: Outbox,
  about: { readonly workspace: string; readonly title: 'known' | 'unknown' },
): SessionUpdates => new SessionUpdates({ ...about, features, blobs, push: (item) => outbox.push(item) });

export type Collected = {
  readonly outbox: Outbox;
  readonly updates: SessionUpdates;
  /** The last entry of the journal whose step is in the outbox; null if none is. */
  readonly seq: number | null;
};

/**
 * Prepares the outbox of a session that is being opened. Its conversation so far is put there while its journal is read, so
 * that the entries are read and folded once.
 */
export const collectWhileOpening = (
  host: AcpHost,
  client: Client,
  { resume, workspace }: SessionOpening,
  send: (update: SessionUpdate) => Promise<void>,
): { readonly resume: ResumeRequest | null; end(): Collected } => {
  const outbox = new Outbox(send);
  const isWanted = resume?.shows === 'conversation';
  const title = resume === null || isWanted ? 'unknown' : 'known';
  const updates = createUpdates(host, client, outbox, { workspace, title });
  let last: number | null = null;
  const visit = (step: JournalStep): void => {
    updates.replay(step);
    last = step.seq;
  };
  return {
    resume: resume === null ? null : { ...resume, visit: isWanted ? visit : null },
    end: () => {
      updates.endReplay(null);
      return { outbox, updates, seq: last };
    },
  };
};
