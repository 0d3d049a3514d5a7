/**
 * A session on the engine: one virtual object. Each call applies the events that arrive together
 * and starts what follows.
 */

import * as restate from '@restatedev/restate-sdk';
import {
  type Action,
  type AppliedChange,
  agentMachine,
  attempt,
  attemptNow,
  checkInput,
  type Entry,
  forkHeader,
  type Header,
  type Input,
  type MachineUpgrade,
  type Posted,
  type State,
  type StoppedCall,
  turnRuns,
} from 'pawl/engine';
import {
  type AppliedEvent,
  type AppliedEvents,
  applyEvents,
  endedWork,
  listWork,
  type StartedWork,
  stampTimes,
} from './apply-events.js';
import type { LiveChannel } from './live.js';
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
  type ShownText,
  type StoredSession,
  type StoredTitle,
  TITLE,
  type Work,
  withEntries,
} from './session-records.js';
import {
  NewerMachineError,
  refuseNewer,
  type SessionStates,
  takeOverEvents,
} from './session-states.js';
import { chunkCall, indexCall, pageCall, RETRYING, titleIn } from './stored-objects.js';

type SessionObjectParts = ArrivalParts & {
  /** The price of the model, for SettingsChanged. Throws if there is no such model. */
  prices(sessionId: string, modelId: string): Promise<Header['prices']>;
};

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
  /** Version of the machine of whoever sends them; absent: 1. */
  readonly machineVersion?: number;
};

type Context = restate.ObjectContext;
type SharedContext = restate.ObjectSharedContext;

const refuse = (status: number, message: string): never => {
  throw new restate.TerminalError(message, { errorCode: status });
};

const readHead = async (ctx: SharedContext): Promise<Head> =>
  (await ctx.get<Head>(HEAD)) ?? refuse(404, `there is no session ${ctx.key}`);

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
    ...(bound === undefined ? {} : { bound }),
  };
  ctx.set(HEAD, head);
  if (title !== null) ctx.set(TITLE, title);
  if (parent === null) startHooks(ctx, head, { moment: 'session-start', source: 'startup' });
  await ctx.genericCall<unknown, unknown>(indexCall(header, head, title));
};

const fork = async (ctx: Context, { newSessionId, seq, at }: ForkRequest): Promise<string> => {
  const head = await readHead(ctx);
  const header = await ctx.get<Header>(HEADER);
  if (header === null || !Number.isInteger(seq) || seq < 0 || seq > head.seq)
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
 * The old node may be gone, so nothing is asked of it: what ran there counts as unknown, and it
 * runs no hooks of the end.
 */
const move = async (
  ctx: Context,
  parts: SessionObjectParts,
  { node, at }: MoveRequest,
): Promise<void> => {
  const { bound, ...head } = await readHead(ctx);
  await withdrawWork(ctx);
  const closed = head.over
    ? head
    : (await arrive(ctx, parts, head, { posted: [{ type: 'ShutdownRequested' }], at })).head;
  ctx.set(HEAD, { ...closed, node, ending: false, ...(bound === undefined ? {} : { bound }) });
};

type CheckedInput = { readonly input: Input } | { readonly refused: string };

const checked = (value: Input): CheckedInput => {
  const result = attemptNow(() => checkInput(value));
  return result.kind === 'done' ? { input: result.value } : { refused: result.fault.message };
};

type FoundPrices = { readonly prices: Header['prices'] } | { readonly refused: string };

/**
 * Whether it must be applied by itself: its completion depends on the inputs before it, or the
 * session ends with it.
 */
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
  const answer = await ctx.run('prices', async (): Promise<FoundPrices> => {
    const asked = await attempt(() => parts.prices(ctx.key, model));
    return asked.kind === 'done' ? { prices: asked.value } : { refused: asked.fault.message };
  });
  return 'refused' in answer ? answer : { input: { ...input, prices: answer.prices } };
};

/**
 * Inputs that came together are applied together where they can be. After the end of the session
 * they have no result.
 */
const input = async (ctx: Context, parts: SessionObjectParts, { inputs, at }: InputRequest) => {
  let head = await readHead(ctx);
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

/**
 * A sender of inputs gets the refusal of a node that is too old. Reports of work wait for a newer
 * node.
 */
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
  const head = await readHead(ctx);
  if (!head.over) return (await arrive(ctx, parts, head, arrival)).results;
  // While a session ends, its hooks are the only ones that are still heard.
  const posted =
    head.ending === true ? arrival.posted.filter(({ type }) => type === 'UserHooksRan') : [];
  if (posted.length === 0) return [];
  return (await arrive(ctx, parts, head, { posted, at: arrival.at }, 'end')).results;
};

/** The hooks about the end of the session have ended. It may have been opened again meanwhile. */
const ended = async (ctx: Context, parts: SessionObjectParts, arrival: Arrival): Promise<void> => {
  await event(ctx, parts, arrival);
  const head = await readHead(ctx);
  if (head.over) ctx.set(HEAD, { ...head, ending: false });
};

/**
 * A session on the engine: one virtual object. Each call applies the events that arrive together
 * and starts what follows.
 *
 * 1. A call is quick: it never waits for a model or a tool, so the next event, an interrupt for
 *    example, is next.
 * 2. The requests of this call to the engine follow only from its parameters, the stored values and
 *    recorded results: a call that is repeated on another node asks for the same.
 * 3. Entries are durable before anybody sees them and before the work they start.
 *
 * Names and options of the engine: docs/build/many-machines.md says why each is as it is.
 */
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
      input: (ctx: Context, request: InputRequest) =>
        telling(async () => {
          refuseNewer(ctx.key, request.machineVersion ?? 1);
          return input(ctx, parts, request);
        }),
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
        if (head.over || head.isFork)
          await telling(() => arrive(ctx, parts, head, { posted: [], at }));
      },
      /** The session has hooks or servers since it was created. */
      bind: async (ctx: Context, bound: Bound) => {
        ctx.set(HEAD, { ...(await readHead(ctx)), bound });
      },
      move: (ctx: Context, request: MoveRequest) => telling(() => move(ctx, parts, request)),
      session: restate.handlers.object.shared(
        async (ctx: SharedContext): Promise<StoredSession> => {
          const { seq, over, node, ending = false } = await readHead(ctx);
          const header = await ctx.get<Header>(HEADER);
          if (header === null) return refuse(404, `there is no session ${ctx.key}`);
          return { header, seq, over, node, ending };
        },
      ),
      entries: restate.handlers.object.shared(entriesPage),
    },
  });

// Applies the events that arrive at a session together. Each answer of the engine that this waits
// for costs a millisecond or more, so it waits for as few as it can: for the head (its caller), and
// for one proof that the entries are stored.

type ArrivalParts = {
  readonly states: SessionStates;
  readonly live: LiveChannel;
  /** Told once of what was applied here, for figures. */
  readonly applied?: ((sessionId: string, change: AppliedChange) => void) | undefined;
};

/** Whether a reply may have shown text that the journal lacks. */
const repliesWith = (state: State): string | null =>
  state.name === 'CallingLlm' && state.call.mode === 'open' ? state.requestId : null;

const isAboutReply = (posted: readonly Posted[], requestId: string): boolean =>
  posted.some((event) => endedWork(event) === requestId);

const lackingText = (shown: ShownText | null, journaled: Head['kept']): Posted | null => {
  if (shown === null) return null;
  const known = journaled?.requestId === shown.requestId ? journaled.length : 0;
  if (shown.text.length <= known) return null;
  return { type: 'TextDelta', requestId: shown.requestId, text: shown.text.slice(known) };
};

/**
 * The text that was shown of the running reply, so that the journal has it before any other event.
 */
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

/**
 * A fork was cut off somewhere, and a closed session has ended: both go on as after an
 * interruption.
 */
const resumption = (head: Head, state: State, upgrade: MachineUpgrade | null): Posted => ({
  type: 'Resumed',
  epoch: state.session.epoch + 1,
  ...(turnRuns(state) ? { stoppedAt: head.lastAt } : {}),
  ...(upgrade === null ? {} : { upgrade }),
});

/** The hooks of the end begin with it, and say themselves when they have ended. */
const isEnding = ({ over, ending = false, bound }: Head): boolean =>
  over ? ending : bound !== undefined && bound.moments.length > 0;

const nextHead = (head: Head, { entries, state }: AppliedEvents, shown: ShownText | null): Head => {
  const journaled =
    shown === null ? head.kept : { requestId: shown.requestId, length: shown.text.length };
  const still = state.name === 'CallingLlm' && journaled?.requestId === state.requestId;
  return {
    ...head,
    seq: head.seq + entries.length,
    lastAt: entries.at(-1)?.event.at ?? head.lastAt,
    kept: still ? journaled : null,
    over: state.name === 'ShuttingDown',
    ending: state.name === 'ShuttingDown' && isEnding(head),
    isFork: false,
    titled: head.titled || titleIn(entries) !== null,
  };
};

const keepEntries = (ctx: Context, head: Head, entries: AppliedEvents['entries']): Head => {
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
  entries: AppliedEvents['entries'],
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

type Arrived = { readonly head: Head; readonly results: readonly AppliedEvent[] };

/**
 * `head`: as the engine has it now; each question for it is a round trip. A session that is over
 * goes on with the events, unless they are about its `end`.
 */
export const arrive = async (
  ctx: Context,
  parts: ArrivalParts,
  head: Head,
  arrival: Arrival,
  end: 'end' | null = null,
): Promise<Arrived> => {
  const { states, live } = parts;
  const { header, state: before, upgrade } = await states.exact(ctx.key, head.seq, head.tail);
  const shown = await shownBefore(ctx, arrival, before, live);
  const text = lackingText(shown, head.kept);
  const goesOn = head.isFork || (head.over && end === null);
  const takeOver = goesOn ? [] : takeOverEvents(before, upgrade, head.lastAt);
  const first = [
    ...(goesOn ? [resumption(head, before, upgrade)] : takeOver),
    ...(text === null ? [] : [text]),
  ];
  const events = stampTimes([...first, ...arrival.posted], arrival.at, head.lastAt);
  const applied = applyEvents(head.seq, before, events);
  const { entries, state, actions, results } = applied;
  const next = keepEntries(ctx, nextHead(head, applied, text === null ? null : shown), entries);
  const listed = tellList(ctx, header, head, next, entries);
  for (const { event } of entries) {
    const ended = endedWork(event);
    if (ended !== null) ctx.clear(LIVE + ended);
  }
  if (goesOn) startHooks(ctx, next, { moment: 'session-start', source: 'resume' });
  const recovered = goesOn ? findRunningCalls(before, state) : [];
  const hasAnswered = await startWork(ctx, next, [...recovered, ...actions], recovered.length);
  // Entries are durable before anybody sees them: any answer of the engine to what came after the
  // entries proves that it has them.
  if (listed !== null) await listed;
  else if (entries.length > 0 && !hasAnswered) await ctx.run('stored', () => null);
  if (state.name === 'ShuttingDown' && end === null) await stopAllWork(ctx, next);
  if (states.advance(ctx.key, entries, state))
    parts.applied?.(ctx.key, { before, events: entries.map(({ event }) => event), state });
  live.publish(ctx.key, { kind: 'entries', entries });
  return { head: next, results: results.slice(first.length) };
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
  { workId, place, action }: StartedWork,
  isRecovered: boolean,
) => {
  const { seq, node } = head;
  const isBound = head.bound !== undefined;
  const machineVersion = agentMachine.version;
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

const scheduleTimer = (
  ctx: Context,
  { timerId, delayMs }: Extract<Action, { readonly type: 'ScheduleTimer' }>,
): void => {
  ctx.genericSend({ ...jsonCall('Session', 'timer', { timerId }, ctx.key), delay: delayMs });
};

/** Starts hooks of the user, if there are any for the moment. Nobody waits for them here. */
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
 * The first `recovered` actions go on with what an interruption has left. All work is begun before
 * the first answer is waited for, so that many calls cost one round trip. Returns whether the
 * engine has answered.
 */
const startWork = async (
  ctx: Context,
  head: Head,
  actions: readonly Action[],
  recovered: number,
): Promise<boolean> => {
  const started = new Map<string, Promise<string>>();
  for (const [index, action] of actions.entries()) {
    if (action.type === 'ScheduleTimer') scheduleTimer(ctx, action);
    if (action.type === 'RequestApproval' || action.type === 'PromptForInput')
      startHooks(ctx, head, { moment: 'ask-user', action });
    for (const work of listWork(action)) {
      if (work.kind === 'start') {
        started.set(work.workId, sendWork(ctx, head, work, index < recovered).invocationId);
      } else {
        const id = await (started.get(work.workId) ?? ctx.get<string>(LIVE + work.workId));
        if (id === null) continue;
        sendSignal(ctx, id, STOP);
        if (action.type === 'CancelTools' && action.force) sendSignal(ctx, id, FORCE);
      }
    }
  }
  for (const [workId, id] of started) ctx.set(LIVE + workId, await id);
  return started.size > 0;
};

/**
 * Withdraws all work, whether it runs or waits for a node that is gone: there it is not done when
 * the node is back. What runs is not told, so the session's end must follow.
 */
const withdrawWork = async (ctx: Context): Promise<void> => {
  for (const name of await ctx.stateKeys()) {
    if (!name.startsWith(LIVE)) continue;
    const id = await ctx.get<string>(name);
    if (id !== null) ctx.invocation(restate.InvocationIdParser.fromString(id)).cancel();
    ctx.clear(name);
  }
};

/** The session is over: nothing of it may go on. */
const stopAllWork = async (ctx: Context, head: Head): Promise<void> => {
  for (const name of await ctx.stateKeys()) {
    if (!name.startsWith(LIVE)) continue;
    const id = await ctx.get<string>(name);
    if (id !== null) for (const one of [STOP, FORCE]) sendSignal(ctx, id, one);
    ctx.clear(name);
  }
  if (head.ending === true) return startHooks(ctx, head, { moment: 'session-end' });
  ctx.genericSend(jsonCall(toolsService(head.node), 'end', { sessionId: ctx.key }));
};

// Running calls at the end of a session, and when it is resumed.

const runningIn = (state: State) =>
  state.name === 'ExecutingTools' ? state.calls.filter(({ status }) => status === 'running') : [];

/** How long the end of a session waits for the node with its workspace. */
const STOPPING_MS = 3_000;

/**
 * Stops calls first, so that the model gets their outcomes. Empty: there are none, or their node is
 * gone.
 */
const stoppedBy = async (
  ctx: restate.ObjectContext,
  { node }: Head,
  state: State,
): Promise<readonly StoppedCall[]> => {
  if (runningIn(state).length === 0) return [];
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

/**
 * The calls that ran before the session went on, and still do: each gets its outcome from its tool.
 */
const findRunningCalls = (before: State, after: State): readonly Action[] => {
  if (before.name !== 'ExecutingTools' || after.name !== 'ExecutingTools') return [];
  const { batchId } = after;
  const known = new Set(runningIn(before).map(({ judged }) => judged.callId));
  const calls = runningIn(after)
    .map(({ judged }) => judged)
    .filter(({ callId }) => known.has(callId));
  return before.batchId !== batchId || calls.length === 0
    ? []
    : [{ type: 'ExecuteTools', batchId, calls }];
};
