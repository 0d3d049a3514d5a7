/**
 * Seeds 001 and 002: Loom, row by row. 002 adds the row of ToolCallDelta and the origin of an
 * error. A seed is a published text about another agent; a projection tells our steps as steps of
 * its table.
 *
 * `ours` and `stands` say which of our states, events and actions its own stand for. The fields
 * of `SeedWords` are explained in project-seed.ts. Of them, `refusals` are the paths for stops that
 * the seed does not know, `supposed` marks a step without a counterpart in ours, `witnesses` are
 * our actions of which one must accompany the action of the seed.
 */

import { noLimits } from '@pawl/agent/machine/settings';
import { projectSeed, type SeedWords, unreachedArrow } from './project-seed.js';
import { type ArrowRow, arrowRows, createArrows, type Projection } from './projection.js';

const states = {
  WaitingForUserInput: 'Idle, ready for user message',
  CallingLlm: 'LLM request in flight',
  ProcessingLlmResponse: 'Examining LLM response',
  ExecutingTools: 'Running tool calls in parallel',
  PostToolsHook: 'Running post-tool hooks (auto-commit)',
  Error: 'Recoverable error with retry',
  ShuttingDown: 'Terminal state',
};

/**
 * The rows of the seed's table: in this state, with this event (null: without one), under this
 * condition, it goes to that state with this action (null: with none).
 */
const table: readonly ArrowRow[] = [
  ['WaitingForUserInput', 'UserInput', '', 'CallingLlm', 'SendLlmRequest'],
  ['CallingLlm', 'TextDelta', '', 'CallingLlm', 'DisplayMessage'],
  ['CallingLlm', 'ToolCallDelta', '', 'CallingLlm', 'WaitForInput'],
  ['CallingLlm', 'Completed', '', 'ProcessingLlmResponse', null],
  ['CallingLlm', 'Error', 'retries < max', 'Error', 'WaitForInput'],
  ['CallingLlm', 'Error', 'retries >= max', 'WaitingForUserInput', 'DisplayError'],
  ['ProcessingLlmResponse', null, 'has tool calls', 'ExecutingTools', 'ExecuteTools'],
  ['ProcessingLlmResponse', null, 'no tool calls', 'WaitingForUserInput', 'WaitForInput'],
  ['ExecutingTools', 'ToolCompleted', 'some pending', 'ExecutingTools', 'WaitForInput'],
  ['ExecutingTools', 'ToolCompleted', 'all done, mutating', 'PostToolsHook', 'RunPostToolsHook'],
  ['ExecutingTools', 'ToolCompleted', 'all done, non-mutating', 'CallingLlm', 'SendLlmRequest'],
  ['PostToolsHook', 'PostToolsHookCompleted', '', 'CallingLlm', 'SendLlmRequest'],
  ['Error', 'RetryTimeoutFired', 'origin=Llm', 'CallingLlm', 'SendLlmRequest'],
];

/** The row for *any* state, once per state. */
const shutdowns = Object.keys(states).map(
  (name): ArrowRow => [name, 'ShutdownRequested', '', 'ShuttingDown', 'Shutdown'],
);

// 'text': each row stands in the seed's text
const edges = createArrows(arrowRows('text', ...table, ...shutdowns));

const begin = { state: 'WaitingForUserInput' };

/** How a stop that the seed does not know ends a turn there: as an error after the last retry. */
const refused = { event: 'Error', to: 'WaitingForUserInput', action: 'DisplayError' };
/** The same in a state that the seed leaves with `event`: first it sends one more request. */
const refusedCall = (event: string) =>
  [{ event, to: 'CallingLlm', action: 'SendLlmRequest', supposed: true }, refused] as const;

const loomWords: SeedWords = {
  edges,
  begin,
  waits: 'WaitForInput',
  schedules: 'WaitForInput',
  completed: 'Completed',
  failed: 'Error',
  retried: 'RetryTimeoutFired',
  hooked: 'PostToolsHookCompleted',
  runs: 'RunPostToolsHook',
  hook: 'ifRun',
  streams: 'DisplayMessage',
  origins: 'named',
  answers: { text: 'WaitForInput', none: 'WaitForInput' },
  warns: null,
  refusals: {
    CallingLlm: [refused],
    ProcessingLlmResponse: [{ event: null, to: 'WaitingForUserInput', action: 'WaitForInput' }],
    ExecutingTools: refusedCall('ToolCompleted'),
    PostToolsHook: refusedCall('PostToolsHookCompleted'),
    Error: refusedCall('RetryTimeoutFired'),
  },
  witnesses: {
    SendLlmRequest: ['SendLlmRequest', 'StartCompaction'],
    ExecuteTools: ['ExecuteTools', 'PreviewCall', 'RequestApproval', 'DisplayToolResult'],
    RunPostToolsHook: ['RunHook'],
    DisplayMessage: ['DisplayText'],
    DisplayError: ['DisplayError', 'DisplayNotice', 'DisplayWarning'],
    Shutdown: ['Shutdown'],
  },
};

/** Loom: two retries, a committing hook after mutating tools, streamed text. */
export const loom: Projection = {
  name: 'loom',
  title: 'Seeds 001 and 002: Loom',
  seeds: ['001', '002'],
  states,
  events: {
    UserInput: 'User submitted message',
    TextDelta: 'Streaming text from LLM',
    ToolCallDelta: 'Streaming tool call data',
    Completed: 'LLM finished',
    Error: 'LLM error',
    ToolCompleted: 'Tool execution finished',
    PostToolsHookCompleted: 'Hooks finished',
    RetryTimeoutFired: 'Retry backoff expired',
    ShutdownRequested: 'Graceful shutdown',
  },
  actions: {
    SendLlmRequest: 'Call LLM provider',
    ExecuteTools: 'Run tool calls',
    RunPostToolsHook: 'Run auto-commit',
    WaitForInput: 'Idle',
    DisplayMessage: 'Show to user',
    DisplayError: 'Show error',
    Shutdown: 'Terminate',
  },
  initial: 'WaitingForUserInput',
  ends: ['ShuttingDown'],
  transient: ['ProcessingLlmResponse'],
  edges,
  unreached: unreachedArrow,
  ours: {
    states: {
      WaitingForUserInput: 'WaitingForUserInput; Ready before it',
      CallingLlm: 'CallingLlm; Compacting when a message waits for it, or within a turn',
      ProcessingLlmResponse: 'ProcessingLlmResponse',
      ExecutingTools: 'ExecutingTools',
      PostToolsHook: 'PostToolsHook, all its phases',
      Error: 'Error (its origin is the model: a tool or an input that fails ends the turn)',
      ShuttingDown: 'ShuttingDown',
    },
    events: {
      UserInput: 'UserInput; what releases a queued message',
      TextDelta: 'TextDelta',
      ToolCallDelta: 'ToolCallDelta',
      Completed: 'LlmCompleted',
      Error: 'LlmFailed; a stop that the seed does not know',
      ToolCompleted: 'ToolCompleted; a call that ends without having run',
      PostToolsHookCompleted: 'HookCompleted, HookFailed of the last phase',
      RetryTimeoutFired: 'TimerFired of the retry timer, RetryNow',
      ShutdownRequested: 'ShutdownRequested',
    },
    actions: {
      SendLlmRequest: 'SendLlmRequest',
      ExecuteTools: 'ExecuteTools, PreviewCall, RequestApproval',
      RunPostToolsHook: 'RunHook',
      WaitForInput: 'PromptForInput at rest, ScheduleTimer before a retry, otherwise no action',
      DisplayMessage: 'DisplayText',
      DisplayError: 'DisplayError; the DisplayNotice of a stop',
      Shutdown: 'Shutdown',
    },
  },
  stands: {
    Ready: ['WaitingForUserInput'],
    WaitingForUserInput: ['WaitingForUserInput'],
    CallingLlm: ['CallingLlm'],
    Error: ['Error'],
    ExecutingTools: ['ExecutingTools'],
    PostToolsHook: ['PostToolsHook'],
    Compacting: ['WaitingForUserInput', 'CallingLlm'],
    Rewinding: ['WaitingForUserInput'],
    ShuttingDown: ['ShuttingDown'],
  },
  settings: {
    // Its limit of 3 counts attempts.
    maxRetries: 2,
    retrySchedule: { kind: 'linear', stepMs: 1_000 },
    retryJitterMs: 0,
    emptyRetries: 0,
    limits: noLimits,
    autoRearm: 'off',
    // The seed never compacts. Ours compacts only when no request would fit otherwise.
    compactAtRatio: 1,
    compactMidRatio: 1,
    hooks: 'mutatingOk',
    formatter: 'off',
    autoCommit: 'on',
  },
  begin,
  project: projectSeed(loomWords),
};
