import * as restate from '@restatedev/restate-sdk';
import { type Entry, type Header, type SessionInfo, summarise, titleFrom } from 'pawl/engine';
import { json } from '../session/json.js';
import type { Head, StoredTitle } from '../session/session-records.js';
import { shardOf } from '../session/shards.js';
import { RETRYING } from './retrying.js';

/** The list of sessions, in shards, so that no one object is told of every change. */

export const titleIn = (entries: readonly Entry[]): StoredTitle | null => {
  for (const { seq, event } of entries)
    if (event.type === 'UserInput') return { seq, title: titleFrom(event.text) };
  return null;
};

/** The call that tells the list of a session. The first title stays. */
export const indexOf = (header: Header, head: Head, title: StoredTitle | null) => ({
  service: 'SessionIndex',
  method: 'put',
  key: shardOf(header.sessionId),
  inputSerde: json(),
  outputSerde: json(),
  parameter: summarise(header.sessionId, header, title?.title ?? '', head.lastAt),
});

const put = async (ctx: restate.ObjectContext, info: SessionInfo): Promise<void> => {
  const known = await ctx.get<SessionInfo>(info.sessionId);
  const title = known === null || known.title === '' ? info.title : known.title;
  ctx.set(info.sessionId, { ...info, title });
};

const list = async (ctx: restate.ObjectSharedContext): Promise<readonly SessionInfo[]> => {
  const infos: SessionInfo[] = [];
  for (const name of await ctx.stateKeys()) {
    const info = await ctx.get<SessionInfo>(name);
    if (info !== null) infos.push(info);
  }
  return infos;
};

export const indexObject = restate.object({
  name: 'SessionIndex',
  options: { ...RETRYING, journalRetention: 0 },
  handlers: {
    put: restate.handlers.object.exclusive({ enableLazyState: true }, put),
    // The whole shard comes with the call: one answer instead of one for each session.
    list: restate.handlers.object.shared({ enableLazyState: false }, list),
  },
});
