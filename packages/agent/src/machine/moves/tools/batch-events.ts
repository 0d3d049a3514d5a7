import { grantCovers, grantOf } from '../../../policy/grants.js';
import { decide } from '../../../policy/policy.js';
import type { Action } from '../../action.js';
import type { Call } from '../../call.js';
import { changeBatch, changeSession } from '../../change-state.js';
import type { On } from '../../event.js';
import type { MoveTo } from '../../move-result.js';
import { go, ignore } from '../../move-result.js';
import { hookRemarks, verdictsIn, withRemarks } from '../../values/hook-verdict.js';
import { countToolUsage } from '../common/count-usage.js';
import { showHooks } from '../common/hook-notices.js';
import { admit, policyOf } from './admit-call.js';
import { endRunning, neverRan, outcomeText, refusedText } from './result-texts.js';
import { startReadyCalls } from './start-calls.js';
import {
  type CallReference,
  cancelCauseOf,
  cancelTimer,
  displayResult,
  findCall,
  isEnded,
  isRunning,
  replaceCalls,
  type ToolBatch,
} from './tool-batch.js';

/** Events of a running batch: starts, results, previews, approvals. */

type Same = MoveTo<'ExecutingTools'>;

// ---- Running ----

export const isStarting = (state: ToolBatch, event: On<'ToolStarted'>): boolean =>
  findCall(state, event)?.status === 'starting';
export const markRunning = (state: ToolBatch, event: On<'ToolStarted'>): Same => {
  const call = findCall(state, event);
  if (call?.status !== 'starting') return ignore(state, 'no such call is starting');
  const { judged, requestedAt, allowed, graceTimerId } = call;
  const startedAt = event.at;
  return go(
    replaceCalls(state, { judged, requestedAt, status: 'running', allowed, startedAt, graceTimerId }),
  );
};
export const ignoreStart = (state: ToolBatch): Same => ignore(state, 'no such call is starting');

export const isRunningCall = (state: ToolBatch, event: CallReference): boolean => {
  const call = findCall(state, event);
  return call !== undefined && isRunning(call);
};
export const showProgress = (state: ToolBatch): Same => go(state);
export const ignoreProgress = (state: ToolBatch): Same => ignore(state, 'no such call is running');

/** Records the outcome of a call; the first report wins (docs/rules.md#first-outcome-wins). */
export const recordOutcome = (state: ToolBatch, event: On<'ToolCompleted'>): Same => {
  const call = findCall(state, event);
  if (call === undefined || !isRunning(call)) return ignoreOutcome(state, event);
  const { outcome } = event;
  const { status, images, ran } = outcome;
  const hooks = verdictsIn(outcome.hooks);
  const ended = endRunning(call, event.at, {
    status,
    text: withRemarks(outcomeText(outcome, cancelCauseOf(state)), hookRemarks(hooks)),
    ...(status === 'ok' && images !== undefined ? { images } : {}),
    ...(ran === undefined ? {} : { ran }),
  });
  const shown = displayResult(state.batchId, ended, outcome);
  const booked = changeBatch(replaceCalls(state, ended), { session: countToolUsage(state.session, event) });
  const pumped = startReadyCalls(booked, event.at);
  return go(pumped.state, ...cancelTimer(call.graceTimerId), shown, ...showHooks(hooks), ...pumped.actions);
};

/** Counts the usage of a call that was abandoned. */
export const countLate = (state: ToolBatch, event: On<'ToolCompleted'>): Same => {
  const ignored = ignoreOutcome(state, event);
  const session = countToolUsage(state.session, event);
  return session === state.session ? ignored : { ...ignored, state: changeBatch(state, { session }) };
};

const ignoreOutcome = (state: ToolBatch, event: CallReference): Same => {
  const call = findCall(state, event);
  if (call === undefined) return ignore(state, 'no such call in this batch');
  return ignore(
    state,
    isEnded(call) ? 'the call had ended; its first outcome stands' : 'the call has not started',
  );
};

// ---- Previews ----

export const isPreviewing = (state: ToolBatch, event: On<'CallPreviewed'>): boolean =>
  findCall(state, event)?.status === 'previewing';
export const ignorePreview = (state: ToolBatch): Same => ignore(state, 'no such call is being previewed');

/** A call that can't be done ends without a question. Any other call is decided again, with its diff. */
export const takePreview = (state: ToolBatch, event: On<'CallPreviewed'>): Same => {
  const call = findCall(state, event);
  if (call?.status !== 'previewing') return ignorePreview(state);
  const before = state.calls.slice(0, state.calls.indexOf(call));
  const { judged, requestedAt } = call;
  const { preview } = event;
  if (preview.kind === 'refused') {
    const text = outcomeText({ status: 'failed', text: preview.text }, cancelCauseOf(state));
    const refused = neverRan(judged, requestedAt, event.at, 'failed', text);
    const pumped = startReadyCalls(replaceCalls(state, refused), event.at);
    return go(pumped.state, displayResult(state.batchId, refused), ...pumped.actions);
  }
  const place = { session: state.session, batchId: state.batchId, before };
  const diff = preview.kind === 'change' ? preview.diff : null;
  const { call: next, asks, stops } = admit(place, judged, requestedAt, event.at, undefined, diff);
  const admitted = replaceCalls(stops ? changeBatch(state, { phase: { mode: 'stopping' } }) : state, next);
  const shown = isEnded(next) ? [displayResult(state.batchId, next)] : [];
  const pumped = startReadyCalls(admitted, event.at);
  return go(pumped.state, ...shown, ...asks, ...pumped.actions);
};

// ---- Approvals ----

export const isAwaiting = (state: ToolBatch, event: CallReference): boolean =>
  findCall(state, event)?.status === 'awaitingApproval';
export const ignoreAnswer = (state: ToolBatch): Same => ignore(state, 'no such call awaits approval');

/**
 * Takes the user's answer. Its scope becomes a grant, which may allow other waiting calls
 * (docs/rules.md#answered-approval).
 */
export const takeAnswer = (state: ToolBatch, event: On<'ApprovalAnswered'>): Same => {
  const call = findCall(state, event);
  if (call?.status !== 'awaitingApproval') return ignoreAnswer(state);
  if (event.answer.kind === 'deny') {
    const text = refusedText(event.answer.reason);
    const denied = neverRan(call.judged, call.requestedAt, event.at, 'denied', text);
    const pumped = startReadyCalls(replaceCalls(state, denied), event.at);
    return go(pumped.state, displayResult(state.batchId, denied), ...pumped.actions);
  }
  const { settings } = state.session;
  const { grantable } = policyOf(state.session, call.judged);
  const grant = grantOf(call.judged, event.scope, settings.workspace, grantable);
  const grants = grant === null ? state.session.grants : [...state.session.grants, grant];
  const session = changeSession(state.session, { grants });
  // Only the new grant can cover another call: to decide all of a large batch again by all grants takes quadratic time.
  const covered = (grant === null ? [] : state.calls).filter(
    (other) =>
      other !== call &&
      other.status === 'awaitingApproval' &&
      grant !== null &&
      grantCovers(grant, other.judged, settings.workspace) &&
      decide(session.settings, grants, other.judged).decision === 'allow',
  );
  const allow = ({ judged, requestedAt }: Call): Call => ({
    judged,
    requestedAt,
    status: 'queued',
    allowed: 'byUser',
  });
  const withdrawn = covered.map(
    ({ judged }): Action => ({ type: 'WithdrawApproval', batchId: state.batchId, callId: judged.callId }),
  );
  const pumped = startReadyCalls(
    replaceCalls(changeBatch(state, { session }), allow(call), ...covered.map(allow)),
    event.at,
  );
  return go(pumped.state, ...withdrawn, ...pumped.actions);
};
