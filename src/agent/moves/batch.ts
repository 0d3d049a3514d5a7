import type { Action } from '../action.js';
import type { Call, JudgedCall } from '../call.js';
import { changeBatch, changeSession } from '../change.js';
import type { Event } from '../event.js';
import type { Next, Same } from '../move.js';
import { go } from '../move.js';
import { decide, type PolicyDecision } from '../policy.js';
import type { CancelCause, In, Reply, Session } from '../state.js';
import { spendingId } from './account.js';
import { callLimit } from './budget.js';
import {
  deniedText,
  type EndedCall,
  finishedText,
  invalidText,
  neverRan,
  noSuchToolText,
  skippedText,
  truncatedText,
} from './outcomes.js';
import { nextId } from './request.js';

/**
 * Which calls of a batch start, and when.
 *
 * 1. Calls start strictly in call order; at most `maxParallel` run at once.
 * 2. A call that is not parallel-safe starts only when nothing runs, and nothing starts beside it.
 * 3. A call that may not start yet holds back all behind it.
 */

export type Batch = In<'ExecutingTools'>;

export const isEnded = (call: Call): call is EndedCall => 'completedAt' in call;
/** Started and not ended: what a cancel has to stop. */
export const isRunning = (call: Call): call is Extract<Call, { readonly status: 'starting' | 'running' }> =>
  call.status === 'starting' || call.status === 'running';
export const isWaiting = (
  call: Call,
): call is Extract<Call, { readonly status: 'queued' | 'awaitingApproval' }> =>
  call.status === 'queued' || call.status === 'awaitingApproval';

/** An event about one call. */
export type Found = { readonly batchId: string; readonly callId: string };

export const find = (state: Batch, event: Found): Call | undefined =>
  event.batchId === state.batchId
    ? state.calls.find((call) => call.judged.callId === event.callId)
    : undefined;

/** The batch with these calls changed. */
export const put = (state: Batch, ...changed: readonly Call[]): Batch =>
  changeBatch(state, {
    calls: state.calls.map(
      (call) => changed.find((other) => other.judged.callId === call.judged.callId) ?? call,
    ),
  });

export const cancelTimer = (timerId: string | null): readonly Action[] =>
  timerId === null ? [] : [{ type: 'CancelTimer', timerId }];

export const causeOf = (state: Batch): CancelCause =>
  state.phase.mode === 'cancelling' ? state.phase.cause : 'user';

/** How a call ended, for the user to see. */
export const showEnd = (batchId: string, call: EndedCall, diff: string | null = null): Action => ({
  type: 'DisplayToolResult',
  batchId,
  callId: call.judged.callId,
  tool: call.judged.tool,
  status: call.status,
  text: call.outcome.text,
  diff,
});

/** Those of the calls that wait for an answer need none any more. */
export const withdraw = (state: Batch, calls: readonly Call[]): readonly Action[] =>
  calls
    .filter((call) => call.status === 'awaitingApproval')
    .map(({ judged }) => ({ type: 'WithdrawApproval', batchId: state.batchId, callId: judged.callId }));

export const cancelCalls = (state: Batch, calls: readonly Call[], force: boolean): readonly Action[] =>
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

const isExclusive = (call: JudgedCall): boolean => !call.traits.parallelSafe || call.traits.mutating;

const requestApproval = (batchId: string, call: JudgedCall, why: string): Action => ({
  type: 'RequestApproval',
  batchId,
  call,
  why,
});

/** What policy makes of a call that has not started: queued, waiting for the user, or ended. */
type Admitted = { readonly call: Call; readonly ask: string | null; readonly stops: boolean };

const asItIs = (call: Call): Admitted => ({ call, ask: null, stops: false });

const policyOf = (session: Session, judged: JudgedCall): PolicyDecision =>
  decide(session.settings, session.grants, judged);

const admit = (
  session: Session,
  judged: JudgedCall,
  requestedAt: number,
  at: number,
  { decision, why } = policyOf(session, judged),
): Admitted => {
  const denied = (text: string): Admitted => asItIs(neverRan(judged, requestedAt, at, 'denied', text));
  switch (decision) {
    case 'allow':
      return asItIs({ judged, requestedAt, status: 'queued', allowed: 'byPolicy' });
    case 'deny':
      return denied(deniedText(why));
    case 'ask':
      if (session.settings.onAsk === 'ask')
        return { ...asItIs({ judged, requestedAt, status: 'awaitingApproval' }), ask: why };
      return {
        ...denied(deniedText(`${why}, and nobody is there to ask`)),
        stops: session.settings.onAsk === 'stop',
      };
    default:
      return decision satisfies never;
  }
};

/** How a requested call enters the batch; precedence: not a call, cut off, no budget, policy (R16, R31). */
const enter = (session: Session, judged: JudgedCall, reply: Reply, at: number): Admitted => {
  const ended = (status: 'noSuchTool' | 'invalid' | 'truncated' | 'skipped', text: string): Admitted =>
    asItIs(neverRan(judged, at, at, status, text));
  if (judged.verdict.kind === 'noSuchTool') return ended('noSuchTool', noSuchToolText(judged));
  const isCut = reply.stopReason === 'maxTokens';
  if (judged.verdict.kind === 'invalid') {
    return ended('invalid', isCut ? `${invalidText(judged)}\n${truncatedText}` : invalidText(judged));
  }
  if (isCut) return ended('truncated', truncatedText);
  if (session.turn.finishing !== 'no') return ended('skipped', finishedText);
  if (callLimit(session, at) !== null) return ended('skipped', skippedText);
  return admit(session, judged, at, at);
};

/** CheckingForCancellation -> ExecutingTools: the batch, with all that can start started (R31, R33). */
export const startBatch = (state: In<'CheckingForCancellation'>, event: Event): Next<'ExecutingTools'> => {
  const { reply } = state;
  const [batchId, session] = nextId(state.session, 'batch');
  const admitted = reply.calls.map((judged) => enter(session, judged, reply, event.at));
  const asks = admitted.flatMap(({ call, ask }) =>
    ask === null ? [] : [requestApproval(batchId, call.judged, ask)],
  );
  const mode = admitted.some(({ stops }) => stops) ? 'stopping' : 'running';
  const batch: Batch = {
    name: 'ExecutingTools',
    session,
    batchId,
    calls: admitted.map(({ call }) => call),
    phase: { mode },
  };
  const shown = batch.calls.filter(isEnded).map((call) => showEnd(batchId, call));
  const pumped = pump(batch, event.at);
  return go(pumped.state, ...shown, ...asks, ...pumped.actions);
};

/** Starts what may start now. Policy is asked again; of a call the user allowed only whether it is denied. */
export const pump = (batch: Batch, at: number): Same<Batch> => {
  if (!batch.calls.some(isWaiting)) return go(batch);
  const calls = [...batch.calls];
  const starting: JudgedCall[] = [];
  const asks: Action[] = [];
  const shown: Action[] = [];
  let running = calls.filter(isRunning);
  let stops = false;
  for (const [index, waiting] of calls.entries()) {
    if (!isWaiting(waiting)) continue;
    if (waiting.status === 'awaitingApproval') break;
    if (!hasRoom(batch.session, running, waiting.judged)) break;
    const { call, ask, stops: stopsHere } = recheck(batch.session, waiting, at);
    if (call.status !== 'queued') {
      calls[index] = call;
      stops ||= stopsHere;
      if (isEnded(call)) shown.push(showEnd(batch.batchId, call));
      if (ask === null) continue;
      asks.push(requestApproval(batch.batchId, call.judged, ask));
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

/** Calls that spend keep their ids open until their outcome (R0b). */
const openSpending = ({ session, batchId }: Batch, starting: readonly JudgedCall[]): Session => {
  const ids = starting
    .filter(({ traits }) => traits.spends === 'yes')
    .map(({ callId }) => spendingId(batchId, callId))
    .filter((id) => !session.unaccounted.includes(id));
  return changeSession(session, { unaccounted: [...session.unaccounted, ...ids] });
};

/**
 * After the session was opened again: what has not run is decided anew, since the rules may have changed and whoever
 * was asked may be gone (R83c). Calls that were starting never ran: they start again where they still may.
 */
export const pumpAgain = (batch: Batch, at: number): Same<Batch> => {
  const shown: Action[] = [];
  let stops = false;
  const calls = batch.calls.map((call): Call => {
    const { judged, requestedAt } = call;
    if (call.status === 'starting') return { judged, requestedAt, status: 'queued', allowed: call.allowed };
    if (call.status !== 'awaitingApproval') return call;
    const admitted = admit(batch.session, judged, requestedAt, at);
    stops ||= admitted.stops;
    if (admitted.ask !== null) shown.push(requestApproval(batch.batchId, judged, admitted.ask));
    else shown.push({ type: 'WithdrawApproval', batchId: batch.batchId, callId: judged.callId });
    if (isEnded(admitted.call)) shown.push(showEnd(batch.batchId, admitted.call));
    return admitted.call;
  });
  const phase = stops ? ({ mode: 'stopping' } as const) : batch.phase;
  const pumped = pump(changeBatch(batch, { calls, phase }), at);
  return go(pumped.state, ...shown, ...pumped.actions);
};

type Queued = Extract<Call, { readonly status: 'queued' }>;

const recheck = (session: Session, call: Queued, at: number): Admitted => {
  const now = policyOf(session, call.judged);
  if (call.allowed === 'byUser' && now.decision !== 'deny') return asItIs(call);
  return admit(session, call.judged, call.requestedAt, at, now);
};

const hasRoom = (session: Session, running: readonly Call[], next: JudgedCall): boolean => {
  if (running.length === 0) return true;
  if (isExclusive(next) || running.some(({ judged }) => isExclusive(judged))) return false;
  return running.length < session.settings.maxParallel;
};
