/**
 * Rules of docs/design/rules.md as checks of one step of the machine. Each check returns its
 * faults: a sentence for each broken rule, beginning with the rule's anchor in that document.
 *
 * From top to bottom: rules for a state; rules for a step, each below its anchor; steps that must
 * lead to a request; work in flight (requests, calls, hooks, timers that have not ended), which the
 * state must name so that a resume finds it; and `brokenRule`, which writes the sentences. The
 * explorer, the simulator and tests call these; no session does. A reservation is money that is set
 * aside before a request, since its cost is known only afterwards.
 */

import type { Action } from '@pawl/agent/machine/action';
import { type Conversation, conversationLength } from '@pawl/agent/machine/conversation';
import type { Event, On, StopReason } from '@pawl/agent/machine/event';
import type { Message, UserMessage } from '@pawl/agent/machine/message';
import { isAsked, isEnded, isRunning, isWaiting } from '@pawl/agent/machine/moves/batch-calls';
import { hasSessionLimit, sessionLimit } from '@pawl/agent/machine/moves/budget';
import { settledUsage } from '@pawl/agent/machine/moves/request';
import { spendingIds, startingIds } from '@pawl/agent/machine/moves/tool-batch';
import { isReached, type Usage } from '@pawl/agent/machine/settings';
import {
  findReservation,
  type In,
  reservedUsd,
  type SessionData,
  type State,
  type WaitReason,
  withoutReservations,
} from '@pawl/agent/machine/state';
import type { Edge, Step } from '@pawl/machine/kernel/table';

type AgentStep = Step<State, Action>;

// ---- Rules for a state ----

/** The rules for conversation, usage and state that the new state breaks. */
export const stateFaults = (before: State, event: Event, step: AgentStep): readonly string[] => {
  const { state, actions } = step;
  const eventFaults = [
    ...shutdownFaults(event, state),
    ...lostInputs(before, event, step),
    ...silenceFaults(before, event, step),
  ];
  // This very state was checked when it was reached.
  if (state === before && actions.length === 0) return eventFaults;
  return [
    ...eventFaults,
    ...conversationFaults(before, step),
    ...livenessFaults(state),
    ...requestFaults(step),
    ...boundFaults(before, state),
    ...editedMessages(before.session.conversation, state.session.conversation, event),
  ];
};

/** The ids of the calls that a message asks for. */
const callIds = (message: Message | undefined): readonly string[] =>
  (message?.parts ?? []).flatMap((part) => (part.type === 'call' ? [part.callId] : []));

/** Faults of a message after `previous`: its results, role and parts. */
const pairFaults = (previous: Message | undefined, message: Message): readonly string[] => {
  const faults: string[] = [];
  if (message.parts.length === 0) faults.push(brokenRule('roles-alternate', 'a message is empty'));
  if (
    message.parts.some(
      (part) => part.type === 'text' && message.role === 'user' && part.text.trim() === '',
    )
  ) {
    faults.push(brokenRule('roles-alternate', 'a user message holds blank text'));
  }
  if (previous === undefined ? message.role !== 'user' : previous.role === message.role) {
    faults.push(
      brokenRule(
        'roles-alternate',
        `roles do not alternate: ${previous?.role ?? 'start'}, ${message.role}`,
      ),
    );
  }
  const calls = callIds(previous);
  const results = message.parts.flatMap((part) => (part.type === 'result' ? [part.callId] : []));
  if (calls.join() !== results.join())
    faults.push(brokenRule('every-call-answered', `calls [${calls}] are answered by [${results}]`));
  const firstText = message.parts.findIndex((part) => part.type === 'text');
  const lastResult = message.parts.map((part) => part.type).lastIndexOf('result');
  // Stryker disable next-line EqualityOperator: the two places are never one
  if (firstText >= 0 && firstText < lastResult)
    faults.push(brokenRule('every-call-answered', 'text stands before a result'));
  return faults;
};

/** The messages that are new or may have changed since `before`, and where they begin. */
const newPart = (before: Conversation, after: Conversation) => {
  const from = after.closed.continues(before.closed) ? before.closed.length : 0;
  const closed: readonly Message[] = after.closed.toArray(from);
  return { from, messages: after.open === null ? closed : [...closed, after.open] };
};

/** Faults of new messages, each checked against the one before it. */
const newMessageFaults = (before: Conversation, after: Conversation): readonly string[] => {
  if (after === before) return [];
  const { from, messages } = newPart(before, after);
  const lastOld = after.closed.at(from - 1);
  return messages.flatMap((message, index) =>
    pairFaults(index === 0 ? lastOld : messages[index - 1], message),
  );
};

/** At rest and in a request every call is answered, and a request sends the whole conversation. */
const conversationFaults = (before: State, { state, actions }: AgentStep): readonly string[] => {
  const { conversation } = state.session;
  const faults = [...newMessageFaults(before.session.conversation, conversation)];
  const last = conversation.open ?? conversation.closed.at(conversation.closed.length - 1);
  const atRest = state.name === 'WaitingForUserInput' || state.name === 'ShuttingDown';
  const sends = actions.find((action) => action.type === 'SendLlmRequest');
  if ((atRest || sends !== undefined) && callIds(last).length > 0)
    faults.push(brokenRule('every-call-answered', 'the last calls are not answered'));
  if (sends !== undefined && conversation.open === null)
    faults.push(brokenRule('roles-alternate', 'a request does not end with the user'));
  if (sends !== undefined && sends.length !== conversationLength(conversation))
    faults.push(brokenRule('roles-alternate', 'a request is not the whole conversation'));
  return faults;
};

/** A state in which the machine rests must wait for something. */
const livenessFaults = (state: State): readonly string[] => {
  switch (state.name) {
    case 'ExecutingTools': {
      if (state.calls.every(isEnded))
        return [brokenRule('never-stuck', 'a batch whose calls have all ended rests')];
      const alive = state.calls.some((call) => isRunning(call) || isAsked(call));
      return alive ? [] : [brokenRule('never-stuck', 'a batch waits for nothing')];
    }
    case 'PostToolsHook':
      return state.hookId === ''
        ? [brokenRule('never-stuck', 'a hook rests without having been started')]
        : [];
    case 'Ready':
    case 'WaitingForUserInput':
    case 'CallingLlm':
    case 'Error':
    case 'Compacting':
    case 'Rewinding':
    case 'ShuttingDown':
      return [];
    default:
      return [brokenRule('never-stuck', `the transient state ${state.name} rests`)];
  }
};

/** A step sends at most one request, and the state waits for it. */
const requestFaults = ({ state, actions }: AgentStep): readonly string[] => {
  const sends = actions.filter((action) => action.type === 'SendLlmRequest');
  if (sends.length > 1) return [brokenRule('one-request', 'a step sends two requests')];
  const [sent] = sends;
  if (sent === undefined) return [];
  return state.name === 'CallingLlm' && state.requestId === sent.requestId
    ? []
    : [brokenRule('one-request', 'a request is not the current one')];
};

/**
 * The attempt that was promised: a scheduled retry takes place, and a call that waited for a
 * compaction keeps its attempt number.
 */
const promisedAttempt = (before: State): number => {
  if (before.name === 'Error') return before.attempt + 1;
  if (before.name === 'CallingLlm') return before.attempt;
  return before.name === 'Compacting' && before.mode.kind === 'overflow' ? before.mode.attempt : 0;
};

/** Counters that grew beyond their bounds. A lowered bound takes effect from the next decision. */
const boundFaults = (before: State, state: State): readonly string[] => {
  const { settings, turn } = state.session;
  const faults: string[] = [];
  if (
    // Stryker disable next-line ConditionalExpression: asked for the compiler
    (state.name === 'CallingLlm' || state.name === 'Error') &&
    state.attempt > Math.max(promisedAttempt(before), settings.maxRetries + 1)
  ) {
    faults.push(
      brokenRule('bounded-work', `attempt ${state.attempt} of at most ${settings.maxRetries + 1}`),
    );
  }
  if (state.name === 'Error' && before.name !== 'Error' && state.error.kind !== 'empty') {
    if (state.attempt > settings.maxRetries)
      faults.push(
        brokenRule(
          'bounded-work',
          `retry ${state.attempt} of at most ${settings.maxRetries} is promised`,
        ),
      );
  }
  // The call that asks for the answer at a limit runs no tools.
  const runsTools =
    state.name === 'CallingLlm' && before.name !== 'CallingLlm' && turn.finishing === 'no';
  const { rounds, truncation } = settings.limits;
  if (runsTools && isReached(rounds, turn.rounds))
    faults.push(brokenRule('bounded-work', 'a call beyond the limit of rounds'));
  if (runsTools && isReached(truncation, turn.truncations))
    faults.push(brokenRule('bounded-work', 'a call beyond the limit of cut replies'));
  if (state.name === 'ExecutingTools') {
    const running = state.calls.filter(isRunning);
    const ranBefore = before.name === 'ExecutingTools' ? before.calls.filter(isRunning).length : 0;
    if (running.length > Math.max(ranBefore, settings.maxParallel))
      faults.push(brokenRule('bounded-work', 'more calls run than may run at once'));
    if (running.length > 1 && running.some(({ judged }) => judged.traits.mutating))
      faults.push(brokenRule('bounded-work', 'a mutating call has company'));
  }
  return faults;
};

const shutdownFaults = (event: Event, state: State): readonly string[] =>
  event.type === 'ShutdownRequested' && state.name !== 'ShuttingDown'
    ? [brokenRule('shutdown', 'shutdown did not end the session')]
    : [];

const userTexts = (message: UserMessage | null): readonly string[] =>
  message?.parts.flatMap((part) =>
    part.type === 'text' && part.origin === 'user' ? [part.text] : [],
  ) ?? [];

/**
 * Texts of the user that the step has lost: neither queued, nor in the conversation, nor
 * restored.
 */
const lostInputs = (
  before: State,
  event: Event,
  { state, actions }: AgentStep,
): readonly string[] => {
  const typed = event.type === 'UserInput' && event.text.trim() !== '' ? [event.text] : [];
  const { queue, conversation } = state.session;
  // Stryker disable next-line ConditionalExpression: a shortcut
  const isSame = queue === before.session.queue && conversation === before.session.conversation;
  // Stryker disable next-line ConditionalExpression: a shortcut
  if (event.type === 'EditQueue' || (isSame && typed.length === 0)) return [];
  const isRewind = event.type === 'RewindRequested' || event.type === 'Rewound';
  const missing = [
    ...before.session.queue.map((item) => item.text),
    // The user takes the conversation back, with what was not answered in it.
    ...(isRewind ? [] : userTexts(before.session.conversation.open)),
    ...typed,
  ];
  const restored = actions.flatMap((action) =>
    // Stryker disable next-line ConditionalExpression: asked for the compiler
    action.type === 'RestoreQueue' ? action.texts : [],
  );
  const { messages } = newPart(before.session.conversation, conversation);
  const sent = messages.flatMap((message) => (message.role === 'user' ? userTexts(message) : []));
  const present = [...queue.map((item) => item.text), ...sent, ...restored];
  for (const text of present) {
    const index = missing.indexOf(text);
    if (index >= 0) missing.splice(index, 1);
  }
  return missing.map((text) =>
    brokenRule('nothing-typed-is-lost', `"${text.slice(0, 40)}" is lost`),
  );
};

/** Events that are for display, or a record of the world. */
const displayOnly = new Set<Event['type']>([
  'ReasoningDelta',
  'ToolCallDelta',
  'ToolProgress',
  'CheckpointTaken',
]);

/** An event that changes nothing leaves a diagnostic. */
const silenceFaults = (
  before: State,
  event: Event,
  { state, actions, diagnostics }: AgentStep,
): readonly string[] => {
  if (
    state !== before ||
    actions.length > 0 ||
    diagnostics.length > 0 ||
    displayOnly.has(event.type)
  )
    return [];
  return [
    brokenRule(
      'no-silent-event',
      `${event.type} in ${before.name} changed nothing and said nothing`,
    ),
  ];
};

/** Only these replace what was answered: rules.md#append-only. */
const REPLACES = new Set<Event['type']>(['CompactionCompleted', 'RewindRequested', 'Rewound']);

/** An answered message never changes, unless the event may replace it. */
const editedMessages = (
  before: Conversation,
  after: Conversation,
  event: Event,
): readonly string[] =>
  after.closed.continues(before.closed) || REPLACES.has(event.type)
    ? []
    : [brokenRule('append-only', 'a message that was answered has been changed')];

// ---- Rules for a step ----

/** The rules for the way from one state to the next that a step breaks. */
export const stepFaults = (before: State, event: Event, step: AgentStep): readonly string[] => [
  ...staleFaults(before, event, step),
  ...usageFaults(before, event, step.state),
  ...reserveFaults(before, event, step.state),
  ...restFaults(before, event, step),
  ...orderFaults(step),
  ...stoppedTurnFaults(before, event, step),
  ...budgetFaults(before, step),
  ...flightFaults(before, event, step),
  ...modelFaults(before, event, step),
];

// ---- rules.md#stale-events ----

/** Whether an event answers no work in flight. */
const isStale = (before: State, event: Event): boolean => {
  switch (event.type) {
    case 'TextDelta':
    case 'ReasoningDelta':
    case 'ToolCallDelta':
      // Stryker disable next-line ConditionalExpression: asked for the compiler
      return before.name !== 'CallingLlm' || before.requestId !== event.requestId;
    case 'ToolStarted':
      return callStatus(before, event) !== 'starting';
    case 'ToolsFailed':
      return before.name !== 'ExecutingTools' || before.batchId !== event.batchId;
    case 'Resumed':
      return event.epoch <= before.session.epoch;
    default: {
      const ended = endedBy(event);
      return ended !== null && !inFlight(before).includes(ended);
    }
  }
};

/** The status of the call that an event names; undefined if no such call is in the batch. */
const callStatus = (state: State, about: { readonly batchId: string; readonly callId: string }) =>
  state.name === 'ExecutingTools' && state.batchId === about.batchId
    ? state.calls.find(({ judged }) => judged.callId === about.callId)?.status
    : undefined;

/** Whether two values differ in fields other than the given ones. */
const differs = <T extends object>(one: T, other: T, but: readonly string[]): boolean =>
  // Object.keys of a T are keys of T; both values have the same ones.
  (Object.keys(one) as (keyof T & string)[]).some(
    (key) => !but.includes(key) && one[key] !== other[key],
  );

const staleFaults = (
  before: State,
  event: Event,
  { state, actions, diagnostics }: AgentStep,
): readonly string[] => {
  if (!isStale(before, event)) return [];
  const faults =
    diagnostics.length === 0
      ? [brokenRule('stale-events', `a stale ${event.type} left no diagnostic`)]
      : [];
  // usage counts, however late it comes
  const changed =
    differs(before, state, ['session']) ||
    differs(before.session, state.session, ['usage', 'unaccounted', 'reserved', 'measured']);
  const others = actions.filter((action) => !('kind' in action && action.kind === 'usage'));
  return changed || others.length > 0
    ? [...faults, brokenRule('stale-events', `a stale ${event.type} changed ${before.name}`)]
    : faults;
};

// ---- rules.md#usage-counts-once ----

/** The usage in an event and the id under which it counts. */
export const usageIn = (
  event: Event,
): { readonly id: string; readonly usage: Usage | null } | null => {
  switch (event.type) {
    case 'LlmCompleted':
    case 'LlmFailed':
      return { id: event.requestId, usage: event.usage };
    case 'CompactionCompleted':
    case 'CompactionFailed':
      return { id: event.compactionId, usage: event.usage };
    case 'HookCompleted':
      return { id: event.hookId, usage: event.usage };
    case 'ToolCompleted':
      return { id: `${event.batchId}/${event.callId}`, usage: event.outcome.usage ?? null };
    case 'UsageReported':
      return { id: event.usageId, usage: event.usage };
    default:
      return null;
  }
};

/** Usage counts once per id, and all of it. */
const usageFaults = (before: State, event: Event, { session }: State): readonly string[] => {
  const report = usageIn(event);
  const isDue = report !== null && before.session.unaccounted.includes(report.id);
  const usual = /^(LlmFailed|CompactionFailed|UsageReported)$/.test(event.type)
    ? 'partial'
    : 'whole';
  const coverage = ('coverage' in event ? event.coverage : undefined) ?? usual;
  const settled =
    report === null || report.usage === null
      ? null
      : settledUsage(before.session, report.id, report.usage, coverage);
  // What was set aside for work of the ended process; new work may have other reservations.
  const ended =
    event.type === 'Resumed' ? withoutReservations(before.session, startingIds(before)) : [];
  const lost = ended.reduce(
    (sum, { id, usd }) => sum + usd - (findReservation(session, id)?.usd ?? 0),
    0,
  );
  const due = lost + (isDue ? (settled?.costUsd ?? 0) : 0);
  const dueTokens = isDue ? (report.usage?.inputTokens ?? 0) : 0;
  const counted = session.usage.costUsd - before.session.usage.costUsd;
  const countedTokens = session.usage.inputTokens - before.session.usage.inputTokens;
  // Sums of prices are not exact.
  return Math.abs(counted - due) < 1e-9 && countedTokens === dueTokens
    ? []
    : [
        brokenRule(
          'usage-counts-once',
          `${event.type} is to count $${due} and ${dueTokens} tokens, and counted ` +
            `$${counted} and ${countedTokens}`,
        ),
      ];
};

// ---- rules.md#reserve-before-request ----

/** What is spent and what is set aside. */
const committedUsd = (session: SessionData): number => session.usage.costUsd + reservedUsd(session);

/**
 * Spent and reserved dollars grow only up to the limit, or by usage beyond what was reserved for
 * it: in sessions that reserve nothing, or by a provider that charges more than it was asked for.
 */
const reserveFaults = (before: State, event: Event, { session }: State): readonly string[] => {
  const limit = session.settings.limits.usd;
  const report = usageIn(event);
  const reported = report?.usage?.costUsd ?? 0;
  const held = report === null ? undefined : findReservation(before.session, report.id);
  const surplus = Math.max(0, reported - (held?.usd ?? 0));
  const earlier = committedUsd(before.session) + surplus;
  const committed = committedUsd(session);
  // Sums of prices are not exact.
  // Stryker disable next-line EqualityOperator: no sum of prices is so near
  if (limit === 'unlimited' || committed <= Math.max(limit, earlier) + 1e-9) return [];
  const what = `${event.type} leads to $${committed} spent and reserved of $${limit}`;
  return [brokenRule('reserve-before-request', what)];
};

// ---- rules.md#fallback ----

/** Failures of a provider, where another model may answer. */
const outages: ReadonlySet<string> = new Set([
  'rateLimited',
  'overloaded',
  'unreachable',
  'timeout',
  'quotaExhausted',
]);

/**
 * The model changes by the user's choice, by an outage after the last retry, or back before a turn.
 * Each change but the user's is announced, and a turn begins with the user's model.
 */
const modelFaults = (
  before: State,
  event: Event,
  { state, actions }: AgentStep,
): readonly string[] => {
  const [from, to] = [before.session.settings, state.session.settings];
  const beginsTurn = before.session.turn.turnId !== state.session.turn.turnId;
  if (beginsTurn && to.primary !== undefined)
    return [brokenRule('fallback', `a turn begins with ${to.model}`)];
  if (from.model === to.model) {
    const isAgain =
      event.type === 'LlmFailed' &&
      state.name === 'CallingLlm' &&
      actions.some((action) => 'kind' in action && action.kind === 'fallback');
    return isAgain ? [brokenRule('fallback', `${to.model} takes over from itself`)] : [];
  }
  const isChosen = event.type === 'SettingsChanged' && event.patch.model === to.model;
  if (isChosen && to.primary === undefined) return [];
  const isTold = actions.some(
    (action) => 'kind' in action && action.kind === 'fallback' && action.text.includes(to.model),
  );
  if (!isTold) return [brokenRule('fallback', `nobody is told that ${to.model} is asked`)];
  if (from.primary?.model === to.model && to.primary === undefined) return [];
  const why =
    event.type !== 'LlmFailed' || before.name !== 'CallingLlm'
      ? `${event.type} is no failure`
      : takeOverFault(before, event, state);
  return why === null ? [] : [brokenRule('fallback', `${to.model} takes over, and ${why}`)];
};

/** Why the model of the new state may not take over. */
const takeOverFault = (
  { session, attempt }: In<'CallingLlm'>,
  { error }: On<'LlmFailed'>,
  state: State,
): string | null => {
  const { settings } = session;
  const { model, primary } = state.session.settings;
  const ids = (settings.fallback ?? []).map((one) => one.model);
  const next = settings.fallback?.[ids.indexOf(model)];
  const isLast =
    !error.retryable ||
    attempt > settings.maxRetries ||
    (error.retryAfterMs ?? 0) > settings.retryAfterCapMs;
  if (!outages.has(error.kind)) return `the error is ${error.kind}`;
  if (!isLast) return `attempt ${attempt} is not the last`;
  if (next === undefined) return 'it is in no list';
  if (primary?.model !== (settings.primary ?? settings).model) return 'the first model is lost';
  // Stryker disable next-line EqualityOperator: the model is another one
  if (settings.primary !== undefined && ids.indexOf(model) < ids.indexOf(settings.model))
    return 'it was asked before';
  if (next.tools === 'no') return 'it calls no tools';
  if (next.windowTokens < session.contextTokens) return 'its window is too small';
  const isFree = next.prices !== null || next.unpriced === 'countAsNothing';
  return isFree || settings.limits.usd === 'unlimited' ? null : 'its price is unknown';
};

// ---- rules.md#back-to-the-user ----

/** A rest asks the user once, and says why; an end says Shutdown. */
const restFaults = (before: State, event: Event, step: AgentStep): readonly string[] => {
  const { state, actions, path } = step;
  if (state.name === 'ShuttingDown' && before.name !== 'ShuttingDown')
    return actions.some(({ type }) => type === 'Shutdown')
      ? []
      : [brokenRule('shutdown', 'the end says no Shutdown')];
  const faults = stopFaults(path, actions);
  if (state.name !== 'WaitingForUserInput') return faults;
  const asked = actions.filter(({ type }) => type === 'PromptForInput').length;
  const entered = path.some((edge) => edge.kind === 'go');
  return [
    ...faults,
    ...(entered && asked !== 1
      ? [brokenRule('back-to-the-user', `the user is asked ${asked} times`)]
      : []),
    ...(state.next === 'rest'
      ? []
      : [brokenRule('nothing-to-wait-for', `a rest that would go on (${state.next})`)]),
    ...reasonFaults(before, event, path, state.reason),
  ];
};

const STOPS = new Set(['Cancelled', 'BudgetExceeded', 'Failed']);
const TELLS_USER = new Set<Action['type']>(['DisplayNotice', 'DisplayError']);

/** A turn that is stopped says why. */
const stopFaults = (path: readonly Edge[], actions: readonly Action[]): readonly string[] => {
  const stop = path.find((edge) => STOPS.has(edge.to));
  if (stop === undefined || actions.some(({ type }) => TELLS_USER.has(type))) return [];
  return [brokenRule('back-to-the-user', `${stop.to} was passed, and the user is not told`)];
};

/** The reason of a rest names what led there: the edge into it, or the stop before that edge. */
const reasonFaults = (
  before: State,
  event: Event,
  path: readonly Edge[],
  reason: WaitReason,
): readonly string[] => {
  const place = path.findLastIndex((edge) => edge.from !== 'WaitingForUserInput');
  const into = path[place];
  const stop = path[place - 1];
  if (into === undefined) return [];
  // A queue held by a session limit is the reason then.
  const expected = expectedReason(before, event, into, stop);
  const actual = 'cause' in reason ? `${reason.kind} ${reason.cause}` : reason.kind;
  return expected === null || actual === expected || reason.kind === 'budget'
    ? []
    : [brokenRule('back-to-the-user', `the reason is ${actual} where it should be ${expected}`)];
};

const expectedReason = (
  before: State,
  event: Event,
  into: Edge,
  stop: Edge | undefined,
): string | null => {
  switch (into.from) {
    case 'Ready':
      return 'start';
    case 'ShuttingDown':
      return 'resumed';
    case 'EndOfTurn':
      return event.type === 'LlmCompleted' ? `endOfTurn ${replyEnd(event)}` : null;
    case 'Failed':
      return 'error';
    case 'BudgetExceeded':
      return 'budget';
    case 'Cancelled':
      return `cancelled ${expectedStopCause(before, event, stop)}`;
    case 'Compacting':
      return event.type === 'CompactionCompleted' ? 'compacted' : 'error';
    case 'Rewinding':
      return 'rewound';
    default:
      return null;
  }
};

const CUT_SHORT = new Set<StopReason>(['refusal', 'contentFilter', 'other']);

const replyEnd = (event: Extract<Event, { readonly type: 'LlmCompleted' }>): string => {
  if (CUT_SHORT.has(event.stopReason)) return 'refused';
  if (event.stopReason === 'maxTokens') return 'truncated';
  const hasText = event.message?.parts.some(
    (part) => part.type === 'text' && part.text.trim() !== '',
  );
  return hasText === true ? 'answer' : 'empty';
};

const expectedStopCause = (before: State, event: Event, stop: Edge | undefined): string => {
  if (event.type === 'PolicyStopped') return 'policy';
  if (stop?.from === 'PostToolsHook') return event.type === 'HookCompleted' ? 'veto' : 'user';
  const asked =
    event.type === 'CancelTurn' ||
    (before.name === 'ExecutingTools' && before.phase.mode === 'cancelling');
  return stop?.from === 'ExecutingTools' && !asked ? 'approval' : 'user';
};

// ---- rules.md#call-order ----

/** Calls start in call order: no started call comes after a waiting one. */
const orderFaults = ({ state, actions }: AgentStep): readonly string[] => {
  if (state.name !== 'ExecutingTools' || !actions.some(({ type }) => type === 'ExecuteTools'))
    return [];
  const first = state.calls.findIndex(isWaiting);
  if (first < 0) return [];
  return state.calls
    .slice(first)
    .filter(isRunning)
    .map(({ judged }) =>
      brokenRule('call-order', `${judged.callId} runs before a call that was asked for first`),
    );
};

// ---- rules.md#hook-veto, rules.md#grace-period ----

/** A stopped turn starts no hook and no further round. */
const stoppedTurnFaults = (before: State, event: Event, { path }: AgentStep): readonly string[] => {
  const goesOn = path.some(
    ({ kind, to }) => kind === 'go' && (to === 'PostToolsHook' || to === 'CheckingBudget'),
  );
  if (!goesOn) return [];
  if (before.name === 'ExecutingTools' && before.phase.mode !== 'running') {
    const rule = before.phase.mode === 'stopping' ? 'ask-before-call' : 'grace-period';
    return [brokenRule(rule, `a batch that is ${before.phase.mode} goes on`)];
  }
  return event.type === 'HookCompleted' && !event.proceed
    ? [brokenRule('hook-veto', 'the turn goes on against a hook')]
    : [];
};

// ---- rules.md#limit-before-request, rules.md#limit-before-call ----

/** At a session limit no request, compaction or call starts. A spending call runs alone. */
const budgetFaults = (before: State, { state, actions }: AgentStep): readonly string[] => {
  const { session } = state;
  const starts = (type: Action['type']): boolean => actions.some((action) => action.type === type);
  const faults: string[] = [];
  if (sessionLimit(session) !== null) {
    if (starts('SendLlmRequest'))
      faults.push(
        brokenRule('limit-before-request', 'a request is sent at a limit of the session'),
      );
    if (starts('StartCompaction'))
      faults.push(
        brokenRule('limit-before-request', 'a compaction starts at a limit of the session'),
      );
    if (starts('ExecuteTools'))
      faults.push(brokenRule('limit-before-call', 'calls start at a limit of the session'));
  }
  const spending = hasSessionLimit(session) && starts('ExecuteTools') ? spendingIds(state) : [];
  if (spending.length > 1 && spendingIds(before).length < spending.length)
    faults.push(
      brokenRule('limit-before-call', 'two calls that spend were handed the same budget'),
    );
  return faults;
};

// ---- Steps that must lead to a request ----

/** Why a step requires a request; null if it requires none. */
const requestReason = (before: State, event: Event, { path }: AgentStep): string | null => {
  const { queue, conversation } = before.session;
  switch (before.name) {
    case 'WaitingForUserInput':
      if (event.type === 'UserInput' && event.text.trim() !== '') return 'a text of the user';
      return event.type === 'RetryLast' && conversation.open !== null
        ? 'a retry that was asked for'
        : null;
    case 'Error':
      if (event.type === 'RetryNow') return 'a retry that was asked for';
      return event.type === 'TimerFired' && event.timerId === before.timerId
        ? 'a retry that is due'
        : null;
    case 'Compacting': {
      if (event.type !== 'CompactionCompleted' || event.compactionId !== before.compactionId) break;
      const { mode } = before;
      if (mode.kind !== 'idle') return 'a summary in a turn';
      return mode.resume === 'sendAgain' || queue.length > 0 ? 'a summary before a turn' : null;
    }
    // Stryker disable next-line ConditionalExpression: nothing comes after the last case
    default:
      break;
  }
  const passes = (name: string): boolean => path.some(({ to }) => to === name);
  if (passes('GatheringAdditionalMessages')) return 'a batch that is over';
  const isReleased =
    passes('EndOfTurn') ||
    (passes('Cancelled') && before.session.settings.queueOnCancel === 'send');
  return isReleased && queue.length > 0 ? 'a queue that is released' : null;
};

/** Whether the same step raised the limit that had held the request back. */
const hasRaisedItself = (state: State): boolean =>
  state.name === 'WaitingForUserInput' &&
  state.reason.kind === 'budget' &&
  state.session.settings.autoRearm === 'on';

/**
 * Steps that must lead to a request or to the compaction before it, unless a session limit is
 * reached. Doing nothing is the fault that other invariants can't see.
 */
export const requiredRequestFaults = (
  before: State,
  event: Event,
  step: AgentStep,
): readonly string[] => {
  const { actions, state } = step;
  const reason = requestReason(before, event, step);
  if (reason === null || sessionLimit(state.session) !== null || hasRaisedItself(state)) return [];
  return actions.some(({ type }) => type === 'SendLlmRequest' || type === 'StartCompaction')
    ? []
    : [brokenRule('never-stuck', `${reason} leads to no request`)];
};

// ---- Work in flight ----

const inCall = (batchId: string, callId: string): string => `call ${batchId} ${callId}`;
const inApproval = (batchId: string, callId: string): string => `approval ${batchId} ${callId}`;
const inTimer = (timerId: string): string => `timer ${timerId}`;

/** The work in flight that a state names, each as its kind and ids. */
export const inFlight = (state: State): readonly string[] => {
  const limit = state.session.turn.timeLimit;
  const work = stateFlight(state);
  return limit === null ? work : [...work, inTimer(limit.timerId)];
};

const stateFlight = (state: State): readonly string[] => {
  switch (state.name) {
    case 'CallingLlm':
      return [`request ${state.requestId}`];
    case 'Error':
      return [inTimer(state.timerId)];
    case 'ExecutingTools':
      return batchFlight(state);
    case 'PostToolsHook':
      return [`hook ${state.hookId}`];
    case 'Compacting':
      return [`compaction ${state.compactionId}`];
    case 'Rewinding':
      return [`rewind ${state.rewindId}`];
    default:
      return [];
  }
};

const batchFlight = (
  state: Extract<State, { readonly name: 'ExecutingTools' }>,
): readonly string[] => {
  const work: string[] = [];
  for (const call of state.calls) {
    if (isAsked(call)) work.push(inApproval(state.batchId, call.judged.callId));
    if (!isRunning(call)) continue;
    work.push(inCall(state.batchId, call.judged.callId));
    if (call.graceTimerId !== null) work.push(inTimer(call.graceTimerId));
  }
  if (state.phase.mode === 'cancelling' && state.phase.graceTimerId !== null)
    work.push(inTimer(state.phase.graceTimerId));
  return work;
};

/** The work that an event ends, or null. */
export const endedBy = (event: Event): string | null => {
  switch (event.type) {
    case 'LlmCompleted':
    case 'LlmFailed':
    case 'PolicyStopped':
      return `request ${event.requestId}`;
    case 'ToolCompleted':
      return inCall(event.batchId, event.callId);
    case 'CallPreviewed':
    case 'ApprovalAnswered':
      return inApproval(event.batchId, event.callId);
    case 'HookCompleted':
    case 'HookFailed':
      return `hook ${event.hookId}`;
    case 'TimerFired':
      return inTimer(event.timerId);
    case 'CompactionCompleted':
    case 'CompactionFailed':
      return `compaction ${event.compactionId}`;
    case 'Rewound':
      return `rewind ${event.rewindId}`;
    default:
      return null;
  }
};

/** Adds the work that an action starts and removes the work that it ends. */
const applyToWork = (going: Set<string>, action: Action): void => {
  switch (action.type) {
    case 'SendLlmRequest':
      going.add(`request ${action.requestId}`);
      break;
    case 'AbortLlmRequest':
      going.delete(`request ${action.requestId}`);
      break;
    case 'ExecuteTools':
      for (const { callId } of action.calls) going.add(inCall(action.batchId, callId));
      break;
    case 'CancelTools':
      if (action.force)
        for (const callId of action.callIds) going.delete(inCall(action.batchId, callId));
      break;
    case 'PreviewCall':
    case 'RequestApproval':
      going.add(inApproval(action.batchId, action.call.callId));
      break;
    case 'WithdrawApproval':
      going.delete(inApproval(action.batchId, action.callId));
      break;
    case 'RunHook':
      going.add(`hook ${action.hookId}`);
      break;
    case 'AbortHook':
      going.delete(`hook ${action.hookId}`);
      break;
    case 'StartCompaction':
      going.add(`compaction ${action.compactionId}`);
      break;
    case 'AbortCompaction':
      going.delete(`compaction ${action.compactionId}`);
      break;
    case 'RestoreFiles':
      going.add(`rewind ${action.rewindId}`);
      break;
    case 'Shutdown': // a restore can't be aborted; the runtime waits for it before it asks to close
      for (const work of going) if (work.startsWith('rewind ')) going.delete(work);
      break;
    case 'ScheduleTimer':
      going.add(inTimer(action.timerId));
      break;
    case 'CancelTimer':
      going.delete(inTimer(action.timerId));
      break;
    // Stryker disable next-line ConditionalExpression: nothing comes after the last case
    default:
      break;
  }
};

/**
 * Work that the runtime settles in a resumed session, if the state still names it: started calls.
 */
const leftByCrash = (before: State, named: readonly string[]): readonly string[] => {
  if (before.name !== 'ExecutingTools') return [];
  const running = before.calls.filter((call) => call.status === 'running');
  return running
    .map(({ judged }) => inCall(before.batchId, judged.callId))
    .filter((id) => named.includes(id));
};

/**
 * Differences between the work in flight and the work that the state names
 * (rules.md#in-flight-is-named).
 *
 * 1. The next state names the work that a step starts. All work that it names was started and has
 *    not ended.
 * 2. Work that a state no longer names has answered, was aborted or never started: nothing is left
 *    running.
 */
export const flightFaults = (before: State, event: Event, step: AgentStep): readonly string[] => {
  const { state, actions } = step;
  if (state === before && actions.length === 0) return [];
  const named = inFlight(state);
  const going = new Set(event.type === 'Resumed' ? leftByCrash(before, named) : inFlight(before));
  const ended = endedBy(event);
  // The time limit of a turn that is already being stopped has no effect, and the state still names
  // it.
  if (ended !== null && !(event.type === 'TimerFired' && named.includes(ended)))
    going.delete(ended);
  for (const action of actions) applyToWork(going, action);
  const lost = named.filter((id) => !going.delete(id));
  return [
    ...[...going].map((id) =>
      brokenRule('in-flight-is-named', `${id} goes on, and ${state.name} does not know it`),
    ),
    ...lost.map((id) =>
      brokenRule('in-flight-is-named', `${state.name} waits for ${id}, which is not going on`),
    ),
  ];
};

// ---- Broken rules ----

/**
 * The rules of docs/design/rules.md that are checked here and while exploring;
 * test/docs/rules.test.ts looks them up.
 */
type RuleName =
  | 'append-only'
  | 'ask-before-call'
  | 'back-to-the-user'
  | 'bounded-work'
  | 'call-order'
  | 'deterministic'
  | 'every-call-answered'
  | 'fallback'
  | 'grace-period'
  | 'hook-veto'
  | 'in-flight-is-named'
  | 'limit-before-call'
  | 'limit-before-request'
  | 'never-stuck'
  | 'no-silent-event'
  | 'nothing-to-wait-for'
  | 'nothing-typed-is-lost'
  | 'one-request'
  | 'reserve-before-request'
  | 'roles-alternate'
  | 'shutdown'
  | 'stale-events'
  | 'usage-counts-once';

/** Describes a broken rule, beginning with its anchor in docs/design/rules.md. */
export const brokenRule = (rule: RuleName, what: string): string => `${rule}: ${what}`;
