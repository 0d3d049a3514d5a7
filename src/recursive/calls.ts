import type { OutsideAction } from './action.js';
import { act, change, type Draft, setLedger } from './draft.js';
import type { TreeEvent } from './event.js';
import { closeCall, dropCall, expectedCost, openCall } from './ledger.js';

/** Model calls of the whole tree: what is set aside, who waits, who is next. */

type Call = Extract<OutsideAction, { readonly type: 'CallModel' }>;

const setAside = (draft: Draft, node: string, requestId: string): void => {
  const run = draft.tree.nodes[node]?.run;
  if (run === undefined) return;
  const held = expectedCost(run.settings.reserve, run.characters);
  setLedger(draft, openCall(draft.tree.ledger, node, requestId, held));
};

/**
 * A run wants to call. It waits for its turn, which may come at once. After Resumed it wants the same again: what was
 * open is sent again, what was waiting still waits.
 */
export const wantCall = (draft: Draft, node: string, call: Call): void => {
  const { calls, waiting } = draft.tree;
  setAside(draft, node, call.requestId);
  if (calls[call.requestId] !== undefined) act(draft, node, call);
  else if (!waiting.some((other) => other.call.requestId === call.requestId)) {
    change(draft, { waiting: [...waiting, { node, call }] });
  }
};

const leave = (draft: Draft, requestId: string): void => {
  const { [requestId]: gone, ...calls } = draft.tree.calls;
  if (gone !== undefined) change(draft, { calls });
};

/** A call is no longer wanted: it never starts, or it is aborted, and its last word is still booked. */
export const abortCall = (draft: Draft, node: string, requestId: string): void => {
  const { calls, waiting, ledger } = draft.tree;
  if (calls[requestId] !== undefined) {
    leave(draft, requestId);
    act(draft, node, { type: 'AbortModel', requestId });
    return;
  }
  change(draft, { waiting: waiting.filter((other) => other.call.requestId !== requestId) });
  setLedger(draft, dropCall(ledger, requestId));
};

/** The last word of a call is booked; `place: 'kept'` while the tree stands down, since the call will be made again. */
export const bookCall = (draft: Draft, event: TreeEvent, place: 'freed' | 'kept'): void => {
  if (event.type !== 'ModelReplied' && event.type !== 'ModelFailed') return;
  setLedger(draft, closeCall(draft.tree.ledger, event.requestId, event.usage));
  if (place === 'freed') leave(draft, event.requestId);
};

/** Places that are free go to those who wait, first come first served. */
export const fillPlaces = (draft: Draft, openCallsMax: number): void => {
  const { waiting, calls } = draft.tree;
  const free = Math.max(0, openCallsMax - Object.keys(calls).length);
  const next = waiting.slice(0, free);
  if (next.length === 0) return;
  const begun = next.map(({ node, call }) => [call.requestId, node] as const);
  change(draft, {
    waiting: waiting.slice(next.length),
    calls: { ...calls, ...Object.fromEntries(begun) },
  });
  for (const { node, call } of next) act(draft, node, call);
};
