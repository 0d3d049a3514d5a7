import { fault, late } from '../kernel/table.js';
import { countStale } from './moves/account.js';
import { raiseLimit } from './moves/budget.js';
import { editQueue, queueInput } from './moves/queue.js';
import { ignoreEpoch, isOldEpoch } from './moves/resume.js';

/** Cells that many rows of the table share. A row spreads a group, and the compiler still counts every cell. */

export const OPEN = late('the session is open already');
const NOT_OPEN = late('the session has not been opened');
const GONE = late('the session is over');
const BUSY = late('a turn is running');
const NO_TOOLS = late('no tool is running');
const NO_APPROVAL = late('no call awaits approval');
export const NOT_WAITING = late('nothing is waiting for a retry');
const NO_TIMER = late('stale: the wait was already over');
const STALE_REPLY = late('stale: it belongs to an old request');
const STALE_HOOK = late('stale: it belongs to an old hook');
/** Usage counts, nothing else changes. */
const STALE = { stay: countStale };
export const EDIT = { stay: editQueue };
export const RAISE = { stay: raiseLimit };
/** The session was opened since. */
export const OLD_EPOCH = { when: isOldEpoch, stay: ignoreEpoch };

const noDelta = { TextDelta: STALE_REPLY, ReasoningDelta: STALE_REPLY, ToolCallDelta: STALE_REPLY };
export const noCall = { ...noDelta, LlmCompleted: STALE, LlmFailed: STALE, PolicyStopped: STALE_REPLY };
export const noTools = {
  CancelTool: NO_TOOLS,
  ApprovalAnswered: NO_APPROVAL,
  ToolStarted: NO_TOOLS,
  ToolProgress: NO_TOOLS,
  ToolCompleted: STALE,
  ToolsFailed: NO_TOOLS,
};
export const noHook = { HookCompleted: STALE, HookFailed: STALE_HOOK };
export const noCompaction = { CompactionCompleted: STALE, CompactionFailed: STALE };
/** Before the session is opened. */
export const notOpen = { RetryLast: NOT_OPEN, CompactRequested: NOT_OPEN, InputFailed: NOT_OPEN };
/** No timer runs. */
export const noWait = { RetryNow: NOT_WAITING, TimerFired: NO_TIMER };
/** What the user may do while a turn runs. */
export const inTurn = {
  Start: OPEN,
  UserInput: { stay: queueInput },
  RetryLast: BUSY,
  EditQueue: EDIT,
  CompactRequested: BUSY,
  ApproveBudget: RAISE,
  InputFailed: fault('input is read only between turns'),
};

/** After the end: the user's events, and what still comes of work that was stopped. */
export const userGone = {
  Start: GONE,
  RetryLast: GONE,
  RetryNow: GONE,
  CancelTurn: GONE,
  EditQueue: GONE,
  CompactRequested: GONE,
  ApproveBudget: GONE,
  SettingsChanged: GONE,
  InputFailed: GONE,
  TimerFired: GONE,
};
