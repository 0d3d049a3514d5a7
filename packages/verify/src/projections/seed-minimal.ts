/**
 * Seed 000: a small coding agent, as its text describes it (`minimal`), and with the hook that its
 * program got later (`minimalHead`). A seed is a published text about another agent; a projection
 * tells our steps as steps of its table.
 *
 * `ours` and `stands` say which of our states, events and actions its own stand for. The fields
 * of `SeedWords` are explained in project-seed.ts. Of them, `waits` to `runs` name its events and
 * actions, `hook: 'hidden'` says that ours ends within its batch, `refusals` are the paths for
 * stops that the seed does not know, `supposed` marks a step without a counterpart in ours,
 * `witnesses` are our actions of which one must accompany the action of the seed. Rows `text` stand
 * in the seed's text, rows `code` in its program only.
 */

import { noLimits } from '@pawl/agent/machine/settings';
import { projectSeed, type SeedWords, unreachedArrow } from './project-seed.js';
import { type ArrowRow, arrowRows, createArrows, type Projection } from './projection.js';

const states = {
  WaitingForUserInput: 'Idle, ready for user message',
  CallingLlm: 'Making API request (tracks retry count)',
  ProcessingLlmResponse: 'Transient state parsing LLM response',
  ExecutingTools: 'Running tool calls from LLM',
  Error: 'Recoverable error, will retry',
  ShuttingDown: 'Terminal state',
};

const events = {
  UserInput: 'User submitted a message',
  LlmCompleted: 'API call succeeded',
  LlmError: 'API call failed',
  ToolCompleted: 'Tool finished executing',
  RetryTimeout: 'Retry delay elapsed',
  ShutdownRequested: 'User requested quit',
};

const actions = {
  SendLlmRequest: 'Call Claude API',
  ExecuteTools: 'Run specified tools',
  DisplayText: 'Show text to user',
  DisplayError: 'Show error to user',
  PromptForInput: 'Wait for user input',
  ScheduleRetry: 'Wait then send RetryTimeout',
  WaitForEvent: 'No action needed',
  Shutdown: 'Terminate',
};

/** The diagram and the retry logic of the text. */
const callAndRetry: readonly ArrowRow[] = [
  ['WaitingForUserInput', 'UserInput', '', 'CallingLlm', 'SendLlmRequest'],
  ['CallingLlm', 'LlmCompleted', '', 'ProcessingLlmResponse', null],
  ['CallingLlm', 'LlmError', 'retries < 3', 'Error', 'ScheduleRetry'],
  ['CallingLlm', 'LlmError', 'retries = 3', 'WaitingForUserInput', 'DisplayError'],
  ['ProcessingLlmResponse', null, 'has tools', 'ExecutingTools', 'ExecuteTools'],
  ['ProcessingLlmResponse', null, 'no tools, some text', 'WaitingForUserInput', 'DisplayText'],
  ['ProcessingLlmResponse', null, 'no tools, no text', 'WaitingForUserInput', 'PromptForInput'],
  ['ExecutingTools', 'ToolCompleted', 'some left', 'ExecutingTools', 'WaitForEvent'],
  ['Error', 'RetryTimeout', '', 'CallingLlm', 'SendLlmRequest'],
];

/** The row for *any* state, once per state. */
const shutdowns = (names: readonly string[]): readonly ArrowRow[] =>
  names.map((name) => [name, 'ShutdownRequested', '', 'ShuttingDown', 'Shutdown']);

const ours = {
  states: {
    WaitingForUserInput: 'WaitingForUserInput; Ready before it',
    CallingLlm: 'CallingLlm; Compacting when a message waits for it, or within a turn',
    ProcessingLlmResponse: 'ProcessingLlmResponse',
    ExecutingTools: 'ExecutingTools; PostToolsHook, until it ends',
    Error: 'Error',
    ShuttingDown: 'ShuttingDown',
  },
  events: {
    UserInput: 'UserInput; what releases a queued message',
    LlmCompleted: 'LlmCompleted',
    LlmError: 'LlmFailed; a stop that the seed does not know',
    ToolCompleted: 'ToolCompleted; a call that ends without having run',
    RetryTimeout: 'TimerFired of the retry timer, RetryNow',
    ShutdownRequested: 'ShutdownRequested',
  },
  actions: {
    SendLlmRequest: 'SendLlmRequest',
    ExecuteTools: 'ExecuteTools, PreviewCall, RequestApproval',
    DisplayText: 'DisplayText',
    DisplayError: 'DisplayError; the DisplayNotice of a stop',
    PromptForInput: 'PromptForInput',
    ScheduleRetry: 'ScheduleTimer',
    WaitForEvent: 'no action',
    Shutdown: 'Shutdown',
  },
};

const edges = createArrows([
  ...arrowRows('text', ...callAndRetry),
  ...arrowRows('text', [
    'ExecutingTools',
    'ToolCompleted',
    'all done',
    'CallingLlm',
    'SendLlmRequest',
  ]),
  ...arrowRows('text', ...shutdowns(Object.keys(states))),
]);

const begin = { state: 'WaitingForUserInput' };

const refused = { event: 'LlmError', to: 'WaitingForUserInput', action: 'DisplayError' };

const minimalWords: SeedWords = {
  edges,
  begin,
  waits: 'WaitForEvent',
  schedules: 'ScheduleRetry',
  completed: 'LlmCompleted',
  failed: 'LlmError',
  retried: 'RetryTimeout',
  hooked: 'HooksCompleted',
  runs: 'RunPostToolsHooks',
  hook: 'hidden',
  streams: null,
  origins: 'none',
  answers: { text: 'DisplayText', none: 'PromptForInput' },
  warns: null,
  refusals: {
    CallingLlm: [refused],
    ProcessingLlmResponse: [{ event: null, to: 'WaitingForUserInput', action: 'PromptForInput' }],
    ExecutingTools: [
      { event: 'ToolCompleted', to: 'CallingLlm', action: 'SendLlmRequest', supposed: true },
      refused,
    ],
    Error: [
      { event: 'RetryTimeout', to: 'CallingLlm', action: 'SendLlmRequest', supposed: true },
      refused,
    ],
  },
  witnesses: {
    SendLlmRequest: ['SendLlmRequest', 'StartCompaction'],
    ExecuteTools: ['ExecuteTools', 'PreviewCall', 'RequestApproval', 'DisplayToolResult'],
    DisplayText: ['DisplayText'],
    DisplayError: ['DisplayError', 'DisplayNotice', 'DisplayWarning'],
    DisplayWarning: ['DisplayWarning'],
    PromptForInput: ['PromptForInput', 'SendLlmRequest', 'StartCompaction'],
    RunPostToolsHooks: ['RunHook'],
    ScheduleRetry: ['ScheduleTimer'],
    Shutdown: ['Shutdown'],
  },
};

/** 000: three retries after 1 s, 2 s and 3 s; no hook, no limits. */
export const minimal: Projection = {
  name: 'minimal',
  title: 'Seed 000: a small coding agent',
  seeds: ['000'],
  states,
  events,
  actions,
  initial: 'WaitingForUserInput',
  ends: ['ShuttingDown'],
  transient: ['ProcessingLlmResponse'],
  edges,
  unreached: unreachedArrow,
  ours,
  stands: {
    Ready: ['WaitingForUserInput'],
    WaitingForUserInput: ['WaitingForUserInput'],
    CallingLlm: ['CallingLlm'],
    Error: ['Error'],
    ExecutingTools: ['ExecutingTools'],
    PostToolsHook: ['ExecutingTools'],
    Compacting: ['WaitingForUserInput', 'CallingLlm'],
    Rewinding: ['WaitingForUserInput'],
    ShuttingDown: ['ShuttingDown'],
  },
  settings: {
    maxRetries: 3,
    retrySchedule: { kind: 'linear', stepMs: 1_000 },
    retryJitterMs: 0,
    emptyRetries: 0,
    limits: noLimits,
    autoRearm: 'off',
    // The seed never compacts. Ours compacts only when no request would fit otherwise.
    compactAtRatio: 1,
    compactMidRatio: 1,
    hooks: 'never',
    formatter: 'off',
    autoCommit: 'off',
  },
  begin,
  project: projectSeed(minimalWords),
};

// ---- Seed 000 with the later hook: it runs after every batch, may warn, may stop the turn ----

const headStates = { ...states, PostToolsHook: 'Hooks run; the results wait to be added' };

const headEdges = createArrows([
  ...arrowRows('text', ...callAndRetry),
  ...arrowRows(
    'code',
    ['ExecutingTools', 'ToolCompleted', 'all done', 'PostToolsHook', 'RunPostToolsHooks'],
    ['PostToolsHook', 'HooksCompleted', 'proceed', 'CallingLlm', 'SendLlmRequest'],
    ['PostToolsHook', 'HooksCompleted', 'proceed, with a warning', 'CallingLlm', 'DisplayWarning'],
    ['PostToolsHook', 'HooksCompleted', 'do not proceed', 'WaitingForUserInput', 'DisplayWarning'],
  ),
  ...arrowRows('text', ...shutdowns(Object.keys(states))),
  ...arrowRows('code', ...shutdowns(['PostToolsHook'])),
]);

const notProceeded = {
  event: 'HooksCompleted',
  to: 'WaitingForUserInput',
  action: 'DisplayWarning',
  supposed: true,
} as const;

const headWords: SeedWords = {
  ...minimalWords,
  edges: headEdges,
  hook: 'always',
  warns: 'DisplayWarning',
  refusals: {
    ...minimalWords.refusals,
    ExecutingTools: [
      { event: 'ToolCompleted', to: 'PostToolsHook', action: 'RunPostToolsHooks', supposed: true },
      notProceeded,
    ],
    PostToolsHook: [notProceeded],
  },
};

/** Seed 000 with the later hook of its program. */
export const minimalHead: Projection = {
  ...minimal,
  name: 'minimal-head',
  title: 'Seed 000 as its program went on: with a hook after the tools',
  states: headStates,
  events: {
    ...events,
    HooksCompleted: 'Hooks finished: whether to proceed, perhaps with a warning',
  },
  actions: {
    ...actions,
    RunPostToolsHooks: 'Run hooks for the tools that ran',
    DisplayWarning: 'Show a warning to user',
  },
  edges: headEdges,
  ours: {
    states: {
      ...ours.states,
      ExecutingTools: 'ExecutingTools',
      PostToolsHook: 'PostToolsHook, all its phases',
    },
    events: {
      ...ours.events,
      HooksCompleted: 'HookCompleted, HookFailed of the last phase; CancelTurn',
    },
    actions: { ...ours.actions, RunPostToolsHooks: 'RunHook', DisplayWarning: 'DisplayWarning' },
  },
  stands: { ...minimal.stands, PostToolsHook: ['PostToolsHook'] },
  settings: { ...minimal.settings, hooks: 'always' },
  project: projectSeed(headWords),
};
