/**
 * The step function of a tree of runs. Every run steps the same machine; the tree handles
 * sub-calls, budget and queue.
 *
 * A run is one conversation, a node its place in the tree. A sub-call of a run has a list of
 * prompts, its batch; each prompt gets a child run and a slot for its answer. The ledger counts
 * the costs; the purse of a run is what it may still spend. A draft collects the results of one
 * step.
 *
 * 1. At most `openCallsMax` model calls are open in the whole tree. Further calls wait in the
 *    queue.
 * 2. A sub-call is answered once, when every slot has its text, in the order of the prompts. A
 *    failed child only affects its slot.
 * 3. The usage of a call is counted first, even if its run has ended.
 * 4. Children end before their parents. An ended child leaves the tree; its usage stays.
 * 5. Pure: the same tree and event give the same result. Never throws. `Resumed` repairs the state
 *    after a crash.
 *
 * Money: each call has an `expected` and a `worst` cost (`Reserve` in run/settings.ts). Under a
 * limit in dollars with `bounds`, `leastUsd` is its cost with the shortest reply, and `capUsd` the
 * most that the ledger lets it cost. ledger.ts says when a call may start.
 *
 * From top to bottom: the step; shutdown and resume; sub-calls, as batches of children; and the
 * queue of model calls with their costs.
 */

import { requestMessages } from '@pawl/agent/machine/conversation';
import { costsNothing, silentText } from '@pawl/agent/machine/moves/request';
import { faultIn, typeIn } from '@pawl/machine/kernel/shape';
import type { CodeAction, OutsideAction, TreeAction, TreeWish } from '../run/action.js';
import { type RunEvent, type TreeEvent, treeEventShape } from '../run/event.js';
import { withRun } from '../run/move-result.js';
import { runInFlight } from '../run/moves/resume.js';
import { newRun } from '../run/moves/start-run.js';
import { allowedModels, amountAt, type CodeSettings, findModel } from '../run/settings.js';
import type { Outcome, Run } from '../run/state.js';
import { type Amount, budgetWords, findShortage, type Short } from '../run/stop-policies.js';
import { codeMode } from '../run/table.js';
import { errorText, outcomeText } from '../run/texts-for-model.js';
import {
  atLeast,
  closeAccount,
  closeCall,
  forgetCalls,
  getLineage,
  getParent,
  getPurse,
  hasMoneyLimit,
  type KnownCost,
  openAccount,
  openCall,
  type PlannedCall,
  permissionFor,
  ROOT,
  settledUsage,
  usualCost,
} from './ledger.js';
import { changeLimits } from './raise-limits.js';
import {
  addAction,
  addDiagnostic,
  changeTree,
  createDraft,
  setLedger,
  setNode,
  type TreeDraft,
  toStep,
} from './step-draft.js';
import {
  type Batch,
  countPiece,
  explainUnanswered,
  spentBy,
  type Tree,
  type TreeStep,
  type Unanswered,
  type Waiting,
} from './tree-state.js';

/** One step. Events for ended runs only change usage. Invalid events change nothing. */
export const stepTree = (tree: Tree, event: TreeEvent): TreeStep => {
  const why = faultIn(treeEventShape, event, 'the event');
  if (why === null) return stepTreeUnchecked(tree, event);
  const diagnostic = {
    kind: 'malformed',
    state: tree.name,
    event: typeIn(event) ?? '',
    why,
    node: ROOT,
  } as const;
  return { state: tree, actions: [], path: [], diagnostics: [diagnostic] };
};

/** The same for events that were already validated, such as those of a journal. */
export const stepTreeUnchecked = (tree: Tree, event: TreeEvent): TreeStep => {
  const draft = createDraft(tree, event.at);
  if (event.type === 'Resumed') resume(draft, event);
  else if (event.type === 'LimitsChanged') changeLimits(draft, event);
  else if (event.type === 'ShutdownRequested') standDown(draft, event);
  else if (isUnsent(tree, event)) {
    addDiagnostic(
      draft,
      event,
      tree.name,
      'this call waits for its turn: nobody can have answered it',
    );
  } else if (tree.name === 'ShutDown') {
    bookCall(draft, event, 'kept');
    addDiagnostic(draft, event, tree.name, 'everything stands down: only what it cost counts');
  } else {
    bookCall(draft, event, 'freed');
    draft.pending.push(event);
    settle(draft);
  }
  return toStep(draft);
};

/** The end of a call that was never sent. Only a faulty runtime reports this. */
const isUnsent = ({ waiting }: Tree, event: TreeEvent): boolean =>
  (event.type === 'ModelReplied' || event.type === 'ModelFailed') &&
  waiting.some(({ call }) => call.requestId === event.requestId);

/** Delivers pending events and starts waiting calls until none remain. */
const settle = (draft: TreeDraft): void => {
  do {
    for (let event = draft.pending.shift(); event !== undefined; event = draft.pending.shift())
      deliver(draft, event);
    const settings = draft.tree.nodes[ROOT]?.run.settings;
    if (settings !== undefined) fillPlaces(draft, settings.openCallsMax);
  } while (draft.pending.length > 0);
  const root = draft.tree.nodes[ROOT];
  if (root === undefined) return;
  if (root.name === 'DONE' && draft.tree.name === 'Running') changeTree(draft, { name: 'Ended' });
};

/** Steps one run and performs its actions. */
const deliver = (draft: TreeDraft, event: RunEvent): void => {
  const { node, ...codeEvent } = event;
  const before = draft.tree.nodes[node];
  if (before === undefined) {
    addDiagnostic(draft, event, 'DONE', 'the run is over');
    return;
  }
  // the run must know what it may still spend
  const purse = getPurse(draft.tree.ledger, node);
  // the event was checked already
  const { state, actions, path, diagnostics } = codeMode.stepUnchecked(
    withRun(before, { ...before.run, purse }),
    codeEvent,
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
      queueCall(draft, node, action);
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
      addAction(draft, node, action);
  }
};

/** Ends the children of a cell before its run continues. */
const stopChildren = (
  draft: TreeDraft,
  node: string,
  cellId: string,
  ordinal: number | null,
): void => {
  for (const child of abandonBatches(draft, node, cellId, ordinal)) {
    deliver(draft, { type: 'CancelRequested', at: draft.at, node: child, cause: 'parent' });
  }
};

// ---- Shutdown and resume ----

const deepestFirst = (nodes: readonly string[]): readonly string[] =>
  nodes.toSorted((one, other) => getLineage(other).length - getLineage(one).length);

/** Stops everything outside. The tree itself stays unchanged. */
const standDown = (draft: TreeDraft, event: TreeEvent): void => {
  const { tree } = draft;
  if (tree.name !== 'Running') {
    addDiagnostic(draft, event, tree.name, 'nothing is under way');
    return;
  }
  for (const node of deepestFirst(Object.keys(tree.nodes))) {
    const state = tree.nodes[node];
    if (state === undefined) continue;
    const { actions, path } = codeMode.stepUnchecked(state, {
      type: 'ShutdownRequested',
      at: draft.at,
    });
    for (const edge of path) draft.path.push({ ...edge, node });
    for (const action of actions) {
      // a call in the queue was never sent, so there is nothing to abort
      const isWaiting = action.type === 'AbortModel' && tree.calls[action.requestId] === undefined;
      if (action.type !== 'StartSubcall' && action.type !== 'StopSubcalls' && !isWaiting)
        addAction(draft, node, action);
    }
  }
  changeTree(draft, { name: 'ShutDown' });
};

/** Starts interrupted work again under the same ids. */
const resume = (
  draft: TreeDraft,
  event: Extract<TreeEvent, { readonly type: 'Resumed' }>,
): void => {
  const { tree } = draft;
  if (event.epoch <= tree.epoch) {
    addDiagnostic(draft, event, tree.name, 'stale: the tree was opened since');
    return;
  }
  changeTree(draft, { epoch: event.epoch, name: tree.name === 'ShutDown' ? 'Running' : tree.name });
  // what the open calls cost is unknown; the runs send them again
  setLedger(draft, forgetCalls(tree.ledger));
  for (const node of Object.keys(tree.nodes)) draft.pending.push({ ...event, node });
  settle(draft);
};

/**
 * Actions whose results the tree is waiting for at the time `at`. Resumed starts them again. Cells
 * and variables are not included: they start after EnvironmentStarted.
 */
export const inFlight = (tree: Tree, at: number): readonly TreeAction[] =>
  Object.entries(tree.nodes).flatMap(([node, state]) =>
    runInFlight(state, at)
      .filter((action) => action.type !== 'CallModel' || tree.calls[action.requestId] !== undefined)
      .map((action) => ({ ...action, node })),
  );

// ---- Sub-calls: one child per prompt, a limited number at a time, answers in their order ----

type StartSubcall = Extract<TreeWish, { readonly type: 'StartSubcall' }>;

const setBatch = (draft: TreeDraft, key: string, batch: Batch): void =>
  changeTree(draft, { batches: { ...draft.tree.batches, [key]: batch } });

const dropBatch = (draft: TreeDraft, key: string): void => {
  const { [key]: gone, ...batches } = draft.tree.batches;
  if (gone !== undefined) changeTree(draft, { batches });
};

// ---- A batch begins ----

const countPrompt = (draft: TreeDraft, prompt: string, why: Unanswered | null): void =>
  changeTree(draft, { pieces: countPiece(draft.tree.pieces, prompt, why) });

/** Why a prompt is refused at once; null if it is asked. */
const explainRefusal = (
  { tree }: TreeDraft,
  { node, model }: Pick<Batch, 'node' | 'model'>,
  settings: CodeSettings,
  prompt: string,
): Unanswered | null => {
  if (prompt.trim() === '') return { kind: 'failed', why: 'the prompt is empty' };
  if (model !== null && findModel(settings, model) === null) {
    const why = `there is no model ${model} here: name one of ${allowedModels(settings).join(', ')}`;
    return { kind: 'failed', why };
  }
  if (settings.subcallsMax > 0 && tree.subcalls >= settings.subcallsMax) {
    const why = `${settings.subcallsMax} sub-calls were made, and no more are allowed`;
    return { kind: 'refused', why };
  }
  const short = findShortage(
    amountAt(settings.reserve.expected, prompt.length),
    getPurse(tree.ledger, node),
  );
  return short === null ? null : { kind: 'refused', why: budgetWords(short) };
};

/** The texts of a batch with too many prompts: one refusal each. */
const refuseAll = (
  draft: TreeDraft,
  { prompts }: StartSubcall,
  { batchMax }: CodeSettings,
): readonly string[] => {
  const why =
    `${prompts.length} prompts in one call, and at most ${batchMax} are allowed: send fewer ` +
    'and fuller ones';
  for (const prompt of prompts) countPrompt(draft, prompt, { kind: 'failed', why });
  return prompts.map(() => errorText(why));
};

/** Opens a batch with an empty slot for each prompt. Children fill the slots as they end. */
const openBatch = (draft: TreeDraft, node: string, action: StartSubcall): void => {
  const settings = draft.tree.nodes[node]?.run.settings;
  if (settings === undefined) return;
  const { cellId, ordinal, word, kind, prompts, model = null } = action;
  const isTooLong = settings.batchMax > 0 && prompts.length > settings.batchMax;
  const texts = isTooLong ? refuseAll(draft, action, settings) : prompts.map(() => null);
  const unfilled = isTooLong ? 0 : prompts.length;
  // the prefix of the children's ids; `word` is the ordinal, or another word after a rerun
  const key = `${cellId}.${word}`;
  setBatch(draft, key, {
    node,
    cellId,
    ordinal,
    kind,
    model,
    prompts,
    texts,
    missing: unfilled,
    next: 0,
    working: 0,
  });
  advance(draft, key);
};

// ---- Children ----

const startChild = (draft: TreeDraft, key: string, batch: Batch, slot: number): void => {
  const parent = draft.tree.nodes[batch.node]?.run;
  if (parent === undefined) return;
  const { settings, depth, deadline } = parent;
  const nodeId = `${key}.${slot + 1}`;
  // at its `depthMax` a run is a plain call, without an environment
  const child = newRun({
    nodeId,
    depth: depth + 1,
    depthMax: batch.kind === 'llm' ? depth + 1 : parent.depthMax,
    settings,
    model: (batch.model === null ? null : findModel(settings, batch.model)) ?? settings.subModel,
    task: { kind: 'prompt', prompt: batch.prompts[slot] ?? '' },
    deadlineAt: deadline?.dueAt ?? null,
  });
  setNode(draft, nodeId, child);
  setLedger(draft, openAccount(draft.tree.ledger, nodeId, settings.childLimits));
  changeTree(draft, { subcalls: draft.tree.subcalls + 1 });
  setBatch(draft, key, { ...batch, next: slot + 1, working: batch.working + 1 });
  draft.pending.push({ type: 'Started', at: draft.at, node: nodeId });
};

/** How many children of a batch may run at once. */
const workingMax = (draft: TreeDraft, { kind, node }: Batch): number => {
  const run = draft.tree.nodes[node]?.run;
  if (run === undefined) return 0;
  // plain calls only wait in the queue; every other child has an environment of its own
  const isPlain = kind === 'llm' || run.depth + 1 >= run.depthMax;
  return isPlain ? run.settings.openCallsMax : run.settings.parallelRunsMax;
};

/** Stores the text of a slot. */
const fillSlot = (draft: TreeDraft, key: string, batch: Batch, slot: number, text: string): void =>
  setBatch(draft, key, {
    ...batch,
    texts: batch.texts.with(slot, text),
    missing: batch.missing - 1,
  });

/**
 * Starts as many children as may run at once, in order. Answers the cell when every slot has its
 * text.
 */
const advance = (draft: TreeDraft, key: string): void => {
  for (;;) {
    const batch = draft.tree.batches[key];
    const settings = draft.tree.nodes[batch?.node ?? '']?.run.settings;
    if (batch === undefined || settings === undefined || batch.working >= workingMax(draft, batch))
      return;
    const slot = batch.texts.indexOf(null, batch.next);
    if (slot < 0) {
      if (batch.missing === 0) answer(draft, key, batch);
      return;
    }
    const prompt = batch.prompts[slot] ?? '';
    const refused = explainRefusal(draft, batch, settings, prompt);
    if (refused === null) startChild(draft, key, batch, slot);
    else {
      countPrompt(draft, prompt, refused);
      fillSlot(draft, key, { ...batch, next: slot + 1 }, slot, errorText(refused.why));
    }
  }
};

/** Answers the cell with the texts of its batch. */
const answer = (draft: TreeDraft, key: string, batch: Batch): void => {
  const { node, cellId, ordinal } = batch;
  dropBatch(draft, key);
  const texts = batch.texts.map((text) => text ?? '');
  draft.pending.push({ type: 'SubcallAnswered', at: draft.at, node, cellId, ordinal, texts });
};

/**
 * Removes an ended child from the tree. Its text goes into its slot, unless the batch was
 * abandoned.
 */
const endChild = (draft: TreeDraft, child: string, outcome: Outcome): void => {
  const { [child]: gone, ...nodes } = draft.tree.nodes;
  if (gone === undefined) return;
  changeTree(draft, { nodes, ledger: closeAccount(draft.tree.ledger, child) });
  const end = child.lastIndexOf('.');
  const key = child.slice(0, end);
  const batch = draft.tree.batches[key];
  if (batch === undefined) return;
  const slot = Number(child.slice(end + 1)) - 1;
  countPrompt(draft, batch.prompts[slot] ?? '', explainUnanswered(outcome));
  fillSlot(draft, key, { ...batch, working: batch.working - 1 }, slot, outcomeText(outcome));
  advance(draft, key);
};

// ---- A batch ends without an answer ----

/**
 * Abandons all batches of a cell, or one of them. Returns the running children, which the caller
 * must stop.
 */
const abandonBatches = (
  draft: TreeDraft,
  node: string,
  cellId: string,
  ordinal: number | null,
): readonly string[] => {
  const keys = Object.entries(draft.tree.batches)
    .filter(
      ([, batch]) => batch.cellId === cellId && (ordinal === null || batch.ordinal === ordinal),
    )
    .map(([key]) => {
      dropBatch(draft, key);
      return key;
    });
  return Object.keys(draft.tree.nodes).filter(
    (child) => getParent(child) === node && keys.some((key) => child.startsWith(`${key}.`)),
  );
};

// ---- The queue of model calls: which calls wait, which starts next, and their costs ----

type ModelCall = Extract<OutsideAction, { readonly type: 'CallModel' }>;

/** Calls of one kind cost about the same. */
const callKind = ({ model }: Run, purpose: ModelCall['purpose']): string =>
  `${model} ${purpose === 'plain' ? 'plain' : 'run'}`;

/**
 * The usual cost of the next call of a run, which its sub-calls must leave it; zero if the run has
 * ended, or its costs are stated: only estimates leave something.
 */
const nextCost = ({ ledger, nodes }: Tree, node: string): Amount => {
  const run = nodes[node]?.run;
  if (run === undefined || run.settings.reserve.basis === 'stated') return { usd: 0, tokens: 0 };
  const { expected, basis } = run.settings.reserve;
  const call = {
    kind: callKind(run, 'iteration'),
    expected: amountAt(expected, run.characters),
    basis,
  };
  const bounds = boundCall(ledger, node, run, 'iteration');
  return atLeast(usualCost(ledger, call), bounds?.leastUsd ?? null);
};

/**
 * Bytes of the messages of the next request of a run, as JSON in UTF-8. Counted by hand, since a
 * machine uses only the language itself: Buffer belongs to Node.
 */
const countBytes = ({ conversation, model }: Run): number => {
  const text = JSON.stringify(requestMessages(conversation, Number.POSITIVE_INFINITY, model));
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code > 0x7f) bytes += 1;
    // Both halves of a surrogate pair have four bytes together.
    if (code > 0x7ff && (code < 0xd800 || code > 0xdfff)) bytes += 1;
  }
  return bytes;
};

/** Dollars that the next call of a run costs at most, with the shortest and the longest reply. */
const boundCall = (
  ledger: Tree['ledger'],
  node: string,
  run: Run,
  purpose: ModelCall['purpose'],
): { readonly leastUsd: number; readonly mostUsd: number } | null => {
  const { bounds } = run.settings.reserve;
  if (bounds === undefined || !hasMoneyLimit(ledger, node)) return null;
  const { byteUsd, plainUsd, runUsd, shortestReplyUsd, longestReplyUsd } = bounds;
  const inputUsd = countBytes(run) * byteUsd + (purpose === 'plain' ? plainUsd : runUsd);
  return { leastUsd: inputUsd + shortestReplyUsd, mostUsd: inputUsd + longestReplyUsd };
};

/** The ledger's view of a call; null if its run has ended. */
const planCall = ({ tree }: TreeDraft, node: string, call: ModelCall): PlannedCall | null => {
  const run = tree.nodes[node]?.run;
  if (run === undefined) return null;
  const { reserve } = run.settings;
  const bounds = boundCall(tree.ledger, node, run, call.purpose);
  const stated = amountAt(reserve.worst, run.characters);
  const isEstimate = bounds !== null && reserve.basis === 'estimated';
  const worst = isEstimate ? { ...stated, usd: bounds.mostUsd } : stated;
  return {
    node,
    kind: callKind(run, call.purpose),
    expected: amountAt(reserve.expected, run.characters),
    worst: atLeast(worst, bounds?.leastUsd ?? null),
    basis: reserve.basis,
    leastUsd: bounds?.leastUsd ?? null,
    ancestors: getLineage(node)
      .slice(1)
      .map((id) => nextCost(tree, id)),
  };
};

/** Opens a call: reserves its cost, and tells the runtime to send it. */
const startCall = (draft: TreeDraft, { node, call }: Waiting, planned: PlannedCall): void => {
  const ledger = openCall(draft.tree.ledger, call.requestId, planned);
  setLedger(draft, ledger);
  changeTree(draft, { calls: { ...draft.tree.calls, [call.requestId]: node } });
  const { capUsd } = ledger.open[call.requestId] ?? {};
  addAction(draft, node, capUsd === undefined ? call : { ...call, capUsd });
};

/**
 * Queues a model call and starts it if possible. After Resumed, an open call is sent again and a
 * waiting call keeps waiting. Under a limit in dollars an open call waits again, before all others:
 * what is left may not pay for it any more.
 */
const queueCall = (draft: TreeDraft, node: string, call: ModelCall): void => {
  const { calls, waiting } = draft.tree;
  const planned = planCall(draft, node, call);
  if (planned !== null && calls[call.requestId] !== undefined) {
    if (planned.leastUsd === null) startCall(draft, { node, call }, planned);
    else {
      freePlace(draft, call.requestId);
      changeTree(draft, { waiting: [{ node, call }, ...waiting] });
    }
  } else if (!waiting.some((other) => other.call.requestId === call.requestId)) {
    changeTree(draft, { waiting: [...waiting, { node, call }] });
  }
};

/** Frees the place of an open call. */
const freePlace = (draft: TreeDraft, requestId: string): void => {
  const { [requestId]: gone, ...calls } = draft.tree.calls;
  if (gone !== undefined) changeTree(draft, { calls });
};

/** Aborts a call, or removes it from the queue. The usage of an aborted call still counts. */
const abortCall = (draft: TreeDraft, node: string, requestId: string): void => {
  const { calls, waiting } = draft.tree;
  if (calls[requestId] !== undefined) {
    freePlace(draft, requestId);
    addAction(draft, node, { type: 'AbortModel', requestId });
  } else
    changeTree(draft, { waiting: waiting.filter((other) => other.call.requestId !== requestId) });
};

type CallEnd = Extract<TreeEvent, { readonly type: 'ModelReplied' | 'ModelFailed' }>;

/** What is known of the cost of a call at its end. */
const readEnd = (event: CallEnd): KnownCost => {
  const { usage } = event;
  if (event.type === 'ModelReplied') return { usage, unseenUsd: 0 };
  if (usage === null)
    return { usage, unseenUsd: costsNothing(event) ? 0 : Number.POSITIVE_INFINITY };
  return { usage, unseenUsd: event.outputUsd ?? Number.POSITIVE_INFINITY };
};

const inDollars = (usd: number): string => `$${usd.toFixed(usd > 0 && usd < 0.001 ? 8 : 4)}`;

/**
 * Tells of a call that cost more than its cap, of one whose cost nobody knows, and once of each
 * model that its server reports no usage.
 */
const warnOfCost = (draft: TreeDraft, { node, requestId }: CallEnd, end: KnownCost): void => {
  const call = draft.tree.ledger.open[requestId];
  if (call === undefined) return;
  const warn = (text: string): void =>
    addAction(draft, node, { type: 'DisplayWarning', kind: 'usage', text });
  const { estimated = [] } = end.usage ?? {};
  const { estimated: known = [] } = spentBy(draft.tree);
  for (const model of estimated) if (!known.includes(model)) warn(silentText(model));
  if (call.capUsd === undefined || estimated.length > 0) return;
  const knownUsd = end.usage?.costUsd ?? 0;
  const countedUsd = settledUsage(call, end)?.costUsd ?? 0;
  if (knownUsd > call.capUsd)
    warn(
      `the provider charged ${inDollars(knownUsd)} for a request that could cost ` +
        `${inDollars(call.capUsd)} at most: its reply or its prices are larger than it was told`,
    );
  else if (countedUsd > knownUsd)
    warn(
      `the cost of a request is not known: ${inDollars(countedUsd)}, the most that it can be, ` +
        'counts as spent',
    );
};

/**
 * Counts the usage of a finished call. `kept`: it has its place among the open calls, since a
 * tree that was shut down sends it again when it is resumed.
 */
const bookCall = (draft: TreeDraft, event: TreeEvent, place: 'freed' | 'kept'): void => {
  if (event.type !== 'ModelReplied' && event.type !== 'ModelFailed') return;
  const end = readEnd(event);
  warnOfCost(draft, event, end);
  setLedger(draft, closeCall(draft.tree.ledger, event.requestId, end));
  if (place === 'freed') freePlace(draft, event.requestId);
};

/** What a call needs that is not sent because of a limit in dollars. */
const explainShort = (
  { tree }: TreeDraft,
  short: Short,
  { node, leastUsd }: PlannedCall,
): { readonly why?: string } => {
  const left = getPurse(tree.ledger, node).left.usd;
  if (short !== 'usd' || leastUsd === null || left === null) return {};
  const why =
    `${budgetWords(short)}: the next request could cost ${inDollars(leastUsd)}, ` +
    `and ${inDollars(Math.max(0, left))} are left: raise the limit in dollars (--max-usd)`;
  return { why };
};

/**
 * Starts waiting calls in order while places are free. If the reserve of a call does not fit beside
 * the open calls, it keeps waiting, and so do all later calls on the same account. A call that can
 * never be paid is refused.
 */
const fillPlaces = (draft: TreeDraft, openCallsMax: number): void => {
  const blockedAccounts = new Set<string>();
  const stillWaiting: Waiting[] = [];
  const before = draft.tree.waiting;
  let examined = 0;
  for (const waiting of before) {
    if (Object.keys(draft.tree.calls).length >= openCallsMax) break;
    examined += 1;
    const { node, call } = waiting;
    if (draft.tree.nodes[node] === undefined) continue;
    if (getLineage(node).some((id) => blockedAccounts.has(id))) {
      stillWaiting.push(waiting);
      continue;
    }
    const planned = planCall(draft, node, call);
    if (planned === null) continue;
    const permission = permissionFor(draft.tree.ledger, planned);
    switch (permission.kind) {
      case 'start':
        startCall(draft, waiting, planned);
        break;
      case 'wait':
        stillWaiting.push(waiting);
        for (const id of permission.accounts) blockedAccounts.add(id);
        break;
      case 'refuse': {
        const { requestId } = call;
        const { short } = permission;
        const why = explainShort(draft, short, planned);
        const refused = { at: draft.at, node, requestId, short, ...why };
        draft.pending.push({ type: 'CallRefused', ...refused });
        break;
      }
      default:
        permission satisfies never;
    }
  }
  if (examined > 0) changeTree(draft, { waiting: [...stillWaiting, ...before.slice(examined)] });
};
