/**
 * Sessions in memory, for tests and for programs that keep nothing. It behaves as file-store.ts
 * does, the lock and the checks included; nobody else can reach it, so nobody takes it over.
 *
 * To fold is to apply entries to a state, one after the other. A state check is a hash of the state
 * that some entries record: a fold compares its own states with it.
 */

import { createHash } from 'node:crypto';
import type {
  Blobs,
  Entry,
  EntryDraft,
  Header,
  Journal,
  MachineTypes,
  SessionInfo,
} from '../ports/journal.js';
import type { Recorded } from './codec.js';
import { forkHeader } from './fork.js';
import { closed, exists, JournalError, notFound, outOfRange } from './journal-error.js';
import { agentMachine } from './journaled-agent-machine.js';
import { sessionTitle, summarise } from './list.js';
import { type InspectableStore, readFrozen } from './reader.js';
import {
  beginFold,
  CHECK_EVERY,
  endReplay,
  type Fold,
  foldOn,
  type JournaledMachine,
  ownHeader,
  type ReplayOptions,
  refuseMismatch,
  replayWith,
  upgradeFold,
  visitPast,
} from './replay.js';
import { dueCheck } from './writer.js';

/** Stores the agent's sessions in memory. */
export const memoryJournals = (
  options: { readonly checkEvery?: number; readonly machine?: JournaledMachine } = {},
): InspectableStore => machineMemoryJournals(options.machine ?? agentMachine, options);

/**
 * Stores the sessions of one machine in memory: behaves like files, but does not outlive the
 * process.
 */
export const machineMemoryJournals = <M extends MachineTypes>(
  machine: JournaledMachine<M>,
  { checkEvery = CHECK_EVERY }: { readonly checkEvery?: number } = {},
): InspectableStore<M> => {
  const sessions = new Sessions<M>();
  const blobs = memoryBlobs();
  return {
    blobs,
    create: async (draft) => {
      const header = ownHeader(copyJson(draft), machine);
      return openMemoryJournal(
        sessions.add(header, []),
        blobs,
        checkEvery,
        beginFold(header, machine),
      );
    },
    open: async (sessionId, options) => {
      const session = sessions.find(sessionId);
      if (session.writer === 'open') throw locked(sessionId);
      // `past`: what the entries tell of files
      const { visit, past } = visitPast(machine, options?.visit);
      const fold = foldSession(session, machine, { visit });
      const upgrade = upgradeFold(fold);
      return {
        journal: openMemoryJournal(session, blobs, checkEvery, fold),
        state: fold.state,
        tornTail: null,
        ...past(),
        ...(upgrade === undefined ? {} : { upgrade }),
      };
    },
    peek: async (sessionId) => {
      const session = sessions.find(sessionId);
      const { seq, state } = endReplay(foldSession(session, machine));
      return { header: session.header, seq, state };
    },
    fork: async (sessionId, seq, newSessionId, createdAt) =>
      sessions.fork(sessionId, seq, newSessionId, createdAt),
    async *read(sessionId, from = 1) {
      yield* entriesFrom(sessions.find(sessionId).records, from);
    },
    async *list(sessionIds) {
      for (const info of sessions.newestFirst())
        if (sessionIds?.includes(info.sessionId) ?? true) yield info;
    },
    inspect: async (sessionId) => {
      const { header, records } = sessions.find(sessionId);
      return { ...lookAt(sessionId, header), records: [...records] };
    },
    delete: async (sessionId) => sessions.delete(sessionId),
    replay: async (sessionId, options) => {
      const { header, records } = sessions.find(sessionId);
      return {
        ...lookAt(sessionId, header),
        ...(await replayWith(machine, header, records, options)),
      };
    },
  };
};

type Session<M extends MachineTypes> = {
  readonly header: Header<M>;
  readonly records: Recorded<M>[];
  writer: 'none' | 'open';
};

const memoryPath = (sessionId: string): string => `memory:${sessionId}`;

/** Copies a value as a file would: plain JSON that shares nothing with the original. */
// safe: events and headers are plain JSON
const copyJson = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

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

async function* entriesFrom<M extends MachineTypes>(
  records: readonly Recorded<M>[],
  from: number,
): AsyncGenerator<Entry<M>, undefined> {
  const end = records.length;
  for (let seq = Math.max(1, from); seq <= end; seq++) {
    const recorded = records[seq - 1];
    if (recorded !== undefined) yield recorded.entry;
  }
}

const openMemoryJournal = <M extends MachineTypes>(
  session: Session<M>,
  blobs: Blobs,
  checkEvery: number, // entries between two state checks
  fold: Fold<M>,
): Journal<M> => {
  session.writer = 'open';
  let isOpen = true;
  const append = async (drafts: readonly EntryDraft<M>[]): Promise<void> => {
    if (!isOpen) throw closed(memoryPath(session.header.sessionId));
    for (const { event, state } of drafts) {
      const seq = session.records.length + 1;
      const check = dueCheck(fold, seq, state, checkEvery);
      session.records.push({ entry: { seq, event: copyJson(event) }, check });
    }
  };
  return {
    header: session.header,
    get seq() {
      return session.records.length;
    },
    append,
    full: null,
    read: (from = 1) => entriesFrom(session.records, from),
    blobs,
    // system prompt and tool declarations, which stay as they were at the start of the session
    frozen: () => readFrozen(memoryPath(session.header.sessionId), session.header, blobs),
    close: async () => {
      if (isOpen) session.writer = 'none';
      isOpen = false;
    },
  };
};

const locked = (sessionId: string): JournalError =>
  new JournalError(
    'locked',
    memoryPath(sessionId),
    `The session is open in process ${process.pid} (this one). Close that journal first.`,
  );

/** The sessions of one store. */
class Sessions<M extends MachineTypes> {
  readonly #byId = new Map<string, Session<M>>();

  find(sessionId: string): Session<M> {
    const session = this.#byId.get(sessionId);
    if (session === undefined) throw notFound(memoryPath(sessionId), sessionId);
    return session;
  }

  add(header: Header<M>, records: Recorded<M>[]): Session<M> {
    const { sessionId } = header;
    if (this.#byId.has(sessionId)) throw exists(memoryPath(sessionId), sessionId);
    const session: Session<M> = { header, records, writer: 'none' };
    this.#byId.set(sessionId, session);
    return session;
  }

  fork(sessionId: string, seq: number, newSessionId: string, createdAt: number): void {
    const { header, records } = this.find(sessionId);
    if (!Number.isInteger(seq) || seq < 0 || seq > records.length) {
      throw outOfRange(memoryPath(sessionId), seq, records.length);
    }
    this.add(forkHeader(header, seq, newSessionId, createdAt), records.slice(0, seq));
  }

  /** Removes a session and its tasks (sessions that its calls started); the ids of all of them. */
  delete(sessionId: string): readonly string[] {
    this.find(sessionId);
    const headers = [...this.#byId.values()].map(({ header }) => header);
    const tasks = headers.filter(({ startedBy }) => startedBy?.sessionId === sessionId);
    const ids = [sessionId, ...tasks.map((task) => task.sessionId)];
    for (const id of ids) if (this.find(id).writer === 'open') throw locked(id);
    for (const id of ids) this.#byId.delete(id);
    return ids;
  }

  newestFirst(): readonly SessionInfo[] {
    return [...this.#byId.values()]
      .map(({ header, records }) => {
        const changedAt = records.at(-1)?.entry.event.at ?? header.createdAt;
        return summarise(header.sessionId, header, sessionTitle(header, records) ?? '', changedAt);
      })
      .sort((left, right) => right.changedAt - left.changedAt);
  }
}

/** The `inspect` result for a journal in memory, which is never torn or damaged. */
const lookAt = <M extends MachineTypes>(sessionId: string, header: Header<M>) => ({
  path: memoryPath(sessionId),
  header,
  damage: null,
  tornBytes: 0,
});

/** Throws `damaged` at the first state that differs from its recorded check. */
const foldSession = <M extends MachineTypes>(
  { header, records }: Session<M>,
  machine: JournaledMachine<M>,
  options: ReplayOptions<M> = {},
): Fold<M> => {
  const path = memoryPath(header.sessionId);
  const fold = beginFold(header, machine, path);
  foldOn(fold, records, options);
  refuseMismatch(path, fold, header);
  return fold;
};
