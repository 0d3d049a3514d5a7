import type { UsageTotals } from '../agent/state.js';
import type { Diagnostic, Edge } from '../kernel/step.js';
import type { OutsideAction, TreeAction } from './action.js';
import type { SubcallKind } from './cell.js';
import { ROOT } from './ids.js';
import { emptyLedger, type Ledger, nothingSpent, openAccount } from './ledger.js';
import { newRun } from './moves/start.js';
import type { CodeSettings } from './settings.js';
import type { CodeState, Outcome } from './state.js';

/** The runs that live, what they have asked for, and what they may spend. Plain JSON but for the logs in it. */

/** A sub-call that children work on. */
export type Batch = {
  /** The run whose cell asked. */
  readonly node: string;
  readonly cellId: string;
  readonly ordinal: number;
  readonly kind: SubcallKind;
  readonly prompts: readonly string[];
  /** One text per prompt, as far as they are there; a prompt that was refused has its text at once. */
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
  /** Prompts that children were promised to, in the whole tree. */
  readonly subcalls: number;
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
export const initialTree = (settings: CodeSettings): Tree => {
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
        task,
        deadlineAt: null,
      }),
    },
    batches: {},
    waiting: [],
    calls: {},
    subcalls: 0,
    ledger: openAccount(emptyLedger, ROOT, settings.limits, null),
  };
};

/** What all runs of the tree have spent. */
export const spentBy = ({ ledger }: Tree): UsageTotals => ledger.accounts[ROOT]?.spent ?? nothingSpent;

/** What the whole tree came to; null while it has not. */
export const outcomeOf = (tree: Tree): Outcome | null => {
  const root = tree.nodes[ROOT];
  return root?.name === 'DONE' ? root.outcome : null;
};
