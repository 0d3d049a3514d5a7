import type { Diagnostic, Edge } from '../kernel/step.js';
import type { OutsideAction, TreeAction } from './action.js';
import type { TreeEvent } from './event.js';
import type { Ledger } from './ledger.js';
import type { CodeState } from './state.js';
import type { Tree, TreeStep } from './tree-state.js';

/**
 * What a step of the tree has done so far. It lives within one step, and no tree that was ever returned changes: each
 * change makes another one.
 */
export type Draft = {
  tree: Tree;
  readonly at: number;
  readonly actions: TreeAction[];
  readonly path: (Edge & { readonly node: string })[];
  readonly diagnostics: (Diagnostic & { readonly node: string })[];
  /** Events that runs owe each other, in order: delivered within the same step. */
  readonly owed: TreeEvent[];
};

export const draftOf = (tree: Tree, at: number): Draft => ({
  tree,
  at,
  actions: [],
  path: [],
  diagnostics: [],
  owed: [],
});

export const stepOf = ({ tree, actions, path, diagnostics }: Draft): TreeStep => ({
  state: tree,
  actions,
  path,
  diagnostics,
});

export const change = (draft: Draft, part: Partial<Tree>): void => {
  draft.tree = { ...draft.tree, ...part };
};

export const setLedger = (draft: Draft, ledger: Ledger): void => change(draft, { ledger });

export const setNode = (draft: Draft, node: string, state: CodeState): void =>
  change(draft, { nodes: { ...draft.tree.nodes, [node]: state } });

export const act = (draft: Draft, node: string, action: OutsideAction): void => {
  draft.actions.push({ ...action, node });
};

/** An event that changed nothing but spending. */
export const note = (draft: Draft, event: TreeEvent, state: string, why: string): void => {
  draft.diagnostics.push({ kind: 'late', state, event: event.type, why, node: event.node });
};
