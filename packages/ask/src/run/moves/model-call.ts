/**
 * One model call: stop policies, the user's policy, the request, retries. Shared by all states
 * that call a model.
 *
 * `work` in a state is what the run is doing. For a call it goes through the phases deciding,
 * asking (the user's policy), calling and retrying. `closing` is set when the next call asks for
 * the answer. Guards and moves are named by table.ts, which asks a deciding run in this order:
 * `mustStop`, `mustFinish`, `mustAskUser`, `mayCall`.
 */

import { conversationLength } from '@pawl/agent/machine/conversation';
import { failureText, isRetried, retryDelayMs, retryText } from '@pawl/agent/machine/moves/retry';
import type { CallPurpose } from '../action.js';
import { addUserText, cutOutputs } from '../conversation.js';
import type { CodeEvent, RunEventOf } from '../event.js';
import { go, ignore, type Next, nextId, type Same, withRun } from '../move-result.js';
import { amountAt } from '../settings.js';
import type { CallTurn, Run, RunIn } from '../state.js';
import { budgetWords, judge, type StopFacts, type StopVerdict } from '../stop-policies.js';
import { closingWords } from '../texts-for-model.js';
import { endRun } from './end-run.js';

export type Calling = RunIn<'INIT'> | RunIn<'SHALLOW_CALL'> | RunIn<'EXECUTING'>;

export const firstDecision: CallTurn = { kind: 'deciding', attempt: 1, userPolicy: 'unasked' };

const withTurn = <S extends Calling>(state: S, run: Run, work: CallTurn): S =>
  // Every calling state takes any turn as its work; the spread keeps the rest of S.
  ({ ...state, run, work }) as S;

// ---- Policies ----

/** Input of the stop policies. */
export const getStopFacts = (run: Run, at: number): StopFacts => ({
  at,
  deadlineAt: run.deadline?.dueAt ?? null,
  iterations: run.iterations,
  iterationsMax: run.iterationsMax,
  needed: amountAt(run.settings.reserve.expected, run.characters),
  left: run.purse.left,
  unpriced: run.purse.unpriced,
  repeated: run.code.times,
  repeatedMax: run.settings.repeatedMax,
  errors: run.errors,
  errorsMax: run.settings.errorsMax,
  sameOutput: run.output.times,
  sameOutputMax: run.settings.sameOutputMax,
});

const isDeciding = (state: Calling): boolean => state.work.kind === 'deciding';
const judgeStop = (state: Calling, event: CodeEvent): StopVerdict =>
  judge(getStopFacts(state.run, event.at));

export const mustStop = (state: Calling, event: CodeEvent): boolean =>
  isDeciding(state) && judgeStop(state, event).kind === 'stop';

/** Ends a run without another call; the partial answer is the last text. */
const endStopped = (state: Calling, verdict: StopVerdict): Next<'DONE'> =>
  endRun(state, {
    status: 'stopped',
    reason: verdict.kind === 'go' ? 'policy' : verdict.reason,
    message: verdict.kind === 'go' ? '' : verdict.why,
    partial: state.run.lastText,
  });

export const stopForPolicy = (state: Calling, event: CodeEvent): Next<'DONE'> =>
  endStopped(state, judgeStop(state, event));

type Closable = RunIn<'INIT'> | RunIn<'EXECUTING'>;

/** True if the run must ask for its answer now, and has not done so yet. */
export const mustFinish = (state: RunIn<'EXECUTING'>, event: CodeEvent): boolean =>
  isDeciding(state) && state.run.closing === null && judgeStop(state, event).kind === 'finish';

const closeWith = <S extends Closable>(state: S, verdict: StopVerdict): S =>
  verdict.kind === 'go'
    ? state
    : withRun(state, {
        ...addUserText(state.run, 'note', closingWords(verdict.why)),
        closing: { reason: verdict.reason, why: verdict.why },
      });

/** Makes the next call the last one, which asks for the answer. */
export const askForAnswer = (state: RunIn<'EXECUTING'>, event: CodeEvent): Next<'EXECUTING'> =>
  go(closeWith(state, judgeStop(state, event)));

export const mustAskUser = (state: Calling): boolean =>
  state.work.kind === 'deciding' &&
  state.work.userPolicy === 'unasked' &&
  state.run.settings.userPolicy === 'yes';

export const askUserPolicy = <S extends Calling>(state: S, event: CodeEvent): Same<S> => {
  const [policyId, run] = nextId(state.run, 'policy');
  const work = { kind: 'asking', attempt: getAttempt(state), policyId } as const;
  return go(withTurn(state, run, work), {
    type: 'AskPolicy',
    policyId,
    facts: getStopFacts(run, event.at),
  });
};

export const isStaleVerdict = (state: Calling, event: RunEventOf<'PolicyAnswered'>): boolean =>
  state.work.kind !== 'asking' || state.work.policyId !== event.policyId;
export const saysStop = (_state: Calling, event: RunEventOf<'PolicyAnswered'>): boolean =>
  event.verdict.kind === 'stop';
export const saysFinish = (state: Closable, event: RunEventOf<'PolicyAnswered'>): boolean =>
  event.verdict.kind === 'finish' && state.run.closing === null;

export const stopForUserPolicy = (
  state: Calling,
  event: RunEventOf<'PolicyAnswered'>,
): Next<'DONE'> => endStopped(state, event.verdict);

const goOn = <S extends Calling>(state: S): S =>
  withTurn(state, state.run, { kind: 'deciding', attempt: getAttempt(state), userPolicy: 'asked' });

export const finishForUserPolicy = <S extends Closable>(
  state: S,
  event: RunEventOf<'PolicyAnswered'>,
): Same<S> => go(closeWith(goOn(state), event.verdict));
export const takeGo = <S extends Calling>(state: S): Same<S> => go(goOn(state));
export const ignoreVerdict = <S extends Calling>(state: S): Same<S> =>
  ignore(state, 'stale: this policy was answered, or its run went on');

// ---- The call ----

const getAttempt = ({ work }: Calling): number => ('attempt' in work ? work.attempt : 1);

const getPurpose = (state: Calling): CallPurpose => {
  if (state.name === 'SHALLOW_CALL') return 'plain';
  return state.run.closing === null ? 'iteration' : 'answer';
};

export const mayCall = (state: Calling): boolean => isDeciding(state);

/** Sends the conversation under a new request id. */
export const callModel = <S extends Calling>(state: S): Same<S> => {
  const [requestId, run] = nextId(state.run, 'request');
  const called = withTurn(state, run, { kind: 'calling', attempt: getAttempt(state), requestId });
  return go(called, sendAgain(called, requestId));
};

/** The action of an open call; after a crash it is sent again under the same id. */
export const sendAgain = (state: Calling, requestId: string) =>
  ({
    type: 'CallModel',
    requestId,
    purpose: getPurpose(state),
    length: conversationLength(state.run.conversation),
    depth: state.run.depth,
  }) as const;

export const isStaleReply = (state: Calling, event: { readonly requestId: string }): boolean =>
  state.work.kind !== 'calling' || state.work.requestId !== event.requestId;
/** Ignores a stale reply. The tree has already counted its cost. */
export const ignoreReply = <S extends Calling>(state: S): Same<S> =>
  ignore(state, 'stale: this call was answered, or its run went on');

/** Ends the run without the call, which exceeds the remaining budget. */
export const stopForBudget = (
  state: Calling,
  { short, why = budgetWords(short) }: RunEventOf<'CallRefused'>,
): Next<'DONE'> => endStopped(state, { kind: 'stop', reason: short, why });

// ---- Failure ----

export const mayRetry = (state: Calling, event: RunEventOf<'ModelFailed'>): boolean =>
  isRetried(state.run.settings, getAttempt(state), event);

export const waitToRetry = <S extends Calling>(
  state: S,
  event: RunEventOf<'ModelFailed'>,
): Same<S> => {
  const attempt = getAttempt(state);
  const delayMs = retryDelayMs(state.run.settings, attempt, event);
  const [timerId, run] = nextId(state.run, 'timer');
  const dueAt = event.at + delayMs;
  return go(
    withTurn(state, run, { kind: 'retrying', attempt, timerId, dueAt }),
    {
      type: 'DisplayWarning',
      kind: 'retry',
      text: retryText(run.settings, attempt, event, delayMs),
    },
    { type: 'ScheduleTimer', timerId, dueAt, delayMs },
  );
};

export const isRetryTimer = (state: Calling, event: RunEventOf<'TimerFired'>): boolean =>
  state.work.kind === 'retrying' && state.work.timerId === event.timerId;
/** Retries the call, if the policies still allow it. */
export const tryAgain = <S extends Calling>(state: S): Same<S> =>
  go(
    withTurn(state, state.run, {
      kind: 'deciding',
      attempt: getAttempt(state) + 1,
      userPolicy: 'unasked',
    }),
  );

export const giveUp = (state: Calling, event: RunEventOf<'ModelFailed'>): Next<'DONE'> =>
  endRun(state, {
    status: 'failed',
    kind: event.error.kind,
    message: failureText(state.run.settings, getAttempt(state), event),
    partial: state.run.lastText,
  });

export const overflowMayBeCut = (
  state: RunIn<'EXECUTING'>,
  event: RunEventOf<'ModelFailed'>,
): boolean => event.error.kind === 'contextOverflow' && cutOutputs(state.run) !== null;
/** Cuts the output of earlier iterations and calls again. The values are still in variables. */
export const cutAndDecide = (state: RunIn<'EXECUTING'>): Next<'EXECUTING'> =>
  go(withTurn(state, cutOutputs(state.run) ?? state.run, firstDecision));

/** True if the model refused without any text. */
export const isRefusal = (state: Calling, event: RunEventOf<'ModelReplied'>): boolean =>
  !isStaleReply(state, event) &&
  (event.stopReason === 'refusal' || event.stopReason === 'contentFilter') &&
  !(event.message?.parts ?? []).some((part) => part.type === 'text' && part.text.trim() !== '');
export const endRefused = (state: Calling): Next<'DONE'> =>
  endRun(state, {
    status: 'failed',
    kind: 'refused',
    message: 'the model refused',
    partial: state.run.lastText,
  });
