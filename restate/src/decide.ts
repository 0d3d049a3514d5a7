/**
 * What follows from events that arrive at a session: a decision, which holds no state of the
 * machine. So one version of Pawl can carry out what another one has decided.
 *
 * 1. The version of a session is that of the node with its workspace. A call of the session that
 *    another version gets asks that node for the decision.
 * 2. A running turn ends with the version that it began with, as long as a node has it.
 * 3. A decision is recorded, so another attempt carries out the same, also on a node of another
 *    version. The entries are durable as soon as it is.
 */

import {
  type Action,
  type AppliedChange,
  agentMachine,
  attempt,
  attemptNow,
  checkInput,
  type Entry,
  type Header,
  type Input,
  type MachineUpgrade,
  type Posted,
  type State,
  turnRuns,
} from 'pawl/engine';
import { type AppliedEvent, applyEvents, stampTimes } from './apply-events.js';
import type { LiveChannel } from './live.js';
import type { Arrival, Head, ShownText } from './session-records.js';
import { refuseNewer, type SessionStates, takeOverEvents } from './session-states.js';
import { endedWork, listWork, type StartedWork } from './started-work.js';

export type DecideParts = {
  readonly states: SessionStates;
  readonly live: LiveChannel;
  /** The price of the model, for SettingsChanged. Throws if there is no such model. */
  prices(sessionId: string, modelId: string): Promise<Header['prices']>;
  /** Told once of what was applied here, for figures. */
  readonly applied?: ((sessionId: string, change: AppliedChange) => void) | undefined;
};

export type DecideRequest = {
  readonly sessionId: string;
  readonly head: Head;
  readonly arrival: Arrival;
  /**
   * `input`: from users, so each is checked. `end`: a session that is over does not go on with
   * them.
   */
  readonly kind: 'event' | 'input' | 'end';
};

/** What a session asks of the engine. */
export type Order =
  | (StartedWork & { readonly isRecovered: boolean })
  | { readonly kind: 'stop'; readonly workId: string; readonly isForced: boolean }
  | { readonly kind: 'timer'; readonly timerId: string; readonly delayMs: number }
  | { readonly kind: 'ask-user'; readonly action: Action };

/** Plain JSON: a node of an earlier or a later version may read it. */
export type Decision = {
  /** The version of the machine that decided. */
  readonly machineVersion: number;
  readonly entries: readonly Entry[];
  /** Those of `AppliedEvents`, for the events that arrived. */
  readonly results: readonly AppliedEvent[];
  readonly orders: readonly Order[];
  /** The work that has ended. */
  readonly ended: readonly string[];
  readonly kept: Head['kept'];
  readonly over: boolean;
  readonly inTurn: boolean;
  /** Whether a fork, or a session that was closed, goes on with these events. */
  readonly goesOn: boolean;
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
  { sessionId, arrival: { posted, shown } }: DecideRequest,
  state: State,
  live: LiveChannel,
): Promise<ShownText | null> => {
  if (shown !== undefined) return shown;
  const requestId = repliesWith(state);
  if (requestId === null || isAboutReply(posted, requestId)) return null;
  return live.shownText(sessionId, requestId);
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

const runningIn = (state: State) =>
  state.name === 'ExecutingTools' ? state.calls.filter(({ status }) => status === 'running') : [];

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

const ordersOf = (action: Action, isRecovered: boolean): readonly Order[] => {
  if (action.type === 'ScheduleTimer') {
    const { timerId, delayMs } = action;
    return [{ kind: 'timer', timerId, delayMs }];
  }
  const asks = action.type === 'RequestApproval' || action.type === 'PromptForInput';
  const isForced = action.type === 'CancelTools' && action.force;
  const works = listWork(action).map(
    (work): Order => (work.kind === 'start' ? { ...work, isRecovered } : { ...work, isForced }),
  );
  return asks ? [{ kind: 'ask-user', action }, ...works] : works;
};

type CheckedInput = { readonly input: Posted } | { readonly refused: string };

/** An input that is good, with the prices that belong to its settings. */
const checked = async (
  { prices }: DecideParts,
  sessionId: string,
  posted: Posted,
): Promise<CheckedInput> => {
  const result = attemptNow(() => checkInput(posted as Input)); // unchecked until now
  if (result.kind === 'fault') return { refused: result.fault.message };
  const input = result.value;
  if (input.type !== 'SettingsChanged' || input.patch.model === undefined) return { input };
  const { model } = input.patch;
  const asked = await attempt(() => prices(sessionId, model));
  return asked.kind === 'done'
    ? { input: { ...input, prices: asked.value } }
    : { refused: asked.fault.message };
};

/** `change`: what this machine has applied; null: nothing. */
export type Decided = { readonly decision: Decision; readonly change: AppliedChange | null };

const decideEvents = async (
  { states, live }: DecideParts,
  request: DecideRequest,
): Promise<Decided> => {
  const { sessionId, head, arrival, kind } = request;
  const { state: before, upgrade } = await states.exact(sessionId, head.seq, head.tail);
  const shown = await shownBefore(request, before, live);
  const text = lackingText(shown, head.kept);
  const goesOn = head.isFork || (head.over && kind !== 'end');
  const takeOver = goesOn ? [] : takeOverEvents(before, upgrade, head.lastAt);
  const first = [
    ...(goesOn ? [resumption(head, before, upgrade)] : takeOver),
    ...(text === null ? [] : [text]),
  ];
  const events = stampTimes([...first, ...arrival.posted], arrival.at, head.lastAt);
  const { entries, state, actions, results } = applyEvents(head.seq, before, events);
  const recovered = goesOn ? findRunningCalls(before, state) : [];
  const journaled =
    text === null || shown === null
      ? head.kept
      : { requestId: shown.requestId, length: shown.text.length };
  const still = state.name === 'CallingLlm' && journaled?.requestId === state.requestId;
  const decision: Decision = {
    machineVersion: agentMachine.version,
    entries,
    results: results.slice(first.length),
    orders: [
      ...recovered.flatMap((action) => ordersOf(action, true)),
      ...actions.flatMap((action) => ordersOf(action, false)),
    ],
    ended: entries.flatMap(({ event }) => endedWork(event) ?? []),
    kept: still ? journaled : null,
    over: state.name === 'ShuttingDown',
    inTurn: turnRuns(state),
    goesOn,
  };
  return { decision, change: { before, events: entries.map(({ event }) => event), state } };
};

const nothing = ({ head }: DecideRequest): Decision => ({
  machineVersion: head.decidedBy ?? agentMachine.version,
  entries: [],
  results: [],
  orders: [],
  ended: [],
  kept: head.kept,
  over: head.over,
  inTurn: head.inTurn === true,
  goesOn: false,
});

/** Inputs that are refused have no entry, and the others are applied without them. */
const decideInputs = async (parts: DecideParts, request: DecideRequest): Promise<Decided> => {
  const { sessionId, arrival } = request;
  const all: CheckedInput[] = [];
  for (const posted of arrival.posted) all.push(await checked(parts, sessionId, posted));
  const posted = all.flatMap((one) => ('input' in one ? [one.input] : []));
  const decided =
    all.length > 0 && posted.length === 0
      ? { decision: nothing(request), change: null }
      : await decideEvents(parts, { ...request, arrival: { ...arrival, posted } });
  const results = [...decided.decision.results];
  const inOrder = all.flatMap((one) => ('refused' in one ? [one] : results.splice(0, 1)));
  return { ...decided, decision: { ...decided.decision, results: inOrder } };
};

/** Decides with the machine of this node. */
export const decide = async (parts: DecideParts, request: DecideRequest): Promise<Decided> => {
  const { sessionId, arrival, kind } = request;
  if (kind === 'input') return decideInputs(parts, request);
  refuseNewer(sessionId, arrival.machineVersion ?? 1);
  return decideEvents(parts, request);
};

/**
 * Who decides: this node, that of the session, or that of the session if it comes back in time.
 */
export type Decider = 'here' | 'there' | 'away';

/** Who decides, as far as this node knows now. */
export const findDecider = ({ live }: DecideParts, { head, arrival }: DecideRequest): Decider => {
  const { version } = agentMachine;
  const known = live.nodes().find(({ name }) => name === head.node);
  const isOwn =
    head.inTurn === true
      ? head.decidedBy === version && (arrival.machineVersion ?? 1) <= version
      : known?.machineVersion === version;
  if (isOwn) return 'here';
  return known === undefined ? 'away' : 'there';
};
