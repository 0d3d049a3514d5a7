/** The names of the machine, each with one line of documentation. The table is in table.ts. */

import { machine } from '@pawl/machine/kernel/machine';
import type { Table } from '@pawl/machine/kernel/table';
import type { Action } from './action.js';
import type { Event } from './event.js';
import { eventShape } from './shapes.js';
import type { State, TransientState } from './state.js';

/** Events that have a default cell, for states that name none. */
type DefaultEvent =
  | 'ShutdownRequested'
  | 'SettingsChanged'
  | 'UsageReported'
  | 'RequestMeasured'
  | 'UserHooksRan'
  | 'CheckpointTaken'
  | 'RewindRequested'
  | 'Rewound'
  | 'Resumed';
export type AgentTable = Table<State, Event, Action, TransientState['name'], DefaultEvent>;

/** Makes the machine from its table: `agentMachine(table)`. The first call only takes the types. */
export const agentMachine = machine<State, Event, Action>()({
  shape: eventShape,
  initial: 'Ready',
  transient: [
    'ProcessingLlmResponse',
    'EndOfTurn',
    'ToolUseRequested',
    'CheckingForCancellation',
    'CheckingBudget',
    'GatheringAdditionalMessages',
    'Cancelled',
    'BudgetExceeded',
    'Failed',
  ],
  defaults: [
    'ShutdownRequested',
    'SettingsChanged',
    'UsageReported',
    'RequestMeasured',
    'UserHooksRan',
    'CheckpointTaken',
    'RewindRequested',
    'Rewound',
    'Resumed',
  ],
  ends: ['ShuttingDown'],
  states: {
    Ready: 'made, not yet opened',
    WaitingForUserInput: 'idle: it is the user’s turn',
    CallingLlm: 'one model call is in flight',
    Error: 'a call failed and will be tried again when its timer fires',
    ProcessingLlmResponse: 'the reply is looked at',
    EndOfTurn: 'the reply asks for no tool: the turn is over',
    ToolUseRequested: 'the reply asks for tools and is stored',
    CheckingForCancellation: 'was the turn cancelled while the reply came?',
    ExecutingTools: 'a batch of tool calls runs',
    PostToolsHook: 'commits are looked for, formatters run, changes are committed',
    CheckingBudget: 'may another round be paid for?',
    GatheringAdditionalMessages: 'what the user typed meanwhile joins the results',
    Compacting: 'older messages are being summarised',
    Rewinding: 'files are taken back, or brought forward again',
    Cancelled: 'the user or a hook stopped the turn',
    BudgetExceeded: 'a limit stopped the turn',
    Failed: 'the turn cannot go on',
    ShuttingDown: 'the session is closed; it can be opened again',
  },
  events: {
    Start: 'the session is opened',
    UserInput: 'the user sent a text',
    RetryLast: 'the user asks to send the last message again',
    RetryNow: 'the user does not want to wait for the retry timer',
    CancelTurn: 'the user stops the turn',
    CancelTool: 'the user stops one call',
    EditQueue: 'the user changes what is queued',
    CompactRequested: 'the user asks for a summary',
    ApproveBudget: 'the user raises a limit',
    ApprovalAnswered: 'the user allows or refuses a call',
    SettingsChanged: 'settings change from the next decision on',
    ShutdownRequested: 'the session is to end',
    InputFailed: 'the user’s input could not be read',
    TextDelta: 'a piece of text came',
    ReasoningDelta: 'a piece of reasoning came (display only)',
    ToolCallDelta: 'a piece of a call came (display only)',
    LlmCompleted: 'a reply is whole',
    LlmFailed: 'a model call failed',
    PolicyStopped: 'the user’s stopping policy held a model call back',
    CallPreviewed: 'it is known what a call would change',
    ToolStarted: 'a call is about to take effect',
    ToolProgress: 'a call shows output (display only)',
    ToolCompleted: 'a call ended',
    ToolsFailed: 'the batch cannot go on',
    HookPrepared: 'a phase of the hook is about to change a file or a branch',
    HookCompleted: 'a phase of the hook ended',
    HookFailed: 'a phase of the hook failed or was too slow',
    TimerFired: 'a timer is due',
    CompactionCompleted: 'the summary is there',
    CompactionFailed: 'the summary could not be made',
    UsageReported: 'usage came late',
    RequestMeasured: 'the size of a request is known before it is sent',
    UserHooksRan: 'hooks of the user ran',
    CheckpointTaken: 'files are kept as they are now',
    RewindRequested: 'the user takes back what was done, or goes forward again',
    Rewound: 'the files of a rewind are as planned',
    Resumed: 'the session was opened again',
  },
});
