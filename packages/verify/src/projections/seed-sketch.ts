/**
 * Seed 003: Sketch, another published agent. A projection tells our steps as steps of its machine.
 * Its chart has no events and no actions; its program adds Compacting and a forced cancel. So its
 * projection names only states: `stateAfter` says which one follows each of our edges.
 */

import { noLimits } from '@pawl/agent/machine/settings';
import type { Edge } from '@pawl/machine/kernel/table';
import {
  type ArrowRow,
  arrowRows,
  createArrows,
  type Projection,
  type ProjectionStep,
  stepFinder,
} from './projection.js';

const states = {
  Ready: 'Initial state when the agent is initialized and ready to operate',
  WaitingForUserInput: 'Agent is waiting for a user message to start a turn',
  SendingToLLM: 'Agent is sending message(s) to the LLM',
  ProcessingLLMResponse: 'Agent is processing a response from the LLM',
  EndOfTurn: 'Processing completed without tool use, turn ends',
  ToolUseRequested: 'LLM has requested to use a tool',
  CheckingForCancellation: 'Agent checks if user requested cancellation',
  RunningTool: 'Agent is executing the requested tool',
  CheckingGitCommits: 'Agent checks for new git commits after tool execution',
  RunningAutoformatters: 'Agent runs code formatters on new commits',
  CheckingBudget: 'Agent verifies if budget limits are exceeded',
  GatheringAdditionalMessages: 'Agent collects user messages that arrived during tool execution',
  SendingToolResults: 'Agent sends tool results back to the LLM',
  Cancelled: 'Operation was cancelled by the user',
  BudgetExceeded: 'Budget limit was reached',
  Error: 'An error occurred during processing',
  Compacting: 'Older messages are being summarised (in its program only)',
};

const arrow = (from: string, to: string): ArrowRow => [from, null, '', to, null];
const from = (name: string, ...targets: readonly string[]): readonly ArrowRow[] =>
  targets.map((to) => arrow(name, to));

/** The chart of the text: 26 edges. */
const chart: readonly ArrowRow[] = [
  ...from('Ready', 'WaitingForUserInput'),
  ...from('WaitingForUserInput', 'SendingToLLM', 'Error'),
  ...from('SendingToLLM', 'ProcessingLLMResponse', 'Error'),
  ...from('ProcessingLLMResponse', 'EndOfTurn', 'ToolUseRequested', 'Error'),
  ...from('EndOfTurn', 'WaitingForUserInput'),
  ...from('ToolUseRequested', 'CheckingForCancellation'),
  ...from('CheckingForCancellation', 'RunningTool', 'Cancelled'),
  ...from('RunningTool', 'CheckingGitCommits', 'Error'),
  ...from('CheckingGitCommits', 'RunningAutoformatters', 'CheckingBudget'),
  ...from('RunningAutoformatters', 'CheckingBudget'),
  ...from('CheckingBudget', 'GatheringAdditionalMessages', 'BudgetExceeded'),
  ...from('GatheringAdditionalMessages', 'SendingToolResults', 'Error'),
  ...from('SendingToolResults', 'ProcessingLLMResponse', 'Error'),
  ...from('Error', 'WaitingForUserInput'),
  ...from('Cancelled', 'WaitingForUserInput'),
  ...from('BudgetExceeded', 'WaitingForUserInput'),
];

const compaction: readonly ArrowRow[] = [
  ...from('WaitingForUserInput', 'Compacting'),
  ...from('Compacting', 'WaitingForUserInput', 'Error'),
];

/** The seed's states in which a turn can be stopped. */
const stoppable = [
  'SendingToLLM',
  'SendingToolResults',
  'RunningTool',
  'CheckingGitCommits',
  'RunningAutoformatters',
  'GatheringAdditionalMessages',
  'Compacting',
] as const;

const edges = createArrows([
  ...arrowRows('text', ...chart),
  ...arrowRows('code', ...compaction),
  ...arrowRows('forced', ...stoppable.map((name) => arrow(name, 'Cancelled'))),
]);

const sending = ['SendingToLLM', 'SendingToolResults'];

/** The seed's state for a call: a retry, the user's message, or results. */
const callIn = (state: string): string => {
  if (sending.includes(state)) return state;
  return state === 'WaitingForUserInput' ? 'SendingToLLM' : 'SendingToolResults';
};

/**
 * The seed's state after one of our edges; unchanged if the seed does not see the edge. `as` tells
 * edges between the same states apart: by the phase of hooks, by the reason of a compaction.
 */
const stateAfter = (state: string, { from, to, as }: Edge): string => {
  switch (to) {
    case 'CallingLlm':
      return callIn(state);
    case 'ProcessingLlmResponse':
      return 'ProcessingLLMResponse';
    case 'ExecutingTools':
      return 'RunningTool';
    case 'PostToolsHook':
      return as === 'AutoCommitting' ? state : as;
    case 'Compacting':
      return as === 'idle' ? 'Compacting' : state;
    case 'Rewinding':
      return 'WaitingForUserInput';
    case 'Failed':
      return 'Error';
    case 'BudgetExceeded':
      // The time limit of the turn: the seed has only a cancel.
      return from === 'CheckingBudget' ? to : 'Cancelled';
    case 'Error':
      return state;
    default:
      return to;
  }
};

const begin = { state: 'Ready' };
// Finds the edge of a step in the table; a step without one is a fault.
const findStep = stepFinder(edges);

const project: Projection['project'] = (cursor, _before, _event, step) => {
  const steps: ProjectionStep[] = [];
  let { state } = cursor;
  for (const edge of step.path) {
    if (edge.kind === 'stay') continue;
    // The trace ends here. A resumed session begins a new one.
    if (edge.to === 'ShuttingDown') return { cursor: begin, steps };
    const to = stateAfter(state, edge);
    if (to === state) continue;
    steps.push(findStep(state, { event: null, to, action: null }));
    state = to;
  }
  return { cursor: { state }, steps };
};

/** Sketch: the whole pipeline after tools, a self-raising budget, patient retries. */
export const sketch: Projection = {
  name: 'sketch',
  title: 'Seed 003: Sketch',
  seeds: ['003'],
  states,
  events: {},
  actions: {},
  initial: 'Ready',
  ends: [],
  transient: [],
  edges,
  unreached: {},
  // Our states that each state of the seed stands for.
  ours: {
    states: {
      Ready: 'Ready; ShuttingDown, after which a new trace begins',
      WaitingForUserInput: 'WaitingForUserInput',
      SendingToLLM: 'CallingLlm (user); Error and Compacting (overflow) in it',
      ProcessingLLMResponse: 'ProcessingLlmResponse',
      EndOfTurn: 'EndOfTurn',
      ToolUseRequested: 'ToolUseRequested',
      CheckingForCancellation: 'CheckingForCancellation',
      RunningTool: 'ExecutingTools',
      CheckingGitCommits: 'PostToolsHook (CheckingGitCommits); AutoCommitting after it',
      RunningAutoformatters: 'PostToolsHook (RunningAutoformatters); AutoCommitting after it',
      CheckingBudget: 'CheckingBudget',
      GatheringAdditionalMessages: 'GatheringAdditionalMessages; Compacting (mid)',
      SendingToolResults: 'CallingLlm (toolResults); Error and Compacting (overflow) in it',
      Cancelled: 'Cancelled; BudgetExceeded when the time of the turn is up',
      BudgetExceeded: 'BudgetExceeded',
      Error: 'Failed',
      Compacting: 'Compacting (idle)',
    },
    events: {},
    actions: {},
  },
  // Our resting states, each with the states in which the seed may be meanwhile.
  stands: {
    Ready: ['Ready'],
    WaitingForUserInput: ['WaitingForUserInput'],
    CallingLlm: sending,
    Error: sending,
    ExecutingTools: ['RunningTool'],
    PostToolsHook: ['CheckingGitCommits', 'RunningAutoformatters'],
    Compacting: ['Compacting', 'GatheringAdditionalMessages', ...sending],
    Rewinding: ['WaitingForUserInput'],
    ShuttingDown: ['Ready'],
  },
  settings: {
    maxRetries: 10,
    retrySchedule: { kind: 'list', delaysMs: [30_000, 60_000] },
    retryJitterMs: 1_000,
    emptyRetries: 0,
    limits: { ...noLimits, usd: 10 },
    autoRearm: 'on',
    compactAtRatio: 0.94,
    compactMidRatio: 0.94,
    hooks: 'always',
    formatter: 'onOneCommit',
    // Its model commits by itself, and is watched.
    autoCommit: 'off',
    queueOnCancel: 'send',
  },
  begin,
  project,
};
