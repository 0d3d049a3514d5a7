/**
 * Makes a batch, the tool calls of one reply of the model, and starts its calls. What happens to
 * them from then on is in batch-events.ts; guards on a call, and how it ends, in batch-calls.ts.
 *
 * A judged call is a call with the judgement of its tool: whether its input is valid (verdict), how
 * the tool behaves (traits) and what the call would touch (facts). To admit a call is to decide
 * whether it may start, ends at once, or needs the user's answer.
 *
 * The way of a call: queued, starting, running, ended. One that must be asked for goes to
 * previewing (the tool makes a preview) and awaitingApproval, and then is queued again. `allowed`
 * says who allowed a queued call; `notYet`: it must be asked for, and its preview waits for calls
 * before it.
 *
 * From top to bottom: starting calls; spending calls, which ask models themselves; and admission.
 *
 * Moves return `go(state, ...actions)`. `In<N>` is the state N; `MoveTo<N>` and `Stay<S>` are what
 * moves return. `rules.md` is docs/design/rules.md.
 */

import { decide, type PolicyDecision, withExpectedNeeds } from '../../policy/decide.js';
import type { JudgedCall } from '../../policy/judged-call.js';
import { fileLossesIn } from '../../policy/losses.js';
import { repositoryAccess } from '../../policy/repository-access.js';
import type { Action } from '../action.js';
import type { Call } from '../call.js';
import type { Event } from '../event.js';
import {
  changeBatch,
  changeSession,
  go,
  type In,
  type MoveTo,
  nextId,
  type PendingReply,
  type SessionData,
  type State,
  type Stay,
} from '../state.js';
import {
  copyCalls,
  deniedText,
  displayResult,
  finishedText,
  invalidText,
  isAsked,
  isEnded,
  isRunning,
  isWaiting,
  neverRan,
  noSuchToolText,
  skippedText,
  type ToolBatch,
  truncatedText,
  unbilledText,
} from './batch-calls.js';
import { hasSessionLimit, sessionLimit } from './budget.js';
import { isSpendingId, reserveForCalls, spendingId } from './request.js';

/*
 * ---- The start ----
 *
 * 1. Calls start strictly in call order; at most `maxParallel` run at once.
 * 2. A call that is not parallel-safe or changes something starts only when nothing runs, and
 *    nothing starts beside it.
 * 3. A call that may not start yet holds back all calls after it.
 */

const isExclusive = (call: JudgedCall): boolean =>
  !call.traits.parallelSafe || call.traits.mutating;

/**
 * CheckingForCancellation -> ExecutingTools: makes the batch and starts every call that may start
 * (rules.md#calls-that-never-run, rules.md#call-order).
 */
export const startBatch = (
  state: In<'CheckingForCancellation'>,
  event: Event,
): MoveTo<'ExecutingTools'> => {
  const { reply } = state;
  const [batchId, session] = nextId(state.session, 'batch');
  const calls: Call[] = [];
  const questions: Action[] = [];
  let stops = false;
  for (const requested of reply.calls) {
    const judged = expectNeeds(session, withoutStaleLookups(requested, calls));
    const admitted = admitRequested({ session, batchId, before: calls }, judged, reply, event.at);
    calls.push(admitted.call);
    questions.push(...admitted.questions);
    stops ||= admitted.stops;
  }
  const phase = { mode: stops ? 'stopping' : 'running' } as const;
  const batch: ToolBatch = { name: 'ExecutingTools', session, batchId, calls, phase };
  const shown = batch.calls.filter(isEnded).map((call) => displayResult(batchId, call));
  const started = startReadyCalls(batch, event.at);
  return go(started.state, ...shown, ...questions, ...started.actions);
};

/**
 * Starts every call that may start now. The policy and the budget decide again: a call that the
 * user allowed can only be denied or skipped. `at`: time of the event, in ms since 1970.
 */
export const startReadyCalls = (batch: ToolBatch, at: number): Stay<ToolBatch> => {
  // calls start in order, so waiting ones are near the end
  // Stryker disable next-line ConditionalExpression: a shortcut
  if (batch.calls.findLast(isWaiting) === undefined) return go(batch);
  const calls = copyCalls(batch.calls);
  const starting: JudgedCall[] = [];
  const questions: Action[] = [];
  const shown: Action[] = [];
  let running = calls.filter(isRunning);
  let stops = false;
  // an iterator takes several times as long in a large batch, most of whose calls have ended
  // Stryker disable next-line EqualityOperator: beyond the batch there is no call
  for (let index = 0; index < calls.length; index++) {
    const waiting = calls[index];
    // Stryker disable next-line ConditionalExpression: beyond the batch there is no call
    if (waiting === undefined || !isWaiting(waiting)) continue;
    if (isAsked(waiting)) break;
    if (!hasRoom(batch.session, running, waiting.judged)) break;
    const { session, batchId } = batch;
    const admission = admitAgain({ session, batchId, before: calls.slice(0, index) }, waiting, at);
    const { call } = admission;
    // It ended, waits for the user or for its preview, or its preview must wait (`notYet`).
    // Stryker disable next-line ConditionalExpression: no other is looked at meanwhile
    if (call.status !== 'queued' || call.allowed === 'notYet') {
      calls[index] = call;
      stops ||= admission.stops;
      questions.push(...admission.questions);
      if (!isEnded(call)) break;
      shown.push(displayResult(batchId, call));
      continue;
    }
    const { judged, requestedAt, allowed } = call;
    const started: Call = { judged, requestedAt, status: 'starting', allowed, graceTimerId: null };
    calls[index] = started;
    starting.push(call.judged);
    running = [...running, started];
  }
  const phase = stops ? ({ mode: 'stopping' } as const) : batch.phase;
  if (starting.length === 0)
    return go(changeBatch(batch, { calls, phase }), ...shown, ...questions);
  // Calls that spend keep their ids open until their outcome (rules.md#usage-counts-once).
  const spending = starting
    .filter(isSpending)
    .map(({ callId }) => spendingId(batch.batchId, callId));
  const { unaccounted } = batch.session;
  // Stryker disable next-line MethodExpression: a call starts once
  const fresh = spending.filter((id) => !unaccounted.includes(id));
  const opened = changeSession(batch.session, { unaccounted: [...unaccounted, ...fresh] });
  const session = reserveForCalls(opened, fresh);
  return go(changeBatch(batch, { session, calls, phase }), ...shown, ...questions, {
    type: 'ExecuteTools',
    batchId: batch.batchId,
    calls: starting,
  });
};

type Queued = Extract<Call, { readonly status: 'queued' }>;

/** Decides again about a queued call. The user is not asked twice about the same call. */
const admitAgain = (context: CallContext, call: Queued, at: number): Admission => {
  const now = decideCall(context.session, call.judged);
  const isAllowed = call.allowed === 'byUser' && now.decision !== 'deny';
  if (isAllowed && whyUnpaid(context, call.judged) === null) return admitUnchanged(call);
  return admit(context, call.judged, call.requestedAt, at, { policy: now });
};

/** Whether a call may run beside the running ones. */
const hasRoom = (session: SessionData, running: readonly Call[], next: JudgedCall): boolean => {
  if (running.length === 0) return true;
  // A spending call may spend the whole rest of a limit, so a second one waits for its end.
  const spendsAlone = isSpending(next) && hasSessionLimit(session);
  if (spendsAlone && running.some(({ judged }) => isSpending(judged))) return false;
  // Stryker disable next-line MethodExpression: such a call runs alone
  if (isExclusive(next) || running.some(({ judged }) => isExclusive(judged))) return false;
  return running.length < session.settings.maxParallel;
};

// ---- Spending calls ----
// The usage id of one stands in `unaccounted` from its start until its usage is reported, and a
// part of the budget is reserved for it (request.ts).

export const isSpending = ({ traits }: JudgedCall): boolean => traits.spends === 'yes';

/** The usage ids of starting and running calls that spend. */
const openSpendingIds = (batchId: string, calls: readonly Call[]): readonly string[] =>
  calls
    .filter((call) => isRunning(call) && isSpending(call.judged))
    .map(({ judged }) => spendingId(batchId, judged.callId));

/** The usage ids of the batch's open spending calls; none in other states. */
export const spendingIds = (state: State): readonly string[] =>
  state.name === 'ExecutingTools' ? openSpendingIds(state.batchId, state.calls) : [];

/** The usage ids of calls that are starting: after a crash they never ran and spent nothing. */
export const startingIds = (state: State): readonly string[] =>
  state.name === 'ExecutingTools'
    ? state.calls
        .filter(({ status }) => status === 'starting')
        .map(({ judged }) => spendingId(state.batchId, judged.callId))
    : [];

/*
 * ---- Admission: a call ends at once, may start, or the user is asked ----
 *
 * A tool with previews is asked before the user, so that the user is not asked about a call that
 * can't be done. The preview waits until no earlier call can change what it reads.
 */

/**
 * The decision about a call that has not started: the call is then queued, waiting for the user, or
 * ended. `questions`: actions that ask the user, or the tool for a preview. `stops`: the user can't
 * be asked: the batch goes on to its end, and then the turn ends (phase `stopping`).
 */
type Admission = {
  readonly call: Call;
  readonly questions: readonly Action[];
  readonly stops: boolean;
};

/** The session and batch of a call. `before`: the earlier calls of the batch. */
type CallContext = {
  readonly session: SessionData;
  readonly batchId: string;
  readonly before: readonly Call[];
};

/** An admission that asks nothing and stops nothing. */
const admitUnchanged = (call: Call): Admission => ({ call, questions: [], stops: false });

export const decideCall = (session: SessionData, judged: JudgedCall): PolicyDecision =>
  decide(session.settings, session.grants, judged);

/** The call with the rights that it is expected to need; calls of older journals name none. */
export const expectNeeds = ({ settings, grants }: SessionData, judged: JudgedCall): JudgedCall =>
  // Stryker disable next-line ConditionalExpression: a shortcut
  judged.facts.expects === undefined ? judged : withExpectedNeeds(settings, grants, judged);

/**
 * Whether an earlier call may change what the preview of this call reads. A command may change
 * anything.
 */
const mayChange = (earlier: Call, { facts }: JudgedCall): boolean => {
  if (isEnded(earlier) || !earlier.judged.traits.mutating) return false;
  const { traits, facts: changed } = earlier.judged;
  // probeable: a look at the files that the call names shows whether it had its effect
  const changesOnlyFiles = traits.effect === 'probeable' && changed.paths.length > 0;
  return !changesOnlyFiles || changed.paths.some((path) => facts.paths.includes(path));
};

/**
 * Whether an earlier call may move, overwrite or change files, so that facts about them are out of
 * date.
 */
const mayChangeFiles = ({ judged: { traits, facts } }: Call): boolean => {
  if (facts.shell === undefined) return traits.mutating;
  // git may move the working tree
  if (repositoryAccess(facts.shell, undefined) !== 'read') return true;
  return facts.shell.commands.some(
    (command) => fileLossesIn(command).length > 0 || (command.appends ?? []).length > 0,
  );
};

/** Anything that changes files may change what git has not committed. */
const isMutating = ({ judged: { traits } }: Call): boolean => traits.mutating;

/**
 * The call without facts that an earlier call of the batch may change: the files that git could not
 * restore (`unrecoverable`), and the uncommitted changes that a git command would discard. Both
 * were looked up before any call of the batch ran.
 */
const withoutStaleLookups = (judged: JudgedCall, before: readonly Call[]): JudgedCall => {
  const { unrecoverable, discarded, ...facts } = judged.facts;
  // Stryker disable next-line ConditionalExpression: a shortcut
  const isOld = unrecoverable !== undefined && before.some(mayChangeFiles);
  // Stryker disable next-line ConditionalExpression: a shortcut
  const isOldForGit = discarded !== undefined && before.some(isMutating);
  if (!isOld && !isOldForGit) return judged;
  return {
    ...judged,
    facts: {
      ...facts,
      ...(isOld || unrecoverable === undefined ? {} : { unrecoverable }),
      ...(isOldForGit || discarded === undefined ? {} : { discarded }),
    },
  };
};

/**
 * Asks the user, or first the tool. `diff`: the tool's preview; undefined before the tool was
 * asked.
 */
const askUser = (
  { batchId, before }: CallContext,
  judged: JudgedCall,
  requestedAt: number,
  { why, grantable }: PolicyDecision,
  diff?: string | null,
): Admission => {
  if (judged.traits.previews === 'yes' && diff === undefined) {
    // the preview waits for them
    if (before.some((earlier) => mayChange(earlier, judged)))
      return admitUnchanged({ judged, requestedAt, status: 'queued', allowed: 'notYet' });
    const call: Call = { judged, requestedAt, status: 'previewing' };
    return { ...admitUnchanged(call), questions: [{ type: 'PreviewCall', batchId, call: judged }] };
  }
  const call: Call = { judged, requestedAt, status: 'awaitingApproval' };
  const shown = {
    ...(diff === undefined || diff === null ? {} : { diff }),
    ...(grantable === 'any' ? {} : { grantable }),
  };
  return {
    ...admitUnchanged(call),
    questions: [{ type: 'RequestApproval', batchId, call: judged, why, ...shown }],
  };
};

/**
 * Why the budget does not allow a call, or null. Checked when the call enters the batch and when it
 * starts (rules.md#limit-before-call). An abandoned call was stopped, and has not reported its
 * usage: until then it may spend its whole budget. Calls start in order, so no call behind `before`
 * is running.
 */
const whyUnpaid = (
  { session, batchId, before }: CallContext,
  judged: JudgedCall,
): string | null => {
  if (sessionLimit(session) !== null) return skippedText;
  if (!isSpending(judged) || !hasSessionLimit(session)) return null;
  const running = openSpendingIds(batchId, before);
  const hasAbandoned = session.unaccounted.some((id) => isSpendingId(id) && !running.includes(id));
  return hasAbandoned ? unbilledText : null;
};

/**
 * Decides by the budget and the policy. `policy`: its decision, if it was just asked. `diff`: as
 * for `askUser`.
 */
export const admit = (
  context: CallContext,
  judged: JudgedCall,
  requestedAt: number,
  at: number,
  {
    policy = decideCall(context.session, judged),
    diff,
  }: { readonly policy?: PolicyDecision; readonly diff?: string | null } = {},
): Admission => {
  const { onAsk } = context.session.settings;
  const { decision, why } = policy;
  const unpaid = whyUnpaid(context, judged);
  if (unpaid !== null) return admitUnchanged(neverRan(judged, requestedAt, at, 'skipped', unpaid));
  switch (decision) {
    case 'allow':
      return admitUnchanged({ judged, requestedAt, status: 'queued', allowed: 'byPolicy' });
    case 'deny':
      return admitUnchanged(neverRan(judged, requestedAt, at, 'denied', deniedText(why)));
    case 'ask': {
      if (onAsk === 'ask') return askUser(context, judged, requestedAt, policy, diff);
      const text = deniedText(`${why}, and nobody is there to ask`);
      return {
        ...admitUnchanged(neverRan(judged, requestedAt, at, 'denied', text)),
        stops: onAsk === 'stop',
      };
    }
    default:
      return decision satisfies never;
  }
};

const endAtOnce = (
  judged: JudgedCall,
  at: number,
  status: 'noSuchTool' | 'invalid' | 'truncated' | 'skipped',
  text: string,
): Admission => admitUnchanged(neverRan(judged, at, at, status, text));

/**
 * Admits a requested call to the batch. Precedence: invalid call, cut reply, a turn that is
 * finishing, budget, policy (rules.md#cut-reply, rules.md#calls-that-never-run).
 */
const admitRequested = (
  context: CallContext,
  judged: JudgedCall,
  reply: PendingReply,
  at: number,
): Admission => {
  if (judged.verdict.kind === 'noSuchTool')
    return endAtOnce(judged, at, 'noSuchTool', noSuchToolText(judged));
  const isCut = reply.stopReason === 'maxTokens';
  if (judged.verdict.kind === 'invalid') {
    return endAtOnce(
      judged,
      at,
      'invalid',
      isCut ? `${invalidText(judged)}\n${truncatedText}` : invalidText(judged),
    );
  }
  if (isCut) return endAtOnce(judged, at, 'truncated', truncatedText);
  if (context.session.turn.finishing !== 'no')
    return endAtOnce(judged, at, 'skipped', finishedText);
  return admit(context, judged, at, at);
};
