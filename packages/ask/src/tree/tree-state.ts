/**
 * State of a tree: unfinished runs, their sub-calls and their budgets, and counts of its pieces,
 * the prompts of sub-calls. A slot is the place of one prompt's answer. Plain JSON, but for the
 * AppendLists of runs, which become arrays in JSON.
 */

import { nothingSpent, type UsageTotals } from '@pawl/agent/machine/settings';
import type { Diagnostic, Edge } from '@pawl/machine/kernel/table';
import type { OutsideAction, TreeAction } from '../run/action.js';
import type { SubcallKind } from '../run/cell-types.js';
import { newRun } from '../run/moves/start-run.js';
import { type CodeSettings, readRunLimits } from '../run/settings.js';
import type { CodeState, Outcome } from '../run/state.js';
import { digestTexts } from '../run/text-hash.js';
import { emptyLedger, type Ledger, openAccount, ROOT } from './ledger.js';

/** A sub-call and the progress of its children. */
export type Batch = {
  /** The run that sent the sub-call. */
  readonly node: string;
  readonly cellId: string;
  readonly ordinal: number;
  readonly kind: SubcallKind;
  /** The model that the program named; null for the default one. */
  readonly model: string | null;
  readonly prompts: readonly string[];
  /** One text per prompt; null until it arrives. */
  readonly texts: readonly (string | null)[];
  /** Slots without a text. */
  readonly missing: number;
  /** Index of the next slot to start a child for. */
  readonly next: number;
  /** Number of running children. */
  readonly working: number;
};

/** A call that waits in the queue. */
export type Waiting = {
  readonly node: string;
  readonly call: Extract<OutsideAction, { readonly type: 'CallModel' }>;
};

export type Tree = {
  /** `Ended`: the root has ended. `ShutDown`: nothing runs until Resumed. */
  readonly name: 'Running' | 'Ended' | 'ShutDown';
  /** How often the tree was opened again (Resumed). */
  readonly epoch: number;
  /** The root, and its descendants while they run. The root stays after its end. */
  readonly nodes: Readonly<Record<string, CodeState>>;
  /** By the prefix of the ids of its children: `n0.c2.1` for sub-call 1 of cell 2 of the root. */
  readonly batches: Readonly<Record<string, Batch>>;
  /**
   * First in, first out. A batch queues at most as many calls as may be open, so a long batch
   * blocks nobody.
   */
  readonly waiting: readonly Waiting[];
  /** Open model calls: request id to run. */
  readonly calls: Readonly<Record<string, string>>;
  /** Number of children started in the whole tree. */
  readonly subcalls: number;
  readonly pieces: PieceCounts;
  readonly ledger: Ledger;
};

/** Result of one event. Edges and diagnostics name their run. */
export type TreeStep = {
  readonly state: Tree;
  readonly actions: readonly TreeAction[];
  readonly path: readonly (Edge & { readonly node: string })[];
  readonly diagnostics: readonly (Diagnostic & { readonly node: string })[];
};

/** A tree whose root has not started. The event `Started` for `n0` starts it. */
export const initialTree = (settings: CodeSettings): Tree => {
  const limits = readRunLimits(settings.limits);
  const full = { ...settings, limits, childLimits: readRunLimits(settings.childLimits) };
  const task = { kind: 'question', question: settings.question, inputs: settings.inputs } as const;
  return {
    name: 'Running',
    epoch: 0,
    nodes: {
      [ROOT]: newRun({
        nodeId: ROOT,
        depth: 0,
        depthMax: settings.depthMax,
        settings: full,
        model: settings.model,
        task,
        deadlineAt: null,
      }),
    },
    batches: {},
    waiting: [],
    calls: {},
    subcalls: 0,
    pieces: noPieces,
    ledger: openAccount(emptyLedger, ROOT, limits),
  };
};

/** Usage of all runs of the tree. */
export const spentBy = ({ ledger }: Tree): UsageTotals =>
  ledger.accounts[ROOT]?.spent ?? nothingSpent;

/**
 * Dollars that count against the limit of the tree: also what nobody knows of calls that a crash
 * interrupted or that have not said yet what they cost.
 */
export const countedUsd = ({ ledger }: Tree): number => {
  const root = ledger.accounts[ROOT];
  if (root === undefined) return 0;
  const { spent, unknown, held, limits } = root;
  return limits.usd === 'unlimited' ? spent.costUsd : spent.costUsd + unknown.usd + held.usd;
};

/** Number of calls that a crash interrupted. Their cost is unknown; the tree sent them again. */
export const countUnknownCalls = ({ ledger }: Tree): number =>
  ledger.accounts[ROOT]?.unknown.calls ?? 0;

/** Outcome of the whole tree; null while it runs. */
export const outcomeOf = (tree: Tree): Outcome | null => {
  const root = tree.nodes[ROOT];
  return root?.name === 'DONE' ? root.outcome : null;
};

// ---- Pieces: prompts of sub-calls, and their results ----
//
// A prompt that is asked again counts as one piece. The last result of it decides: a later answer
// fills a missing piece, and a piece is missing again if its prompt is asked again in vain.

/** `refused`: a limit in dollars or tokens stopped the call. `failed`: anything else. */
export type Unanswered = { readonly kind: 'refused' | 'failed'; readonly why: string };

type PieceCounts = {
  /** All prompts; a repeated one counts each time. */
  readonly asked: number;
  readonly answered: number;
  /** Prompts whose last result is no answer, by their hash. */
  readonly missing: Readonly<Record<string, Unanswered>>;
};

export const noPieces: PieceCounts = { asked: 0, answered: 0, missing: {} };

/** Why a child has no answer for its slot; null if it has one. */
export const explainUnanswered = (outcome: Outcome): Unanswered | null => {
  switch (outcome.status) {
    case 'answered':
      return null;
    case 'stopped': {
      const isMoney = ['usd', 'tokens', 'unpriced'].includes(outcome.reason);
      return { kind: isMoney ? 'refused' : 'failed', why: outcome.message };
    }
    case 'failed':
      return { kind: 'failed', why: outcome.message };
    case 'cancelled':
      return { kind: 'failed', why: 'cancelled' };
    default:
      return outcome satisfies never;
  }
};

/** Counts one prompt and its result. `missing` is null if it was answered. */
export const countPiece = (
  counts: PieceCounts,
  prompt: string,
  missing: Unanswered | null,
): PieceCounts => {
  const digest = digestTexts([prompt]);
  const { [digest]: before, ...others } = counts.missing;
  return {
    asked: counts.asked + 1,
    answered: counts.answered + (missing === null ? 1 : 0),
    missing: missing === null ? others : { ...others, [digest]: missing },
  };
};

/** Counts for people and scripts: prompts asked, answered, and without an answer at the end. */
export type Pieces = {
  /** All prompts of sub-calls; a repeated one counts each time. */
  readonly asked: number;
  readonly answered: number;
  /** Prompts without an answer because a limit in dollars or tokens stopped the call. */
  readonly refused: number;
  /** Prompts without an answer for another reason. */
  readonly failed: number;
  /** Each reason with its count, the most frequent first. */
  readonly reasons: readonly { readonly why: string; readonly count: number }[];
};

export const piecesOf = ({ asked, answered, missing }: PieceCounts): Pieces => {
  const all = Object.values(missing);
  const counts = new Map<string, number>();
  for (const { why } of all) counts.set(why, (counts.get(why) ?? 0) + 1);
  const reasons = [...counts].map(([why, count]) => ({ why, count }));
  return {
    asked,
    answered,
    refused: all.filter(({ kind }) => kind === 'refused').length,
    failed: all.filter(({ kind }) => kind === 'failed').length,
    reasons: reasons.toSorted((one, other) => other.count - one.count),
  };
};
