import * as restate from '@restatedev/restate-sdk';
import { RETRYING } from './retrying.js';

/** What nodes keep with sessions, such as whose they are: plain JSON by session, in the shards of the list. */

export type MetadataOrder = { readonly sessionId: string; readonly value: unknown };

const put = async (ctx: restate.ObjectContext, { sessionId, value }: MetadataOrder): Promise<void> =>
  ctx.set(sessionId, value);

const get = async (
  ctx: restate.ObjectSharedContext,
  { sessionId }: { readonly sessionId: string },
): Promise<unknown> => ctx.get<unknown>(sessionId);

const all = async (ctx: restate.ObjectSharedContext): Promise<readonly unknown[]> => {
  const values: unknown[] = [];
  for (const name of await ctx.stateKeys()) values.push(await ctx.get<unknown>(name));
  return values;
};

export const metadataObject = restate.object({
  name: 'SessionMetadata',
  options: { ...RETRYING, journalRetention: 0 },
  handlers: {
    put: restate.handlers.object.exclusive({ enableLazyState: true }, put),
    get: restate.handlers.object.shared({ enableLazyState: true }, get),
    all: restate.handlers.object.shared({ enableLazyState: false }, all),
  },
});
