import { lengthOf } from '../../agent/conversation.js';
import { failureText, isRetried, retryDelayMs, retryText } from '../../agent/moves/retry.js';
import type { CallPurpose } from '../action.js';
import type { CodeEvent, On } from '../event.js';
import { expectedCost } from '../ledger.js';
import type { Next, Same } from '../move.js';
import { go, ignore, nextId, withRun } from '../move.js';
import { judge, type StopFacts, type Verdict } from '../policies.js';
import type { In, Run, Turn } from '../state.js';
import { cutOutputs, tell } from '../talk.js';
import { closingWords } from '../words.js';
import { endRun } from './end.js';

/** One model call: may it be made, is the user's policy asked, what if it fails. The same in every state that calls. */

export type Calling = In<'INIT'> | In<'SHALLOW_CALL'> | In<'EXECUTING'>;

export const decide: Turn = { kind: 'deciding', attempt: 1, userPolicy: 'unasked' };

const withTurn = <S extends Calling>(state: S, run: Run, work: Turn): S =>
  // Every calling state takes any turn as its work; the spread keeps the rest of S.
  ({ ...state, run, work }) as S;

// ---- Policies ----

/** What the stopping policies judge by. */
export const factsOf = (run: Run, at: number): StopFacts => ({
  at,
  deadlineAt: run.deadline?.dueAt ?? null,
  iterations: run.iterations,
  iterationsMax: run.iterationsMax,
  needed: expectedCost(run.settings.reserve, run.characters),
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
const verdictOf = (state: Calling, event: CodeEvent): Verdict => judge(factsOf(state.run, event.at));

export const mustStop = (state: Calling, event: CodeEvent): boolean =>
  isDeciding(state) && verdictOf(state, event).kind === 'stop';

/** Ends a run without another call; what it said last is kept. */
const endStopped = (state: Calling, verdict: Verdict): Next<'DONE'> =>
  endRun(state, {
    status: 'stopped',
    reason: verdict.kind === 'go' ? 'policy' : verdict.reason,
    message: verdict.kind === 'go' ? '' : verdict.why,
    partial: state.run.lastText,
  });

export const stopForPolicy = (state: Calling, event: CodeEvent): Next<'DONE'> =>
  endStopped(state, verdictOf(state, event));

type Closable = In<'INIT'> | In<'EXECUTING'>;

/** A run that asks for its answer already has nothing more to finish; one that has not iterated has nothing yet. */
export const mustFinish = (state: In<'EXECUTING'>, event: CodeEvent): boolean =>
  isDeciding(state) && state.run.closing === null && verdictOf(state, event).kind === 'finish';

const closeWith = <S extends Closable>(state: S, verdict: Verdict): S =>
  verdict.kind === 'go'
    ? state
    : withRun(state, {
        ...tell(state.run, 'note', closingWords(verdict.why)),
        closing: { reason: verdict.reason, why: verdict.why },
      });

/** The next call is the last, and asks for the answer. */
export const askForAnswer = (state: In<'EXECUTING'>, event: CodeEvent): Next<'EXECUTING'> =>
  go(closeWith(state, verdictOf(state, event)));

export const mustAskUser = (state: Calling): boolean =>
  state.work.kind === 'deciding' &&
  state.work.userPolicy === 'unasked' &&
  state.run.settings.userPolicy === 'yes';

export const askUserPolicy = <S extends Calling>(state: S, event: CodeEvent): Same<S> => {
  const [policyId, run] = nextId(state.run, 'policy');
  const work = { kind: 'asking', attempt: attemptOf(state), policyId } as const;
  return go(withTurn(state, run, work), { type: 'AskPolicy', policyId, facts: factsOf(run, event.at) });
};

export const isStaleVerdict = (state: Calling, event: On<'PolicyAnswered'>): boolean =>
  state.work.kind !== 'asking' || state.work.policyId !== event.policyId;
export const saysStop = (_state: Calling, event: On<'PolicyAnswered'>): boolean =>
  event.verdict.kind === 'stop';
export const saysFinish = (state: Closable, event: On<'PolicyAnswered'>): boolean =>
  event.verdict.kind === 'finish' && state.run.closing === null;

export const stopForUserPolicy = (state: Calling, event: On<'PolicyAnswered'>): Next<'DONE'> =>
  endStopped(state, event.verdict);

const goOn = <S extends Calling>(state: S): S =>
  withTurn(state, state.run, { kind: 'deciding', attempt: attemptOf(state), userPolicy: 'asked' });

export const finishForUserPolicy = <S extends Closable>(state: S, event: On<'PolicyAnswered'>): Same<S> =>
  go(closeWith(goOn(state), event.verdict));
export const takeGo = <S extends Calling>(state: S): Same<S> => go(goOn(state));
export const ignoreVerdict = <S extends Calling>(state: S): Same<S> =>
  ignore(state, 'stale: this policy was answered, or its run went on');

// ---- The call ----

const attemptOf = ({ work }: Calling): number => ('attempt' in work ? work.attempt : 1);

const purposeOf = (state: Calling): CallPurpose => {
  if (state.name === 'SHALLOW_CALL') return 'plain';
  return state.run.closing === null ? 'iteration' : 'answer';
};

export const mayCall = (state: Calling): boolean => isDeciding(state);

/** The conversation as it stands, under a new id. */
export const callModel = <S extends Calling>(state: S): Same<S> => {
  const [requestId, run] = nextId(state.run, 'request');
  const called = withTurn(state, run, { kind: 'calling', attempt: attemptOf(state), requestId });
  return go(called, sendAgain(called, requestId));
};

/** The action of a call that is under way: after a crash it is asked for again under its id. */
export const sendAgain = (state: Calling, requestId: string) =>
  ({
    type: 'CallModel',
    requestId,
    purpose: purposeOf(state),
    length: lengthOf(state.run.conversation),
    depth: state.run.depth,
  }) as const;

export const isStaleReply = (state: Calling, event: { readonly requestId: string }): boolean =>
  state.work.kind !== 'calling' || state.work.requestId !== event.requestId;
/** The tree has booked what it cost. */
export const ignoreReply = <S extends Calling>(state: S): Same<S> =>
  ignore(state, 'stale: this call was answered, or its run went on');

// ---- Failure ----

export const mayRetry = (state: Calling, event: On<'ModelFailed'>): boolean =>
  isRetried(state.run.settings, attemptOf(state), event);

export const waitToRetry = <S extends Calling>(state: S, event: On<'ModelFailed'>): Same<S> => {
  const attempt = attemptOf(state);
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
    { type: 'ScheduleTimer', timerId, dueAt },
  );
};

export const isRetryTimer = (state: Calling, event: On<'TimerFired'>): boolean =>
  state.work.kind === 'retrying' && state.work.timerId === event.timerId;
/** The same again, if the policies still allow it. */
export const tryAgain = <S extends Calling>(state: S): Same<S> =>
  go(withTurn(state, state.run, { kind: 'deciding', attempt: attemptOf(state) + 1, userPolicy: 'unasked' }));

export const giveUp = (state: Calling, event: On<'ModelFailed'>): Next<'DONE'> =>
  endRun(state, {
    status: 'failed',
    kind: event.error.kind,
    message: failureText(state.run.settings, attemptOf(state), event),
    partial: state.run.lastText,
  });

export const overflowMayBeCut = (state: In<'EXECUTING'>, event: On<'ModelFailed'>): boolean =>
  event.error.kind === 'contextOverflow' && cutOutputs(state.run) !== null;
/** What earlier iterations printed is cut, and the call made once more: the values are still in variables. */
export const cutAndDecide = (state: In<'EXECUTING'>): Next<'EXECUTING'> =>
  go(withTurn(state, cutOutputs(state.run) ?? state.run, decide));

/** The model declined, and said nothing that could be used. */
export const isRefusal = (state: Calling, event: On<'ModelReplied'>): boolean =>
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
