import { faultIn, typeIn } from '@pawl/machine/kernel/shape';
import type { CodeAction, TreeAction } from '../run/action.js';
import type { RunEvent, TreeEvent } from '../run/event.js';
import { treeEventShape } from '../run/event-shapes.js';
import { codeMode } from '../run/machine.js';
import { withRun } from '../run/move-result.js';
import { runInFlight } from '../run/moves/resume.js';
import { forgetCalls, purseOf } from './ledger.js';
import { abortCall, bookCall, fillPlaces, wantCall } from './model-call-queue.js';
import { changeLimits } from './raise-limits.js';
import { lineageOf, ROOT } from './run-ids.js';
import { act, change, draftOf, note, setLedger, setNode, stepOf, type TreeDraft } from './step-draft.js';
import { abandonBatches, endChild, openBatch } from './subcall-batch.js';
import type { Tree, TreeStep } from './tree-state.js';

/**
 * The step function of a tree of runs. Every run steps the same machine; the tree handles sub-calls, budget and queue.
 *
 * 1. At most `openCallsMax` model calls are open in the whole tree. Further calls wait in the queue.
 * 2. A sub-call is answered once, when every slot has its text, in the order of the prompts. A failed child only affects
 *    its own slot.
 * 3. The usage of a call is counted first, even if its run has ended.
 * 4. Children end before their parents. An ended child leaves the tree; its usage stays.
 * 5. Pure: the same tree and event give the same result. Never throws. `Resumed` repairs the state after a crash.
 */

/** One step. Events for ended runs only change usage. Invalid events change nothing. */
export const stepTree = (tree: Tree, event: TreeEvent): TreeStep => {
  const why = faultIn(treeEventShape, event, 'the event');
  if (why === null) return stepTreeUnchecked(tree, event);
  const found = { kind: 'malformed', state: tree.name, event: typeIn(event) ?? '', why, node: ROOT } as const;
  return { state: tree, actions: [], path: [], diagnostics: [found] };
};

/** The same for events that were already validated, such as those of a journal. */
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

/** The end of a call that was never sent. Only a faulty runtime reports this. */
const isUnsent = ({ waiting }: Tree, event: TreeEvent): boolean =>
  (event.type === 'ModelReplied' || event.type === 'ModelFailed') &&
  waiting.some(({ call }) => call.requestId === event.requestId);

/** Delivers pending events and starts waiting calls until nothing is left. */
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

/** Steps one run and performs its actions. */
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

/** Performs the actions that concern the tree. All others go to the runtime. */
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

/** Ends the children of a cell before its run continues. */
const stopChildren = (draft: TreeDraft, node: string, cellId: string, ordinal: number | null): void => {
  for (const child of abandonBatches(draft, node, cellId, ordinal)) {
    deliver(draft, { type: 'CancelRequested', at: draft.at, node: child, cause: 'parent' });
  }
};

// ---- Shutdown and resume ----

const deepestFirst = (nodes: readonly string[]): readonly string[] =>
  nodes.toSorted((one, other) => lineageOf(other).length - lineageOf(one).length);

/** Stops everything outside. The tree itself stays unchanged. */
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

/** Starts interrupted work again under the same ids. */
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
 * Actions whose results the tree is waiting for at the time `at`. Resumed starts them again. Cells and variables are not
 * included: they start after EnvironmentStarted.
 */
export const inFlight = (tree: Tree, at: number): readonly TreeAction[] =>
  Object.entries(tree.nodes).flatMap(([node, state]) =>
    runInFlight(state, at)
      .filter((action) => action.type !== 'CallModel' || tree.calls[action.requestId] !== undefined)
      .map((action) => ({ ...action, node })),
  );
