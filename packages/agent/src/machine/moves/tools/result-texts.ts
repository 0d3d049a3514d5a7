import type { Call, CallOutcome, JudgedCall, NeverRanStatus, RanStatus } from '../../call.js';
import type { StopReason } from '../../event.js';
import type { Image, ResultPart } from '../../message.js';
import { hookNotes, verdictsIn, withRemarks } from '../../values/hook-verdict.js';
import { type CancelCause, stopCauseFacts } from '../../values/stop-cause.js';

/** Result texts for the model: one for each way in which a call ends (docs/rules.md#truthful-results). */

export type EndedCall = Extract<Call, { readonly completedAt: number }>;

const rawMax = 400;
const quoted = (raw: string): string => (raw.length > rawMax ? `${raw.slice(0, rawMax)}…` : raw);

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

/** How a call ended that had started, or was about to. */
type Ending = {
  readonly status: RanStatus;
  readonly text: string;
  readonly images?: readonly Image[];
  readonly ran?: 'no';
};

/** A call that had started, or was about to: all but `ok` reads as a failure. */
export const endRunning = (call: Call, at: number, { status, text, images, ran }: Ending): EndedCall => ({
  judged: call.judged,
  requestedAt: call.requestedAt,
  status,
  ran: ran !== 'no',
  startedAt: call.status === 'running' ? call.startedAt : null,
  completedAt: at,
  outcome: { failed: status !== 'ok', text, ...(images === undefined ? {} : { images }) },
});

export const noSuchToolText = (judged: JudgedCall): string => {
  const known = judged.verdict.kind === 'noSuchTool' ? judged.verdict.known.join(', ') : '';
  return `no such tool: ${judged.tool}; available: ${known}`;
};

export const invalidText = (judged: JudgedCall): string => {
  const fault = judged.verdict.kind === 'invalid' ? `${judged.verdict.field}: ${judged.verdict.why}` : '';
  const raw = judged.rawInput === undefined ? '' : `\nWhat you wrote: ${quoted(judged.rawInput)}`;
  return `the arguments were not valid: ${fault}${raw}`;
};

export const truncatedText =
  'not run: your reply was cut off at the output limit; nothing of it was executed';
export const skippedText = 'skipped: the budget of this session is used up';
export const unbilledText =
  'skipped: a call that was stopped has not yet said what it has spent of the budget';
export const finishedText = 'skipped: only the final answer was asked for';
export const closedText = 'not run: session closed';
export const deniedText = (why: string): string => `denied by policy: ${why}`;
export const refusedText = (reason: string): string =>
  reason.trim() === '' ? 'refused by user' : `refused by user: ${reason.trim()}`;
export const notRunText = (cause: CancelCause): string => `not run: ${stopCauseFacts(cause).notRun}`;
export const unknownText = (cause: CancelCause): string =>
  `stopped while running ${stopCauseFacts(cause).by}, effects unknown`;

/** `output`: what it had told when the session was closed. */
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
      return outcome.ran === 'no' ? notRunText(cause) : withOutput(unknownText(cause), outcome.text);
    case 'lost':
      return withOutput('outcome unknown after a crash', outcome.text);
    default:
      return outcome.status satisfies never;
  }
};

const resultOf = (judged: JudgedCall, failed: boolean, text: string): ResultPart => ({
  type: 'result',
  callId: judged.callId,
  tool: judged.tool,
  failed,
  text,
});

/** The result for the model, with the notes of hooks that saw the call before it ran. */
export const resultOfCall = ({ judged, outcome }: EndedCall): ResultPart => ({
  ...resultOf(judged, outcome.failed, withRemarks(outcome.text, hookNotes(verdictsIn(judged.hooks)))),
  ...(outcome.images === undefined ? {} : { images: outcome.images }),
});

export const cancelledResult = (judged: JudgedCall, cause: CancelCause): ResultPart =>
  resultOf(judged, true, notRunText(cause));

export const refusedResult = (judged: JudgedCall, stopReason: StopReason): ResultPart =>
  resultOf(judged, true, `not run: the reply ended with ${stopReason}`);
