/**
 * Projects our steps to the machines of seeds 000 and Loom: seeds with a model call, its retry, its
 * tools and at most one hook. A seed is a published text about an agent, whose table is in
 * seed-*.ts; `SeedWords` gives the names that it has for events and actions.
 *
 * 1. Each call of a reply is one ToolCompleted. The last of a batch leaves ExecutingTools.
 * 2. Stops that the seed does not know (cancel, budget, veto, a final failure) appear as a call
 *    that fails at its retry limit. `refusals` has, for each state of the seed, its steps from
 *    there until it waits for the user.
 * 3. An action of the seed counts only if our machine did something of the kind in the same step
 *    (`witnesses`), or if the step is `supposed`. Otherwise the seed does nothing in it (`waits`).
 *
 * The main function, `projectSeed`, is the last.
 */

import type { Action, ActionType } from '@pawl/agent/machine/action';
import type { Event, FailureOrigin } from '@pawl/agent/machine/event';
import { isEnded } from '@pawl/agent/machine/moves/batch-calls';
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

/** `supposed`: the seed must take the step, and ours has no counterpart. Needs no witness. */
type SeedStep = ProjectedStep & { readonly supposed?: true };

export type SeedWords = {
  readonly edges: readonly ProjectionEdge[];
  readonly begin: ProjectionCursor;
  /** The action for doing nothing. */
  readonly waits: string;
  /** The action after a failure that will be retried. */
  readonly schedules: string;
  /** Its events: a reply came, a call failed, the wait for a retry is over, the hook has ended. */
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
  /** By state: the seed's steps until it waits for the user, for a stop that it does not know. */
  readonly refusals: Readonly<Record<string, readonly SeedStep[]>>;
  /** Our actions of which one must accompany the seed's action. */
  readonly witnesses: Readonly<Record<string, readonly ActionType[]>>;
};

/** The only edge of such seeds that no run takes, with the reason. */
export const unreachedArrow = {
  'ProcessingLlmResponse/ShutdownRequested/ShuttingDown':
    'ProcessingLlmResponse never rests, in the program of the seed either: no event can meet it',
};

/** One of our steps, with the facts that the projection needs. */
type OurStep = {
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
  // Stryker disable next-line ConditionalExpression: asked before
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

const has = ({ step }: OurStep, type: ActionType): boolean =>
  step.actions.some((action) => action.type === type);

/** Whether the step goes through a stop that the seed does not know. */
const isUnknownStop = ({ step }: OurStep): boolean =>
  step.path.some((edge) => edge.to === 'BudgetExceeded');

/** The seed sends a request. Without a counterpart in ours if a stop came in between. */
const sendRequest = (event: string, ours?: OurStep): SeedStep => ({
  event,
  to: CALLING,
  action: 'SendLlmRequest',
  ...(ours !== undefined && isUnknownStop(ours) ? { supposed: true } : {}),
});

const repeatToolCompleted = (seed: SeedWords, count: number): readonly SeedStep[] =>
  Array.from({ length: Math.max(0, count) }, () => ({
    event: 'ToolCompleted',
    to: TOOLS,
    action: seed.waits,
  }));

/** The turn ends with the reply, whose text was shown now or while it streamed. */
const projectAnswer = (seed: SeedWords, { before, event }: OurStep): SeedStep => {
  // Stryker disable next-line ConditionalExpression,OptionalChaining: asked before
  const parts = event.type === 'LlmCompleted' ? (event.message?.parts ?? []) : [];
  const hasText = parts.some((part) => part.type === 'text' && part.text.trim() !== '');
  // Stryker disable next-line ConditionalExpression: asked before
  const streamed = before.name === CALLING && before.partial !== '';
  const action = hasText ? seed.answers.text : seed.answers.none;
  return { event: null, to: WAITING, action, ...(streamed ? { supposed: true } : {}) };
};

/** The hook ended. In seeds with warnings a warning replaces the request. */
const projectHookEnd = (seed: SeedWords, ours: OurStep): SeedStep => {
  const warned = ours.step.actions.some(
    // Stryker disable next-line ConditionalExpression: asked for the compiler
    (action) => action.type === 'DisplayWarning' && action.kind === 'hook',
  );
  return warned && seed.warns !== null
    ? { event: seed.hooked, to: CALLING, action: seed.warns }
    : sendRequest(seed.hooked, ours);
};

const projectHookStart = (seed: SeedWords, { step }: OurStep): readonly SeedStep[] => {
  // If it does not rest there, our machine had no hook to run.
  const rests = step.state.name === HOOK;
  if (seed.hook === 'hidden' || (seed.hook === 'ifRun' && !rests)) return [];
  const ran: SeedStep = { event: 'ToolCompleted', to: HOOK, action: seed.runs };
  return [rests ? ran : { ...ran, supposed: true }];
};

/** Our machine has left tools and hooks (CheckingBudget): the seed sends their results. */
const projectToolsEnd = (seed: SeedWords, ours: OurStep, state: string): readonly SeedStep[] => {
  if (state === TOOLS) return [sendRequest('ToolCompleted', ours)];
  // Stryker disable next-line ConditionalExpression: asked before
  return state === HOOK ? [projectHookEnd(seed, ours)] : [];
};

/** A request for a message, or after a wait. One with results goes with the end of the tools. */
const projectCall = (seed: SeedWords, ours: OurStep, state: string): readonly SeedStep[] => {
  if (state === WAITING) return [sendRequest('UserInput', ours)];
  return state === 'Error' ? [sendRequest(seed.retried, ours)] : [];
};

/** A compaction before the user's message is sent counts as the seed's call. */
const projectCompaction = ({ step: { state } }: OurStep, from: string): readonly SeedStep[] => {
  const sendsLater =
    // Stryker disable next-line ConditionalExpression,LogicalOperator: asked for the compiler
    state.name === 'Compacting' && state.mode.kind === 'idle' && state.mode.resume !== 'rest';
  // Stryker disable next-line ConditionalExpression: asked before
  return sendsLater && from === WAITING ? [sendRequest('UserInput')] : [];
};

const projectEdge = (
  seed: SeedWords,
  ours: OurStep,
  state: string,
  edge: Edge,
): readonly SeedStep[] => {
  switch (edge.to) {
    case PROCESSING:
      return [{ event: seed.completed, to: PROCESSING, action: null }];
    case CALLING:
      return projectCall(seed, ours, state);
    case 'Error':
      return [{ event: seed.failed, to: 'Error', action: seed.schedules }];
    case TOOLS:
      return [{ event: null, to: TOOLS, action: 'ExecuteTools' }];
    case HOOK:
      return edge.from === TOOLS ? projectHookStart(seed, ours) : [];
    case 'CheckingBudget':
      return projectToolsEnd(seed, ours, state);
    case 'Compacting':
      return projectCompaction(ours, state);
    case 'Cancelled':
    case 'BudgetExceeded':
    case 'Failed':
      return seed.refusals[state] ?? [];
    case WAITING:
      return edge.from === 'EndOfTurn' ? [projectAnswer(seed, ours)] : [];
    case 'ShuttingDown':
      return [{ event: 'ShutdownRequested', to: 'ShuttingDown', action: 'Shutdown' }];
    default:
      return [];
  }
};

/** Events that stay in our state but are steps of the seed. */
const projectStay = (seed: SeedWords, { before, event }: OurStep): readonly SeedStep[] => {
  if (event.type === 'ShutdownRequested' && before.name === 'ShuttingDown') {
    return [{ event: event.type, to: before.name, action: 'Shutdown' }];
  }
  if (event.type !== 'TextDelta' && event.type !== 'ToolCallDelta') return [];
  // Stryker disable next-line ConditionalExpression: asked for the compiler
  if (seed.streams === null || before.name !== CALLING || before.requestId !== event.requestId)
    return [];
  return [
    {
      event: event.type,
      to: CALLING,
      // Stryker disable next-line ConditionalExpression: the action needs its witness
      action: event.type === 'TextDelta' ? seed.streams : seed.waits,
    },
  ];
};

const isWitnessed = (seed: SeedWords, ours: OurStep, { action, supposed }: SeedStep): boolean => {
  // Stryker disable next-line ConditionalExpression: asked for the compiler
  const witnesses = action === null ? undefined : seed.witnesses[action];
  return supposed === true || witnesses === undefined || witnesses.some((type) => has(ours, type));
};

/** The origin of the failure in a step; null if there is none. */
const getFailureOrigin = ({ step: { state, path } }: OurStep): FailureOrigin | null => {
  if (state.name === WAITING && state.reason.kind === 'error') return state.reason.origin;
  return path.some(({ to }) => to === 'Error') ? 'llm' : null;
};

/** The seed's machine during one of our steps. */
type SeedPath = { state: string; readonly steps: ProjectionStep[] };

/** Projects one of our steps to the seed. */
export const projectSeed = (seed: SeedWords): Projection['project'] => {
  const findStep = stepFinder(seed.edges);

  const addSteps = (seedPath: SeedPath, ours: OurStep, steps: readonly SeedStep[]): void => {
    for (const step of steps) {
      const action = isWitnessed(seed, ours, step) ? step.action : seed.waits;
      const projected = findStep(seedPath.state, { ...step, action });
      const origin =
        step.event === seed.failed && seed.origins === 'named' ? getFailureOrigin(ours) : null;
      seedPath.steps.push(origin === null ? projected : { ...projected, origin });
      seedPath.state = step.to;
    }
  };

  const followEdge = (seedPath: SeedPath, ours: OurStep, edge: Edge): void => {
    if (edge.from === 'ShuttingDown') seedPath.state = seed.begin.state; // a new trace
    // The last call that ended leaves the state. A shutdown ends the batch without results.
    if (edge.from === TOOLS && edge.to !== 'ShuttingDown')
      addSteps(seedPath, ours, repeatToolCompleted(seed, ours.ended - 1));
    addSteps(seedPath, ours, projectEdge(seed, ours, seedPath.state, edge));
  };

  return (cursor, before, event, step) => {
    // Stryker disable next-line ConditionalExpression: a shortcut
    if (step.path.length === 0) return { cursor, steps: [] };
    const ours: OurStep = { before, event, step, ended: countEnded(before, event, step) };
    const seedPath: SeedPath = { state: cursor.state, steps: [] };
    addSteps(seedPath, ours, projectStay(seed, ours));
    // A step of ours may take several edges. projectStay has seen those that stay.
    for (const edge of step.path) if (edge.kind === 'go') followEdge(seedPath, ours, edge);
    if (step.state.name === TOOLS) addSteps(seedPath, ours, repeatToolCompleted(seed, ours.ended));
    // The compaction was for a message that was removed or is held back by a limit.
    if (step.state.name === WAITING) addSteps(seedPath, ours, seed.refusals[seedPath.state] ?? []);
    return { cursor: { state: seedPath.state }, steps: seedPath.steps };
  };
};
