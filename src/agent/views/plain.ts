import type { Edge, Step } from '../../kernel/step.js';
import type { Action, ActionType } from '../action.js';
import type { Event } from '../event.js';
import { isEnded } from '../moves/batch.js';
import type { State } from '../state.js';
import { type Said, stepsOf } from './arrows.js';
import type { View, ViewCursor, ViewEdge, ViewStep } from './view.js';

/**
 * The projection for seeds that know a call, its retry, its tools and at most a hook (000, Loom).
 *
 * 1. Each call of a reply is one ToolCompleted; the last of a batch leaves ExecutingTools.
 * 2. What such a seed does not know (cancel, budget, veto, a failure that is not retried) is a call that is refused at
 *    its retry limit without having been sent: `refusals` says how it gets there from each state.
 * 3. An action counts only if our machine did something of the kind (`witnesses`), or if the step is such a detour.
 */

/** `supposed`: the seed's machine would do it; ours has no reason to. */
type Told = Said & { readonly supposed?: true };

export type Plain = {
  readonly edges: readonly ViewEdge[];
  readonly begin: ViewCursor;
  /** What it answers where it has nothing to do. */
  readonly waits: string;
  /** What a failed call that will be tried again is answered with. */
  readonly schedules: string;
  readonly completed: string;
  readonly failed: string;
  readonly retried: string;
  readonly hooked: string;
  /** The action that runs the hook. */
  readonly runs: string;
  /** `hidden`: the batch ends when the hook has ended. `wanted`: the hook is seen when it runs. `always`: it is never skipped. */
  readonly hook: 'hidden' | 'wanted' | 'always';
  /** The action for a piece of text; null where the seed does not stream. */
  readonly streams: string | null;
  /** What ends a turn: `text` where the reply has one, `none` where not. */
  readonly answers: { readonly text: string; readonly none: string };
  /** What the user is told of a hook with a warning; null where the seed's hooks have none. */
  readonly warns: string | null;
  /** The way out of each state for stops that the seed does not know. */
  readonly refusals: Readonly<Record<string, readonly Told[]>>;
  /** Actions of ours of which one must be there where the seed's action is said. */
  readonly witnesses: Readonly<Record<string, readonly ActionType[]>>;
};

/** The one arrow of such seeds that no run takes. */
export const neverRests = {
  'ProcessingLlmResponse/ShutdownRequested/ShuttingDown':
    'ProcessingLlmResponse never rests, in the program of the seed either: no event can meet it',
};

/** A step of ours with what the projection asks of it. */
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

const endedIn = (state: State): number => (state.name === TOOLS ? state.calls.filter(isEnded).length : 0);

const callsOf = (before: State, event: Event): number => {
  if (before.name === TOOLS) return before.calls.length;
  return event.type === 'LlmCompleted' ? event.calls.length : 0;
};

/** Entered and left in one step, a batch ends as a whole. */
const countEnded = (before: State, event: Event, step: Step<State, Action>): number => {
  const left = step.path.some((edge) => edge.from === TOOLS && edge.kind === 'go');
  return (left ? callsOf(before, event) : endedIn(step.state)) - endedIn(before);
};

const has = ({ step }: Seen, type: ActionType): boolean =>
  step.actions.some((action) => action.type === type);

/** Whether the step goes through a stop that the seed does not know. */
const isStopped = ({ step }: Seen): boolean => step.path.some((edge) => edge.to === 'BudgetExceeded');

const sends = (event: string, seen?: Seen): Told => ({
  event,
  to: CALLING,
  action: 'SendLlmRequest',
  ...(seen !== undefined && isStopped(seen) ? { supposed: true } : {}),
});

const pending = (seed: Plain, count: number): readonly Told[] =>
  Array.from({ length: Math.max(0, count) }, () => ({
    event: 'ToolCompleted',
    to: TOOLS,
    action: seed.waits,
  }));

/** The turn ends with the reply: its text was shown, now or while it came. */
const answered = (seed: Plain, { before, event }: Seen): Told => {
  const parts = event.type === 'LlmCompleted' ? (event.message?.parts ?? []) : [];
  const hasText = parts.some((part) => part.type === 'text' && part.text.trim() !== '');
  const streamed = before.name === CALLING && before.partial !== '';
  const action = hasText ? seed.answers.text : seed.answers.none;
  return { event: null, to: WAITING, action, ...(streamed ? { supposed: true } : {}) };
};

/** The hook ended: a warning takes the place of the request where the seed has warnings. */
const hookEnded = (seed: Plain, seen: Seen): Told => {
  const warned = seen.step.actions.some(
    (action) => action.type === 'DisplayWarning' && action.kind === 'hook',
  );
  return warned && seed.warns !== null
    ? { event: seed.hooked, to: CALLING, action: seed.warns }
    : sends(seed.hooked, seen);
};

const runsHook = (seed: Plain, { step }: Seen): readonly Told[] => {
  const rests = step.state.name === HOOK;
  if (seed.hook === 'hidden' || (seed.hook === 'wanted' && !rests)) return [];
  const ran: Told = { event: 'ToolCompleted', to: HOOK, action: seed.runs };
  return [rests ? ran : { ...ran, supposed: true }];
};

const afterTools = (seed: Plain, seen: Seen, state: string): readonly Told[] => {
  if (state === TOOLS) return [sends('ToolCompleted', seen)];
  return state === HOOK ? [hookEnded(seed, seen)] : [];
};

const calls = (seed: Plain, seen: Seen, state: string): readonly Told[] => {
  if (state === WAITING) return [sends('UserInput', seen)];
  return state === 'Error' ? [sends(seed.retried)] : [];
};

/** A summary is made before the user's message is sent: to the seed the call is under way. */
const compacts = ({ step: { state } }: Seen, from: string): readonly Told[] => {
  const sendsLater =
    state.name === 'Compacting' && state.mode.kind === 'idle' && state.mode.resume !== 'rest';
  return sendsLater && from === WAITING ? [sends('UserInput')] : [];
};

const toldOf = (seed: Plain, seen: Seen, state: string, edge: Edge): readonly Told[] => {
  switch (edge.to) {
    case PROCESSING:
      return [{ event: seed.completed, to: PROCESSING, action: null }];
    case CALLING:
      return calls(seed, seen, state);
    case 'Error':
      return [{ event: seed.failed, to: 'Error', action: seed.schedules }];
    case TOOLS:
      return [{ event: null, to: TOOLS, action: 'ExecuteTools' }];
    case HOOK:
      return edge.from === TOOLS ? runsHook(seed, seen) : [];
    case 'CheckingBudget':
      return afterTools(seed, seen, state);
    case 'Compacting':
      return compacts(seen, state);
    case 'Cancelled':
    case 'BudgetExceeded':
    case 'Failed':
      return seed.refusals[state] ?? [];
    case WAITING:
      return edge.from === 'EndOfTurn' ? [answered(seed, seen)] : [];
    case 'ShuttingDown':
      return [{ event: 'ShutdownRequested', to: 'ShuttingDown', action: 'Shutdown' }];
    default:
      return [];
  }
};

/** Events that stay where they are and yet are steps of the seed. */
const stayed = (seed: Plain, { before, event }: Seen): readonly Told[] => {
  if (event.type === 'ShutdownRequested' && before.name === 'ShuttingDown') {
    return [{ event: event.type, to: before.name, action: 'Shutdown' }];
  }
  if (event.type !== 'TextDelta' && event.type !== 'ToolCallDelta') return [];
  if (seed.streams === null || before.name !== CALLING || before.requestId !== event.requestId) return [];
  return [{ event: event.type, to: CALLING, action: event.type === 'TextDelta' ? seed.streams : seed.waits }];
};

const isWitnessed = (seed: Plain, seen: Seen, { action, supposed }: Told): boolean => {
  const wanted = action === null ? undefined : seed.witnesses[action];
  return supposed === true || wanted === undefined || wanted.some((type) => has(seen, type));
};

/** The seed's machine on its way through one step of ours. */
type Way = { state: string; readonly steps: ViewStep[] };

/** Our step in the words of such a seed. */
export const projectPlain = (seed: Plain): View['project'] => {
  const find = stepsOf(seed.edges);

  const go = (way: Way, seen: Seen, told: readonly Told[]): void => {
    for (const one of told) {
      const action = isWitnessed(seed, seen, one) ? one.action : seed.waits;
      way.steps.push(find(way.state, { ...one, action }));
      way.state = one.to;
    }
  };

  const goAlong = (way: Way, seen: Seen, edge: Edge): void => {
    if (edge.from === 'ShuttingDown') way.state = seed.begin.state; // a new trace
    if (edge.from === TOOLS && edge.to !== 'ShuttingDown') go(way, seen, pending(seed, seen.ended - 1));
    go(way, seen, toldOf(seed, seen, way.state, edge));
  };

  return (cursor, before, event, step) => {
    if (step.path.length === 0) return { cursor, steps: [] };
    const seen: Seen = { before, event, step, ended: countEnded(before, event, step) };
    const way: Way = { state: cursor.state, steps: [] };
    go(way, seen, stayed(seed, seen));
    for (const edge of step.path) if (edge.kind === 'go') goAlong(way, seen, edge);
    if (step.state.name === TOOLS) go(way, seen, pending(seed, seen.ended));
    // A summary was made for a message that is gone, or that a limit holds back.
    if (step.state.name === WAITING) go(way, seen, seed.refusals[way.state] ?? []);
    return { cursor: { state: way.state }, steps: way.steps };
  };
};
