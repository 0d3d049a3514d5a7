import * as restate from '@restatedev/restate-sdk';
import type { Entry } from 'pawl/engine';
import { json } from '../session/json.js';
import { chunkName, firstOf } from '../session/session-records.js';
import { RETRYING } from './retrying.js';

/**
 * The older entries of a session, in chunks. They have an object of their own because the engine sends all values of an
 * object with each call of it: a session with a long history would become slow.
 */

const SERVICE = 'SessionEntries';

export type PageOrder = { readonly from: number };

const PAGE_BYTES_MAX = 4_000_000;

/** The call that keeps a chunk. Nobody waits for it: until it is kept, a reader sees the end of the journal later. */
export const chunkOf = (sessionId: string, chunk: readonly Entry[]) => ({
  service: SERVICE,
  method: 'keep',
  key: sessionId,
  inputSerde: json<readonly Entry[]>(),
  parameter: chunk,
});

export const pageOf = (sessionId: string, from: number) => ({
  service: SERVICE,
  method: 'page',
  key: sessionId,
  inputSerde: json<PageOrder>(),
  outputSerde: json<readonly Entry[]>(),
  parameter: { from },
});

const keep = async (ctx: restate.ObjectContext, chunk: readonly Entry[]): Promise<void> => {
  const [first] = chunk;
  if (first !== undefined) ctx.set(chunkName(first.seq), chunk);
};

/** The entries from `from` on, without a gap, as many as fit into one page. */
const page = async (ctx: restate.ObjectSharedContext, { from }: PageOrder): Promise<readonly Entry[]> => {
  const names = [...(await ctx.stateKeys())].sort();
  const begin = Math.max(
    0,
    names.findLastIndex((name) => firstOf(name) <= from),
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

export const entriesObject = restate.object({
  name: SERVICE,
  options: { ...RETRYING, enableLazyState: true, journalRetention: 0 },
  handlers: { keep, page: restate.handlers.object.shared(page) },
});
