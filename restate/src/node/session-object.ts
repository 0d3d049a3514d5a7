import * as restate from '@restatedev/restate-sdk';
import type { Entry, Header, Input, Posted } from 'pawl/engine';
import { attempt, attemptNow, checkInput, forkHeader } from 'pawl/engine';
import type { AppliedEvent } from '../session/apply-events.js';
import { json } from '../session/json.js';
import {
  type Arrival,
  type BegunSession,
  type Bound,
  type EntriesPage,
  HEAD,
  HEADER,
  type Head,
  type StoredSession,
  type StoredTitle,
  TITLE,
} from '../session/session-records.js';
import { NewerMachineError, refuseNewer } from '../session/session-states.js';
import { type ArrivalParts, arrive } from './apply-arrival.js';
import { stoppedBy } from './closing.js';
import { type PageOrder, pageOf } from './entries-object.js';
import { indexOf } from './index-object.js';
import { RETRYING } from './retrying.js';
import { startHooks, withdrawWork } from './start-work.js';

/**
 * A session on the engine: one virtual object. Each call applies the events that arrive together and starts what follows.
 *
 * 1. A call is quick: it never waits for a model or a tool, so the next event, an interrupt for example, is next.
 * 2. What this call asks of the engine follows only from its parameters, from what the engine keeps and from recorded
 *    results: a call that is repeated on another node asks for the same.
 * 3. Entries are durable before anybody sees them and before the work they start.
 */

export type SessionObjectParts = ArrivalParts & {
  /** The price of the model, for SettingsChanged. Throws if there is no such model. */
  prices(sessionId: string, modelId: string): Promise<Header['prices']>;
};

export type CreateOrder = BegunSession & {
  readonly node: string;
  /** What a fork has from its parent. */
  readonly title: StoredTitle | null;
};
export type ForkOrder = { readonly newSessionId: string; readonly seq: number; readonly at: number };
export type MoveOrder = { readonly node: string; readonly at: number };
export type InputOrder = {
  readonly inputs: readonly Input[];
  readonly at: number;
  /** Version of the machine of whoever sends them; absent: 1. */
  readonly machineVersion?: number;
};

type Context = restate.ObjectContext;
type SharedContext = restate.ObjectSharedContext;

const refuse = (status: number, message: string): never => {
  throw new restate.TerminalError(message, { errorCode: status });
};

const headOf = async (ctx: SharedContext): Promise<Head> =>
  (await ctx.get<Head>(HEAD)) ?? refuse(404, `there is no session ${ctx.key}`);

/** The session's own entries from `from` on, as many as fit into one page. Those of a chunk may come a moment later. */
const entriesPage = async (ctx: SharedContext, { from }: { readonly from: number }): Promise<EntriesPage> => {
  const { seq, over, tail } = await headOf(ctx);
  const first = tail[0]?.seq ?? seq + 1;
  if (from >= first) return { entries: tail.filter((entry) => entry.seq >= from), seq, over };
  const entries = await ctx.genericCall<PageOrder, readonly Entry[]>(pageOf(ctx.key, from));
  const next = (entries.at(-1)?.seq ?? from - 1) + 1;
  return { entries: next === first ? [...entries, ...tail] : entries, seq, over };
};

const create = async (ctx: Context, { header, bound, node, title }: CreateOrder): Promise<void> => {
  if ((await ctx.get<Header>(HEADER)) !== null) refuse(409, `session ${ctx.key} exists already`);
  const { parent, createdAt } = header;
  ctx.set(HEADER, header);
  const head: Head = {
    seq: parent?.seq ?? 0,
    lastAt: createdAt,
    tail: [],
    node,
    kept: null,
    over: false,
    isFork: parent !== null,
    titled: title !== null,
    ...(bound === undefined ? {} : { bound }),
  };
  ctx.set(HEAD, head);
  if (title !== null) ctx.set(TITLE, title);
  if (parent === null) startHooks(ctx, head, { moment: 'session-start', source: 'startup' });
  await ctx.genericCall<unknown, unknown>(indexOf(header, head, title));
};

const fork = async (ctx: Context, { newSessionId, seq, at }: ForkOrder): Promise<string> => {
  const head = await headOf(ctx);
  const header = await ctx.get<Header>(HEADER);
  if (header === null || !Number.isInteger(seq) || seq < 0 || seq > head.seq)
    return refuse(400, `session ${ctx.key} has the entries 1 to ${head.seq}, so it has no entry ${seq}`);
  const known = await ctx.get<StoredTitle>(TITLE);
  const title = known !== null && known.seq <= seq ? known : null;
  await ctx.genericCall<CreateOrder, unknown>({
    service: 'Session',
    method: 'create',
    key: newSessionId,
    inputSerde: json(),
    outputSerde: json(),
    parameter: {
      header: forkHeader(header, seq, newSessionId, at),
      node: head.node,
      title,
      ...(head.bound === undefined ? {} : { bound: head.bound }),
    },
  });
  return newSessionId;
};

/** The old node may be gone, so nothing is asked of it: what ran there counts as unknown, and it runs no hooks of the end. */
const move = async (ctx: Context, parts: SessionObjectParts, { node, at }: MoveOrder): Promise<void> => {
  const { bound, ...head } = await headOf(ctx);
  await withdrawWork(ctx);
  const closed = head.over
    ? head
    : (await arrive(ctx, parts, head, { posted: [{ type: 'ShutdownRequested' }], at })).head;
  ctx.set(HEAD, { ...closed, node, ending: false, ...(bound === undefined ? {} : { bound }) });
};

type CheckedInput = { readonly input: Input } | { readonly refused: string };

const checked = (given: Input): CheckedInput => {
  const result = attemptNow(() => checkInput(given));
  return result.kind === 'done' ? { input: result.value } : { refused: result.fault.message };
};

type FoundPrices = { readonly prices: Header['prices'] } | { readonly refused: string };

/** Whether it must be applied by itself: its completion depends on the inputs before it, or the session ends with it. */
const isAlone = (one: CheckedInput): boolean =>
  'refused' in one ||
  one.input.type === 'ShutdownRequested' ||
  (one.input.type === 'SettingsChanged' && one.input.patch.model !== undefined);

/** Prices belong to the settings, and what became of running calls to the end of a session. */
const complete = async (
  ctx: Context,
  parts: SessionObjectParts,
  head: Head,
  input: Input,
): Promise<CheckedInput> => {
  if (input.type === 'ShutdownRequested') {
    const { state } = await parts.states.exact(ctx.key, head.seq, head.tail);
    const outcomes = await stoppedBy(ctx, head, state);
    return { input: outcomes.length === 0 ? input : { ...input, outcomes } };
  }
  if (input.type !== 'SettingsChanged' || input.patch.model === undefined) return { input };
  const { model } = input.patch;
  const found = await ctx.run('prices', async (): Promise<FoundPrices> => {
    const asked = await attempt(() => parts.prices(ctx.key, model));
    return asked.kind === 'done' ? { prices: asked.value } : { refused: asked.fault.message };
  });
  return 'refused' in found ? found : { input: { ...input, prices: found.prices } };
};

/** Inputs that came together are applied together where they can be. After the end of the session they have no result. */
const input = async (ctx: Context, parts: SessionObjectParts, { inputs, at }: InputOrder) => {
  let head = await headOf(ctx);
  if (head.over) return refuse(409, `session ${ctx.key} is closed: open it first`);
  const results: AppliedEvent[] = [];
  let posted: readonly Posted[] = [];
  const apply = async (): Promise<void> => {
    if (posted.length === 0) return;
    const arrived = await arrive(ctx, parts, head, { posted, at });
    head = arrived.head;
    posted = [];
    results.push(...arrived.results);
  };
  for (const one of inputs.map(checked)) {
    if (isAlone(one)) await apply();
    const whole = 'refused' in one ? one : await complete(ctx, parts, head, one.input);
    if ('refused' in whole) results.push(whole);
    else posted = [...posted, whole.input];
    if (isAlone(one)) await apply();
    if (head.over) return results;
  }
  await apply();
  return results;
};

/** Who sends an input is told that this node is too old. What work reports waits for a node that is not. */
const telling = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NewerMachineError) return refuse(409, error.message);
    throw error;
  }
};

const event = async (
  ctx: Context,
  parts: SessionObjectParts,
  arrival: Arrival,
): Promise<readonly AppliedEvent[]> => {
  refuseNewer(ctx.key, arrival.machineVersion ?? 1);
  const head = await headOf(ctx);
  if (!head.over) return (await arrive(ctx, parts, head, arrival)).results;
  // While a session ends, its hooks are the only ones that are still heard.
  const posted = head.ending === true ? arrival.posted.filter(({ type }) => type === 'UserHooksRan') : [];
  if (posted.length === 0) return [];
  return (await arrive(ctx, parts, head, { posted, at: arrival.at }, 'end')).results;
};

/** The hooks about the end of the session have ended. It may have been opened again meanwhile. */
const ended = async (ctx: Context, parts: SessionObjectParts, arrival: Arrival): Promise<void> => {
  await event(ctx, parts, arrival);
  const head = await headOf(ctx);
  if (head.over) ctx.set(HEAD, { ...head, ending: false });
};

/** Names and options of the engine: docs/many-machines.md says why each is as it is. */
export const sessionObject = (parts: SessionObjectParts) =>
  restate.object({
    name: 'Session',
    options: {
      ...RETRYING,
      enableLazyState: false, // its values are few and small, and come with the call
      journalRetention: 0,
      inactivityTimeout: 600_000,
      abortTimeout: 600_000,
    },
    handlers: {
      create,
      fork,
      input: (ctx: Context, order: InputOrder) =>
        telling(async () => {
          refuseNewer(ctx.key, order.machineVersion ?? 1);
          return input(ctx, parts, order);
        }),
      event: (ctx: Context, arrival: Arrival) => event(ctx, parts, arrival),
      ended: (ctx: Context, arrival: Arrival) => ended(ctx, parts, arrival),
      timer: async (ctx: Context, { timerId }: { readonly timerId: string }) => {
        const head = await headOf(ctx);
        const at = await ctx.date.now();
        if (!head.over) await arrive(ctx, parts, head, { posted: [{ type: 'TimerFired', timerId }], at });
      },
      open: async (ctx: Context, { at }: { readonly at: number }) => {
        const head = await headOf(ctx);
        if (head.over || head.isFork) await telling(() => arrive(ctx, parts, head, { posted: [], at }));
      },
      /** The session has hooks or servers since it was created. */
      bind: async (ctx: Context, bound: Bound) => {
        ctx.set(HEAD, { ...(await headOf(ctx)), bound });
      },
      move: (ctx: Context, order: MoveOrder) => telling(() => move(ctx, parts, order)),
      session: restate.handlers.object.shared(async (ctx: SharedContext): Promise<StoredSession> => {
        const { seq, over, node, ending = false } = await headOf(ctx);
        const header = await ctx.get<Header>(HEADER);
        if (header === null) return refuse(404, `there is no session ${ctx.key}`);
        return { header, seq, over, node, ending };
      }),
      entries: restate.handlers.object.shared(entriesPage),
    },
  });
