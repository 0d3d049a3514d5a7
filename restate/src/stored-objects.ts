/**
 * The other objects of the engine: older entries, the list of sessions, and what nodes keep with
 * sessions.
 */

import * as restate from '@restatedev/restate-sdk';
import {
  type DayCharge,
  type DayCharged,
  type Entry,
  type Header,
  type SessionInfo,
  spendAfter,
  summarise,
  titleFrom,
} from 'pawl/engine';
import {
  chunkName,
  chunkStart,
  findShard,
  type Head,
  jsonCall,
  type StoredTitle,
} from './session-records.js';

const SERVICE = 'SessionEntries';

type PageRequest = { readonly from: number };

const PAGE_BYTES_MAX = 4_000_000;

/**
 * The call that stores a chunk. Nobody waits for it: until then a reader sees the end of the
 * journal later.
 */
export const chunkCall = (sessionId: string, chunk: readonly Entry[]) =>
  jsonCall(SERVICE, 'keep', chunk, sessionId);

export const pageCall = (sessionId: string, from: number) =>
  jsonCall<readonly Entry[]>(SERVICE, 'page', { from } satisfies PageRequest, sessionId);

const keep = async (ctx: restate.ObjectContext, chunk: readonly Entry[]): Promise<void> => {
  const [first] = chunk;
  if (first !== undefined) ctx.set(chunkName(first.seq), chunk);
};

/** The entries from `from` on, without a gap, as many as fit into one page. */
const page = async (
  ctx: restate.ObjectSharedContext,
  { from }: PageRequest,
): Promise<readonly Entry[]> => {
  const names = [...(await ctx.stateKeys())].sort();
  const begin = Math.max(
    0,
    names.findLastIndex((name) => chunkStart(name) <= from),
  );
  const entries: Entry[] = [];
  let bytes = 0;
  for (const name of names.slice(begin)) {
    const chunk = (await ctx.get<readonly Entry[]>(name)) ?? [];
    entries.push(...chunk.filter((entry) => entry.seq >= from));
    bytes += JSON.stringify(chunk).length;
    if (bytes > PAGE_BYTES_MAX) break;
  }
  const gap = entries.findIndex((entry, index) => entry.seq !== from + index);
  return gap === -1 ? entries : entries.slice(0, gap);
};

/**
 * A node may be gone for long, and what it owes waits for it: the engine never gives up, and asks
 * often.
 */
export const RETRYING = {
  retryPolicy: {
    initialInterval: 50,
    exponentiationFactor: 2,
    maxInterval: 2_000,
    maxAttempts: 1_000_000_000,
  },
} as const;

/**
 * The older entries of a session, in chunks. They have an object of their own because the engine
 * sends all values of an object with each call of it: a session with a long history would become
 * slow.
 */
export const entriesObject = restate.object({
  name: SERVICE,
  options: { ...RETRYING, enableLazyState: true, journalRetention: 0 },
  handlers: { keep, page: restate.handlers.object.shared(page) },
});

export const titleIn = (entries: readonly Entry[]): StoredTitle | null => {
  for (const { seq, event } of entries)
    if (event.type === 'UserInput') return { seq, title: titleFrom(event.text) };
  return null;
};

/** The call that tells the list of a session. The first title stays. */
export const indexCall = (header: Header, head: Head, title: StoredTitle | null) => {
  const info = summarise(header.sessionId, header, title?.title ?? '', head.lastAt);
  return jsonCall('SessionIndex', 'put', info, findShard(header.sessionId));
};

const putInfo = async (ctx: restate.ObjectContext, info: SessionInfo): Promise<void> => {
  const known = await ctx.get<SessionInfo>(info.sessionId);
  const title = known === null || known.title === '' ? info.title : known.title;
  ctx.set(info.sessionId, { ...info, title });
};

const listInfos = async (ctx: restate.ObjectSharedContext): Promise<readonly SessionInfo[]> => {
  const infos: SessionInfo[] = [];
  for (const name of await ctx.stateKeys()) {
    const info = await ctx.get<SessionInfo>(name);
    if (info !== null) infos.push(info);
  }
  return infos;
};

/** The list of sessions, in shards, so that no single object gets every change. */
export const indexObject = restate.object({
  name: 'SessionIndex',
  options: { ...RETRYING, journalRetention: 0 },
  handlers: {
    put: restate.handlers.object.exclusive({ enableLazyState: true }, putInfo),
    // The whole shard comes with the call: one answer instead of one for each session.
    list: restate.handlers.object.shared({ enableLazyState: false }, listInfos),
  },
});

type MetadataRequest = { readonly sessionId: string; readonly value: unknown };

const putValue = async (
  ctx: restate.ObjectContext,
  { sessionId, value }: MetadataRequest,
): Promise<void> => ctx.set(sessionId, value);

const getValue = async (
  ctx: restate.ObjectSharedContext,
  { sessionId }: { readonly sessionId: string },
): Promise<unknown> => ctx.get<unknown>(sessionId);

const allValues = async (ctx: restate.ObjectSharedContext): Promise<readonly unknown[]> => {
  const values: unknown[] = [];
  for (const name of await ctx.stateKeys()) values.push(await ctx.get<unknown>(name));
  return values;
};

/**
 * Data of nodes about sessions, such as whose they are: plain JSON by session, in the shards of the
 * list.
 */
export const metadataObject = restate.object({
  name: 'SessionMetadata',
  options: { ...RETRYING, journalRetention: 0 },
  handlers: {
    put: restate.handlers.object.exclusive({ enableLazyState: true }, putValue),
    get: restate.handlers.object.shared({ enableLazyState: true }, getValue),
    all: restate.handlers.object.shared({ enableLazyState: false }, allValues),
  },
});

const SPENT = 'day';

const chargeKey = async (ctx: restate.ObjectContext, asked: DayCharge): Promise<DayCharged> => {
  const charged = spendAfter(await ctx.get<unknown>(SPENT), asked);
  ctx.set(SPENT, charged.spending);
  return charged;
};

/** What each key of the nodes has spent today: one call at a time a key, from all nodes. */
export const spendingObject = restate.object({
  name: 'KeySpending',
  options: { ...RETRYING, journalRetention: 0 },
  handlers: { charge: chargeKey },
});
