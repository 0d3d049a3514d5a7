/**
 * Tools mode of seed 004, another published agent: its run is one turn of our machine. A projection
 * tells our steps as steps of its table.
 *
 * 1. Every turn is a run of the seed. It begins in INIT when its first call is sent.
 * 2. The seed makes the next call before it leaves EXECUTING_TOOLS, so a reply changes its state.
 * 3. A stop that the seed reports as an exception (cancel, failure, shutdown, a stop before the
 *    first reply) ends the run without a step. The next run begins in INIT.
 */

import type { Action } from '@pawl/agent/machine/action';
import type { Event } from '@pawl/agent/machine/event';
import type { Dimension } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import { toolsMode } from '@pawl/agent/machine/tools-mode';
import type { Edge, Step } from '@pawl/machine/kernel/table';
import {
  arrowRows,
  createArrows,
  type Projection,
  type ProjectionCursor,
  type ProjectionStep,
  stepFinder,
} from './projection.js';

const [INIT, PROMPTING, EXECUTING, DONE] = [
  'INIT',
  'PROMPTING',
  'EXECUTING_TOOLS',
  'DONE',
] as const;

const edges = createArrows([
  ...arrowRows(
    'text',
    [INIT, 'LLMResponseReceived', '', PROMPTING, null],
    [PROMPTING, 'ToolCallsFound', '', EXECUTING, null],
    [PROMPTING, 'NoToolCalls', '', DONE, null],
    [PROMPTING, 'PolicyStop', '', DONE, null],
    [EXECUTING, 'ToolsExecuted', '', PROMPTING, null],
    [EXECUTING, 'PolicyStop', '', DONE, null],
  ),
  ...arrowRows('code', [EXECUTING, 'MaxIterationsReached', '', DONE, null]),
]);
// Finds the edge of a step in the table; a step without one is a fault.
const findStep = stepFinder(edges);

/** The name that the seed's policies give to the stop. */
const stopEvent = (dimension: Dimension | 'no'): string =>
  dimension === 'rounds' ? 'MaxIterationsReached' : 'PolicyStop';

/** A run of the seed: its state, and the steps that it makes during one of ours. */
class SeedRun {
  at: string;
  readonly steps: ProjectionStep[] = [];

  constructor(at: string) {
    this.at = at;
  }

  addStep(event: string, to: string): void {
    this.steps.push(findStep(this.at, { event, to, action: null }));
    this.at = to;
  }

  /**
   * A stop before the first reply is an exception of the seed, and after the end there are no
   * steps.
   */
  stop(event: string): void {
    if (this.at === EXECUTING) this.addStep(event, DONE);
  }
}

/**
 * Whether some call of the reply was not skipped, so that tools ran before the policy stopped the
 * run.
 */
const someCallRan = (actions: readonly Action[]): boolean =>
  actions.some((action) => action.type === 'DisplayToolResult' && action.status !== 'skipped');

type OurStep = {
  readonly before: State;
  readonly event: Event;
  readonly step: Step<State, Action>;
};

const getDimension = ({ step }: OurStep): Dimension | 'no' =>
  // Stryker disable next-line ConditionalExpression,LogicalOperator: they rest for a budget
  step.state.name === 'WaitingForUserInput' && step.state.reason.kind === 'budget'
    ? step.state.reason.dimension
    : 'no';

/**
 * The seed calls the model before it leaves EXECUTING_TOOLS, so the reply ends that state.
 * `finishing`: the limit at which our machine asked for a final answer, or `no`.
 */
const addReply = (run: SeedRun, { before }: OurStep): void => {
  const { finishing } = before.session.turn;
  if (run.at === INIT) run.addStep('LLMResponseReceived', PROMPTING);
  else if (finishing === 'no') run.addStep('ToolsExecuted', PROMPTING);
  else run.addStep(stopEvent(finishing), DONE);
};

const addCalls = (run: SeedRun, { step }: OurStep): void => {
  if (run.at !== PROMPTING) return;
  const stopped =
    step.path.some((edge) => edge.to === 'BudgetExceeded') && !someCallRan(step.actions);
  if (stopped) run.addStep('PolicyStop', DONE);
  else run.addStep('ToolCallsFound', EXECUTING);
};

const addEdge = (run: SeedRun, edge: Edge, ours: OurStep): void => {
  if (edge.from === 'WaitingForUserInput' && edge.to === 'CallingLlm') run.at = INIT;
  else if (edge.from === 'ProcessingLlmResponse' && edge.to !== 'Failed') {
    // After a cancel the reply stays in the conversation, but the run has ended.
    // Stryker disable next-line ConditionalExpression: asked before
    const drained = ours.before.name === 'CallingLlm' && ours.before.call.mode === 'draining';
    if (!drained) addReply(run, ours);
    if (edge.to === 'EndOfTurn' && run.at === PROMPTING) run.addStep('NoToolCalls', DONE);
  } else if (edge.to === 'ExecutingTools') addCalls(run, ours);
  else if (edge.to === 'BudgetExceeded') run.stop(stopEvent(getDimension(ours)));
  else if (edge.to === 'Cancelled' && ours.event.type === 'PolicyStopped') run.stop('PolicyStop');
  else if (edge.to === 'Cancelled' || edge.to === 'Failed' || edge.to === 'ShuttingDown')
    run.at = INIT;
};

const project = (
  cursor: ProjectionCursor,
  before: State,
  event: Event,
  step: Step<State, Action>,
) => {
  const run = new SeedRun(cursor.state);
  for (const edge of step.path) addEdge(run, edge, { before, event, step });
  // Stryker disable next-line ConditionalExpression: a matter of speed
  return { cursor: run.at === cursor.state ? cursor : { state: run.at }, steps: run.steps };
};

/** Projection to tools mode of seed 004. */
export const tools: Projection = {
  name: 'tools',
  title: 'Seed 004: RLM, tools mode',
  seeds: ['004'],
  states: {
    INIT: 'Build conversation, validate tools',
    PROMPTING: 'Call LLM with tools available',
    EXECUTING_TOOLS: 'Execute tool calls',
    DONE: 'Terminal: return result',
  },
  events: {
    LLMResponseReceived: 'The model answered',
    ToolCallsFound: 'LLM requested tool invocations',
    ToolsExecuted: 'All tool calls completed',
    NoToolCalls: 'LLM returned text without tool calls (final answer)',
    PolicyStop: 'Custom StoppingPolicy requested termination',
    MaxIterationsReached: 'Iteration limit hit',
  },
  actions: {},
  initial: INIT,
  ends: [DONE],
  transient: [PROMPTING],
  edges,
  unreached: {},
  // Our states that each state of the seed stands for.
  ours: {
    states: {
      INIT: 'CallingLlm of the user’s message, up to its reply',
      PROMPTING: 'ProcessingLlmResponse',
      EXECUTING_TOOLS: 'ExecutingTools, PostToolsHook, CheckingBudget, CallingLlm with the results',
      DONE: 'WaitingForUserInput',
    },
    events: {
      LLMResponseReceived: 'LlmCompleted',
      ToolCallsFound: 'LlmCompleted with calls',
      ToolsExecuted: 'LlmCompleted after results',
      NoToolCalls: 'LlmCompleted without calls',
      PolicyStop: 'a limit other than rounds; PolicyStopped',
      MaxIterationsReached: 'the limit of rounds',
    },
    actions: {},
  },
  // Our resting states, each with the states in which the seed may be meanwhile.
  stands: {
    Ready: [INIT],
    WaitingForUserInput: [INIT, DONE],
    CallingLlm: [INIT, EXECUTING],
    Error: [INIT, EXECUTING],
    ExecutingTools: [EXECUTING],
    PostToolsHook: [EXECUTING],
    Compacting: [INIT, EXECUTING, DONE],
    Rewinding: [INIT, DONE],
    ShuttingDown: [INIT],
  },
  settings: toolsMode,
  begin: { state: INIT },
  project,
};
