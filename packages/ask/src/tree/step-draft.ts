/**
 * One step of the tree under construction. The functions of a step collect the new tree, the
 * actions and the diagnostics in a draft. The draft is the only thing that changes; the tree in it
 * is replaced.
 */

import type { Diagnostic, Edge } from '@pawl/machine/kernel/table';
import type { OutsideAction, TreeAction } from '../run/action.js';
import type { RunEvent, TreeEvent } from '../run/event.js';
import type { CodeState } from '../run/state.js';
import type { Ledger } from './ledger.js';
import type { Tree, TreeStep } from './tree-state.js';

/** The mutable draft of one step. The tree in it is replaced, never mutated. */
export type TreeDraft = {
  tree: Tree;
  readonly at: number;
  readonly actions: TreeAction[];
  readonly path: (Edge & { readonly node: string })[];
  readonly diagnostics: (Diagnostic & { readonly node: string })[];
  /** Events from one run to another, in order. All are delivered within this step. */
  readonly pending: RunEvent[];
};

export const createDraft = (tree: Tree, at: number): TreeDraft => ({
  tree,
  at,
  actions: [],
  path: [],
  diagnostics: [],
  pending: [],
});

export const toStep = ({ tree, actions, path, diagnostics }: TreeDraft): TreeStep => ({
  state: tree,
  actions,
  path,
  diagnostics,
});

export const changeTree = (draft: TreeDraft, part: Partial<Tree>): void => {
  draft.tree = { ...draft.tree, ...part };
};

export const setLedger = (draft: TreeDraft, ledger: Ledger): void => changeTree(draft, { ledger });

export const setNode = (draft: TreeDraft, node: string, state: CodeState): void =>
  changeTree(draft, { nodes: { ...draft.tree.nodes, [node]: state } });

export const addAction = (draft: TreeDraft, node: string, action: OutsideAction): void => {
  draft.actions.push({ ...action, node });
};

/** Records a diagnostic for an event that changed nothing except usage. */
export const addDiagnostic = (
  draft: TreeDraft,
  event: TreeEvent,
  state: string,
  why: string,
): void => {
  draft.diagnostics.push({ kind: 'late', state, event: event.type, why, node: event.node });
};
