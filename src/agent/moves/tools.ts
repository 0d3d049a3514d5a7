import type { Action } from '../action.js';
import type { Call } from '../call.js';
import { changeBatch, changeSession } from '../change.js';
import type { On } from '../event.js';
import type { Next } from '../move.js';
import { go, ignore } from '../move.js';
import { decide } from '../policy.js';
import type { Grant } from '../settings.js';
import { accountTool } from './account.js';
import {
  type Batch,
  cancelTimer,
  causeOf,
  type Found,
  find,
  isEnded,
  isRunning,
  pump,
  put,
  showEnd,
} from './batch.js';
import { endRunning, neverRan, outcomeText, refusedText } from './outcomes.js';

/** The batch while it runs: starts, results, approvals (R31b, R34-R37). */

type Same = Next<'ExecutingTools'>;

// ---- Running ----

export const isStarting = (state: Batch, event: On<'ToolStarted'>): boolean =>
  find(state, event)?.status === 'starting';
export const markRunning = (state: Batch, event: On<'ToolStarted'>): Same => {
  const call = find(state, event);
  if (call?.status !== 'starting') return ignore(state, 'no such call is starting');
  const { judged, requestedAt, allowed, graceTimerId } = call;
  const startedAt = event.at;
  return go(put(state, { judged, requestedAt, status: 'running', allowed, startedAt, graceTimerId }));
};
export const ignoreStart = (state: Batch): Same => ignore(state, 'no such call is starting');

export const isRunningCall = (state: Batch, event: Found): boolean => {
  const call = find(state, event);
  return call !== undefined && isRunning(call);
};
export const showProgress = (state: Batch): Same => go(state);
export const ignoreProgress = (state: Batch): Same => ignore(state, 'no such call is running');

/** A call reports how it ended; the first report wins (R35). */
export const recordOutcome = (state: Batch, event: On<'ToolCompleted'>): Same => {
  const call = find(state, event);
  if (call === undefined || !isRunning(call)) return ignoreOutcome(state, event);
  const { outcome } = event;
  const text = outcomeText(outcome, causeOf(state));
  const images = outcome.status === 'ok' ? outcome.images : undefined;
  const ended = endRunning(call, event.at, outcome.status, text, images);
  const shown = showEnd(state.batchId, ended, outcome.diff ?? null);
  const booked = changeBatch(put(state, ended), { session: accountTool(state.session, event) });
  const pumped = pump(booked, event.at);
  return go(pumped.state, ...cancelTimer(call.graceTimerId), shown, ...pumped.actions);
};

/** What a call that was given up has spent counts all the same. */
export const countLateOutcome = (state: Batch, event: On<'ToolCompleted'>): Same => {
  const ignored = ignoreOutcome(state, event);
  const session = accountTool(state.session, event);
  return session === state.session ? ignored : { ...ignored, state: changeBatch(state, { session }) };
};

const ignoreOutcome = (state: Batch, event: Found): Same => {
  const call = find(state, event);
  if (call === undefined) return ignore(state, 'no such call in this batch');
  return ignore(
    state,
    isEnded(call) ? 'the call had ended; its first outcome stands' : 'the call has not started',
  );
};

// ---- Approvals ----

export const isAwaiting = (state: Batch, event: Found): boolean =>
  find(state, event)?.status === 'awaitingApproval';
export const ignoreAnswer = (state: Batch): Same => ignore(state, 'no such call awaits approval');

/** The user's answer; its scope becomes a grant, which may cover other calls that wait (R31b). */
export const takeAnswer = (state: Batch, event: On<'ApprovalAnswered'>): Same => {
  const call = find(state, event);
  if (call?.status !== 'awaitingApproval') return ignoreAnswer(state);
  if (event.answer.kind === 'deny') {
    const text = refusedText(event.answer.reason);
    const denied = neverRan(call.judged, call.requestedAt, event.at, 'denied', text);
    const pumped = pump(put(state, denied), event.at);
    return go(pumped.state, showEnd(state.batchId, denied), ...pumped.actions);
  }
  const grant = grantOf(call, event);
  const grants = grant === null ? state.session.grants : [...state.session.grants, grant];
  const session = changeSession(state.session, { grants });
  const covered = state.calls
    .filter((other) => other !== call && other.status === 'awaitingApproval')
    .filter((other) => decide(session.settings, grants, other.judged).decision === 'allow');
  const allow = ({ judged, requestedAt }: Call): Call => ({
    judged,
    requestedAt,
    status: 'queued',
    allowed: 'byUser',
  });
  const withdrawn = covered.map(
    ({ judged }): Action => ({ type: 'WithdrawApproval', batchId: state.batchId, callId: judged.callId }),
  );
  const pumped = pump(put(changeBatch(state, { session }), allow(call), ...covered.map(allow)), event.at);
  return go(pumped.state, ...withdrawn, ...pumped.actions);
};

const grantOf = (call: Call, event: On<'ApprovalAnswered'>): Grant | null => {
  const { tool, facts } = call.judged;
  switch (event.scope) {
    case 'once':
      return null;
    case 'shape':
      return { scope: 'shape', tool, shape: facts.shape };
    case 'session':
      return { scope: 'session', tool };
    default:
      return event.scope satisfies never;
  }
};
