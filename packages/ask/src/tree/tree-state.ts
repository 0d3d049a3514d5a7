import type { UsageTotals } from '@pawl/agent/machine/state';
import type { Diagnostic, Edge } from '@pawl/machine/kernel/step-types';
import type { OutsideAction, TreeAction } from '../run/action.js';
import type { SubcallKind } from '../run/cell-types.js';
import { newRun } from '../run/moves/start-run.js';
import { type CodeSettings, readRunLimits } from '../run/settings.js';
import type { CodeState, Outcome } from '../run/state.js';
import { noPieces, type PieceCounts } from './count-answered-pieces.js';
import { emptyLedger, type Ledger, nothingSpent, openAccount } from './ledger.js';
import { ROOT } from './run-ids.js';

/** State of a tree: unfinished runs, their sub-calls and their budgets. Plain JSON except for AppendLists. */

/** A sub-call and the progress of its children. */
export type Batch = {
  /** The run that made the sub-call. */
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
  readonly epoch: number;
  /** The root, and its descendants while they run. The root stays after its end. */
  readonly nodes: Readonly<Record<string, CodeState>>;
  /** By the prefix of the ids of its children: the cell and the sub-call. */
  readonly batches: Readonly<Record<string, Batch>>;
  /** First in, first out. A batch queues at most as many calls as may be open, so a long batch blocks nobody. */
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
export const initialTree = (given: CodeSettings): Tree => {
  const limits = readRunLimits(given.limits);
  const settings = { ...given, limits, childLimits: readRunLimits(given.childLimits) };
  const task = { kind: 'question', question: settings.question, inputs: settings.inputs } as const;
  return {
    name: 'Running',
    epoch: 0,
    nodes: {
      [ROOT]: newRun({
        nodeId: ROOT,
        depth: 0,
        depthMax: settings.depthMax,
        settings,
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
    ledger: openAccount(emptyLedger, ROOT, settings.limits),
  };
};

/** Usage of all runs of the tree. */
export const spentBy = ({ ledger }: Tree): UsageTotals => ledger.accounts[ROOT]?.spent ?? nothingSpent;

/** Number of calls that a crash interrupted. Their cost is unknown, and they were made again. */
export const unknownCallsOf = ({ ledger }: Tree): number => ledger.accounts[ROOT]?.unknown.calls ?? 0;

/** Outcome of the whole tree; null while it runs. */
export const outcomeOf = (tree: Tree): Outcome | null => {
  const root = tree.nodes[ROOT];
  return root?.name === 'DONE' ? root.outcome : null;
};
