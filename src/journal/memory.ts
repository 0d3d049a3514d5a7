import { createHash } from 'node:crypto';
import type { Blobs, Draft, Entry, Header, Journal, SessionInfo } from '../needs.js';
import { CHECK_EVERY, wantsCheck } from './check.js';
import type { Recorded } from './codec.js';
import { closed, exists, JournalError, notFound, outOfRange } from './error.js';
import { forkHeader } from './fork.js';
import { readFrozen } from './frozen.js';
import type { InspectableStore } from './inspection.js';
import { findTitle, summarise } from './list.js';
import { agentMachine, beginFold, type Fold, foldRecords, type Machine } from './replay.js';

type Session = { readonly header: Header; readonly records: Recorded[]; writer: 'none' | 'open' };

const pathOf = (sessionId: string): string => `memory:${sessionId}`;

/** What a file would give back: plain JSON, sharing nothing with what was handed in. */
const copyJson = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T; // T is plain JSON by rule of events

const memoryBlobs = (): Blobs => {
  const texts = new Map<string, string>();
  return {
    put: async (text) => {
      const sha256 = createHash('sha256').update(text).digest('hex');
      texts.set(sha256, text);
      return sha256;
    },
    get: async (sha256) => texts.get(sha256),
  };
};

async function* entriesFrom(records: readonly Recorded[], from: number): AsyncGenerator<Entry, undefined> {
  const end = records.length;
  for (let seq = Math.max(1, from); seq <= end; seq++) {
    const recorded = records[seq - 1];
    if (recorded !== undefined) yield recorded.entry;
  }
}

const openMemoryJournal = (session: Session, blobs: Blobs, checkEvery: number, { check }: Fold): Journal => {
  session.writer = 'open';
  let isOpen = true;
  const append = async (drafts: readonly Draft[]): Promise<void> => {
    if (!isOpen) throw closed(pathOf(session.header.sessionId));
    for (const { event, state } of drafts) {
      const seq = session.records.length + 1;
      const recorded = { entry: { seq, event: copyJson(event) } };
      session.records.push({ ...recorded, check: wantsCheck(seq, state, checkEvery) ? check(state) : null });
    }
  };
  return {
    header: session.header,
    get seq() {
      return session.records.length;
    },
    append,
    read: (from = 1) => entriesFrom(session.records, from),
    blobs,
    frozen: () => readFrozen(pathOf(session.header.sessionId), session.header, blobs),
    close: async () => {
      if (isOpen) session.writer = 'none';
      isOpen = false;
    },
  };
};

const locked = (sessionId: string): JournalError =>
  new JournalError(
    'locked',
    pathOf(sessionId),
    `The session is open in process ${process.pid} (this one). Close that journal first.`,
  );

/** The sessions of one store. */
class Sessions {
  readonly #byId = new Map<string, Session>();

  find(sessionId: string): Session {
    const session = this.#byId.get(sessionId);
    if (session === undefined) throw notFound(pathOf(sessionId), sessionId);
    return session;
  }

  add(header: Header, records: Recorded[]): Session {
    const { sessionId } = header;
    if (this.#byId.has(sessionId)) throw exists(pathOf(sessionId), sessionId);
    const session: Session = { header, records, writer: 'none' };
    this.#byId.set(sessionId, session);
    return session;
  }

  fork(sessionId: string, seq: number, newSessionId: string, createdAt: number): void {
    const { header, records } = this.find(sessionId);
    if (!Number.isInteger(seq) || seq < 0 || seq > records.length) {
      throw outOfRange(pathOf(sessionId), seq, records.length);
    }
    this.add(forkHeader(header, seq, newSessionId, createdAt), records.slice(0, seq));
  }

  newestFirst(): readonly SessionInfo[] {
    return [...this.#byId.values()]
      .map(({ header, records }) => {
        const changedAt = records.at(-1)?.entry.event.at ?? header.createdAt;
        return summarise(header.sessionId, header, findTitle(records) ?? '', changedAt);
      })
      .sort((left, right) => right.changedAt - left.changedAt);
  }
}

const foldSession = ({ header, records }: Session, machine: Machine): Fold =>
  foldRecords(pathOf(header.sessionId), header, records, machine);

/** Sessions that end with the process: the same promises as files, durability aside. */
export const memoryJournals = (
  options: { readonly checkEvery?: number; readonly machine?: Machine } = {},
): InspectableStore => {
  const { checkEvery = CHECK_EVERY, machine = agentMachine } = options;
  const sessions = new Sessions();
  const blobs = memoryBlobs();
  return {
    blobs,
    create: async (header) =>
      openMemoryJournal(sessions.add(copyJson(header), []), blobs, checkEvery, beginFold(header, machine)),
    open: async (sessionId) => {
      const session = sessions.find(sessionId);
      if (session.writer === 'open') throw locked(sessionId);
      const fold = foldSession(session, machine);
      return {
        journal: openMemoryJournal(session, blobs, checkEvery, fold),
        state: fold.state,
        tornTail: null,
      };
    },
    peek: async (sessionId) => {
      const { seq, state } = foldSession(sessions.find(sessionId), machine);
      return { seq, state };
    },
    fork: async (sessionId, seq, newSessionId, createdAt) =>
      sessions.fork(sessionId, seq, newSessionId, createdAt),
    async *read(sessionId, from = 1) {
      yield* entriesFrom(sessions.find(sessionId).records, from);
    },
    async *list() {
      yield* sessions.newestFirst();
    },
    inspect: async (sessionId) => {
      const { header, records } = sessions.find(sessionId);
      return { path: pathOf(sessionId), header, records: [...records], damage: null, tornBytes: 0 };
    },
  };
};
