import { messagesOf } from '@pawl/agent/machine/conversation';
import { faultsOf } from '../../../test/kit/agent/walker.js';
import type { CodeState } from '../src/run/state.js';
import { getParent } from '../src/tree/ledger.js';
import type { Tree } from '../src/tree/tree-state.js';

/** What is wrong with a tree, whatever led to it; empty for nothing. */

/** Tokens that a run and those below it have set aside, counted anew from what is open. */
const heldBy = (tree: Tree, id: string): number => {
  const below = (node: string): boolean => node === id || node.startsWith(`${id}.`);
  return Object.values(tree.ledger.open)
    .filter(({ node }) => below(node))
    .reduce((sum, { held }) => sum + held.tokens, 0);
};

const callFaults = (tree: Tree, node: string, state: CodeState): readonly string[] => {
  const work = state.name === 'DONE' ? null : state.work;
  // With other limits a tree stands ready to decide as soon as it is resumed.
  if (work?.kind === 'deciding')
    return tree.name === 'ShutDown' ? [] : [`${node} rests while it decides`];
  if (work?.kind !== 'calling') return [];
  const open = tree.calls[work.requestId] === node;
  const waits = tree.waiting.some(({ call }) => call.requestId === work.requestId);
  const messages = messagesOf(state.run.conversation);
  return [
    ...(open === waits
      ? [`${node}: ${work.requestId} is ${open ? 'open and waits' : 'neither open nor waits'}`]
      : []),
    ...faultsOf(messages).map((fault) => `${node}: ${fault}`),
    ...(messages.at(-1)?.role === 'user' ? [] : [`${node}: nothing is asked`]),
  ];
};

const batchFaults = (tree: Tree): readonly string[] =>
  Object.entries(tree.batches).flatMap(([key, { texts, missing, working, next, node, cellId }]) => {
    const work = tree.nodes[node]?.name === 'EXECUTING' ? tree.nodes[node].work : null;
    const children = Object.keys(tree.nodes).filter(
      (child) => child.startsWith(`${key}.`) && getParent(child) === node,
    );
    return [
      ...(texts.filter((text) => text === null).length === missing
        ? []
        : [`${key}: ${missing} are not missing`]),
      ...(children.length === working
        ? []
        : [`${key}: ${children.length} children, not ${working}`]),
      ...(missing > 0 && (working > 0 || texts.indexOf(null, next) >= 0)
        ? []
        : [`${key} never ends`]),
      ...(work?.kind === 'running' && work.cellId === cellId
        ? []
        : [`${key}: its cell does not run`]),
    ];
  });

const callsAreOpen = (tree: Tree): readonly string[] =>
  Object.entries(tree.calls)
    .filter(([requestId, node]) => {
      const state = tree.nodes[node];
      const work = state === undefined || state.name === 'DONE' ? null : state.work;
      return work?.kind !== 'calling' || work.requestId !== requestId;
    })
    .map(([requestId]) => `nobody waits for ${requestId}`);

export const treeFaults = (tree: Tree, openCallsMax: number): readonly string[] => {
  const nodes = Object.keys(tree.nodes);
  const accounts = Object.keys(tree.ledger.accounts);
  const isClean =
    nodes.length === 1 &&
    Object.keys({ ...tree.batches, ...tree.calls }).length + tree.waiting.length === 0;
  return [
    ...(Object.keys(tree.calls).length > openCallsMax ? ['too many calls are open'] : []),
    ...(JSON.stringify(nodes.toSorted()) === JSON.stringify(accounts.toSorted())
      ? []
      : ['accounts are not runs']),
    ...nodes
      .filter((node) => getParent(node) !== null && tree.nodes[getParent(node) ?? ''] === undefined)
      .map((node) => `${node} has lost its parent`),
    ...nodes
      .filter(
        (node) => tree.nodes[node]?.name === 'DONE' && (node !== 'n0' || tree.name !== 'Ended'),
      )
      .map((node) => `${node} is done, and still there`),
    ...Object.entries(tree.ledger.accounts)
      .filter(([id, { held }]) => held.tokens !== heldBy(tree, id))
      .map(([id, { held }]) => `${id} has set aside ${held.tokens}, not ${heldBy(tree, id)}`),
    ...Object.entries(tree.nodes).flatMap(([node, state]) => callFaults(tree, node, state)),
    ...batchFaults(tree),
    ...callsAreOpen(tree),
    ...(tree.name === 'Ended' && !isClean ? ['something is left at the end'] : []),
  ];
};
