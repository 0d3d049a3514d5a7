import type { Edge } from '../../kernel/step.js';
import { arrowsOf, type Row, rows, stepsOf } from './arrows.js';
import { noLimits } from './no-limits.js';
import type { View, ViewStep } from './view.js';

/** Seed 003: Sketch. Its chart names neither events nor actions; its program adds Compacting, and its cancel forces its way. */

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

const arrow = (from: string, to: string): Row => [from, null, '', to, null];
const from = (name: string, ...targets: readonly string[]): readonly Row[] =>
  targets.map((to) => arrow(name, to));

/** The chart of the text: 26 arrows. */
const chart: readonly Row[] = [
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

const compaction: readonly Row[] = [
  ...from('WaitingForUserInput', 'Compacting'),
  ...from('Compacting', 'WaitingForUserInput', 'Error'),
];

/** Where a turn of ours can be stopped: states in which the seed's machine stands while ours rests in a turn. */
const stoppable = [
  'SendingToLLM',
  'SendingToolResults',
  'RunningTool',
  'CheckingGitCommits',
  'RunningAutoformatters',
  'GatheringAdditionalMessages',
  'Compacting',
] as const;

const edges = arrowsOf([
  ...rows('text', ...chart),
  ...rows('code', ...compaction),
  ...rows('forced', ...stoppable.map((name) => arrow(name, 'Cancelled'))),
]);

const sending = ['SendingToLLM', 'SendingToolResults'];

/** A call: the one that is tried again, the user's first, or the one with results. */
const callIn = (state: string): string => {
  if (sending.includes(state)) return state;
  return state === 'WaitingForUserInput' ? 'SendingToLLM' : 'SendingToolResults';
};

/** The seed's state after an arrow of ours; the one before it where the seed sees nothing. */
const stateAfter = (state: string, { from: left, to, as }: Edge): string => {
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
    case 'Failed':
      return 'Error';
    case 'BudgetExceeded':
      // The turn's time is up: the seed knows a cancel only.
      return left === 'CheckingBudget' ? to : 'Cancelled';
    case 'Error':
      return state;
    default:
      return to;
  }
};

const begin = { state: 'Ready' };
const find = stepsOf(edges);

const project: View['project'] = (cursor, _before, _event, step) => {
  const steps: ViewStep[] = [];
  let { state } = cursor;
  for (const edge of step.path) {
    if (edge.kind === 'stay') continue;
    // The trace ends; when the session is opened again a new one begins.
    if (edge.to === 'ShuttingDown') return { cursor: begin, steps };
    const to = stateAfter(state, edge);
    if (to === state) continue;
    steps.push(find(state, { event: null, to, action: null }));
    state = to;
  }
  return { cursor: { state }, steps };
};

/** Sketch: the whole pipeline after tools, a budget that raises itself, patient retries. */
export const sketch: View = {
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
  stands: {
    Ready: ['Ready'],
    WaitingForUserInput: ['WaitingForUserInput'],
    CallingLlm: sending,
    Error: sending,
    ExecutingTools: ['RunningTool'],
    PostToolsHook: ['CheckingGitCommits', 'RunningAutoformatters'],
    Compacting: ['Compacting', 'GatheringAdditionalMessages', ...sending],
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
