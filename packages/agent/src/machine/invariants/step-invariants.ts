import type { Edge, Step } from '@pawl/machine/kernel/step-types';
import type { Action } from '../action.js';
import { brokenRule } from '../broken-rule-text.js';
import type { Event, StopReason } from '../event.js';
import { hasSessionLimit, sessionLimit } from '../moves/budget.js';
import { spendingIn } from '../moves/tools/start-calls.js';
import { isRunning, isWaiting } from '../moves/tools/tool-batch.js';
import type { State, WaitReason } from '../state.js';
import type { Usage } from '../values/usage.js';
import { endedBy, flightFaults, inFlight } from './in-flight-invariants.js';

/**
 * Rules of docs/rules.md that hold for every step, beside those of state-invariants.ts.
 */

type Taken = Step<State, Action>;

/** The rules that a step breaks, each as a sentence that begins with the rule's anchor. */
export const stepFaults = (before: State, event: Event, step: Taken): readonly string[] => [
  ...staleFaults(before, event, step),
  ...usageFaults(before, event, step.state),
  ...restFaults(before, event, step),
  ...orderFaults(step),
  ...heardFaults(before, event, step),
  ...budgetFaults(before, step),
  ...flightFaults(before, event, step),
];

// ---- docs/rules.md#stale-events ----

/** Whether an event answers no work in flight. */
const isStale = (before: State, event: Event): boolean => {
  switch (event.type) {
    case 'TextDelta':
    case 'ReasoningDelta':
    case 'ToolCallDelta':
      return before.name !== 'CallingLlm' || before.requestId !== event.requestId;
    case 'ToolStarted':
      return statusOf(before, event) !== 'starting';
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

const statusOf = (state: State, about: { readonly batchId: string; readonly callId: string }) =>
  state.name === 'ExecutingTools' && state.batchId === about.batchId
    ? state.calls.find(({ judged }) => judged.callId === about.callId)?.status
    : undefined;

/** Whether two values differ in fields other than the given ones. */
const differs = <T extends object>(one: T, other: T, but: readonly string[]): boolean =>
  // Object.keys of a T are keys of T; both values have the same ones.
  (Object.keys(one) as (keyof T & string)[]).some((key) => !but.includes(key) && one[key] !== other[key]);

const staleFaults = (
  before: State,
  event: Event,
  { state, actions, diagnostics }: Taken,
): readonly string[] => {
  if (!isStale(before, event)) return [];
  const faults =
    diagnostics.length === 0 ? [brokenRule('stale-events', `a stale ${event.type} left no diagnostic`)] : [];
  const changed =
    differs(before, state, ['session']) || differs(before.session, state.session, ['usage', 'unaccounted']);
  return changed || actions.length > 0
    ? [...faults, brokenRule('stale-events', `a stale ${event.type} changed ${before.name}`)]
    : faults;
};

// ---- docs/rules.md#usage-counts-once ----

/** The usage in an event and the id under which it counts. */
const usageIn = (event: Event): { readonly id: string; readonly usage: Usage | null } | null => {
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
  const found = usageIn(event);
  const isDue = found !== null && before.session.unaccounted.includes(found.id);
  const due = isDue ? (found.usage?.costUsd ?? 0) : 0;
  const dueTokens = isDue ? (found.usage?.inputTokens ?? 0) : 0;
  const counted = session.usage.costUsd - before.session.usage.costUsd;
  const countedTokens = session.usage.inputTokens - before.session.usage.inputTokens;
  // Sums of prices are not exact.
  return Math.abs(counted - due) < 1e-9 && countedTokens === dueTokens
    ? []
    : [
        brokenRule(
          'usage-counts-once',
          `${event.type} is to count $${due} and ${dueTokens} tokens, and counted $${counted} and ${countedTokens}`,
        ),
      ];
};

// ---- docs/rules.md#back-to-the-user ----

const restFaults = (before: State, event: Event, step: Taken): readonly string[] => {
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
    ...(entered && asked !== 1 ? [brokenRule('back-to-the-user', `the user is asked ${asked} times`)] : []),
    ...(state.next === 'rest'
      ? []
      : [brokenRule('nothing-to-wait-for', `a rest that would go on (${state.next})`)]),
    ...reasonFaults(before, event, path, state.reason),
  ];
};

const STOPS = new Set(['Cancelled', 'BudgetExceeded', 'Failed']);
const TOLD = new Set<Action['type']>(['DisplayNotice', 'DisplayError']);

/** A turn that is stopped says why. */
const stopFaults = (path: readonly Edge[], actions: readonly Action[]): readonly string[] => {
  const stop = path.find((edge) => STOPS.has(edge.to));
  if (stop === undefined || actions.some(({ type }) => TOLD.has(type))) return [];
  return [brokenRule('back-to-the-user', `${stop.to} was passed, and the user is not told`)];
};

/** The reason names what led there. */
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
  const said = 'cause' in reason ? `${reason.kind} ${reason.cause}` : reason.kind;
  return expected === null || said === expected || reason.kind === 'budget'
    ? []
    : [brokenRule('back-to-the-user', `the reason is ${said} where it should be ${expected}`)];
};

const expectedReason = (before: State, event: Event, into: Edge, stop: Edge | undefined): string | null => {
  switch (into.from) {
    case 'Ready':
      return 'start';
    case 'ShuttingDown':
      return 'resumed';
    case 'EndOfTurn':
      return event.type === 'LlmCompleted' ? `endOfTurn ${endOf(event)}` : null;
    case 'Failed':
      return 'error';
    case 'BudgetExceeded':
      return 'budget';
    case 'Cancelled':
      return `cancelled ${stopCauseOf(before, event, stop)}`;
    case 'Compacting':
      return event.type === 'CompactionCompleted' ? 'compacted' : 'error';
    default:
      return null;
  }
};

const CUT_SHORT = new Set<StopReason>(['refusal', 'contentFilter', 'other']);

const endOf = (event: Extract<Event, { readonly type: 'LlmCompleted' }>): string => {
  if (CUT_SHORT.has(event.stopReason)) return 'refused';
  if (event.stopReason === 'maxTokens') return 'truncated';
  const said = event.message?.parts.some((part) => part.type === 'text' && part.text.trim() !== '') === true;
  return said ? 'answer' : 'empty';
};

const stopCauseOf = (before: State, event: Event, stop: Edge | undefined): string => {
  if (event.type === 'PolicyStopped') return 'policy';
  if (stop?.from === 'PostToolsHook') return event.type === 'HookCompleted' ? 'veto' : 'user';
  const asked =
    event.type === 'CancelTurn' || (before.name === 'ExecutingTools' && before.phase.mode === 'cancelling');
  return stop?.from === 'ExecutingTools' && !asked ? 'approval' : 'user';
};

// ---- docs/rules.md#call-order ----

/** Calls start in call order: no started call comes after a waiting one. */
const orderFaults = ({ state, actions }: Taken): readonly string[] => {
  if (state.name !== 'ExecutingTools' || !actions.some(({ type }) => type === 'ExecuteTools')) return [];
  const first = state.calls.findIndex(isWaiting);
  if (first < 0) return [];
  return state.calls
    .slice(first)
    .filter(isRunning)
    .map(({ judged }) =>
      brokenRule('call-order', `${judged.callId} runs before a call that was asked for first`),
    );
};

// ---- docs/rules.md#hook-veto, docs/rules.md#grace-period ----

/** A stopped turn starts no hook and no further round. */
const heardFaults = (before: State, event: Event, { path }: Taken): readonly string[] => {
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

// ---- docs/rules.md#limit-before-request, docs/rules.md#limit-before-call ----

/** At a session limit no request, compaction or call starts. A spending call runs alone. */
const budgetFaults = (before: State, { state, actions }: Taken): readonly string[] => {
  const { session } = state;
  const starts = (type: Action['type']): boolean => actions.some((action) => action.type === type);
  const faults: string[] = [];
  if (sessionLimit(session) !== null) {
    if (starts('SendLlmRequest'))
      faults.push(brokenRule('limit-before-request', 'a request is sent at a limit of the session'));
    if (starts('StartCompaction'))
      faults.push(brokenRule('limit-before-request', 'a compaction starts at a limit of the session'));
    if (starts('ExecuteTools'))
      faults.push(brokenRule('limit-before-call', 'calls start at a limit of the session'));
  }
  const spending = hasSessionLimit(session) && starts('ExecuteTools') ? spendingIn(state) : [];
  if (spending.length > 1 && spendingIn(before).length < spending.length)
    faults.push(brokenRule('limit-before-call', 'two calls that spend were handed the same budget'));
  return faults;
};
