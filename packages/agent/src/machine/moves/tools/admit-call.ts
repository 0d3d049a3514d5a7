import { fileLossesIn } from '../../../policy/commands/file-losses.js';
import { decide, type PolicyDecision } from '../../../policy/policy.js';
import type { Action } from '../../action.js';
import type { Call, JudgedCall } from '../../call.js';
import type { PendingReply, SessionData } from '../../state.js';
import { hasSessionLimit, sessionLimit } from '../budget.js';
import { isSpendingId, spendingId } from '../common/count-usage.js';
import {
  deniedText,
  type EndedCall,
  finishedText,
  invalidText,
  neverRan,
  noSuchToolText,
  skippedText,
  truncatedText,
  unbilledText,
} from './result-texts.js';

/**
 * Decides about a requested call: it ends at once, may start, or the user is asked.
 *
 * A tool with previews is asked before the user, so that nobody approves a call that can't be done. The preview waits
 * until no earlier call can change what it reads.
 */

/** The decision about a call that has not started: queued, waiting for the user, or ended. */
export type Admission = { readonly call: Call; readonly asks: readonly Action[]; readonly stops: boolean };

/** The surroundings of a call. `before`: the earlier calls of the batch. */
export type CallContext = {
  readonly session: SessionData;
  readonly batchId: string;
  readonly before: readonly Call[];
};

export const admitUnchanged = (call: Call): Admission => ({ call, asks: [], stops: false });

export const policyOf = (session: SessionData, judged: JudgedCall): PolicyDecision =>
  decide(session.settings, session.grants, judged);

/** Whether an earlier call may change what the preview of this call reads. A command may change anything. */
const mayChange = (earlier: Call, { facts }: JudgedCall): boolean => {
  if ('completedAt' in earlier || !earlier.judged.traits.mutating) return false;
  const { traits, facts: changed } = earlier.judged;
  const changesOnlyFiles = traits.effect === 'probeable' && changed.paths.length > 0;
  return !changesOnlyFiles || changed.paths.some((path) => facts.paths.includes(path));
};

/** Whether an earlier call may move, overwrite or change files, so that what was looked up about them is old. */
const mayChangeFiles = ({ judged: { traits, facts } }: Call): boolean => {
  if (facts.shell === undefined) return traits.mutating;
  return facts.shell.commands.some(
    (command) => fileLossesIn(command).length > 0 || (command.appends ?? []).length > 0,
  );
};

/**
 * The call as the policy may trust it. Which files git could not restore was looked up before any call of the batch ran:
 * behind one that changes files it counts as not looked up.
 */
export const withoutOldLook = (judged: JudgedCall, before: readonly Call[]): JudgedCall => {
  const { unrecoverable, ...facts } = judged.facts;
  return unrecoverable === undefined || !before.some(mayChangeFiles) ? judged : { ...judged, facts };
};

/** Asks the user, or first the tool. `diff`: the tool's preview; undefined before the tool was asked. */
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

/** The usage ids of those calls that run and spend. */
export const openSpendings = (batchId: string, calls: readonly Call[]): readonly string[] =>
  calls
    .filter(({ status, judged }) => (status === 'starting' || status === 'running') && isSpending(judged))
    .map(({ judged }) => spendingId(batchId, judged.callId));

/**
 * Why the budget does not allow a call, or null. Checked when the call enters the batch and when it starts
 * (docs/rules.md#limit-before-call). An abandoned call may still spend its whole budget until it reports its usage.
 */
export const whyUnpaid = ({ session, batchId, before }: CallContext, judged: JudgedCall): string | null => {
  if (sessionLimit(session) !== null) return skippedText;
  if (!isSpending(judged) || !hasSessionLimit(session)) return null;
  const running = openSpendings(batchId, before);
  const givenUp = session.unaccounted.some((id) => isSpendingId(id) && !running.includes(id));
  return givenUp ? unbilledText : null;
};

export const admit = (
  place: CallContext,
  judged: JudgedCall,
  requestedAt: number,
  at: number,
  policy: PolicyDecision = policyOf(place.session, judged),
  diff?: string | null,
): Admission => {
  const { onAsk } = place.session.settings;
  const { decision, why } = policy;
  const unpaid = whyUnpaid(place, judged);
  if (unpaid !== null) return admitUnchanged(neverRan(judged, requestedAt, at, 'skipped', unpaid));
  switch (decision) {
    case 'allow':
      return admitUnchanged({ judged, requestedAt, status: 'queued', allowed: 'byPolicy' });
    case 'deny':
      return admitUnchanged(neverRan(judged, requestedAt, at, 'denied', deniedText(why)));
    case 'ask': {
      if (onAsk === 'ask') return askUser(place, judged, requestedAt, policy, diff);
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

const endedAtOnce = (
  judged: JudgedCall,
  at: number,
  status: 'noSuchTool' | 'invalid' | 'truncated' | 'skipped',
  text: string,
): Admission => admitUnchanged(neverRan(judged, at, at, status, text));

/** Ends a call whose tool is unknown or refuses its input; null for a valid call. */
export const endInvalid = (judged: JudgedCall, requestedAt: number, at: number): EndedCall | null => {
  const { kind } = judged.verdict;
  if (kind === 'ok') return null;
  const text = kind === 'noSuchTool' ? noSuchToolText(judged) : invalidText(judged);
  return neverRan(judged, requestedAt, at, kind, text);
};

/**
 * Admits a requested call to the batch. Precedence: invalid call, cut reply, budget, policy (docs/rules.md#cut-reply,
 * docs/rules.md#calls-that-never-run).
 */
export const admitRequested = (
  place: CallContext,
  judged: JudgedCall,
  reply: PendingReply,
  at: number,
): Admission => {
  if (judged.verdict.kind === 'noSuchTool')
    return endedAtOnce(judged, at, 'noSuchTool', noSuchToolText(judged));
  const isCut = reply.stopReason === 'maxTokens';
  if (judged.verdict.kind === 'invalid') {
    return endedAtOnce(
      judged,
      at,
      'invalid',
      isCut ? `${invalidText(judged)}\n${truncatedText}` : invalidText(judged),
    );
  }
  if (isCut) return endedAtOnce(judged, at, 'truncated', truncatedText);
  if (place.session.turn.finishing !== 'no') return endedAtOnce(judged, at, 'skipped', finishedText);
  return admit(place, judged, at, at);
};
