/**
 * The calls of a batch, one by one: guards on a call and the actions that end it; finding it by id;
 * and its result, with the text for the model. tool-batch.ts starts calls, and tells their way.
 */

import {
  type CallTraits,
  hookNotes,
  type JudgedCall,
  verdictsIn,
  withRemarks,
} from '../../policy/judged-call.js';
import type { Action } from '../action.js';
import type { Call, CallOutcome, EndedCall, NeverRanStatus, RanStatus } from '../call.js';
import type { StopReason } from '../event.js';
import type { Image, ResultPart } from '../message.js';
import { type CancelCause, cancelFacts, changeBatch, type In } from '../state.js';

export type ToolBatch = In<'ExecutingTools'>;

export const isEnded = (call: Call): call is EndedCall => 'completedAt' in call;
/** Whether the call has started and not ended, so that a cancel must stop it. */
export const isRunning = (
  call: Call,
): call is Extract<Call, { readonly status: 'starting' | 'running' }> =>
  call.status === 'starting' || call.status === 'running';
export const isWaiting = (
  call: Call,
): call is Extract<Call, { readonly status: 'queued' | 'previewing' | 'awaitingApproval' }> =>
  call.status === 'queued' || isAsked(call);
/**
 * Whether the call waits for the user's answer, or for the preview that comes before the question.
 */
export const isAsked = (
  call: Call,
): call is Extract<Call, { readonly status: 'previewing' | 'awaitingApproval' }> =>
  call.status === 'previewing' || call.status === 'awaitingApproval';

/** The ids of one call, as events carry them. */
export type CallReference = { readonly batchId: string; readonly callId: string };

export const findCall = (state: ToolBatch, event: CallReference): Call | undefined =>
  event.batchId === state.batchId ? callWithId(state.calls, event.callId) : undefined;

/** The batch with these calls changed. */
export const replaceCalls = (state: ToolBatch, ...changed: readonly Call[]): ToolBatch =>
  changeBatch(state, { calls: withCalls(state.calls, changed) });

export const cancelTimer = (timerId: string | null): readonly Action[] =>
  timerId === null ? [] : [{ type: 'CancelTimer', timerId }];

export const getCancelCause = (state: ToolBatch): CancelCause =>
  state.phase.mode === 'cancelling' ? state.phase.cause : 'user';

/**
 * The action that shows the end of a call to the user, with the diff and the summary, which only
 * people read.
 */
export const displayResult = (
  batchId: string,
  call: EndedCall,
  { diff, summary }: Pick<CallOutcome, 'diff' | 'summary'> = {},
): Action => ({
  type: 'DisplayToolResult',
  batchId,
  callId: call.judged.callId,
  tool: call.judged.tool,
  ...(call.judged.title === undefined ? {} : { title: call.judged.title }),
  status: call.status,
  text: call.outcome.text,
  ...(summary === undefined ? {} : { summary }),
  diff: diff ?? null,
});

/** Withdraws the questions about those calls that wait for an answer. */
export const withdrawApprovals = (state: ToolBatch, calls: readonly Call[]): readonly Action[] =>
  calls.filter(isAsked).map(({ judged }) => ({
    type: 'WithdrawApproval',
    batchId: state.batchId,
    callId: judged.callId,
  }));

export const cancelCalls = (
  state: ToolBatch,
  calls: readonly Call[],
  { force }: { readonly force: boolean },
): readonly Action[] =>
  calls.length === 0
    ? []
    : [
        {
          type: 'CancelTools',
          batchId: state.batchId,
          callIds: calls.map(({ judged }) => judged.callId),
          force,
        },
      ];

// ---- Finding and replacing calls by id ----

/**
 * Each event of a batch finds its call several times. Without an index a reply of 5,000 calls takes
 * quadratic time. The positions never change while a batch runs, so all copies of its calls share
 * one index. The index is only a cache, made at the first search.
 */
const positions = new WeakMap<readonly Call[], ReadonlyMap<string, number>>();

/** Batches up to this size are searched, since making an index costs more. */
const SEARCHED_MAX = 8;

const indexPositions = (calls: readonly Call[]): ReadonlyMap<string, number> => {
  const cached = positions.get(calls);
  if (cached !== undefined) return cached;
  const indexed = new Map(calls.map(({ judged }, index) => [judged.callId, index]));
  positions.set(calls, indexed);
  return indexed;
};

/** The position of the call; -1 if the batch has no such call. */
const findPosition = (calls: readonly Call[], callId: string): number =>
  // Stryker disable next-line ConditionalExpression,EqualityOperator: a shortcut
  calls.length <= SEARCHED_MAX
    ? calls.findIndex(({ judged }) => judged.callId === callId)
    : (indexPositions(calls).get(callId) ?? -1);

export const callWithId = (calls: readonly Call[], callId: string): Call | undefined => {
  const position = findPosition(calls, callId);
  // Stryker disable next-line ConditionalExpression: beyond the batch there is no call
  return position < 0 ? undefined : calls[position];
};

/** A copy whose calls may be replaced by other versions of themselves, but not moved. */
export const copyCalls = (calls: readonly Call[]): Call[] => {
  const copy = [...calls];
  const cached = positions.get(calls);
  if (cached !== undefined) positions.set(copy, cached);
  return copy;
};

/** The calls with these versions of some of them. */
const withCalls = (calls: readonly Call[], changed: readonly Call[]): readonly Call[] => {
  const copy = copyCalls(calls);
  for (const call of changed) {
    const position = findPosition(calls, call.judged.callId);
    // Stryker disable next-line ConditionalExpression: beyond the batch there is no call
    if (position >= 0) copy[position] = call;
  }
  return copy;
};

// ---- Result texts: one for each way to end (rules.md#truthful-results) ----

/** Characters of refused arguments that the model gets back. */
const RAW_INPUT_MAX = 400;

/** Ends a call that never started. */
export const neverRan = (
  judged: JudgedCall,
  requestedAt: number,
  at: number,
  status: NeverRanStatus,
  text: string,
): EndedCall => ({
  judged,
  requestedAt,
  status,
  ran: false,
  startedAt: null,
  completedAt: at,
  outcome: { failed: true, text },
});

/** How a started or starting call ended. */
type Ending = {
  readonly status: RanStatus;
  readonly text: string;
  readonly images?: readonly Image[];
  readonly ran?: 'no';
};

/** Ends a started or starting call. Any status but `ok` counts as a failure. */
export const endRunning = (
  call: Call,
  at: number,
  { status, text, images, ran }: Ending,
): EndedCall => ({
  judged: call.judged,
  requestedAt: call.requestedAt,
  status,
  ran: ran !== 'no',
  startedAt: call.status === 'running' ? call.startedAt : null,
  completedAt: at,
  outcome: { failed: status !== 'ok', text, ...(images === undefined ? {} : { images }) },
});

export const noSuchToolText = (judged: JudgedCall): string => {
  const tools = judged.verdict.kind === 'noSuchTool' ? judged.verdict.known.join(', ') : '';
  return `no such tool: ${judged.tool}; available: ${tools}`;
};

export const invalidText = (judged: JudgedCall): string => {
  const fault =
    judged.verdict.kind === 'invalid' ? `${judged.verdict.field}: ${judged.verdict.why}` : '';
  const { rawInput } = judged;
  if (rawInput === undefined) return `the arguments were not valid: ${fault}`;
  const quote = rawInput.length > RAW_INPUT_MAX ? `${rawInput.slice(0, RAW_INPUT_MAX)}…` : rawInput;
  return `the arguments were not valid: ${fault}\nWhat you wrote: ${quote}`;
};

export const truncatedText =
  'not run: your reply was cut off at the output limit; nothing of it was executed';
export const skippedText = 'skipped: the budget of this session is used up';
export const unbilledText =
  'skipped: a call that was stopped has not yet said what it has spent of the budget';
export const finishedText = 'skipped: only the final answer was asked for';
export const closedText = 'not run: session closed';
export const deniedText = (why: string): string => `denied by policy: ${why}`;
/** `asks`: the call asked the user something. */
export const refusedText = (reason: string, asks?: CallTraits['asks']): string => {
  const why = reason.trim() === '' ? '' : `: ${reason.trim()}`;
  if (asks === 'question')
    return `the user declined to answer${why}. Decide yourself, and say what you assumed.`;
  if (asks === 'plan') return `the user sent the plan back${why}. Nothing was accepted.`;
  return `refused by user${why}`;
};
export const notRunText = (cause: CancelCause): string => `not run: ${cancelFacts(cause).notRun}`;
export const unknownText = (cause: CancelCause): string =>
  `stopped while running ${cancelFacts(cause).by}, effects unknown`;

/** `output`: what the call had printed when the session was closed. */
export const interruptedText = (output: string): string =>
  withOutput('interrupted while running, effects unknown', output);

const withOutput = (sentence: string, output: string): string =>
  output.trim() === '' ? sentence : `${sentence}\n${output}`;

/** The result text of a call that ran. */
export const outcomeText = (outcome: CallOutcome, cause: CancelCause): string => {
  switch (outcome.status) {
    case 'ok':
      return outcome.text === '' ? '(no output)' : outcome.text;
    case 'failed':
      return outcome.text === '' ? 'failed without output' : `failed: ${outcome.text}`;
    case 'timedOut':
      return withOutput(
        'stopped: the deadline of the call was reached; its effects may be incomplete',
        outcome.text,
      );
    case 'cancelled':
      return outcome.ran === 'no'
        ? notRunText(cause)
        : withOutput(unknownText(cause), outcome.text);
    case 'lost':
      return withOutput('outcome unknown after a crash', outcome.text);
    default:
      return outcome.status satisfies never;
  }
};

const createResult = (judged: JudgedCall, failed: boolean, text: string): ResultPart => ({
  type: 'result',
  callId: judged.callId,
  tool: judged.tool,
  failed,
  text,
});

/** The result for the model, with the notes of hooks that saw the call before it ran. */
export const resultOfCall = ({ judged, outcome }: EndedCall): ResultPart => ({
  ...createResult(
    judged,
    outcome.failed,
    withRemarks(outcome.text, hookNotes(verdictsIn(judged.hooks))),
  ),
  ...(outcome.images === undefined ? {} : { images: outcome.images }),
});

export const cancelledResult = (judged: JudgedCall, cause: CancelCause): ResultPart =>
  createResult(judged, true, notRunText(cause));

export const refusedResult = (judged: JudgedCall, stopReason: StopReason): ResultPart =>
  createResult(judged, true, `not run: the reply ended with ${stopReason}`);

/** Ends a call whose tool is unknown or refuses its input; null for a valid call. */
export const endInvalid = (
  judged: JudgedCall,
  requestedAt: number,
  at: number,
): EndedCall | null => {
  const { kind } = judged.verdict;
  if (kind === 'ok') return null;
  const text = kind === 'noSuchTool' ? noSuchToolText(judged) : invalidText(judged);
  return neverRan(judged, requestedAt, at, kind, text);
};
