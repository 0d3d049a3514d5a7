/**
 * Runs a call of the tool `explore`: a question about inputs that do not fit into the agent's
 * window. A run answers it in code mode: its model writes programs that read the inputs.
 *
 * 1. Each run has a separate journal. A repeated call (the runtime repeats one after a crash)
 *    resumes its unfinished run, so nothing is paid for twice.
 * 2. A run spends at most the session's remaining budget: a resumed one gets lower limits where
 *    less is left than when it began. Every outcome carries the run's usage, and that of earlier
 *    runs of the same call, however early it fails: the session was never told of it.
 */

import { titleFrom } from '@pawl/agent/journal/list';
import {
  asUsage,
  type Limit,
  type Remaining,
  sumUsage,
  totalTokens,
  type Usage,
} from '@pawl/agent/machine/settings';
import { attempt } from '@pawl/agent/platform/attempt';
import type { JournalStore } from '@pawl/agent/ports/journal';
import type { ToolContext, ToolOutcome } from '@pawl/agent/ports/tool';
import { findAllowed } from '@pawl/agent/tools/files';
import type { Asker, AskRun, ResumeOptions } from './create-asker.js';
import type { AskTypes } from './ports.js';
import { type RunLimits, readRunLimits } from './run/settings.js';
import type { Outcome } from './run/state.js';
import { ROOT } from './tree/ledger.js';
import { countedUsd, outcomeOf, spentBy, type Tree } from './tree/tree-state.js';

export type ExploreInput = { readonly paths: readonly string[]; readonly question: string };

/** `caller`: the call of the tool; null if it belongs to no session. */
type ExploreCall = { readonly question: string; readonly caller: string | null };

const NOTHING_LEFT = 'not run: the limit of the session is used up';

export type ExploreNeeds = {
  readonly asker: Asker;
  /** The asker's journals, searched for earlier runs of the call. */
  readonly journals: JournalStore<AskTypes>;
};

/** Answers the question with a new or resumed run. */
export const explore = async (
  needs: ExploreNeeds,
  { paths, question }: ExploreInput,
  context: ToolContext,
): Promise<ToolOutcome> => {
  const { sessionId, batchId, callId } = context;
  const caller = sessionId === undefined ? null : `${sessionId}/${batchId}/${callId}`;
  const call = { question, caller };
  const earlier = await findEarlier(needs, call, context.paths);
  const fail = (text: string): ToolOutcome => {
    const usage = lostWithout(earlier, null);
    return { status: 'failed', text, ...(usage === null ? {} : { usage }) };
  };
  for (const path of paths) {
    // whether it is still the file that the policy decided about: a symlink may lie there now
    const allowed = await findAllowed(path, context);
    if (allowed.kind === 'elsewhere') return fail(allowed.why);
  }
  const started = await attempt(() => begin(needs, call, context, earlier));
  if (started.kind === 'fault') return fail(started.fault.message);
  if (started.value === null) return fail(NOTHING_LEFT);
  const { run, lostUsage } = started.value;
  const unwatch = reportProgress(run, context);
  const cancel = (): void => void attempt(() => run.cancel());
  context.signal.addEventListener('abort', cancel, { once: true });
  if (context.signal.aborted) cancel();
  const ended = await attempt(() => run.outcome);
  unwatch();
  context.signal.removeEventListener('abort', cancel);
  // Calls that were aborted say what they cost before the run is closed.
  await attempt(() => run.close());
  const usage = sumUsage(lostUsage, getUsage(run.state()));
  if (ended.kind === 'fault') return { status: 'failed', text: ended.fault.message, usage };
  const outcome = toToolOutcome(ended.value, usage);
  return outcome.status === 'cancelled' && context.signal.reason === 'timedOut'
    ? { ...outcome, status: 'timedOut' }
    : outcome;
};

/** An earlier run of the same call. */
type EarlierRun = {
  readonly id: string;
  /** The limits that it has now. */
  readonly limits: RunLimits;
  readonly usage: Usage;
  /** It can go on, or it has an answer that the session was never told; otherwise it is over. */
  readonly stage: 'unfinished' | 'answered' | 'over';
};

const findEarlier = async (
  { journals }: ExploreNeeds,
  { question, caller }: ExploreCall,
  files: readonly string[],
): Promise<readonly EarlierRun[]> => {
  const found: EarlierRun[] = [];
  if (caller === null) return found;
  for await (const { sessionId, kind, title } of journals.list()) {
    // what the list tells saves reading each journal whole
    if (kind !== 'ask' || title !== titleFrom(question)) continue;
    const peeked = await attempt(() => journals.peek(sessionId));
    // An unreadable journal can't be resumed.
    if (peeked.kind === 'fault') continue;
    const { state, header } = peeked.value;
    const { settings } = header;
    const isOwn =
      settings.caller === caller &&
      settings.question === question &&
      settings.files.length === files.length &&
      settings.files.every((file, index) => file.path === files[index]);
    if (!isOwn) continue;
    const ended = outcomeOf(state)?.status === 'answered' ? 'answered' : 'over';
    found.push({
      id: sessionId,
      limits: readRunLimits((state.nodes[ROOT]?.run.settings ?? settings).limits),
      usage: getUsage(state),
      stage: state.name === 'Ended' ? ended : 'unfinished',
    });
  }
  return found;
};

/** The session's remaining budget as limits of the run; null if one is used up. */
const limitsFrom = ({ usd, tokens }: ReturnType<ToolContext['left']>): RunLimits | null => {
  const toLimit = (remaining: Remaining): Limit | null => {
    if (remaining.type === 'unlimited') return 'unlimited';
    return remaining.amount > 0 ? remaining.amount : null;
  };
  const [usdLimit, tokensLimit] = [toLimit(usd), toLimit(tokens)];
  return usdLimit === null || tokensLimit === null
    ? null
    : { usd: usdLimit, tokens: tokensLimit, timeMs: 'unlimited' };
};

/** What the earlier runs have spent, without `taken`; null: there are none. */
const lostWithout = (earlier: readonly EarlierRun[], taken: EarlierRun | null): Usage | null =>
  earlier
    .filter((one) => one !== taken)
    .reduce<Usage | null>((sum, { usage }) => sumUsage(sum, usage), null);

/**
 * How an earlier run can be resumed within the budget, with lower limits where they are too high;
 * null if it can't. An answer that is there needs no budget. The session was never told what the
 * run has spent, so its limits are at most what the session has left.
 */
const resumeOptions = (
  { limits, stage }: EarlierRun,
  left: RunLimits | null,
): ResumeOptions | null => {
  if (stage === 'answered') return {};
  if (stage === 'over' || left === null) return null;
  const lower = (limit: Limit, rest: Limit): Limit => {
    if (rest === 'unlimited') return limit;
    return limit === 'unlimited' ? rest : Math.min(limit, rest);
  };
  const usd = lower(limits.usd, left.usd);
  const tokens = lower(limits.tokens, left.tokens);
  return usd === limits.usd && tokens === limits.tokens ? {} : { limits: { usd, tokens } };
};

/** The limits without what earlier runs of the same call have spent; null if nothing is left. */
const subtractUsage = (
  { usd, tokens, timeMs }: RunLimits,
  lostUsage: Usage | null,
): RunLimits | null => {
  const rest = (limit: Limit, spent: number): Limit =>
    limit === 'unlimited' ? limit : limit - spent;
  const lowered = {
    usd: rest(usd, lostUsage?.costUsd ?? 0),
    tokens: rest(tokens, lostUsage === null ? 0 : totalTokens(lostUsage)),
    timeMs,
  };
  const isSpent = [lowered.usd, lowered.tokens].some((one) => one !== 'unlimited' && one <= 0);
  return isSpent ? null : lowered;
};

type StartedRun = {
  readonly run: AskRun;
  /** What earlier runs of the same call have spent, without a resumed one. */
  readonly lostUsage: Usage | null;
};

/**
 * Resumes the first earlier run that can go on within the budget, or starts a new one; null if no
 * budget is left for either. An answer that is there needs none.
 */
const begin = async (
  { asker }: ExploreNeeds,
  { question, caller }: ExploreCall,
  context: ToolContext,
  earlier: readonly EarlierRun[],
): Promise<StartedRun | null> => {
  const limits = limitsFrom(context.left());
  for (const one of earlier) {
    const lostUsage = lostWithout(earlier, one);
    const options = resumeOptions(one, limits && subtractUsage(limits, lostUsage));
    if (options === null) continue;
    const resumed = await attempt(() => asker.resume(one.id, options));
    // Another program has it open, or its files have changed.
    if (resumed.kind === 'fault') continue;
    return { run: resumed.value, lostUsage };
  }
  const lostUsage = lostWithout(earlier, null);
  const rest = limits && subtractUsage(limits, lostUsage);
  if (rest === null) return null;
  const run = await asker.ask({
    question,
    contexts: context.paths.map((path) => ({ path })),
    workspace: context.workspace,
    settings: { limits: rest, ...(caller === null ? {} : { caller }) },
  });
  return { run, lostUsage };
};

const getUsage = (tree: Tree): Usage => asUsage(spentBy(tree), countedUsd(tree));

const toToolOutcome = (outcome: Outcome, usage: Usage): ToolOutcome => {
  const without = (status: 'failed' | 'cancelled', why: string, partial: string): ToolOutcome => {
    const text = partial.trim() === '' ? why : `${why}\nWhat it had so far:\n${partial}`;
    return { status, text, usage };
  };
  switch (outcome.status) {
    case 'answered':
      return { status: 'ok', text: outcome.answer, usage };
    case 'stopped':
      return without('failed', `the run was stopped: ${outcome.message}`, outcome.partial);
    case 'failed':
      return without('failed', outcome.message, outcome.partial);
    case 'cancelled':
      return without('cancelled', 'the run was cancelled', outcome.partial);
    default:
      return outcome satisfies never;
  }
};

/** Reports progress after each step; the returned function stops that. */
const reportProgress = (run: AskRun, context: ToolContext): (() => void) => {
  let lastLine = '';
  return run.watch(({ state }) => {
    const root = state.nodes[ROOT]?.run;
    if (root === undefined) return;
    const usd = spentBy(state).costUsd;
    const line = `iteration ${root.iterations + 1}, ${state.subcalls} sub-calls, $${usd.toFixed(4)}\n`;
    if (line !== lastLine) context.progress(line);
    lastLine = line;
  });
};
