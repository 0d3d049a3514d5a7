import type { TreeWish } from '../run/action.js';
import { newRun } from '../run/moves/start-run.js';
import { allowedModels, amountAt, type CodeSettings, findModel } from '../run/settings.js';
import type { Outcome } from '../run/state.js';
import { budgetWords, shortOf } from '../run/stop-policies.js';
import { errorText, outcomeText } from '../run/text/texts-for-model.js';
import { countPiece, type Missing, missingOf } from './count-answered-pieces.js';
import { closeAccount, openAccount, purseOf } from './ledger.js';
import { parentOf } from './run-ids.js';
import { change, setLedger, setNode, type TreeDraft } from './step-draft.js';
import type { Batch } from './tree-state.js';

/** Sub-calls: one child per prompt, a limited number at a time, answers in the order of the prompts. */

type StartSubcall = Extract<TreeWish, { readonly type: 'StartSubcall' }>;

const setBatch = (draft: TreeDraft, key: string, batch: Batch): void =>
  change(draft, { batches: { ...draft.tree.batches, [key]: batch } });

const dropBatch = (draft: TreeDraft, key: string): void => {
  const { [key]: gone, ...batches } = draft.tree.batches;
  if (gone !== undefined) change(draft, { batches });
};

// ---- A batch begins ----

const count = (draft: TreeDraft, prompt: string, missing: Missing | null): void =>
  change(draft, { pieces: countPiece(draft.tree.pieces, prompt, missing) });

/** Why a prompt is refused at once; null if it is asked. */
const refusalOf = (
  { tree }: TreeDraft,
  { node, model }: Pick<Batch, 'node' | 'model'>,
  settings: CodeSettings,
  prompt: string,
): Missing | null => {
  if (prompt.trim() === '') return { kind: 'failed', why: 'the prompt is empty' };
  if (model !== null && findModel(settings, model) === null) {
    const why = `there is no model ${model} here: name one of ${allowedModels(settings).join(', ')}`;
    return { kind: 'failed', why };
  }
  if (settings.subcallsMax > 0 && tree.subcalls >= settings.subcallsMax) {
    const why = `${settings.subcallsMax} sub-calls were made, and no more are allowed`;
    return { kind: 'refused', why };
  }
  const short = shortOf(amountAt(settings.reserve.expected, prompt.length), purseOf(tree.ledger, node));
  return short === null ? null : { kind: 'refused', why: budgetWords(short) };
};

/** The texts of a batch with too many prompts: one refusal each. */
const refuseAll = (
  draft: TreeDraft,
  { prompts }: StartSubcall,
  { batchMax }: CodeSettings,
): readonly string[] => {
  const why = `${prompts.length} prompts in one call, and at most ${batchMax} are allowed: send fewer and fuller ones`;
  for (const prompt of prompts) count(draft, prompt, { kind: 'failed', why });
  return prompts.map(() => errorText(why));
};

/** Opens a batch with an empty slot for each prompt. Children fill the slots as they end. */
export const openBatch = (draft: TreeDraft, node: string, wish: StartSubcall): void => {
  const settings = draft.tree.nodes[node]?.run.settings;
  if (settings === undefined) return;
  const { cellId, ordinal, word, kind, prompts, model = null } = wish;
  const isTooLong = settings.batchMax > 0 && prompts.length > settings.batchMax;
  const texts = isTooLong ? refuseAll(draft, wish, settings) : prompts.map(() => null);
  const missing = isTooLong ? 0 : prompts.length;
  const key = `${cellId}.${word}`;
  setBatch(draft, key, { node, cellId, ordinal, kind, model, prompts, texts, missing, next: 0, working: 0 });
  advance(draft, key);
};

// ---- Children ----

const startChild = (draft: TreeDraft, key: string, batch: Batch, slot: number): void => {
  const parent = draft.tree.nodes[batch.node]?.run;
  if (parent === undefined) return;
  const { settings, depth, deadline } = parent;
  const nodeId = `${key}.${slot + 1}`;
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
  change(draft, { subcalls: draft.tree.subcalls + 1 });
  setBatch(draft, key, { ...batch, next: slot + 1, working: batch.working + 1 });
  draft.owed.push({ type: 'Started', at: draft.at, node: nodeId });
};

const workingMax = (draft: TreeDraft, { kind, node }: Batch): number => {
  const run = draft.tree.nodes[node]?.run;
  if (run === undefined) return 0;
  const plain = kind === 'llm' || run.depth + 1 >= run.depthMax;
  return plain ? run.settings.openCallsMax : run.settings.parallelRunsMax;
};

/** Stores the text of a slot. */
const fill = (draft: TreeDraft, key: string, batch: Batch, slot: number, text: string): void =>
  setBatch(draft, key, { ...batch, texts: batch.texts.with(slot, text), missing: batch.missing - 1 });

/** Starts as many children as may run at once, in order. Answers the cell when every slot has its text. */
const advance = (draft: TreeDraft, key: string): void => {
  for (;;) {
    const batch = draft.tree.batches[key];
    const settings = draft.tree.nodes[batch?.node ?? '']?.run.settings;
    if (batch === undefined || settings === undefined || batch.working >= workingMax(draft, batch)) return;
    const slot = batch.texts.indexOf(null, batch.next);
    if (slot < 0) {
      if (batch.missing === 0) answer(draft, key, batch);
      return;
    }
    const prompt = batch.prompts[slot] ?? '';
    const refused = refusalOf(draft, batch, settings, prompt);
    if (refused === null) startChild(draft, key, batch, slot);
    else {
      count(draft, prompt, refused);
      fill(draft, key, { ...batch, next: slot + 1 }, slot, errorText(refused.why));
    }
  }
};

const answer = (draft: TreeDraft, key: string, batch: Batch): void => {
  const { node, cellId, ordinal } = batch;
  dropBatch(draft, key);
  const texts = batch.texts.map((text) => text ?? '');
  draft.owed.push({ type: 'SubcallAnswered', at: draft.at, node, cellId, ordinal, texts });
};

/** Removes an ended child from the tree. Its text goes into its slot, unless the batch was abandoned. */
export const endChild = (draft: TreeDraft, child: string, outcome: Outcome): void => {
  const { [child]: gone, ...nodes } = draft.tree.nodes;
  if (gone === undefined) return;
  change(draft, { nodes, ledger: closeAccount(draft.tree.ledger, child) });
  const end = child.lastIndexOf('.');
  const key = child.slice(0, end);
  const batch = draft.tree.batches[key];
  if (batch === undefined) return;
  const slot = Number(child.slice(end + 1)) - 1;
  count(draft, batch.prompts[slot] ?? '', missingOf(outcome));
  fill(draft, key, { ...batch, working: batch.working - 1 }, slot, outcomeText(outcome));
  advance(draft, key);
};

// ---- A batch ends without an answer ----

/** Abandons all batches of a cell, or one of them. Returns the running children, which the caller must stop. */
export const abandonBatches = (
  draft: TreeDraft,
  node: string,
  cellId: string,
  ordinal: number | null,
): readonly string[] => {
  const keys = Object.entries(draft.tree.batches)
    .filter(([, batch]) => batch.cellId === cellId && (ordinal === null || batch.ordinal === ordinal))
    .map(([key]) => {
      dropBatch(draft, key);
      return key;
    });
  return Object.keys(draft.tree.nodes).filter(
    (child) => parentOf(child) === node && keys.some((key) => child.startsWith(`${key}.`)),
  );
};
