/**
 * Projection for seeds with a call, its retry, its tools and at most one hook (000, Loom).
 *
 * 1. Each call of a reply is one ToolCompleted. The last of a batch leaves ExecutingTools.
 * 2. Stops that the seed does not know (cancel, budget, veto, a final failure) appear as a call
 *    that fails at its retry limit. `refusals` has the path there from each state.
 * 3. An action counts only if our machine did something of the kind (`witnesses`), or on such a
 *    path.
 */

import type { Action, ActionType } from '@pawl/agent/machine/action';
import type { Event, FailureOrigin } from '@pawl/agent/machine/event';
import { isEnded } from '@pawl/agent/machine/moves/tool-batch';
import type { State } from '@pawl/agent/machine/state';
import type { Edge, Step } from '@pawl/machine/kernel/table';
import {
  type ProjectedStep,
  type Projection,
  type ProjectionCursor,
  type ProjectionEdge,
  type ProjectionStep,
  stepFinder,
} from './projection.js';

/** `supposed`: a step of the seed without a counterpart in ours. */
type SeedStep = ProjectedStep & { readonly supposed?: true };

export type SeedWords = {
  readonly edges: readonly ProjectionEdge[];
  readonly begin: ProjectionCursor;
  /** The action for doing nothing. */
  readonly waits: string;
  /** The action after a failure that will be retried. */
  readonly schedules: string;
  readonly completed: string;
  readonly failed: string;
  readonly retried: string;
  readonly hooked: string;
  /** The action that runs the hook. */
  readonly runs: string;
  /** `hidden`: ends with the batch. `ifRun`: appears if it runs. `always`: is never skipped. */
  readonly hook: 'hidden' | 'ifRun' | 'always';
  /** The action for streamed text; null if the seed does not stream. */
  readonly streams: string | null;
  /** Whether its errors name their origin. */
  readonly origins: 'named' | 'none';
  /** The action at the end of a turn, for a reply with and without text. */
  readonly answers: { readonly text: string; readonly none: string };
  /** The action for a hook's warning; null if the seed's hooks have none. */
  readonly warns: string | null;
  /** The path out of each state for stops that the seed does not know. */
  readonly refusals: Readonly<Record<string, readonly SeedStep[]>>;
  /** Our actions of which one must accompany the seed's action. */
  readonly witnesses: Readonly<Record<string, readonly ActionType[]>>;
};

/** The only edge of such seeds that no run takes. */
export const unreachedArrow = {
  'ProcessingLlmResponse/ShutdownRequested/ShuttingDown':
    'ProcessingLlmResponse never rests, in the program of the seed either: no event can meet it',
};

/** One of our steps, with the facts that the projection needs. */
type Seen = {
  readonly before: State;
  readonly event: Event;
  readonly step: Step<State, Action>;
  /** Calls of the batch that ended in this step. */
  readonly ended: number;
};

const [WAITING, CALLING, PROCESSING, TOOLS, HOOK] = [
  'WaitingForUserInput',
  'CallingLlm',
  'ProcessingLlmResponse',
  'ExecutingTools',
  'PostToolsHook',
] as const;

const countEndedCalls = (state: State): number =>
  state.name === TOOLS ? state.calls.filter(isEnded).length : 0;

const countCalls = (before: State, event: Event): number => {
  if (before.name === TOOLS) return before.calls.length;
  return event.type === 'LlmCompleted' ? event.calls.length : 0;
};

/** Number of calls that ended in the step; all of them if it leaves the batch. */
const countEnded = (before: State, event: Event, step: Step<State, Action>): number => {
  const leavesBatch = step.path.some((edge) => edge.from === TOOLS && edge.kind === 'go');
  return (
    (leavesBatch ? countCalls(before, event) : countEndedCalls(step.state)) -
    countEndedCalls(before)
  );
};

const has = ({ step }: Seen, type: ActionType): boolean =>
  step.actions.some((action) => action.type === type);

/** Whether the step goes through a stop that the seed does not know. */
const isUnknownStop = ({ step }: Seen): boolean =>
  step.path.some((edge) => edge.to === 'BudgetExceeded');

const sendRequest = (event: string, seen?: Seen): SeedStep => ({
  event,
  to: CALLING,
  action: 'SendLlmRequest',
  ...(seen !== undefined && isUnknownStop(seen) ? { supposed: true } : {}),
});

const repeatToolCompleted = (seed: SeedWords, count: number): readonly SeedStep[] =>
  Array.from({ length: Math.max(0, count) }, () => ({
    event: 'ToolCompleted',
    to: TOOLS,
    action: seed.waits,
  }));

/** The turn ends with the reply, whose text was shown now or while it streamed. */
const projectAnswer = (seed: SeedWords, { before, event }: Seen): SeedStep => {
  const parts = event.type === 'LlmCompleted' ? (event.message?.parts ?? []) : [];
  const hasText = parts.some((part) => part.type === 'text' && part.text.trim() !== '');
  const streamed = before.name === CALLING && before.partial !== '';
  const action = hasText ? seed.answers.text : seed.answers.none;
  return { event: null, to: WAITING, action, ...(streamed ? { supposed: true } : {}) };
};

/** The hook ended. In seeds with warnings a warning replaces the request. */
const projectHookEnd = (seed: SeedWords, seen: Seen): SeedStep => {
  const warned = seen.step.actions.some(
    (action) => action.type === 'DisplayWarning' && action.kind === 'hook',
  );
  return warned && seed.warns !== null
    ? { event: seed.hooked, to: CALLING, action: seed.warns }
    : sendRequest(seed.hooked, seen);
};

const projectHookStart = (seed: SeedWords, { step }: Seen): readonly SeedStep[] => {
  const rests = step.state.name === HOOK;
  if (seed.hook === 'hidden' || (seed.hook === 'ifRun' && !rests)) return [];
  const ran: SeedStep = { event: 'ToolCompleted', to: HOOK, action: seed.runs };
  return [rests ? ran : { ...ran, supposed: true }];
};

const projectToolsEnd = (seed: SeedWords, seen: Seen, state: string): readonly SeedStep[] => {
  if (state === TOOLS) return [sendRequest('ToolCompleted', seen)];
  return state === HOOK ? [projectHookEnd(seed, seen)] : [];
};

const projectCall = (seed: SeedWords, seen: Seen, state: string): readonly SeedStep[] => {
  if (state === WAITING) return [sendRequest('UserInput', seen)];
  return state === 'Error' ? [sendRequest(seed.retried, seen)] : [];
};

/** A compaction before the user's message is sent counts as the seed's call. */
const projectCompaction = ({ step: { state } }: Seen, from: string): readonly SeedStep[] => {
  const sendsLater =
    state.name === 'Compacting' && state.mode.kind === 'idle' && state.mode.resume !== 'rest';
  return sendsLater && from === WAITING ? [sendRequest('UserInput')] : [];
};

const projectEdge = (
  seed: SeedWords,
  seen: Seen,
  state: string,
  edge: Edge,
): readonly SeedStep[] => {
  switch (edge.to) {
    case PROCESSING:
      return [{ event: seed.completed, to: PROCESSING, action: null }];
    case CALLING:
      return projectCall(seed, seen, state);
    case 'Error':
      return [{ event: seed.failed, to: 'Error', action: seed.schedules }];
    case TOOLS:
      return [{ event: null, to: TOOLS, action: 'ExecuteTools' }];
    case HOOK:
      return edge.from === TOOLS ? projectHookStart(seed, seen) : [];
    case 'CheckingBudget':
      return projectToolsEnd(seed, seen, state);
    case 'Compacting':
      return projectCompaction(seen, state);
    case 'Cancelled':
    case 'BudgetExceeded':
    case 'Failed':
      return seed.refusals[state] ?? [];
    case WAITING:
      return edge.from === 'EndOfTurn' ? [projectAnswer(seed, seen)] : [];
    case 'ShuttingDown':
      return [{ event: 'ShutdownRequested', to: 'ShuttingDown', action: 'Shutdown' }];
    default:
      return [];
  }
};

/** Events that stay in our state but are steps of the seed. */
const projectStay = (seed: SeedWords, { before, event }: Seen): readonly SeedStep[] => {
  if (event.type === 'ShutdownRequested' && before.name === 'ShuttingDown') {
    return [{ event: event.type, to: before.name, action: 'Shutdown' }];
  }
  if (event.type !== 'TextDelta' && event.type !== 'ToolCallDelta') return [];
  if (seed.streams === null || before.name !== CALLING || before.requestId !== event.requestId)
    return [];
  return [
    {
      event: event.type,
      to: CALLING,
      action: event.type === 'TextDelta' ? seed.streams : seed.waits,
    },
  ];
};

const isWitnessed = (seed: SeedWords, seen: Seen, { action, supposed }: SeedStep): boolean => {
  const witnesses = action === null ? undefined : seed.witnesses[action];
  return supposed === true || witnesses === undefined || witnesses.some((type) => has(seen, type));
};

/** The origin of the failure in a step; null if there is none. */
const getFailureOrigin = ({ step: { state, path } }: Seen): FailureOrigin | null => {
  if (state.name === WAITING && state.reason.kind === 'error') return state.reason.origin;
  return path.some(({ to }) => to === 'Error') ? 'llm' : null;
};

/** The seed's machine during one of our steps. */
type Way = { state: string; readonly steps: ProjectionStep[] };

/** Projects one of our steps to the seed. */
export const projectSeed = (seed: SeedWords): Projection['project'] => {
  const findStep = stepFinder(seed.edges);

  const addSteps = (way: Way, seen: Seen, steps: readonly SeedStep[]): void => {
    for (const step of steps) {
      const action = isWitnessed(seed, seen, step) ? step.action : seed.waits;
      const projected = findStep(way.state, { ...step, action });
      const origin =
        step.event === seed.failed && seed.origins === 'named' ? getFailureOrigin(seen) : null;
      way.steps.push(origin === null ? projected : { ...projected, origin });
      way.state = step.to;
    }
  };

  const followEdge = (way: Way, seen: Seen, edge: Edge): void => {
    if (edge.from === 'ShuttingDown') way.state = seed.begin.state; // a new trace
    if (edge.from === TOOLS && edge.to !== 'ShuttingDown')
      addSteps(way, seen, repeatToolCompleted(seed, seen.ended - 1));
    addSteps(way, seen, projectEdge(seed, seen, way.state, edge));
  };

  return (cursor, before, event, step) => {
    if (step.path.length === 0) return { cursor, steps: [] };
    const seen: Seen = { before, event, step, ended: countEnded(before, event, step) };
    const way: Way = { state: cursor.state, steps: [] };
    addSteps(way, seen, projectStay(seed, seen));
    for (const edge of step.path) if (edge.kind === 'go') followEdge(way, seen, edge);
    if (step.state.name === TOOLS) addSteps(way, seen, repeatToolCompleted(seed, seen.ended));
    // The compaction was for a message that was removed or is held back by a limit.
    if (step.state.name === WAITING) addSteps(way, seen, seed.refusals[way.state] ?? []);
    return { cursor: { state: way.state }, steps: way.steps };
  };
};
