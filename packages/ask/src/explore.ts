/**
 * Runs a call of the tool `explore`: code mode for inputs that do not fit into the agent's window.
 *
 * 1. Each run has a separate journal. A repeated call (the runtime repeats one after a crash)
 *    resumes the unfinished run of the same question about the same files, so nothing is paid for
 *    twice.
 * 2. A run spends at most the session's remaining budget. Every outcome carries the run's usage.
 */

import type { UsageTotals } from '@pawl/agent/machine/usage';
import { type Limit, type Remaining, totalTokens, type Usage } from '@pawl/agent/machine/usage';
import { attempt } from '@pawl/agent/platform/attempt';
import type { JournalStore } from '@pawl/agent/ports/journal';
import type { ToolContext, ToolOutcome } from '@pawl/agent/ports/tool';
import { findAllowed } from '@pawl/agent/tools/files';
import type { Asker, AskRun } from './create-asker.js';
import type { AskTypes } from './ports.js';
import { type RunLimits, readRunLimits } from './run/settings.js';
import type { Outcome } from './run/state.js';
import { ROOT } from './tree/ledger.js';
import { spentBy, type Tree } from './tree/tree-state.js';

export type ExploreInput = { readonly paths: readonly string[]; readonly question: string };

export type ExploreNeeds = {
  readonly asker: Asker;
  /** The asker's journals, searched for the unfinished run of an earlier call. */
  readonly journals: JournalStore<AskTypes>;
};

/** An unfinished run, its limits and its usage so far. */
type UnfinishedRun = {
  readonly id: string;
  readonly limits: RunLimits;
  readonly spent: UsageTotals;
};

/**
 * The unfinished run of the same question about the same files, or null: a repeated call resumes
 * it.
 */
const findUnfinished = async (
  { journals }: ExploreNeeds,
  question: string,
  files: readonly string[],
): Promise<UnfinishedRun | null> => {
  for await (const { sessionId } of journals.list()) {
    const peeked = await attempt(() => journals.peek(sessionId));
    // An unreadable journal can't be resumed.
    if (peeked.kind === 'fault') continue;
    const { state, header } = peeked.value;
    const { settings } = header;
    const asksTheSame =
      settings.question === question &&
      settings.files.length === files.length &&
      settings.files.every((file, index) => file.path === files[index]);
    if (asksTheSame && state.name !== 'Ended')
      return { id: sessionId, limits: readRunLimits(settings.limits), spent: spentBy(state) };
  }
  return null;
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

/** True if the remaining limits of an unfinished run are within the session's remaining budget. */
const fitsInto = (unfinished: UnfinishedRun, { usd, tokens }: RunLimits): boolean => {
  const fits = (runLimit: Limit, spent: number, limit: Limit): boolean =>
    limit === 'unlimited' || (runLimit !== 'unlimited' && runLimit - spent <= limit);
  return (
    fits(unfinished.limits.usd, unfinished.spent.costUsd, usd) &&
    fits(unfinished.limits.tokens, totalTokens(unfinished.spent), tokens)
  );
};

const begin = async (
  needs: ExploreNeeds,
  { question }: ExploreInput,
  context: ToolContext,
  limits: RunLimits,
): Promise<AskRun> => {
  const files = context.paths;
  const unfinished = await findUnfinished(needs, question, files);
  if (unfinished !== null && fitsInto(unfinished, limits)) {
    const resumed = await attempt(() => needs.asker.resume(unfinished.id));
    // Another program has it open, or its files have changed: start a new run instead.
    if (resumed.kind === 'done') return resumed.value;
  }
  return needs.asker.ask({
    question,
    contexts: files.map((path) => ({ path })),
    workspace: context.workspace,
    settings: { limits },
  });
};

const getUsage = (tree: Tree): Usage => {
  const { unpriced, costUsd, ...tokens } = spentBy(tree);
  return { ...tokens, costUsd: unpriced > 0 && costUsd === 0 ? null : costUsd };
};

const withPartial = (sentence: string, partial: string): string =>
  partial.trim() === '' ? sentence : `${sentence}\nWhat it had so far:\n${partial}`;

const toToolOutcome = (outcome: Outcome, usage: Usage): ToolOutcome => {
  switch (outcome.status) {
    case 'answered':
      return { status: 'ok', text: outcome.answer, usage };
    case 'stopped':
      return {
        status: 'failed',
        text: withPartial(`the run was stopped: ${outcome.message}`, outcome.partial),
        usage,
      };
    case 'failed':
      return { status: 'failed', text: withPartial(outcome.message, outcome.partial), usage };
    case 'cancelled':
      return {
        status: 'cancelled',
        text: withPartial('the run was cancelled', outcome.partial),
        usage,
      };
    default:
      return outcome satisfies never;
  }
};

/** Reports progress after each step; the returned function stops that. */
const tell = (run: AskRun, context: ToolContext): (() => void) => {
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

/** Answers the question with a new or resumed run. */
export const explore = async (
  needs: ExploreNeeds,
  input: ExploreInput,
  context: ToolContext,
): Promise<ToolOutcome> => {
  for (const path of input.paths) {
    const allowed = await findAllowed(path, context);
    if (allowed.kind === 'elsewhere') return { status: 'failed', text: allowed.why };
  }
  const limits = limitsFrom(context.left());
  if (limits === null)
    return { status: 'failed', text: 'not run: the limit of the session is used up' };
  const run = await begin(needs, input, context, limits);
  const unwatch = tell(run, context);
  const cancel = (): void => void attempt(() => run.cancel());
  context.signal.addEventListener('abort', cancel, { once: true });
  if (context.signal.aborted) cancel();
  const ended = await attempt(() => run.outcome);
  unwatch();
  context.signal.removeEventListener('abort', cancel);
  const usage = getUsage(run.state());
  await attempt(() => run.close());
  if (ended.kind === 'fault') return { status: 'failed', text: ended.fault.message, usage };
  const outcome = toToolOutcome(ended.value, usage);
  return outcome.status === 'cancelled' && context.signal.reason === 'timedOut'
    ? { ...outcome, status: 'timedOut' }
    : outcome;
};
