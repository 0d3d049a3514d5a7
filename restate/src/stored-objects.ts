/**
 * The other objects of the engine: older entries, the list of sessions, and the nodes' records of
 * sessions, by session and by key. Only `SessionIndex/list` and `SessionMetadata/all` read a whole
 * shard; no request of a node asks for them.
 */

import * as restate from '@restatedev/restate-sdk';
import {
  type DayCharge,
  type DayCharged,
  type Entry,
  type Header,
  isRecord,
  type NodeSessionRecord,
  type SessionInfo,
  spendAfter,
  summarise,
  titleFrom,
} from 'pawl/engine';
import {
  allShards,
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

const findInfos = async (
  ctx: restate.ObjectSharedContext,
  { ids }: { readonly ids: readonly string[] },
): Promise<readonly SessionInfo[]> => {
  const infos: SessionInfo[] = [];
  for (const id of ids) {
    const info = await ctx.get<SessionInfo>(id);
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
    find: restate.handlers.object.shared({ enableLazyState: true }, findInfos),
  },
});

export const RECORDS = 'SessionMetadata';
const KEYS = 'SessionsByKey';

/** `value` absent: the stored one is put again. */
type RecordRequest = { readonly sessionId: string; readonly value?: unknown };
type Added = { readonly records: readonly NodeSessionRecord[]; readonly onlyNew: boolean };

const addCall = (key: string, added: Added) => jsonCall<readonly string[]>(KEYS, 'add', added, key);

/** Durable in both objects when it resolves. */
const putRecord = async (
  ctx: restate.ObjectContext,
  { sessionId, value: put }: RecordRequest,
): Promise<void> => {
  const value = put ?? (await ctx.get<unknown>(sessionId));
  ctx.set(sessionId, value);
  if (isRecord(value))
    await ctx.genericCall(addCall(value.key, { records: [value], onlyNew: false }));
};

const getRecord = async (
  ctx: restate.ObjectSharedContext,
  { sessionId }: { readonly sessionId: string },
): Promise<unknown> => ctx.get<unknown>(sessionId);

const allRecords = async (ctx: restate.ObjectSharedContext): Promise<readonly unknown[]> => {
  const values: unknown[] = [];
  for (const name of await ctx.stateKeys()) values.push(await ctx.get<unknown>(name));
  return values;
};

const IS_SORTED = 'is-sorted';
/** So many records are one message. */
const TOGETHER_MAX = 500;

/**
 * Adds the records that a version put which sorted none by key, once after each such version
 * (`sortAgain`). What differs is put again by its shard, in order with what is put meanwhile.
 */
const sortOnce = async (ctx: restate.ObjectContext): Promise<void> => {
  if ((await ctx.get<boolean>(IS_SORTED)) === true) return;
  const byKey = new Map<string, NodeSessionRecord[]>();
  for (const shard of allShards)
    for (const value of await ctx.genericCall(
      jsonCall<readonly unknown[]>(RECORDS, 'all', null, shard),
    )) {
      if (!isRecord(value)) continue;
      const ofKey = byKey.get(value.key) ?? [];
      ofKey.push(value);
      byKey.set(value.key, ofKey);
    }
  for (const [key, all] of byKey) {
    const records = all.sort((left, right) => (left.sessionId < right.sessionId ? -1 : 1));
    for (let from = 0; from < records.length; from += TOGETHER_MAX) {
      const added = { records: records.slice(from, from + TOGETHER_MAX), onlyNew: true };
      for (const sessionId of await ctx.genericCall(addCall(key, added)))
        await ctx.genericCall(jsonCall(RECORDS, 'put', { sessionId }, findShard(sessionId)));
    }
  }
  ctx.set(IS_SORTED, true);
};

/** The nodes' records of sessions, such as whose they are, in the shards of the list. */
export const metadataObject = restate.object({
  name: RECORDS,
  options: { ...RETRYING, journalRetention: 0 },
  handlers: {
    put: restate.handlers.object.exclusive({ enableLazyState: true }, putRecord),
    get: restate.handlers.object.shared({ enableLazyState: true }, getRecord),
    all: restate.handlers.object.shared({ enableLazyState: false }, allRecords),
    sortOnce: restate.handlers.object.exclusive({ enableLazyState: true }, sortOnce),
  },
});

// The same records by the key that created the sessions, in pages of the order in which they came.

/** So many records are one value. */
const PAGE_RECORDS = 32;

type Page = readonly NodeSessionRecord[];

const NEWEST = 'newest';
const OPEN = 'open';
const pageName = (page: number): string => `page-${page}`;
const placeName = (sessionId: string): string => `place-${sessionId}`;
const requestName = (requestId: string): string => `request-${requestId}`;
const worktreeName = (path: string): string => `worktree-${path}`;

/** Returns those of which another record is there: with `onlyNew` it stays. */
const addRecords = async (
  ctx: restate.ObjectContext,
  { records, onlyNew }: Added,
): Promise<readonly string[]> => {
  const others: string[] = [];
  let newest = (await ctx.get<number>(NEWEST)) ?? 0;
  let open = (await ctx.get<number>(OPEN)) ?? 0;
  for (const record of records) {
    const place = await ctx.get<number>(placeName(record.sessionId));
    let page = (await ctx.get<Page>(pageName(place ?? newest))) ?? [];
    if (place === null && page.length === PAGE_RECORDS) [newest, page] = [newest + 1, []];
    const known = page.find(({ sessionId }) => sessionId === record.sessionId);
    if (known !== undefined && onlyNew) {
      if (JSON.stringify(known) !== JSON.stringify(record)) others.push(record.sessionId);
      continue;
    }
    open += Number(record.isOpen) - Number(known?.isOpen ?? false);
    ctx.set(
      pageName(place ?? newest),
      known === undefined ? [...page, record] : page.map((one) => (one === known ? record : one)),
    );
    if (known === undefined) await addNames(ctx, record, newest);
    if (record.requestId !== undefined && record.requestId !== known?.requestId)
      ctx.set(requestName(record.requestId), record.sessionId);
  }
  ctx.set(NEWEST, newest);
  ctx.set(OPEN, open);
  return others;
};

const addNames = async (
  ctx: restate.ObjectContext,
  { sessionId, workspace }: NodeSessionRecord,
  page: number,
): Promise<void> => {
  ctx.set(placeName(sessionId), page);
  if (workspace.kind === 'folder') return;
  const name = worktreeName(workspace.path);
  ctx.set(name, [...((await ctx.get<readonly string[]>(name)) ?? []), sessionId]);
};

const findRecord = async (
  ctx: restate.ObjectSharedContext,
  sessionId: string,
): Promise<NodeSessionRecord | undefined> => {
  const place = await ctx.get<number>(placeName(sessionId));
  const page = place === null ? null : await ctx.get<Page>(pageName(place));
  return page?.find((record) => record.sessionId === sessionId);
};

/** At most `limit`, the newest first, older than the session `before`. */
const listRecords = async (
  ctx: restate.ObjectSharedContext,
  { before, limit }: { readonly before: string | null; readonly limit: number },
): Promise<Page> => {
  const begin = before === null ? null : await ctx.get<number>(placeName(before));
  // a session that the key does not have: those with a lower id
  const isOlder = ({ sessionId }: NodeSessionRecord): boolean =>
    before === null || begin !== null || sessionId < before;
  const records: NodeSessionRecord[] = [];
  let number = begin ?? (await ctx.get<number>(NEWEST)) ?? 0;
  for (; number >= 0 && records.length < limit; number--) {
    const page = (await ctx.get<Page>(pageName(number))) ?? [];
    const end = number === begin ? page.findIndex(({ sessionId }) => sessionId === before) : -1;
    const older = page.slice(0, end === -1 ? page.length : end).filter(isOlder);
    records.push(...older.reverse());
  }
  return records.slice(0, limit);
};

const countOpen = async (ctx: restate.ObjectSharedContext): Promise<number> =>
  (await ctx.get<number>(OPEN)) ?? 0;

const findInWorktree = async (
  ctx: restate.ObjectSharedContext,
  { path }: { readonly path: string },
): Promise<Page> => {
  const ids = (await ctx.get<readonly string[]>(worktreeName(path))) ?? [];
  const records: NodeSessionRecord[] = [];
  for (const id of ids) {
    const record = await findRecord(ctx, id);
    if (record !== undefined) records.push(record);
  }
  return records;
};

const findCreatedBy = async (
  ctx: restate.ObjectSharedContext,
  { requestId }: { readonly requestId: string },
): Promise<NodeSessionRecord | null> => {
  const sessionId = await ctx.get<string>(requestName(requestId));
  const record = sessionId === null ? undefined : await findRecord(ctx, sessionId);
  // one whose creation failed has lost the name
  return record?.requestId === requestId ? record : null;
};

/** The records of one key. No handler reads more of them than its answer has. */
export const keyObject = restate.object({
  name: KEYS,
  options: { ...RETRYING, journalRetention: 0, enableLazyState: true },
  handlers: {
    add: addRecords,
    list: restate.handlers.object.shared(listRecords),
    countOpen: restate.handlers.object.shared(countOpen),
    inWorktree: restate.handlers.object.shared(findInWorktree),
    createdBy: restate.handlers.object.shared(findCreatedBy),
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
