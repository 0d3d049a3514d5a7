import type { OutsideAction } from '../run/action.js';
import type { TreeEvent } from '../run/event.js';
import { amountAt } from '../run/settings.js';
import type { Run } from '../run/state.js';
import type { Amount } from '../run/stop-policies.js';
import { closeCall, openCall, permissionFor, usualCost, type WantedCall } from './ledger.js';
import { lineageOf } from './run-ids.js';
import { act, change, setLedger, type TreeDraft } from './step-draft.js';
import type { Tree, Waiting } from './tree-state.js';

/** The queue of model calls of the whole tree: which calls wait, which starts next, and their reserved cost. */

type Call = Extract<OutsideAction, { readonly type: 'CallModel' }>;

const kindOf = ({ model }: Run, purpose: Call['purpose']): string =>
  `${model} ${purpose === 'plain' ? 'plain' : 'run'}`;

/** The usual cost of the next call of a run; zero if the run has ended. */
const nextCost = ({ ledger, nodes }: Tree, node: string): Amount => {
  const run = nodes[node]?.run;
  if (run === undefined || run.settings.reserve.basis === 'stated') return { usd: 0, tokens: 0 };
  const { expected, basis } = run.settings.reserve;
  const wanted = { kind: kindOf(run, 'iteration'), expected: amountAt(expected, run.characters), basis };
  return usualCost(ledger, wanted);
};

/** The ledger's view of a call; null if its run has ended. */
const wantedOf = ({ tree }: TreeDraft, node: string, call: Call): WantedCall | null => {
  const run = tree.nodes[node]?.run;
  if (run === undefined) return null;
  const { reserve } = run.settings;
  return {
    node,
    kind: kindOf(run, call.purpose),
    expected: amountAt(reserve.expected, run.characters),
    worst: amountAt(reserve.worst, run.characters),
    basis: reserve.basis,
    ancestors: lineageOf(node)
      .slice(1)
      .map((id) => nextCost(tree, id)),
  };
};

const send = (draft: TreeDraft, { node, call }: Waiting, wanted: WantedCall): void => {
  setLedger(draft, openCall(draft.tree.ledger, call.requestId, wanted));
  change(draft, { calls: { ...draft.tree.calls, [call.requestId]: node } });
  act(draft, node, call);
};

/**
 * Queues a model call and starts it if possible. After Resumed, an open call is sent again and a waiting call keeps
 * waiting.
 */
export const wantCall = (draft: TreeDraft, node: string, call: Call): void => {
  const { calls, waiting } = draft.tree;
  const wanted = wantedOf(draft, node, call);
  if (wanted !== null && calls[call.requestId] !== undefined) send(draft, { node, call }, wanted);
  else if (!waiting.some((other) => other.call.requestId === call.requestId)) {
    change(draft, { waiting: [...waiting, { node, call }] });
  }
};

const leave = (draft: TreeDraft, requestId: string): void => {
  const { [requestId]: gone, ...calls } = draft.tree.calls;
  if (gone !== undefined) change(draft, { calls });
};

/** Aborts a call, or removes it from the queue. The usage of an aborted call still counts. */
export const abortCall = (draft: TreeDraft, node: string, requestId: string): void => {
  const { calls, waiting } = draft.tree;
  if (calls[requestId] !== undefined) {
    leave(draft, requestId);
    act(draft, node, { type: 'AbortModel', requestId });
  } else change(draft, { waiting: waiting.filter((other) => other.call.requestId !== requestId) });
};

/** Counts the usage of a finished call. `place: 'kept'` in a tree that was shut down, since the call will be repeated. */
export const bookCall = (draft: TreeDraft, event: TreeEvent, place: 'freed' | 'kept'): void => {
  if (event.type !== 'ModelReplied' && event.type !== 'ModelFailed') return;
  setLedger(draft, closeCall(draft.tree.ledger, event.requestId, event.usage));
  if (place === 'freed') leave(draft, event.requestId);
};

/**
 * Starts waiting calls in order while places are free. If the reserve of a call does not fit beside the open calls, it
 * keeps waiting, and so do all later calls on the same account. A call that can never be paid is refused.
 */
export const fillPlaces = (draft: TreeDraft, openCallsMax: number): void => {
  const held = new Set<string>();
  const stay: Waiting[] = [];
  const before = draft.tree.waiting;
  let looked = 0;
  for (const waiting of before) {
    if (Object.keys(draft.tree.calls).length >= openCallsMax) break;
    looked += 1;
    const { node, call } = waiting;
    const wanted = wantedOf(draft, node, call);
    if (wanted === null) continue;
    if (lineageOf(node).some((id) => held.has(id))) {
      stay.push(waiting);
      continue;
    }
    const permission = permissionFor(draft.tree.ledger, wanted);
    switch (permission.kind) {
      case 'start':
        send(draft, waiting, wanted);
        break;
      case 'wait':
        stay.push(waiting);
        for (const id of permission.accounts) held.add(id);
        break;
      case 'refuse': {
        const { requestId } = call;
        draft.owed.push({ type: 'CallRefused', at: draft.at, node, requestId, short: permission.short });
        break;
      }
      default:
        permission satisfies never;
    }
  }
  if (looked > 0) change(draft, { waiting: [...stay, ...before.slice(looked)] });
};
