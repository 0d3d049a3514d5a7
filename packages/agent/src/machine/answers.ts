import type { ActionType } from './action.js';
import type { EventType } from './event.js';

/**
 * Which events answer an action. The table in docs/machine.md is made from this, and a test walks every arrow of the
 * machine and sees each of them.
 *
 * `last`: exactly one of them ends what the action began, unless it was aborted. `before`: any number of them may come
 * before it. `late`: may come after it, or after an abort. All of them carry the id of the action.
 */
export type Answers = {
  readonly before: readonly EventType[];
  readonly last: readonly EventType[];
  readonly late: readonly EventType[];
};

const NONE: Answers = { before: [], last: [], late: [] };

/** The events that answer each action. Actions without any are for display, or take back another one. */
export const answersTo: Readonly<Record<ActionType, Answers>> = {
  SendLlmRequest: {
    before: ['TextDelta', 'ReasoningDelta', 'ToolCallDelta', 'UserHooksRan'],
    last: ['LlmCompleted', 'LlmFailed', 'PolicyStopped'],
    late: ['UsageReported'],
  },
  AbortLlmRequest: { ...NONE, late: ['UsageReported'] },
  PreviewCall: { ...NONE, last: ['CallPreviewed'] },
  RequestApproval: { ...NONE, last: ['ApprovalAnswered'] },
  WithdrawApproval: NONE,
  ExecuteTools: { before: ['ToolStarted', 'ToolProgress'], last: ['ToolCompleted', 'ToolsFailed'], late: [] },
  CancelTools: { ...NONE, last: ['ToolCompleted'] },
  RunHook: { before: ['HookPrepared'], last: ['HookCompleted', 'HookFailed'], late: ['UsageReported'] },
  AbortHook: { ...NONE, late: ['UsageReported'] },
  StartCompaction: {
    before: [],
    last: ['CompactionCompleted', 'CompactionFailed'],
    late: ['UsageReported'],
  },
  AbortCompaction: { ...NONE, late: ['UsageReported'] },
  ScheduleTimer: { ...NONE, last: ['TimerFired'] },
  CancelTimer: NONE,
  DisplayText: NONE,
  DisplayToolResult: NONE,
  DisplayError: NONE,
  DisplayWarning: NONE,
  DisplayNotice: NONE,
  RetractPartial: NONE,
  RestoreQueue: NONE,
  PromptForInput: { ...NONE, last: ['UserInput'] },
  Shutdown: NONE,
};

const listOf = (events: readonly EventType[]): string =>
  events.map((event) => `\`${event}\``).join(', ') || '–';

/** One row for each action that has an answer. */
export const answersTable = (): string =>
  [
    '| action | may come before | ends it, one of | may come late |',
    '|---|---|---|---|',
    ...Object.entries(answersTo)
      .filter(([, answers]) => answers !== NONE)
      .map(
        ([action, { before, last, late }]) =>
          `| \`${action}\` | ${listOf(before)} | ${listOf(last)} | ${listOf(late)} |`,
      ),
  ].join('\n');
