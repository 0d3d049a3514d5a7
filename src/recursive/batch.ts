import type { TreeWish } from './action.js';
import { change, type Draft, setLedger, setNode } from './draft.js';
import { parentOf } from './ids.js';
import { closeAccount, expectedCost, giveBack, openAccount, reserveFor } from './ledger.js';
import { newRun } from './moves/start.js';
import { budgetWords } from './policies.js';
import type { CodeSettings } from './settings.js';
import type { Batch } from './tree-state.js';
import { errorText } from './words.js';

/** Sub-calls: one child per prompt, so many at a time, the texts in prompt order. */

type StartSubcall = Extract<TreeWish, { readonly type: 'StartSubcall' }>;

const setBatch = (draft: Draft, key: string, batch: Batch): void =>
  change(draft, { batches: { ...draft.tree.batches, [key]: batch } });

const dropBatch = (draft: Draft, key: string): void => {
  const { [key]: gone, ...batches } = draft.tree.batches;
  if (gone !== undefined) change(draft, { batches });
};

// ---- A batch begins ----

/** Why a prompt is not asked at all; null once what it is expected to cost is set aside. */
const refuse = (draft: Draft, node: string, settings: CodeSettings, prompt: string): string | null => {
  if (prompt.trim() === '') return 'the prompt is empty';
  if (settings.subcallsMax > 0 && draft.tree.subcalls >= settings.subcallsMax) {
    return `${settings.subcallsMax} sub-calls were made, and no more are allowed`;
  }
  const reserved = reserveFor(draft.tree.ledger, node, expectedCost(settings.reserve, prompt.length));
  if (reserved.kind === 'short') return budgetWords(reserved.of);
  change(draft, { ledger: reserved.ledger, subcalls: draft.tree.subcalls + 1 });
  return null;
};

const refuseAll = ({ prompts }: StartSubcall, { batchMax }: CodeSettings): readonly string[] => {
  const why = `${prompts.length} prompts in one call, and at most ${batchMax} are allowed: send fewer and fuller ones`;
  return prompts.map(() => errorText(why));
};

/** A slot for each prompt. What is refused has its text at once; the others are worked on. */
export const openBatch = (draft: Draft, node: string, wish: StartSubcall): void => {
  const settings = draft.tree.nodes[node]?.run.settings;
  if (settings === undefined) return;
  const { cellId, ordinal, word, kind, prompts } = wish;
  const texts =
    settings.batchMax > 0 && prompts.length > settings.batchMax
      ? refuseAll(wish, settings)
      : prompts.map((prompt) => {
          const why = refuse(draft, node, settings, prompt);
          return why === null ? null : errorText(why);
        });
  const missing = texts.filter((text) => text === null).length;
  const key = `${cellId}.${word}`;
  setBatch(draft, key, { node, cellId, ordinal, kind, prompts, texts, missing, next: 0, working: 0 });
  advance(draft, key);
};

// ---- Children ----

const startChild = (draft: Draft, key: string, batch: Batch, slot: number): void => {
  const parent = draft.tree.nodes[batch.node]?.run;
  if (parent === undefined) return;
  const { settings, depth, deadline } = parent;
  const nodeId = `${key}.${slot + 1}`;
  const prompt = batch.prompts[slot] ?? '';
  const child = newRun({
    nodeId,
    depth: depth + 1,
    depthMax: batch.kind === 'llm' ? depth + 1 : parent.depthMax,
    settings,
    task: { kind: 'prompt', prompt },
    deadlineAt: deadline?.dueAt ?? null,
  });
  setNode(draft, nodeId, child);
  const advanced = expectedCost(settings.reserve, prompt.length);
  setLedger(draft, openAccount(draft.tree.ledger, nodeId, settings.childLimits, advanced));
  setBatch(draft, key, { ...batch, next: slot + 1, working: batch.working + 1 });
  draft.owed.push({ type: 'Started', at: draft.at, node: nodeId });
};

const workingMax = (draft: Draft, { kind, node }: Batch): number => {
  const run = draft.tree.nodes[node]?.run;
  if (run === undefined) return 0;
  const plain = kind === 'llm' || run.depth + 1 >= run.depthMax;
  return plain ? run.settings.openCallsMax : run.settings.parallelRunsMax;
};

/** Starts children in prompt order, as many as may work at a time; answers the cell when every slot has its text. */
const advance = (draft: Draft, key: string): void => {
  for (;;) {
    const batch = draft.tree.batches[key];
    if (batch === undefined || batch.working >= workingMax(draft, batch)) return;
    const slot = batch.texts.indexOf(null, batch.next);
    if (slot < 0) {
      if (batch.missing === 0) answer(draft, key, batch);
      return;
    }
    startChild(draft, key, batch, slot);
  }
};

const answer = (draft: Draft, key: string, batch: Batch): void => {
  const { node, cellId, ordinal } = batch;
  dropBatch(draft, key);
  const texts = batch.texts.map((text) => text ?? '');
  draft.owed.push({ type: 'SubcallAnswered', at: draft.at, node, cellId, ordinal, texts });
};

/** A child is done: it leaves the tree, and its text is put into its slot, if anybody still waits for it. */
export const endChild = (draft: Draft, child: string, text: string): void => {
  const { [child]: gone, ...nodes } = draft.tree.nodes;
  if (gone === undefined) return;
  change(draft, { nodes, ledger: closeAccount(draft.tree.ledger, child) });
  const end = child.lastIndexOf('.');
  const key = child.slice(0, end);
  const batch = draft.tree.batches[key];
  if (batch === undefined) return;
  const texts = batch.texts.with(Number(child.slice(end + 1)) - 1, text);
  setBatch(draft, key, { ...batch, texts, missing: batch.missing - 1, working: batch.working - 1 });
  advance(draft, key);
};

// ---- A batch ends without an answer ----

/** Prompts that no child was started for are given up, and what was set aside for them is free. */
const abandon = (draft: Draft, key: string, { node, prompts, texts, next }: Batch): void => {
  dropBatch(draft, key);
  const settings = draft.tree.nodes[node]?.run.settings;
  if (settings === undefined) return;
  for (let slot = next; slot < prompts.length; slot++) {
    if (texts[slot] !== null) continue;
    const amount = expectedCost(settings.reserve, prompts[slot]?.length ?? 0);
    setLedger(draft, giveBack(draft.tree.ledger, node, amount));
  }
};

/** Gives up the batches of a cell, or one of them; the children that are at work, which are to be stopped. */
export const abandonBatches = (
  draft: Draft,
  node: string,
  cellId: string,
  ordinal: number | null,
): readonly string[] => {
  const keys = Object.entries(draft.tree.batches)
    .filter(([, batch]) => batch.cellId === cellId && (ordinal === null || batch.ordinal === ordinal))
    .map(([key, batch]) => {
      abandon(draft, key, batch);
      return key;
    });
  return Object.keys(draft.tree.nodes).filter(
    (child) => parentOf(child) === node && keys.some((key) => child.startsWith(`${key}.`)),
  );
};
