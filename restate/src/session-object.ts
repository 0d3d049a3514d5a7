/**
 * A session on the engine: one virtual object. Each call applies the events that arrive together
 * and starts what follows.
 *
 * 1. A call is quick, so the next event, an interrupt for example, is next. It waits for no model
 *    and no tool, but at the end of a session some seconds for running calls to stop, and for the
 *    node of the session if that has to decide (`askNode`).
 * 2. The requests of this call to the engine follow only from its parameters, the stored values and
 *    recorded results: a call that is repeated on another node, also of another version, asks for
 *    the same.
 * 3. Entries are durable before anybody sees them and before the work they start.
 *
 * `Head` (session-records.ts) is all that is known of a session between two calls, `Decision`
 * (decide.ts) all that follows from events. A value `live-ID` names the call that does a piece of
 * work: it is set when the call is sent (`carryOut`), and cleared when an event ends the work
 * (`arrive`), when it has ended without one (`forgetEnded`), or with the session (`stopAllWork`).
 *
 * From top to bottom: the handlers; `sessionObject`; `arrive`, which applies events; the work of a
 * session.
 */

import * as restate from '@restatedev/restate-sdk';
import {
  attempt,
  type Entry,
  forkHeader,
  type Header,
  type Input,
  type StoppedCall,
  versionIn,
} from 'pawl/engine';
import type { AppliedEvent } from './apply-events.js';
import {
  type Decided,
  type DecideParts,
  type DecideRequest,
  type Decider,
  type Decision,
  decide,
  findDecider,
  type Order,
} from './decide.js';
import {
  type Arrival,
  type BegunSession,
  type Bound,
  type EntriesPage,
  HEAD,
  HEADER,
  type Head,
  type HooksRequest,
  jsonCall,
  LIVE,
  type StoredSession,
  type StoredTitle,
  TITLE,
  type Work,
  withEntries,
} from './session-records.js';
import { OtherMachineError } from './session-states.js';
import { CALL_WORK } from './started-work.js';
import { chunkCall, indexCall, pageCall, RETRYING, titleIn } from './stored-objects.js';

type CreateRequest = BegunSession & {
  readonly node: string;
  /** The parent's title, for a fork. */
  readonly title: StoredTitle | null;
};
type ForkRequest = { readonly newSessionId: string; readonly seq: number; readonly at: number };
type MoveRequest = { readonly node: string; readonly at: number };
type InputRequest = {
  readonly inputs: readonly Input[];
  readonly at: number;
};

type Context = restate.ObjectContext;
type SharedContext = restate.ObjectSharedContext;

const refuse = (status: number, message: string): never => {
  throw new restate.TerminalError(message, { errorCode: status });
};

const readHead = async (ctx: SharedContext): Promise<Head> =>
  (await ctx.get<Head>(HEAD)) ?? refuse(404, `there is no session ${ctx.key}`);

const readHeader = async (ctx: SharedContext): Promise<Header> =>
  (await ctx.get<Header>(HEADER)) ?? refuse(404, `there is no session ${ctx.key}`);

/**
 * The session's own entries from `from` on, as many as fit into one page. Those of a chunk may come
 * a moment later.
 */
const entriesPage = async (
  ctx: SharedContext,
  { from }: { readonly from: number },
): Promise<EntriesPage> => {
  const { seq, over, tail } = await readHead(ctx);
  const first = tail[0]?.seq ?? seq + 1;
  if (from >= first) return { entries: tail.filter((entry) => entry.seq >= from), seq, over };
  const entries = await ctx.genericCall<unknown, readonly Entry[]>(pageCall(ctx.key, from));
  const next = (entries.at(-1)?.seq ?? from - 1) + 1;
  return { entries: next === first ? [...entries, ...tail] : entries, seq, over };
};

const create = async (
  ctx: Context,
  { header, bound, node, title }: CreateRequest,
): Promise<void> => {
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
    decidedBy: versionIn(header),
    ...(bound === undefined ? {} : { bound }),
  };
  ctx.set(HEAD, head);
  if (title !== null) ctx.set(TITLE, title);
  if (parent === null) startHooks(ctx, head, { moment: 'session-start', source: 'startup' });
  await ctx.genericCall<unknown, unknown>(indexCall(header, head, title));
};

const fork = async (ctx: Context, { newSessionId, seq, at }: ForkRequest): Promise<string> => {
  const head = await readHead(ctx);
  const header = await readHeader(ctx);
  if (!Number.isInteger(seq) || seq < 0 || seq > head.seq)
    return refuse(
      400,
      `session ${ctx.key} has the entries 1 to ${head.seq}, so it has no entry ${seq}`,
    );
  const known = await ctx.get<StoredTitle>(TITLE);
  const title = known !== null && known.seq <= seq ? known : null;
  const request: CreateRequest = {
    header: forkHeader(header, seq, newSessionId, at),
    node: head.node,
    title,
    ...(head.bound === undefined ? {} : { bound: head.bound }),
  };
  await ctx.genericCall<unknown, unknown>(jsonCall('Session', 'create', request, newSessionId));
  return newSessionId;
};

/**
 * The old node may be gone, so the outcome of what ran there counts as unknown, and it runs no
 * hooks of the end: `isEnding` finds none without `bound`. Work that waits for it is cancelled, so
 * it is not done when the node comes back. If the node does not answer but has to decide, the call
 * is refused before anything has changed.
 */
const move = async (ctx: Context, parts: DecideParts, { node, at }: MoveRequest): Promise<void> => {
  const { bound, ...head } = await readHead(ctx);
  const work = await findWork(ctx);
  const closed = head.over
    ? head
    : (await arrive(ctx, parts, head, { posted: [{ type: 'ShutdownRequested' }], at }, 'input'))
        .head;
  for (const { id } of work) ctx.invocation(restate.InvocationIdParser.fromString(id)).cancel();
  ctx.set(HEAD, { ...closed, node, ending: false, ...(bound === undefined ? {} : { bound }) });
};

/**
 * Whether it must be applied by itself: the session ends with it, or the prices of its model are
 * looked up, for which the inputs before it must have been applied.
 */
const isAlone = (input: Input): boolean =>
  input.type === 'ShutdownRequested' ||
  (input.type === 'SettingsChanged' && input.patch?.model !== undefined);

const inputsTogether = (inputs: readonly Input[]): readonly (readonly Input[])[] => {
  const groups: Input[][] = [];
  for (const [index, input] of inputs.entries()) {
    const before = inputs[index - 1];
    const joins = before !== undefined && !isAlone(before) && !isAlone(input);
    if (joins) groups.at(-1)?.push(input);
    else groups.push([input]);
  }
  return groups;
};

/** The input. If it ends the session, running calls are stopped, and it gets their outcomes. */
const withOutcomes = async (ctx: Context, head: Head, input: Input): Promise<Input> => {
  if (input.type !== 'ShutdownRequested') return input;
  const outcomes = await stoppedBy(ctx, head);
  return outcomes.length === 0 ? input : { ...input, outcomes };
};

/**
 * Inputs that came together are applied together where they can be. After the end of the session
 * they have no result.
 */
const input = async (ctx: Context, parts: DecideParts, { inputs, at }: InputRequest) => {
  let head = await readHead(ctx);
  if (head.over) return refuse(409, `session ${ctx.key} is closed: open it first`);
  const results: AppliedEvent[] = [];
  for (const together of inputsTogether(inputs)) {
    const posted: Input[] = [];
    for (const one of together) posted.push(await withOutcomes(ctx, head, one));
    const arrived = await arrive(ctx, parts, head, { posted, at }, 'input');
    head = arrived.head;
    results.push(...arrived.results);
    if (head.over) return results;
  }
  return results;
};

/** Forgets work that ended without an event. The same work may have been started again since. */
const forgetEnded = async (ctx: Context, { ended }: Arrival): Promise<void> => {
  if (ended === undefined) return;
  const name = LIVE + ended.workId;
  if ((await ctx.get<string>(name)) === ended.invocationId) ctx.clear(name);
};

const event = async (
  ctx: Context,
  parts: DecideParts,
  arrival: Arrival,
): Promise<readonly AppliedEvent[]> => {
  const head = await readHead(ctx);
  if (!head.over) {
    await forgetEnded(ctx, arrival);
    return (await arrive(ctx, parts, head, arrival)).results;
  }
  // While a session ends, its hooks are the only ones that are still heard.
  const posted =
    head.ending === true ? arrival.posted.filter(({ type }) => type === 'UserHooksRan') : [];
  if (posted.length === 0) return [];
  return (await arrive(ctx, parts, head, { posted, at: arrival.at }, 'end')).results;
};

/** The hooks about the end of the session have ended. It may have been opened again meanwhile. */
const ended = async (ctx: Context, parts: DecideParts, arrival: Arrival): Promise<void> => {
  await event(ctx, parts, arrival);
  const head = await readHead(ctx);
  if (head.over) ctx.set(HEAD, { ...head, ending: false });
};

/** Names and options of the engine: docs/build/many-machines.md says why each is as it is. */
export const sessionObject = (parts: DecideParts) =>
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
      input: (ctx: Context, request: InputRequest) => input(ctx, parts, request),
      event: (ctx: Context, arrival: Arrival) => event(ctx, parts, arrival),
      ended: (ctx: Context, arrival: Arrival) => ended(ctx, parts, arrival),
      timer: async (ctx: Context, { timerId }: { readonly timerId: string }) => {
        const head = await readHead(ctx);
        const at = await ctx.date.now();
        if (!head.over)
          await arrive(ctx, parts, head, { posted: [{ type: 'TimerFired', timerId }], at });
      },
      open: async (ctx: Context, { at }: { readonly at: number }) => {
        const head = await readHead(ctx);
        if (head.over || head.isFork) await arrive(ctx, parts, head, { posted: [], at }, 'input');
      },
      /** The session got hooks or servers after it was created. */
      bind: async (ctx: Context, bound: Bound) => {
        ctx.set(HEAD, { ...(await readHead(ctx)), bound });
      },
      move: (ctx: Context, request: MoveRequest) => move(ctx, parts, request),
      session: restate.handlers.object.shared(
        async (ctx: SharedContext): Promise<StoredSession> => {
          const { seq, over, node, ending = false, inTurn = false } = await readHead(ctx);
          return { header: await readHeader(ctx), seq, over, node, ending, inTurn };
        },
      ),
      entries: restate.handlers.object.shared(entriesPage),
    },
  });

// Applies the events that arrive at a session together. Each answer of the engine that this waits
// for costs a millisecond or more, so it waits for as few as it can: for the head (its caller), for
// the decision to be recorded, and for the ids of work.

/** How long a node that is away is waited for: it may be replaced right now. */
const DECIDE_MS = 10_000;

/**
 * A sender of inputs gets the refusal of a node that is too old, and may send them to a newer one.
 * Reports of work wait for a newer node.
 */
export const deciding = async (parts: DecideParts, request: DecideRequest): Promise<Decided> => {
  const decided = await attempt(() => decide(parts, request));
  if (decided.kind === 'done') return decided.value;
  if (decided.fault instanceof OtherMachineError && request.kind === 'input')
    return refuse(503, decided.fault.message);
  throw decided.fault;
};

/** The decision of the session's node; null: it was away, and did not come back. */
const askNode = async (
  ctx: Context,
  request: DecideRequest,
  decider: Decider,
): Promise<Decision | null> => {
  const { kind, head } = request;
  const { node } = head;
  const asking = ctx.genericCall<unknown, Decision>(
    jsonCall(toolsService(node), 'decide', request),
  );
  try {
    const hasTimeLimit = decider === 'away' || kind === 'input';
    return await (hasTimeLimit ? asking.orTimeout(DECIDE_MS) : asking);
  } catch (error) {
    if (error instanceof restate.TimeoutError) {
      if (decider === 'away') return null;
      return refuse(503, `the node ${node}, which runs the turn, does not answer. Send it again`);
    }
    throw error;
  }
};

/** `head`: before the decision. Hooks of the end begin with it, and say when they have ended. */
const isEnding = ({ over, ending = false, bound }: Head): boolean =>
  over ? ending : bound !== undefined && bound.moments.length > 0;

const nextHead = (head: Head, decision: Decision): Head => {
  const { entries, kept, over, inTurn, goesOn, machineVersion } = decision;
  return {
    ...head,
    seq: head.seq + entries.length,
    lastAt: entries.at(-1)?.event.at ?? head.lastAt,
    kept,
    over,
    ending: over && isEnding(head),
    isFork: head.isFork && !goesOn,
    titled: head.titled || titleIn(entries) !== null,
    decidedBy: machineVersion,
    inTurn,
  };
};

const keepEntries = (ctx: Context, head: Head, entries: Decision['entries']): Head => {
  if (entries.length === 0) return head;
  const { tail, chunk } = withEntries(head.tail, entries);
  if (chunk !== null) ctx.genericSend(chunkCall(ctx.key, chunk));
  const stored = { ...head, tail };
  ctx.set(HEAD, stored);
  return stored;
};

/**
 * Tells the list of sessions that this one was used or closed. Only the call that brings the title
 * is waited for: nobody looks for a session without one, and the time of the last use may come a
 * moment later.
 */
const tellList = (
  ctx: Context,
  header: Header,
  before: Head,
  head: Head,
  entries: Decision['entries'],
) => {
  const title = titleIn(entries);
  if (title === null && !head.over) return null;
  const call = indexCall(header, head, title);
  if (before.titled || title === null) {
    ctx.genericSend(call);
    return null;
  }
  ctx.set(TITLE, title);
  return ctx.genericCall<unknown, unknown>(call);
};

/** Tells this process what it has applied; null: nothing. */
const tellApplied = (
  { states, applied }: DecideParts,
  sessionId: string,
  entries: Decision['entries'],
  change: Decided['change'],
): void => {
  if (change !== null && states.advance(sessionId, entries, change.state))
    applied?.(sessionId, change);
};

type Arrived = { readonly head: Head; readonly results: readonly AppliedEvent[] };

/**
 * `head`: as the engine has it now. A session that is over goes on with the events, unless they are
 * about its `end`.
 */
export const arrive = async (
  ctx: Context,
  parts: DecideParts,
  head: Head,
  arrival: Arrival,
  kind: DecideRequest['kind'] = 'event',
): Promise<Arrived> => {
  const request: DecideRequest = { sessionId: ctx.key, head, arrival, kind };
  let change: Decided['change'] = null;
  const record = async (): Promise<Decision> => {
    const decided = await deciding(parts, request);
    change = decided.change;
    return decided.decision;
  };
  const first = await ctx.run('decide', async () => {
    const decider = findDecider(parts, request);
    return decider === 'here' ? record() : decider;
  });
  const there = typeof first === 'string' ? await askNode(ctx, request, first) : null;
  const here = typeof first === 'string' ? null : first;
  const decision = here ?? there ?? (await ctx.run('decide alone', record));
  const { entries, results, over } = decision;
  const next = keepEntries(ctx, nextHead(head, decision), entries);
  const listed = tellList(ctx, await readHeader(ctx), head, next, entries);
  for (const workId of decision.ended) ctx.clear(LIVE + workId);
  if (decision.goesOn) startHooks(ctx, next, { moment: 'session-start', source: 'resume' });
  await carryOut(ctx, next, decision, there !== null);
  await listed;
  if (over && kind !== 'end') await stopAllWork(ctx, next);
  tellApplied(parts, ctx.key, entries, change);
  parts.live.publish(ctx.key, { kind: 'entries', entries });
  return { head: next, results };
};

// Starts and stops the work of a session: calls of services that nobody waits for.

export const toolsService = (node: string): string => `Tools-${node}`;

/**
 * The signals to running work: end with your outcome, and: end at once, nobody waits for it any
 * more.
 */
export const STOP = 'stop';
export const FORCE = 'force';

const sendWork = (
  ctx: Context,
  head: Head,
  { workId, place, action, isRecovered }: Extract<Order, { readonly kind: 'start' }>,
  machineVersion: number,
  isDecidedElsewhere: boolean,
) => {
  const { seq, node } = head;
  const isBound = head.bound !== undefined || isDecidedElsewhere;
  const parameter: Work = {
    sessionId: ctx.key,
    machineVersion,
    seq,
    action,
    workId,
    node,
    isBound,
    isRecovered,
  };
  const service = place === 'model' && !isBound ? 'Model' : toolsService(node);
  return ctx.genericSend(jsonCall(service, 'perform', parameter));
};

const sendSignal = (ctx: Context, invocationId: string, name: string): void =>
  ctx.invocation(restate.InvocationIdParser.fromString(invocationId)).signal(name).resolve();

/**
 * Starts hooks of the user, if there are any for the moment. Nobody waits for them here. At the end
 * of a session its node is always told: it then ends what it holds of the session.
 */
const startHooks = (
  ctx: Context,
  { seq, node, bound }: Head,
  about: HooksRequest['about'],
): void => {
  if (bound?.moments.includes(about.moment) !== true && about.moment !== 'session-end') return;
  const parameter: HooksRequest = { sessionId: ctx.key, seq, node, about };
  ctx.genericSend(jsonCall(toolsService(node), 'hooks', parameter));
};

/**
 * Carries the orders out. It waits for the ids of new work at the end, so that many calls cost one
 * round trip, or before it stops one of them. `isDecidedElsewhere`: a node of another version has
 * decided, so models are called there too.
 */
const carryOut = async (
  ctx: Context,
  head: Head,
  { orders, machineVersion }: Decision,
  isDecidedElsewhere: boolean,
): Promise<void> => {
  const started = new Map<string, Promise<string>>();
  for (const order of orders) {
    if (order.kind === 'timer') {
      const { timerId, delayMs } = order;
      ctx.genericSend({ ...jsonCall('Session', 'timer', { timerId }, ctx.key), delay: delayMs });
    } else if (order.kind === 'ask-user')
      startHooks(ctx, head, { moment: 'ask-user', action: order.action });
    else if (order.kind === 'start')
      started.set(
        order.workId,
        sendWork(ctx, head, order, machineVersion, isDecidedElsewhere).invocationId,
      );
    else {
      const id = await (started.get(order.workId) ?? ctx.get<string>(LIVE + order.workId));
      if (id === null) continue;
      sendSignal(ctx, id, STOP);
      if (order.isForced) sendSignal(ctx, id, FORCE);
    }
  }
  for (const [workId, id] of started) ctx.set(LIVE + workId, await id);
};

/** All work that has not ended, whether it runs or waits for a node that is gone. */
const findWork = async (
  ctx: Context,
): Promise<readonly { readonly name: string; readonly id: string }[]> => {
  const work = [];
  for (const name of await ctx.stateKeys()) {
    const id = name.startsWith(LIVE) ? await ctx.get<string>(name) : null;
    if (id !== null) work.push({ name, id });
  }
  return work;
};

/** The session is over: nothing of it may go on. */
const stopAllWork = async (ctx: Context, head: Head): Promise<void> => {
  for (const { name, id } of await findWork(ctx)) {
    for (const signal of [STOP, FORCE]) sendSignal(ctx, id, signal);
    ctx.clear(name);
  }
  if (head.ending === true) return startHooks(ctx, head, { moment: 'session-end' });
  ctx.genericSend(jsonCall(toolsService(head.node), 'end', { sessionId: ctx.key }));
};

/** How long the end of a session waits for the node with its workspace. */
const STOPPING_MS = 3_000;

/**
 * Stops calls first, so that the model gets their outcomes. Empty: there are none, or their node is
 * gone.
 */
const stoppedBy = async (ctx: Context, { node }: Head): Promise<readonly StoppedCall[]> => {
  const running = (await ctx.stateKeys()).some((name) => name.startsWith(`${LIVE}${CALL_WORK}`));
  if (!running) return [];
  const stopping = ctx.genericCall<unknown, readonly StoppedCall[]>(
    jsonCall(toolsService(node), 'stop', { sessionId: ctx.key }),
  );
  try {
    return await stopping.orTimeout(STOPPING_MS);
  } catch (error) {
    // then the machine says that their outcome is unknown
    if (error instanceof restate.TimeoutError) return [];
    throw error;
  }
};
