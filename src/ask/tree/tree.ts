import { faultIn, typeIn } from '../../machine-kit/kernel/shape.js';
import type { CodeAction, TreeAction } from '../run/action.js';
import type { RunEvent, TreeEvent } from '../run/event.js';
import { treeEventShape } from '../run/event-shapes.js';
import { codeMode } from '../run/machine.js';
import { withRun } from '../run/move-result.js';
import { runInFlight } from '../run/moves/resume.js';
import { abortCall, bookCall, fillPlaces, wantCall } from './call-queue.js';
import { forgetCalls, purseOf } from './ledger.js';
import { changeLimits } from './raise-limits.js';
import { lineageOf, ROOT } from './run-ids.js';
import { abandonBatches, endChild, openBatch } from './subcall-batch.js';
import type { Tree, TreeStep } from './tree-state.js';
import {
  act,
  change,
  draftOf,
  note,
  setLedger,
  setNode,
  stepOf,
  type TreeDraft,
} from './tree-transaction.js';

/**
 * The step function of a tree of runs. Every run steps the same machine; the tree handles sub-calls, budget and queue.
 *
 * 1. Never more than `openCallsMax` model calls are open in the whole tree; others wait for their turn.
 * 2. Each sub-call is answered once, in prompt order, when every slot has its text; a child that fails spoils its slot.
 * 3. What a call cost is booked before anything else is done with its event, also if its run is gone.
 * 4. Runs end deepest first. A child that is done leaves the tree; what it spent stays.
 * 5. Pure: same tree and event, same answer; never throws. What crashes between two steps is made good by Resumed.
 */

/** One application. Events for runs that are gone change nothing but spending; what is no event changes nothing. */
export const stepTree = (tree: Tree, event: TreeEvent): TreeStep => {
  const why = faultIn(treeEventShape, event, 'the event');
  if (why === null) return stepTreeUnchecked(tree, event);
  const found = { kind: 'malformed', state: tree.name, event: typeIn(event) ?? '', why, node: ROOT } as const;
  return { state: tree, actions: [], path: [], diagnostics: [found] };
};

/** The same, of events that were checked before: those that a journal gives back. */
export const stepTreeUnchecked = (tree: Tree, event: TreeEvent): TreeStep => {
  const draft = draftOf(tree, event.at);
  if (event.type === 'Resumed') resume(draft, event);
  else if (event.type === 'LimitsChanged') changeLimits(draft, event);
  else if (event.type === 'ShutdownRequested') standDown(draft, event);
  else if (isUnsent(tree, event)) {
    note(draft, event, tree.name, 'this call waits for its turn: nobody can have answered it');
  } else if (tree.name === 'ShutDown') {
    bookCall(draft, event, 'kept');
    note(draft, event, tree.name, 'everything stands down: only what it cost counts');
  } else {
    bookCall(draft, event, 'freed');
    draft.owed.push(event);
    settle(draft);
  }
  return stepOf(draft);
};

/** A last word before the call: of a runtime that breaks the protocol. */
const isUnsent = ({ waiting }: Tree, event: TreeEvent): boolean =>
  (event.type === 'ModelReplied' || event.type === 'ModelFailed') &&
  waiting.some(({ call }) => call.requestId === event.requestId);

/** Delivers what is owed and fills the places of calls that are over, until nothing is owed. */
const settle = (draft: TreeDraft): void => {
  do {
    for (let event = draft.owed.shift(); event !== undefined; event = draft.owed.shift())
      deliver(draft, event);
    const settings = draft.tree.nodes[ROOT]?.run.settings;
    if (settings !== undefined) fillPlaces(draft, settings.openCallsMax);
  } while (draft.owed.length > 0);
  const root = draft.tree.nodes[ROOT];
  if (root === undefined) return;
  if (root.name === 'DONE' && draft.tree.name === 'Running') change(draft, { name: 'Ended' });
};

/** Steps one run, and does what comes of it. */
const deliver = (draft: TreeDraft, event: RunEvent): void => {
  const { node, ...own } = event;
  const before = draft.tree.nodes[node];
  if (before === undefined) {
    note(draft, event, 'DONE', 'the run is over');
    return;
  }
  const purse = purseOf(draft.tree.ledger, node);
  const { state, actions, path, diagnostics } = codeMode.stepUnchecked(
    withRun(before, { ...before.run, purse }),
    own,
  );
  setNode(draft, node, state);
  for (const edge of path) draft.path.push({ ...edge, node });
  for (const diagnostic of diagnostics) draft.diagnostics.push({ ...diagnostic, node });
  for (const action of actions) perform(draft, node, action);
  if (state.name === 'DONE' && node !== ROOT) endChild(draft, node, state.outcome);
};

/** What the tree does itself; the rest goes outside. */
const perform = (draft: TreeDraft, node: string, action: CodeAction): void => {
  switch (action.type) {
    case 'CallModel':
      wantCall(draft, node, action);
      break;
    case 'AbortModel':
      abortCall(draft, node, action.requestId);
      break;
    case 'StartSubcall':
      openBatch(draft, node, action);
      break;
    case 'StopSubcalls':
      stopChildren(draft, node, action.cellId, action.ordinal);
      break;
    default:
      act(draft, node, action);
  }
};

/** Children end before the run that asked for them goes on. */
const stopChildren = (draft: TreeDraft, node: string, cellId: string, ordinal: number | null): void => {
  for (const child of abandonBatches(draft, node, cellId, ordinal)) {
    deliver(draft, { type: 'CancelRequested', at: draft.at, node: child, cause: 'parent' });
  }
};

// ---- Shutdown and resume ----

const deepestFirst = (nodes: readonly string[]): readonly string[] =>
  nodes.toSorted((one, other) => lineageOf(other).length - lineageOf(one).length);

/** Everything outside stops; the tree stays as it is. */
const standDown = (draft: TreeDraft, event: TreeEvent): void => {
  const { tree } = draft;
  if (tree.name !== 'Running') {
    note(draft, event, tree.name, 'nothing is under way');
    return;
  }
  for (const node of deepestFirst(Object.keys(tree.nodes))) {
    const state = tree.nodes[node];
    if (state === undefined) continue;
    const { actions, path } = codeMode.stepUnchecked(state, { type: 'ShutdownRequested', at: draft.at });
    for (const edge of path) draft.path.push({ ...edge, node });
    for (const action of actions) {
      const waits = action.type === 'AbortModel' && tree.calls[action.requestId] === undefined;
      if (action.type !== 'StartSubcall' && action.type !== 'StopSubcalls' && !waits)
        act(draft, node, action);
    }
  }
  change(draft, { name: 'ShutDown' });
};

/** What was under way starts again under the same ids. */
const resume = (draft: TreeDraft, event: Extract<TreeEvent, { readonly type: 'Resumed' }>): void => {
  const { tree } = draft;
  if (event.epoch <= tree.epoch) {
    note(draft, event, tree.name, 'stale: the tree was opened since');
    return;
  }
  change(draft, { epoch: event.epoch, name: tree.name === 'ShutDown' ? 'Running' : tree.name });
  setLedger(draft, forgetCalls(tree.ledger));
  for (const node of Object.keys(tree.nodes)) draft.owed.push({ ...event, node });
  settle(draft);
};

/**
 * The actions that the tree waits for the answers of at the time `at`: what Resumed starts again. Cells and variables
 * are not among them, since they wait for their environment: they follow its EnvironmentStarted.
 */
export const inFlight = (tree: Tree, at: number): readonly TreeAction[] =>
  Object.entries(tree.nodes).flatMap(([node, state]) =>
    runInFlight(state, at)
      .filter((action) => action.type !== 'CallModel' || tree.calls[action.requestId] !== undefined)
      .map((action) => ({ ...action, node })),
  );
