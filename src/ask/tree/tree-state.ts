import type { UsageTotals } from '../../agent/state.js';
import type { Diagnostic, Edge } from '../../machine-kit/kernel/step.js';
import type { OutsideAction, TreeAction } from '../run/action.js';
import type { SubcallKind } from '../run/cell.js';
import { newRun } from '../run/moves/start-run.js';
import { type CodeSettings, readRunLimits } from '../run/settings.js';
import type { CodeState, Outcome } from '../run/state.js';
import { emptyLedger, type Ledger, nothingSpent, openAccount } from './ledger.js';
import { noPieces, type PieceCounts } from './pieces.js';
import { ROOT } from './run-ids.js';

/** State of a tree: unfinished runs, their sub-calls and their budgets. Plain JSON except for AppendLists. */

/** A sub-call that children work on. */
export type Batch = {
  /** The run whose cell asked. */
  readonly node: string;
  readonly cellId: string;
  readonly ordinal: number;
  readonly kind: SubcallKind;
  /** The model that the code named; null for the usual one. */
  readonly model: string | null;
  readonly prompts: readonly string[];
  /** One text per prompt, as far as they are there. */
  readonly texts: readonly (string | null)[];
  /** Slots without a text. */
  readonly missing: number;
  /** The first slot, from 0, that no child was started for yet. */
  readonly next: number;
  /** Children that are at work. */
  readonly working: number;
};

/** A call that waits for a place among the open ones. */
export type Waiting = {
  readonly node: string;
  readonly call: Extract<OutsideAction, { readonly type: 'CallModel' }>;
};

export type Tree = {
  /** `Ended`: the root is done. `ShutDown`: everything stands down until Resumed. */
  readonly name: 'Running' | 'Ended' | 'ShutDown';
  readonly epoch: number;
  /** The root, which stays, and its descendants until they are done. */
  readonly nodes: Readonly<Record<string, CodeState>>;
  /** By the name that its children begin with: the cell and the word of the sub-call. */
  readonly batches: Readonly<Record<string, Batch>>;
  /** First come, first served. A batch has no more calls among them than may be open: so a long one holds up nobody. */
  readonly waiting: readonly Waiting[];
  /** Open model calls: the run of each, by request id. */
  readonly calls: Readonly<Record<string, string>>;
  /** Children that were started, in the whole tree. */
  readonly subcalls: number;
  readonly pieces: PieceCounts;
  readonly ledger: Ledger;
};

/** What one event came to. Edges and diagnostics name the run that they are of. */
export type TreeStep = {
  readonly state: Tree;
  readonly actions: readonly TreeAction[];
  readonly path: readonly (Edge & { readonly node: string })[];
  readonly diagnostics: readonly (Diagnostic & { readonly node: string })[];
};

/** A tree whose root has not begun: `Started` to `n0` begins it. */
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

/** What all runs of the tree have spent. */
export const spentBy = ({ ledger }: Tree): UsageTotals => ledger.accounts[ROOT]?.spent ?? nothingSpent;

/** Calls that were open when the process died: what they cost is not known, and they were made again. */
export const unknownCallsOf = ({ ledger }: Tree): number => ledger.accounts[ROOT]?.unknown.calls ?? 0;

/** What the whole tree came to; null while it has not. */
export const outcomeOf = (tree: Tree): Outcome | null => {
  const root = tree.nodes[ROOT];
  return root?.name === 'DONE' ? root.outcome : null;
};
