import type { Action } from '@pawl/agent/machine/action';
import type { On } from '@pawl/agent/machine/event';
import { costOf, type State } from '@pawl/agent/machine/state';
import type { Usage } from '@pawl/agent/machine/usage';
import { type ApprovalRequest, describeQuestion } from '@pawl/agent/policy/approval-question';
import type { JudgedCall } from '@pawl/agent/policy/judged-call';
import type { Stepped } from '@pawl/agent/ports/session';
import type { ExitEnding } from '../process/exit-codes.js';
import { transitions } from '../sessions/session-text.js';
import type { JsonRecord } from './record-schema.js';

/** Token counts without the price. */
export const countsOf = (usage: Omit<Usage, 'costUsd'>) => ({
  inputTokens: usage.inputTokens,
  outputTokens: usage.outputTokens,
  cacheReadTokens: usage.cacheReadTokens,
  cacheWriteTokens: usage.cacheWriteTokens,
});

/** The call of a running batch, or undefined. */
const findCall = (state: State, callId: string): JudgedCall | undefined =>
  state.name === 'ExecutingTools'
    ? state.calls.find((call) => call.judged.callId === callId)?.judged
    : undefined;

const recordOfEvent = ({ event, seq, state }: Stepped): JsonRecord | null => {
  const at = event.at;
  switch (event.type) {
    case 'UserInput':
      return { type: 'input', seq, at, text: event.text, mode: event.mode };
    case 'LlmCompleted':
      return {
        type: 'reply',
        seq,
        at,
        requestId: event.requestId,
        stopReason: event.stopReason,
        text: replyText(event),
        calls: event.calls.map(({ callId, tool, input, verdict }) => ({
          callId,
          tool,
          input,
          verdict: verdict.kind,
        })),
        usage: countsOf(event.usage),
        costUsd: event.usage.costUsd,
      };
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
      return { type: 'toolProgress', batchId: event.batchId, callId: event.callId, text: event.text };
    case 'ApprovalAnswered': {
      const { batchId, callId, answer, scope } = event;
      return { type: 'approvalAnswered', seq, at, batchId, callId, answer: answer.kind, scope };
    }
    case 'HookCompleted':
      return completedHook(event, seq);
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

const failureRecord = (event: On<'LlmFailed'>, seq: number | null): JsonRecord => {
  const { kind, message, retryable, retryAfterMs } = event.error;
  const { at, requestId } = event;
  return { type: 'modelFailed', seq, at, requestId, kind, message, retryable, retryAfterMs };
};

const completedHook = (event: On<'HookCompleted'>, seq: number | null): JsonRecord => {
  const { at, hookId, dirty } = event;
  const commits = event.commits.map(({ hash, subject }) => ({ hash, subject }));
  return { type: 'hookCompleted', seq, at, hookId, commits, changedFiles: [...event.changedFiles], dirty };
};

const replyText = (event: On<'LlmCompleted'>): string =>
  (event.message?.parts ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');

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

const recordOfAction = (action: Action, workspace: string): JsonRecord | null => {
  switch (action.type) {
    case 'SendLlmRequest':
      return {
        type: 'request',
        requestId: action.requestId,
        purpose: action.purpose,
        messages: action.length,
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

const retryRecords = ({ state, path }: Stepped): readonly JsonRecord[] => {
  if (state.name !== 'Error' || !path.some((edge) => edge.to === 'Error')) return [];
  const { timerId, dueAt, delayMs, attempt, error } = state;
  const of = state.session.settings.maxRetries;
  const why = { kind: error.kind, message: error.message };
  return [{ type: 'retry', timerId, dueAt, delayMs, retry: attempt, of, ...why }];
};

/** Records of one step, in order: its event, the states it went through, its actions. */
export const recordsOf = (stepped: Stepped): readonly JsonRecord[] => {
  const { event, seq, state } = stepped;
  const { workspace } = state.session.settings;
  const happened = recordOfEvent(stepped);
  const edges = transitions(stepped);
  const moved: readonly JsonRecord[] =
    edges.length > 0
      ? [
          {
            type: 'state',
            seq,
            at: event.at,
            event: event.type,
            path: edges.map((edge) => edge.to),
            state: state.name,
          },
        ]
      : [];
  const follows = stepped.actions
    .map((action) => recordOfAction(action, workspace))
    .filter((item) => item !== null);
  return [...(happened === null ? [] : [happened]), ...moved, ...follows, ...retryRecords(stepped)];
};

/** Last record of the stream; `ended` is null if no session was opened. */
export const resultRecord = (
  ending: ExitEnding,
  text: string,
  ended: { sessionId: string; state: State } | null,
): JsonRecord => ({
  type: 'result',
  ok: ending.exit === 0,
  reason: ending.reason,
  exit: ending.exit,
  message: ending.message,
  text,
  sessionId: ended?.sessionId ?? null,
  usage: ended === null ? null : countsOf(ended.state.session.usage),
  costUsd: ended === null ? null : costOf(ended.state),
});
