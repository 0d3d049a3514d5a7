/**
 * The batch: the tool calls of one reply of the model.
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
 * A spending call asks models itself. Its usage id stands in `unaccounted` from its start until its
 * usage is reported, and a part of the budget is reserved for it (budget.ts). An abandoned call has
 * been stopped, and has not reported its usage.
 *
 * From top to bottom: guards on calls and the actions that end them; finding calls by id; results
 * and their texts for the model; streaks of equal batches; starting calls; and admission. What
 * happens to a batch that runs is in batch-events.ts.
 *
 * The table (table.ts) uses guards, which answer whether a branch is taken, and moves: these return
 * `go(state, ...actions)`. `In<N>` is the state N; `MoveTo<N>` and `Stay<S>` are what moves return.
 * `rules.md` is docs/design/rules.md.
 */

import { decide, type PolicyDecision, withExpectedNeeds } from '../../policy/decide.js';
import {
  type CallTraits,
  hookNotes,
  type JudgedCall,
  verdictsIn,
  withRemarks,
} from '../../policy/judged-call.js';
import { fileLossesIn } from '../../policy/losses.js';
import { repositoryAccess } from '../../policy/repository-access.js';
import type { Action } from '../action.js';
import type { Call, CallOutcome, NeverRanStatus, RanStatus } from '../call.js';
import type { Event, StopReason } from '../event.js';
import type { Image, ResultPart } from '../message.js';
import {
  type CancelCause,
  cancelFacts,
  changeBatch,
  changeSession,
  changeTurn,
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
  hasSessionLimit,
  isSpendingId,
  reserveForCalls,
  sessionLimit,
  spendingId,
  withoutReservations,
} from './budget.js';

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
const copyCalls = (calls: readonly Call[]): Call[] => {
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

export type EndedCall = Extract<Call, { readonly completedAt: number }>;

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
const skippedText = 'skipped: the budget of this session is used up';
const unbilledText =
  'skipped: a call that was stopped has not yet said what it has spent of the budget';
const finishedText = 'skipped: only the final answer was asked for';
export const closedText = 'not run: session closed';
const deniedText = (why: string): string => `denied by policy: ${why}`;
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

// ---- Streaks: equal batches in a row, for the limits repeats, errors and sameResults ----

/** FNV-1a over UTF-16 units, 32 bits: a fingerprint, not a cryptographic hash. */
const fingerprint = (text: string): string => {
  let hash = 0x81_1c_9d_c5;
  // Stryker disable next-line EqualityOperator: any number may stand for a text
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01_00_01_93);
  }
  return `${text.length}.${(hash >>> 0).toString(16)}`;
};

const hashCalls = (calls: readonly EndedCall[]): string =>
  fingerprint(
    JSON.stringify(calls.map(({ judged }) => [judged.tool, judged.rawInput ?? judged.input])),
  );

const hashResults = (calls: readonly EndedCall[]): string =>
  fingerprint(JSON.stringify(calls.map(({ outcome }) => outcome.text)));

/** Counts one batch, only if one of the limits is set. */
export const countStreaks = (session: SessionData, calls: readonly EndedCall[]): SessionData => {
  const { repeats, errors, sameResults } = session.settings.limits;
  if ([repeats, errors, sameResults].every((limit) => limit === 'unlimited')) return session;
  const before = session.turn.streaks;
  const [asked, answered] = [hashCalls(calls), hashResults(calls)];
  const streaks = {
    calls: asked,
    results: answered,
    repeats: asked === before.calls ? before.repeats + 1 : 1,
    errors: calls.every(({ outcome }) => outcome.failed) ? before.errors + 1 : 0,
    sameResults: answered === before.results ? before.sameResults + 1 : 1,
  };
  return changeTurn(session, { streaks });
};

/** The counts at the start of a turn. */
export const noStreaks: SessionData['turn']['streaks'] = {
  calls: '',
  results: '',
  repeats: 0,
  errors: 0,
  sameResults: 0,
};

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
  const asks: Action[] = [];
  let stops = false;
  for (const requested of reply.calls) {
    const judged = expectNeeds(session, withoutStaleLookups(requested, calls));
    const admitted = admitRequested({ session, batchId, before: calls }, judged, reply, event.at);
    calls.push(admitted.call);
    asks.push(...admitted.asks);
    stops ||= admitted.stops;
  }
  const phase = { mode: stops ? 'stopping' : 'running' } as const;
  const batch: ToolBatch = { name: 'ExecutingTools', session, batchId, calls, phase };
  const shown = batch.calls.filter(isEnded).map((call) => displayResult(batchId, call));
  const started = startReadyCalls(batch, event.at);
  return go(started.state, ...shown, ...asks, ...started.actions);
};

/**
 * Starts every call that may start now. The policy decides again; a call that the user allowed can
 * only be denied.
 */
export const startReadyCalls = (batch: ToolBatch, at: number): Stay<ToolBatch> => {
  // calls start in order, so waiting ones are near the end
  // Stryker disable next-line ConditionalExpression: a shortcut
  if (batch.calls.findLast(isWaiting) === undefined) return go(batch);
  const calls = copyCalls(batch.calls);
  const starting: JudgedCall[] = [];
  const asks: Action[] = [];
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
    // It ended, waits for the user or for its preview, or its preview must wait.
    // Stryker disable next-line ConditionalExpression: no other is looked at meanwhile
    if (call.status !== 'queued' || call.allowed === 'notYet') {
      calls[index] = call;
      stops ||= admission.stops;
      asks.push(...admission.asks);
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
  if (starting.length === 0) return go(changeBatch(batch, { calls, phase }), ...shown, ...asks);
  // Calls that spend keep their ids open until their outcome (rules.md#usage-counts-once).
  const spending = starting
    .filter(isSpending)
    .map(({ callId }) => spendingId(batch.batchId, callId));
  const { unaccounted } = batch.session;
  // Stryker disable next-line MethodExpression: a call starts once
  const fresh = spending.filter((id) => !unaccounted.includes(id));
  const opened = changeSession(batch.session, { unaccounted: [...unaccounted, ...fresh] });
  const session = reserveForCalls(opened, fresh);
  return go(changeBatch(batch, { session, calls, phase }), ...shown, ...asks, {
    type: 'ExecuteTools',
    batchId: batch.batchId,
    calls: starting,
  });
};

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

/** The batch without open ids and reservations of calls that never ran. */
export const dropStartingIds = (batch: ToolBatch): ToolBatch => {
  const { session } = batch;
  const unstarted = startingIds(batch);
  return changeBatch(batch, {
    session: changeSession(session, {
      unaccounted: session.unaccounted.filter((id) => !unstarted.includes(id)),
      reserved: withoutReservations(session, unstarted),
    }),
  });
};

/**
 * Resumes a batch, after `dropStartingIds`: decides again about calls that were asked for, since
 * the rules may have changed and the user may be gone (rules.md#resume-calls); `startReadyCalls`
 * decides about queued ones. Calls that were starting never ran: they start again if they still
 * may.
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
      const needing = expectNeeds(session, judged);
      const admitted = admit({ session, batchId, before: calls }, needing, requestedAt, at);
      stops ||= admitted.stops;
      shown.push(...admitted.asks);
      if (!isAsked(admitted.call)) shown.push(...withdrawApprovals(batch, [call]));
      if (isEnded(admitted.call)) shown.push(displayResult(batchId, admitted.call));
      calls.push(admitted.call);
    }
  }
  const phase = stops ? ({ mode: 'stopping' } as const) : batch.phase;
  const started = startReadyCalls(changeBatch(batch, { calls, phase }), at);
  return go(started.state, ...shown, ...started.actions);
};

type Queued = Extract<Call, { readonly status: 'queued' }>;

/** Decides again about a queued call. The user is not asked twice about the same call. */
const admitAgain = (context: CallContext, call: Queued, at: number): Admission => {
  const now = decideCall(context.session, call.judged);
  const isAllowed = call.allowed === 'byUser' && now.decision !== 'deny';
  if (isAllowed && whyUnpaid(context, call.judged) === null) return admitUnchanged(call);
  return admit(context, call.judged, call.requestedAt, at, now);
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

/*
 * ---- Admission: a call ends at once, may start, or the user is asked ----
 *
 * A tool with previews is asked before the user, so that the user is not asked about a call that
 * can't be done. The preview waits until no earlier call can change what it reads.
 */

/**
 * The decision about a call that has not started: the call is then queued, waiting for the user, or
 * ended. `asks`: actions that ask the user. `stops`: the user can't be asked: the batch goes on to
 * its end, and then the turn ends (phase `stopping`).
 */
type Admission = { readonly call: Call; readonly asks: readonly Action[]; readonly stops: boolean };

/** The session and batch of a call. `before`: the earlier calls of the batch. */
type CallContext = {
  readonly session: SessionData;
  readonly batchId: string;
  readonly before: readonly Call[];
};

/** An admission that asks nothing and stops nothing. */
const admitUnchanged = (call: Call): Admission => ({ call, asks: [], stops: false });

export const decideCall = (session: SessionData, judged: JudgedCall): PolicyDecision =>
  decide(session.settings, session.grants, judged);

/** The call with the rights that it is expected to need; calls of older journals name none. */
const expectNeeds = ({ settings, grants }: SessionData, judged: JudgedCall): JudgedCall =>
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
    if (before.some((earlier) => mayChange(earlier, judged)))
      return admitUnchanged({ judged, requestedAt, status: 'queued', allowed: 'notYet' });
    const call: Call = { judged, requestedAt, status: 'previewing' };
    return { ...admitUnchanged(call), asks: [{ type: 'PreviewCall', batchId, call: judged }] };
  }
  const call: Call = { judged, requestedAt, status: 'awaitingApproval' };
  const shown = {
    ...(diff === undefined || diff === null ? {} : { diff }),
    ...(grantable === 'any' ? {} : { grantable }),
  };
  return {
    ...admitUnchanged(call),
    asks: [{ type: 'RequestApproval', batchId, call: judged, why, ...shown }],
  };
};

export const isSpending = ({ traits }: JudgedCall): boolean => traits.spends === 'yes';

/** The usage ids of starting and running calls that spend. */
const openSpendingIds = (batchId: string, calls: readonly Call[]): readonly string[] =>
  calls
    .filter((call) => isRunning(call) && isSpending(call.judged))
    .map(({ judged }) => spendingId(batchId, judged.callId));

/**
 * Why the budget does not allow a call, or null. Checked when the call enters the batch and when it
 * starts (rules.md#limit-before-call). An abandoned call may still spend its whole budget
 * until it reports its usage.
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

/** Decides by the budget and the policy. `diff`: as for `askUser`. */
export const admit = (
  context: CallContext,
  judged: JudgedCall,
  requestedAt: number,
  at: number,
  policy: PolicyDecision = decideCall(context.session, judged),
  diff?: string | null,
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

/**
 * Admits a requested call to the batch. Precedence: invalid call, cut reply, budget, policy
 * (rules.md#cut-reply, rules.md#calls-that-never-run).
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
