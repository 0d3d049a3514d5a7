import * as restate from '@restatedev/restate-sdk';
import type { Event, Header, Input, Posted, State } from 'pawl/engine';
import { attempt, attemptNow, checkInput, forkHeader, turnRuns } from 'pawl/engine';
import type { LiveChannel } from '../live/live-channel.js';
import { type AppliedEvent, type AppliedEvents, applyEvents, stampTimes } from '../session/apply-events.js';
import { json } from '../session/json.js';
import {
  type Arrival,
  CHUNK,
  chunkName,
  type EntriesPage,
  firstOf,
  HEAD,
  HEADER,
  type Head,
  LIVE,
  type ShownText,
  type StoredSession,
  type StoredTitle,
  TITLE,
  withEntries,
} from '../session/session-records.js';
import type { SessionStates } from '../session/session-states.js';
import { endedWork } from '../session/work-of-action.js';
import { runningCallsOf, stoppedBy } from './closing.js';
import { indexOf, titleIn } from './index-object.js';
import { RETRYING } from './retrying.js';
import { startWork, stopAllWork } from './start-work.js';

/**
 * A session on the engine: one virtual object. Each call applies the events that arrive together and starts what follows.
 *
 * 1. A call is quick: it never waits for a model or a tool, so the next event, an interrupt for example, is next.
 * 2. What this call asks of the engine follows only from its parameters, from what the engine keeps and from recorded
 *    results: a call that is repeated on another node asks for the same.
 * 3. Entries are durable before anybody sees them and before the work they start.
 */

export type SessionObjectParts = {
  readonly states: SessionStates;
  readonly live: LiveChannel;
  /** The price of the model, for SettingsChanged. Throws if there is no such model. */
  prices(sessionId: string, modelId: string): Promise<Header['prices']>;
};

export type CreateOrder = {
  readonly header: Header;
  readonly node: string;
  /** What a fork has from its parent. */
  readonly title: StoredTitle | null;
};
export type ForkOrder = { readonly newSessionId: string; readonly seq: number; readonly at: number };
export type InputOrder = { readonly inputs: readonly Input[]; readonly at: number };

type Context = restate.ObjectContext;
type SharedContext = restate.ObjectSharedContext;

const refuse = (status: number, message: string): never => {
  throw new restate.TerminalError(message, { errorCode: status });
};

const headOf = async (ctx: SharedContext): Promise<Head> =>
  (await ctx.get<Head>(HEAD)) ?? refuse(404, `there is no session ${ctx.key}`);

const PAGE_BYTES_MAX = 4_000_000;

/** The session's own entries from `from` on, as many as fit into one page. */
const entriesPage = async (ctx: SharedContext, { from }: { readonly from: number }): Promise<EntriesPage> => {
  const { seq, over, tail } = await headOf(ctx);
  const first = tail[0]?.seq ?? seq + 1;
  if (from >= first) return { entries: tail.filter((entry) => entry.seq >= from), seq, over };
  const names = (await ctx.stateKeys()).filter((name) => name.startsWith(CHUNK)).sort();
  const begin = Math.max(
    0,
    names.findLastIndex((name) => firstOf(name) <= from),
  );
  const entries: EntriesPage['entries'][number][] = [];
  let bytes = 0;
  for (const name of names.slice(begin)) {
    const chunk = (await ctx.get<EntriesPage['entries']>(name)) ?? [];
    entries.push(...chunk.filter((entry) => entry.seq >= from));
    bytes += JSON.stringify(chunk).length;
    if (bytes > PAGE_BYTES_MAX) return { entries, seq, over };
  }
  return { entries: [...entries, ...tail], seq, over };
};

/** Whether a reply may have shown text that the journal lacks. */
const repliesWith = (state: State): string | null =>
  state.name === 'CallingLlm' && state.call.mode === 'open' ? state.requestId : null;

const isAboutReply = (posted: readonly Posted[], requestId: string): boolean =>
  posted.some((event) => endedWork(event) === requestId);

const lackingText = (shown: ShownText | null, kept: Head['kept']): Posted | null => {
  if (shown === null) return null;
  const known = kept?.requestId === shown.requestId ? kept.length : 0;
  if (shown.text.length <= known) return null;
  return { type: 'TextDelta', requestId: shown.requestId, text: shown.text.slice(known) };
};

/** The text that was shown of the running reply, so that the journal has it before any other event. */
const shownBefore = async (
  ctx: Context,
  { posted, shown }: Arrival,
  state: State,
  live: LiveChannel,
): Promise<ShownText | null> => {
  if (shown !== undefined) return shown;
  const requestId = repliesWith(state);
  if (requestId === null || isAboutReply(posted, requestId)) return null;
  return ctx.run('shown text', () => live.shownText(ctx.key, requestId));
};

/** A fork was cut off somewhere, and a closed session has ended: both go on as after an interruption. */
const resumption = (head: Head, state: State): Posted => ({
  type: 'Resumed',
  epoch: state.session.epoch + 1,
  ...(turnRuns(state) ? { stoppedAt: head.lastAt } : {}),
});

type Step = AppliedEvents & { readonly head: Head; readonly resumed: Event | null };

const nextHead = (head: Head, { entries, state }: AppliedEvents, shown: ShownText | null): Head => {
  const kept = shown === null ? head.kept : { requestId: shown.requestId, length: shown.text.length };
  const still = state.name === 'CallingLlm' && kept?.requestId === state.requestId;
  const hasInput = entries.some(({ event }) => event.type === 'UserInput');
  return {
    ...head,
    seq: head.seq + entries.length,
    lastAt: entries.at(-1)?.event.at ?? head.lastAt,
    kept: still ? kept : null,
    over: state.name === 'ShuttingDown',
    isFork: false,
    titled: head.titled || hasInput,
  };
};

const keepEntries = (ctx: Context, head: Head, entries: Step['entries']): Head => {
  if (entries.length === 0) return head;
  const { tail, chunk } = withEntries(head.tail, entries);
  const [first] = chunk ?? [];
  if (chunk !== null && first !== undefined) ctx.set(chunkName(first.seq), chunk);
  const kept = { ...head, tail };
  ctx.set(HEAD, kept);
  return kept;
};

/** Whether the list of sessions shows something else now. */
const isListed = (head: Head, entries: Step['entries'], state: State): boolean =>
  !head.titled || entries.some(({ event }) => event.type === 'UserInput') || state.name === 'ShuttingDown';

const arrive = async (
  ctx: Context,
  parts: SessionObjectParts,
  arrival: Arrival,
  wake: 'wake' | 'as it is' = 'as it is',
): Promise<readonly AppliedEvent[]> => {
  const { states, live } = parts;
  const head = await headOf(ctx);
  if (head.over && wake === 'as it is') return [];
  const { header, state: before } = await states.exact(ctx.key, head.seq, head.tail);
  const shown = await shownBefore(ctx, arrival, before, live);
  const text = lackingText(shown, head.kept);
  const first = [
    ...(head.isFork || head.over ? [resumption(head, before)] : []),
    ...(text === null ? [] : [text]),
  ];
  const events = stampTimes([...first, ...arrival.posted], arrival.at, head.lastAt);
  const applied = applyEvents(head.seq, before, events);
  const { entries, state, actions, results } = applied;
  const next = keepEntries(ctx, nextHead(head, applied, text === null ? null : shown), entries);
  const title = titleIn(entries);
  if (title !== null && !head.titled) ctx.set(TITLE, title);
  if (isListed(head, entries, state)) await ctx.genericCall<unknown, unknown>(indexOf(header, next, title));
  for (const { event } of entries) {
    const ended = endedWork(event);
    if (ended !== null) ctx.clear(LIVE + ended);
  }
  const recovered = head.isFork || head.over ? runningCallsOf(before, state) : [];
  const isStored = await startWork(ctx, next, [...recovered, ...actions], recovered.length);
  if (entries.length > 0 && !isStored) await ctx.run('stored', () => null); // rule 3: the answer proves it
  if (state.name === 'ShuttingDown') await stopAllWork(ctx, next);
  states.advance(ctx.key, entries, state);
  live.publish(ctx.key, { kind: 'entries', entries });
  return results.slice(first.length);
};

const create = async (ctx: Context, { header, node, title }: CreateOrder): Promise<void> => {
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
  };
  ctx.set(HEAD, head);
  if (title !== null) ctx.set(TITLE, title);
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
    parameter: { header: forkHeader(header, seq, newSessionId, at), node: head.node, title },
  });
  return newSessionId;
};

type CheckedInput = { readonly input: Input } | { readonly refused: string };

const checked = (given: Input): CheckedInput => {
  const result = attemptNow(() => checkInput(given));
  return result.kind === 'done' ? { input: result.value } : { refused: result.fault.message };
};

type FoundPrices = { readonly prices: Header['prices'] } | { readonly refused: string };

/** Prices belong to the settings, and what became of running calls to the end of a session. */
const complete = async (ctx: Context, parts: SessionObjectParts, input: Input): Promise<CheckedInput> => {
  if (input.type === 'ShutdownRequested') {
    const head = await headOf(ctx);
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

const input = async (ctx: Context, parts: SessionObjectParts, { inputs, at }: InputOrder) => {
  const { over } = await headOf(ctx);
  if (over) return refuse(409, `session ${ctx.key} is closed: open it first`);
  const results: AppliedEvent[] = [];
  for (const given of inputs) {
    const one = checked(given);
    const whole = 'refused' in one ? one : await complete(ctx, parts, one.input);
    if ('refused' in whole) results.push(whole);
    else results.push(...(await arrive(ctx, parts, { posted: [whole.input], at })));
  }
  return results;
};

/** Names and options of the engine: docs/many-machines.md says why each is as it is. */
export const sessionObject = (parts: SessionObjectParts) =>
  restate.object({
    name: 'Session',
    options: {
      ...RETRYING,
      enableLazyState: true,
      journalRetention: 0,
      inactivityTimeout: 600_000,
      abortTimeout: 600_000,
    },
    handlers: {
      create,
      fork,
      input: (ctx: Context, order: InputOrder) => input(ctx, parts, order),
      event: (ctx: Context, arrival: Arrival) => arrive(ctx, parts, arrival),
      timer: async (ctx: Context, { timerId }: { readonly timerId: string }) => {
        const at = await ctx.date.now();
        await arrive(ctx, parts, { posted: [{ type: 'TimerFired', timerId }], at });
      },
      open: async (ctx: Context, { at }: { readonly at: number }) => {
        const { over, isFork } = await headOf(ctx);
        if (over || isFork) await arrive(ctx, parts, { posted: [], at }, 'wake');
      },
      move: async (ctx: Context, { node }: { readonly node: string }) => {
        ctx.set(HEAD, { ...(await headOf(ctx)), node });
      },
      session: restate.handlers.object.shared(async (ctx: SharedContext): Promise<StoredSession> => {
        const { seq, over, node } = await headOf(ctx);
        const header = await ctx.get<Header>(HEADER);
        return header === null ? refuse(404, `there is no session ${ctx.key}`) : { header, seq, over, node };
      }),
      entries: restate.handlers.object.shared(entriesPage),
    },
  });
