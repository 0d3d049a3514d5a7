/** The lines of `--json`: each step of a session as records, which record-schema.ts describes. */

import type { Action } from '@pawl/agent/machine/action';
import type { On } from '@pawl/agent/machine/event';
import { toldUsage } from '@pawl/agent/machine/moves/request';
import type { Usage } from '@pawl/agent/machine/settings';
import { isIgnored, knownCostUsd, type State } from '@pawl/agent/machine/state';
import { type ApprovalRequest, describeQuestion } from '@pawl/agent/policy/approval-question';
import type { JudgedCall } from '@pawl/agent/policy/judged-call';
import type { Stepped } from '@pawl/agent/ports/session';
import type { Edge } from '@pawl/machine/kernel/table';
import { heldNote } from '@pawl/terminal/step-lines';
import type { ExitEnding } from '../process/exit-codes.js';
import { transitions } from '../sessions/session-text.js';
import type { JsonRecord } from './record-schema.js';

/** Token counts without the price. */
const tokenCounts = (usage: Omit<Usage, 'costUsd'>) => ({
  inputTokens: usage.inputTokens,
  outputTokens: usage.outputTokens,
  cacheReadTokens: usage.cacheReadTokens,
  cacheWriteTokens: usage.cacheWriteTokens,
  ...(usage.estimated === undefined ? {} : { estimated: [...usage.estimated] }),
});

/** The call with this id, if it is one of the batch (the calls of one reply) that runs now. */
const findCall = (state: State, callId: string): JudgedCall | undefined =>
  state.name === 'ExecutingTools'
    ? state.calls.find((call) => call.judged.callId === callId)?.judged
    : undefined;

/** null for events without a record. */
const eventRecord = ({ event, seq, state }: Stepped): JsonRecord | null => {
  const at = event.at;
  switch (event.type) {
    case 'UserInput':
      return { type: 'input', seq, at, text: event.text, mode: event.mode };
    case 'LlmCompleted':
      return replyRecord(
        event,
        seq,
        event.calls.map(({ callId, tool, input, verdict }) => ({
          callId,
          tool,
          input,
          verdict: verdict.kind,
        })),
      );
    case 'LlmFailed':
      return failureRecord(event, seq);
    case 'ToolStarted': {
      const call = findCall(state, event.callId);
      const { batchId, callId } = event;
      return {
        type: 'toolStarted',
        seq,
        at,
        batchId,
        callId,
        tool: call?.tool ?? '',
        input: call?.input ?? {},
      };
    }
    case 'ToolProgress':
      return {
        type: 'toolProgress',
        batchId: event.batchId,
        callId: event.callId,
        text: event.text,
      };
    case 'ApprovalAnswered': {
      const { batchId, callId, answer, scope } = event;
      return { type: 'approvalAnswered', seq, at, batchId, callId, answer: answer.kind, scope };
    }
    case 'HookCompleted':
      return hookRecord(event, seq);
    case 'HookFailed':
      return { type: 'hookFailed', seq, at, hookId: event.hookId, message: event.message };
    case 'CompactionCompleted':
      return {
        type: 'compaction',
        compactionId: event.compactionId,
        phase: 'completed',
        summary: event.summary,
      };
    case 'CompactionFailed':
      return { type: 'compaction', compactionId: event.compactionId, phase: 'failed' };
    default:
      return null;
  }
};

type Reply = Pick<On<'LlmCompleted'>, 'at' | 'requestId' | 'stopReason' | 'message' | 'usage'>;
type ReplyRecord = Extract<JsonRecord, { readonly type: 'reply' }>;

/** A reply to the agent or to `pawl ask`, whose models call no tools. */
export const replyRecord = (
  { at, requestId, stopReason, message, usage }: Reply,
  seq: number | null,
  calls: ReplyRecord['calls'],
): ReplyRecord => ({
  type: 'reply',
  seq,
  at,
  requestId,
  stopReason,
  text: (message?.parts ?? [])
    .flatMap((part) => (part.type === 'text' ? [part.text] : []))
    .join(''),
  calls,
  usage: tokenCounts(usage),
  costUsd: usage.costUsd,
});

type Failure = Pick<On<'LlmFailed'>, 'at' | 'requestId' | 'error'>;

export const failureRecord = ({ at, requestId, error }: Failure, seq: number | null) => {
  const { kind, message, retryable, retryAfterMs } = error;
  return {
    type: 'modelFailed',
    seq,
    at,
    requestId,
    kind,
    message,
    retryable,
    retryAfterMs,
  } as const;
};

const hookRecord = (event: On<'HookCompleted'>, seq: number | null): JsonRecord => {
  const { at, hookId, dirty } = event;
  const commits = event.commits.map(({ hash, subject }) => ({ hash, subject }));
  return {
    type: 'hookCompleted',
    seq,
    at,
    hookId,
    commits,
    changedFiles: [...event.changedFiles],
    dirty,
  };
};

/** Copies the lists: records hold mutable ones. */
const questionRecord = (question: ApprovalRequest, workspace: string) => {
  const description = describeQuestion(question, workspace);
  const { paths, hosts, programs, protectedPaths, oddCharacters, choices } = description;
  return {
    ...description,
    paths: [...paths],
    hosts: [...hosts],
    programs: [...programs],
    protectedPaths: [...protectedPaths],
    oddCharacters: [...oddCharacters],
    choices: [...choices],
  };
};

/** null for actions without a record. */
const actionRecord = (action: Action, workspace: string): JsonRecord | null => {
  switch (action.type) {
    case 'SendLlmRequest':
      return {
        type: 'request',
        requestId: action.requestId,
        purpose: action.purpose,
        messages: action.length, // so many of the conversation are sent
      };
    case 'RequestApproval': {
      const { callId, input } = action.call;
      return {
        type: 'approvalRequested',
        batchId: action.batchId,
        callId,
        input,
        ...questionRecord(action, workspace),
      };
    }
    case 'WithdrawApproval':
      return { type: 'approvalWithdrawn', batchId: action.batchId, callId: action.callId };
    case 'StartCompaction':
      return { type: 'compaction', compactionId: action.compactionId, phase: 'started' };
    case 'AbortCompaction':
      return { type: 'compaction', compactionId: action.compactionId, phase: 'cancelled' };
    case 'RunHook':
      return { type: 'hookStarted', hookId: action.hookId, phase: action.phase };
    case 'DisplayText':
      return { type: 'text', text: action.text };
    case 'DisplayToolResult': {
      const { batchId, callId, tool, status, text, diff } = action;
      return { type: 'toolResult', batchId, callId, tool, status, text, diff };
    }
    case 'DisplayError':
      return { type: 'error', text: action.text, origin: action.origin };
    case 'DisplayWarning':
      return { type: 'warning', kind: action.kind, text: action.text };
    case 'DisplayNotice':
      return { type: 'notice', kind: action.kind, text: action.text };
    case 'RetractPartial':
      return { type: 'retracted', requestId: action.requestId };
    default:
      return null;
  }
};

/** A step into the state `Error`, or a resume there, begins the wait before a call is repeated. */
const retryRecords = (stepped: Stepped): readonly JsonRecord[] => {
  const { event, state } = stepped;
  if (state.name !== 'Error' || isIgnored(stepped)) return [];
  const isEntered = transitions(stepped).some((edge) => edge.to === 'Error');
  if (!isEntered && event.type !== 'Resumed') return [];
  const { timerId, dueAt, delayMs, attempt, error } = state;
  const of = state.session.settings.maxRetries;
  const why = { kind: error.kind, message: error.message };
  return [{ type: 'retry', timerId, dueAt, delayMs, retry: attempt, of, ...why }];
};

/** Records of one step, in order: its event, the states it went through, its actions. */
export const stepRecords = (stepped: Stepped): readonly JsonRecord[] => {
  const { event, seq, state } = stepped;
  const { workspace } = state.session.settings;
  const eventItem = eventRecord(stepped);
  const held = heldNote(stepped);
  const edges = transitions(stepped); // the changes of state
  const stateItems = edges.length > 0 ? [stateRecord(event, seq, edges)] : [];
  const actionItems = stepped.actions
    .map((action) => actionRecord(action, workspace))
    .filter((item) => item !== null);
  return [
    ...(eventItem === null ? [] : [eventItem]),
    ...stateItems,
    ...actionItems,
    ...(held === '' ? [] : [{ type: 'notice', kind: 'queued', text: held } as const]),
    ...retryRecords(stepped),
  ];
};

/** The states that a step went through, of the session or of one run of `pawl ask`. */
export const stateRecord = (
  event: { readonly type: string; readonly at: number },
  seq: number | null,
  edges: readonly Edge[],
) =>
  ({
    type: 'state',
    seq,
    at: event.at,
    event: event.type,
    path: edges.map((edge) => edge.to),
    state: edges.at(-1)?.to ?? '',
  }) as const;

/**
 * What an ended session or run used; `costUsd` is null if the price of any call is unknown.
 * `costAtLeast`: a call has not reported all of its usage.
 */
type Spent = {
  readonly sessionId: string;
  readonly usage: Omit<Usage, 'costUsd'>;
  readonly costUsd: number | null;
  readonly costAtLeast?: true;
};

type RecordedSession = { readonly sessionId: string; readonly state: State };

type ResultRecord = Extract<JsonRecord, { readonly type: 'result' }>;

const spentIn = ({ sessionId, state }: RecordedSession): Spent => {
  const usage = toldUsage(state);
  const bound = usage.atLeast ? ({ costAtLeast: true } as const) : {};
  return { sessionId, usage, costUsd: knownCostUsd(usage), ...bound };
};

/** Last record of the stream; `session` is null if none was opened. */
export const resultRecord = (
  ending: ExitEnding,
  text: string,
  session: RecordedSession | null,
  more: Pick<ResultRecord, 'denied' | 'structuredOutput'>,
): JsonRecord => ({
  ...endRecord(ending, text, session === null ? null : spentIn(session)),
  ...more,
});

/** The end of a session or of a run of `pawl ask`; `spent` is null if none was opened. */
export const endRecord = (ending: ExitEnding, text: string, spent: Spent | null) =>
  ({
    type: 'result',
    ok: ending.exit === 0,
    reason: ending.reason,
    exit: ending.exit,
    message: ending.message,
    text,
    sessionId: spent?.sessionId ?? null,
    usage: spent === null ? null : tokenCounts(spent.usage),
    costUsd: spent?.costUsd ?? null,
    ...(spent?.costAtLeast === undefined ? {} : { costAtLeast: true as const }),
  }) as const;
