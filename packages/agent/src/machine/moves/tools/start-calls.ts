import type { Action } from '../../action.js';
import type { Call, JudgedCall } from '../../call.js';
import { changeBatch, changeSession } from '../../change-state.js';
import type { Event } from '../../event.js';
import type { MoveTo, Stay } from '../../move-result.js';
import { go } from '../../move-result.js';
import type { In, SessionData, State } from '../../state.js';
import { hasSessionLimit } from '../budget.js';
import { spendingId } from '../common/count-usage.js';
import { nextId } from '../common/next-id.js';
import {
  type Admission,
  admit,
  admitRequested,
  admitUnchanged,
  type CallContext,
  isSpending,
  openSpendings,
  policyOf,
  whyUnpaid,
  withoutOldLook,
} from './admit-call.js';
import { copyCalls } from './calls-by-id.js';
import {
  displayResult,
  isAsked,
  isEnded,
  isRunning,
  isWaiting,
  type ToolBatch,
  withdrawApprovals,
} from './tool-batch.js';

/**
 * Starts the calls of a batch in order.
 *
 * 1. Calls start strictly in call order; at most `maxParallel` run at once.
 * 2. A call that is not parallel-safe starts only when nothing runs, and nothing starts beside it.
 * 3. A call that may not start yet holds back all calls after it.
 */

const isExclusive = (call: JudgedCall): boolean => !call.traits.parallelSafe || call.traits.mutating;

/**
 * CheckingForCancellation -> ExecutingTools: makes the batch and starts every call that may start
 * (docs/rules.md#calls-that-never-run, docs/rules.md#call-order).
 */
export const startBatch = (state: In<'CheckingForCancellation'>, event: Event): MoveTo<'ExecutingTools'> => {
  const { reply } = state;
  const [batchId, session] = nextId(state.session, 'batch');
  const calls: Call[] = [];
  const asks: Action[] = [];
  let stops = false;
  for (const requested of reply.calls) {
    const judged = withoutOldLook(requested, calls);
    const admitted = admitRequested({ session, batchId, before: calls }, judged, reply, event.at);
    calls.push(admitted.call);
    asks.push(...admitted.asks);
    stops ||= admitted.stops;
  }
  const phase = { mode: stops ? 'stopping' : 'running' } as const;
  const batch: ToolBatch = { name: 'ExecutingTools', session, batchId, calls, phase };
  const shown = batch.calls.filter(isEnded).map((call) => displayResult(batchId, call));
  const pumped = startReadyCalls(batch, event.at);
  return go(pumped.state, ...shown, ...asks, ...pumped.actions);
};

/** Starts every call that may start now. The policy decides again; a call that the user allowed can only be denied. */
export const startReadyCalls = (batch: ToolBatch, at: number): Stay<ToolBatch> => {
  // calls start in order, so the last one tells soonest
  if (batch.calls.findLast(isWaiting) === undefined) return go(batch);
  const calls = copyCalls(batch.calls);
  const starting: JudgedCall[] = [];
  const asks: Action[] = [];
  const shown: Action[] = [];
  let running = calls.filter(isRunning);
  let stops = false;
  // an iterator takes several times as long in a large batch, most of whose calls have ended
  for (let index = 0; index < calls.length; index++) {
    const waiting = calls[index];
    if (waiting === undefined || !isWaiting(waiting)) continue;
    if (isAsked(waiting)) break;
    if (!hasRoom(batch.session, running, waiting.judged)) break;
    const {
      call,
      asks: asksHere,
      stops: stopsHere,
    } = admitAgain(
      { session: batch.session, batchId: batch.batchId, before: calls.slice(0, index) },
      waiting,
      at,
    );
    if (call.status !== 'queued' || call.allowed === 'notYet') {
      calls[index] = call;
      stops ||= stopsHere;
      if (isEnded(call)) shown.push(displayResult(batch.batchId, call));
      asks.push(...asksHere);
      if (isEnded(call)) continue;
      break;
    }
    const { judged, requestedAt, allowed } = call;
    const started: Call = { judged, requestedAt, status: 'starting', allowed, graceTimerId: null };
    calls[index] = started;
    starting.push(call.judged);
    running = [...running, started];
  }
  const phase = stops ? ({ mode: 'stopping' } as const) : batch.phase;
  if (starting.length === 0) return go(changeBatch(batch, { calls, phase }), ...shown, ...asks);
  const session = openSpending(batch, starting);
  return go(changeBatch(batch, { session, calls, phase }), ...shown, ...asks, {
    type: 'ExecuteTools',
    batchId: batch.batchId,
    calls: starting,
  });
};

/** The usage ids of running calls that spend. */
export const spendingIn = (state: State): readonly string[] =>
  state.name === 'ExecutingTools' ? openSpendings(state.batchId, state.calls) : [];

/** Calls that spend keep their ids open until their outcome (docs/rules.md#usage-counts-once). */
const openSpending = ({ session, batchId }: ToolBatch, starting: readonly JudgedCall[]): SessionData => {
  const ids = starting
    .filter(isSpending)
    .map(({ callId }) => spendingId(batchId, callId))
    .filter((id) => !session.unaccounted.includes(id));
  return changeSession(session, { unaccounted: [...session.unaccounted, ...ids] });
};

/**
 * Resumes a batch: calls that have not run are decided again, since the rules may have changed and the user may be gone
 * (docs/rules.md#resume-calls). Calls that were starting never ran: they start again if they still may.
 */
export const restartBatch = (batch: ToolBatch, at: number): Stay<ToolBatch> => {
  const shown: Action[] = [];
  let stops = false;
  const { session, batchId } = batch;
  const calls: Call[] = [];
  for (const call of batch.calls) {
    const { judged, requestedAt } = call;
    if (call.status === 'starting')
      calls.push({ judged, requestedAt, status: 'queued', allowed: call.allowed });
    else if (!isAsked(call)) calls.push(call);
    else {
      const admitted = admit({ session, batchId, before: calls }, judged, requestedAt, at);
      stops ||= admitted.stops;
      shown.push(...admitted.asks);
      if (!isAsked(admitted.call)) shown.push(...withdrawApprovals(batch, [call]));
      if (isEnded(admitted.call)) shown.push(displayResult(batchId, admitted.call));
      calls.push(admitted.call);
    }
  }
  const phase = stops ? ({ mode: 'stopping' } as const) : batch.phase;
  const pumped = startReadyCalls(changeBatch(batch, { calls, phase }), at);
  return go(pumped.state, ...shown, ...pumped.actions);
};

type Queued = Extract<Call, { readonly status: 'queued' }>;

const admitAgain = (place: CallContext, call: Queued, at: number): Admission => {
  const now = policyOf(place.session, call.judged);
  const isAllowed = call.allowed === 'byUser' && now.decision !== 'deny';
  if (isAllowed && whyUnpaid(place, call.judged) === null) return admitUnchanged(call);
  return admit(place, call.judged, call.requestedAt, at, now);
};

/** A spending call may spend all that is left, so a second one waits for its end. */
const mustSpendAlone = (session: SessionData, next: JudgedCall): boolean =>
  isSpending(next) && hasSessionLimit(session);

const hasRoom = (session: SessionData, running: readonly Call[], next: JudgedCall): boolean => {
  if (running.length === 0) return true;
  if (mustSpendAlone(session, next) && running.some(({ judged }) => isSpending(judged))) return false;
  if (isExclusive(next) || running.some(({ judged }) => isExclusive(judged))) return false;
  return running.length < session.settings.maxParallel;
};
