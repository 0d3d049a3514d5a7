/**
 * The sessions that the inspector's server shows: their list, a summary of each, and all entries of
 * one, with secrets replaced.
 */

import { stat } from 'node:fs/promises';
import { fileJournals } from '@pawl/agent/journal/file-store';
import { agentMachine } from '@pawl/agent/journal/journaled-agent-machine';
import type { InspectableStore } from '@pawl/agent/journal/reader';
import { journalPath } from '@pawl/agent/journal/state-folder';
import type { Event } from '@pawl/agent/machine/event';
import { attempt } from '@pawl/agent/platform/attempt';
import type { Header, SessionInfo } from '@pawl/agent/ports/journal';
import type { Redactor } from '@pawl/agent/secrets/redactor';
import type {
  ExportedSession,
  FeedPiece,
  InspectedSession,
  SessionList,
  SessionSummary,
} from '../page-data-types.js';
import { followJournal } from './follow-journal.js';

/** Where the sessions are, and how they are shown. */
export type InspectorPlace = {
  /** The state folder. */
  readonly folder: string;
  readonly version: string;
  readonly redactor: Redactor;
};

/**
 * The stored sessions as the inspector shows them: read without locks, with secrets replaced.
 * Writes nothing.
 */
export class InspectedSessions {
  readonly #place: InspectorPlace;
  readonly #store: InspectableStore;
  /** Summaries by session, each with the size of its journal at that time. */
  readonly #summaries = new Map<
    string,
    { readonly size: number; readonly summary: SessionSummary }
  >();

  constructor(place: InspectorPlace) {
    this.#place = place;
    this.#store = fileJournals({ folder: place.folder });
  }

  async list(): Promise<SessionList> {
    const sessions: SessionInfo[] = [];
    for await (const info of this.#store.list()) sessions.push(this.clean(info));
    return { version: this.#place.version, sessions };
  }

  /** Folds the journal; a second time only if its size has changed: entries are only added. */
  async summary(sessionId: string): Promise<SessionSummary> {
    const { size } = await stat(this.#getPath(sessionId));
    const known = this.#summaries.get(sessionId);
    if (known?.size === size) return known.summary;
    const times: { first: number | null; last: number } = { first: null, last: 0 };
    const { seq, state, damage, header } = await this.#store.replay(sessionId, {
      visit: ({ event: { at } }) => {
        times.first ??= at;
        times.last = Math.max(times.last, at);
      },
    });
    const { usage, counters } = state.session;
    const startedAt = times.first ?? header.createdAt;
    const summary = this.clean({
      seq,
      state: state.name,
      usage,
      turns: counters.turn,
      startedAt,
      endedAt: Math.max(times.last, startedAt),
      damage: damage?.message ?? null,
    });
    this.#summaries.set(sessionId, { size, summary });
    return summary;
  }

  /**
   * The fixed part of a session. Rejects for a session that is not the agent's, or can't be read.
   */
  async session(sessionId: string): Promise<InspectedSession> {
    // Up to entry 0: only the header is needed, and no event is applied.
    const { header } = await this.#store.replay(sessionId, { at: 0 });
    const laterHashes: string[] = [];
    // A fault loses only tools of entries behind it: `feed` meets it there, too, and tells it.
    await attempt(async () => {
      for await (const { event } of this.#store.read(sessionId))
        laterHashes.push(...laterTools(event));
    });
    return this.clean(await this.#inspected(header, laterHashes));
  }

  /** The entries after `seq`, then each one that is added. */
  async *feed(
    sessionId: string,
    seq: number,
    signal: AbortSignal,
  ): AsyncGenerator<FeedPiece, undefined> {
    for await (const piece of followJournal(this.#getPath(sessionId), seq, signal))
      yield this.clean(piece);
  }

  /** The whole session as it is now, for a file. */
  async exported(sessionId: string): Promise<ExportedSession> {
    const { header, records, damage } = await this.#store.inspect(sessionId);
    const entries = records.map(({ entry }) => entry);
    const inspected = await this.#inspected(
      header,
      entries.flatMap(({ event }) => laterTools(event)),
    );
    return this.clean({ ...inspected, entries, damage: damage?.message ?? null });
  }

  async #inspected(header: Header, laterHashes: readonly string[]): Promise<InspectedSession> {
    const { blobs } = this.#store;
    const [instructions, tools, ...laterTexts] = await Promise.all(
      [header.instructions, header.tools, ...laterHashes].map((sha256) => blobs.get(sha256)),
    );
    const known = laterHashes.flatMap((sha256, index) => {
      const text = laterTexts[index];
      return text === undefined ? [] : [[sha256, text] as const];
    });
    return {
      header,
      prompt:
        instructions === undefined || tools === undefined
          ? null
          : { instructions, tools, laterTools: Object.fromEntries(known) },
      version: this.#place.version,
      foreignMachine: header.machine !== agentMachine.fingerprint,
    };
  }

  #getPath(sessionId: string): string {
    return journalPath(this.#place.folder, sessionId);
  }

  /** The value with the secrets in it replaced. */
  clean<T>(value: T): T {
    return redactJson(this.#place.redactor, value);
  }
}

/** The tool declarations that the event puts in the place of earlier ones, as their sha256. */
const laterTools = (event: Event): readonly string[] =>
  event.type === 'SettingsChanged' && event.patch.tools !== undefined ? [event.patch.tools] : [];

/**
 * A JSON value with the secrets in its texts and keys replaced. Values of other types stay as they
 * are, so the result has the type of `value`.
 */
const redactJson = <T>(redactor: Pick<Redactor, 'isIdle' | 'clean'>, value: T): T =>
  // Safe: texts stay texts, and only names of fields with free names can hold a secret.
  redactor.isIdle ? value : (cleanValue(redactor, value) as T);

/** The same, for a value of any type. */
export const cleanValue = (redactor: Pick<Redactor, 'clean'>, value: unknown): unknown => {
  if (typeof value === 'string') return redactor.clean(value);
  if (Array.isArray(value)) return value.map((one) => cleanValue(redactor, one));
  if (typeof value !== 'object' || value === null) return value;
  const fields = new Map<string, unknown>();
  for (const [key, one] of Object.entries(value)) {
    let name = redactor.clean(key);
    while (fields.has(name)) name += "'"; // two keys with the same secret stay two
    fields.set(name, cleanValue(redactor, one));
  }
  return Object.fromEntries(fields);
};
