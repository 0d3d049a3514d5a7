import assert from 'node:assert/strict';
import { type Conversation, messagesOf } from '@pawl/agent/machine/conversation';
import { AppendList } from '@pawl/machine/kernel/append-list';
import type { TreeAction } from '../src/run/action.js';
import type { TreeEvent } from '../src/run/event.js';
import { projectEdges } from '../src/run/seed-projection.js';
import type { CodeSettings } from '../src/run/settings.js';
import type { CodeState, Outcome } from '../src/run/state.js';
import { stepTree } from '../src/tree/step-tree.js';
import { initialTree, outcomeOf, type Tree, type TreeStep } from '../src/tree/tree-state.js';
import * as g from './given.js';
import { Promises } from './promises.js';

/** Walks a tree by events. Each step is taken twice on deeply frozen input, and its promises are checked. */
export type Walker = {
  readonly tree: () => Tree;
  readonly last: () => TreeStep;
  readonly steps: () => readonly TreeStep[];
  readonly events: () => readonly TreeEvent[];
  readonly send: (...given: readonly g.Given[]) => TreeStep;
};

const freeze = (value: unknown): void => {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const inner of value instanceof AppendList ? value.toArray() : Object.values(value))
    freeze(inner);
};

const take = (before: Tree, event: TreeEvent): TreeStep => {
  freeze(before);
  freeze(event);
  const step = stepTree(before, event);
  assert.equal(
    JSON.stringify(stepTree(before, event)),
    JSON.stringify(step),
    `${event.type}: the second time differs`,
  );
  return step;
};

export const walk = (settings: CodeSettings): Walker => {
  const tree = initialTree(settings);
  const steps: TreeStep[] = [{ state: tree, actions: [], path: [], diagnostics: [] }];
  const events: TreeEvent[] = [];
  const promises = new Promises(settings.openCallsMax);
  const last = (): TreeStep => steps.at(-1) ?? assert.fail('a walk has at least its start');
  const send = (...given: readonly g.Given[]): TreeStep => {
    for (const one of given) {
      const before = last().state;
      const event = g.eventOf(one, before);
      const step = take(before, event);
      promises.check(before, event, step);
      events.push(event);
      steps.push(step);
    }
    return last();
  };
  return { tree: () => last().state, last, steps: () => steps, events: () => events, send };
};

/** A root that has begun; its environment stands unless told otherwise. */
export const begin = (
  patch: g.SettingsPatch = {},
  environment: 'ready' | 'starting' = 'ready',
): Walker => {
  const walker = walk(g.settingsOf(patch));
  walker.send(g.started);
  const root = g.rootOf(walker.tree());
  if (environment === 'ready' && root.run.environment === 'starting') walker.send(g.ready);
  return walker;
};

/** A root whose first cell runs. */
export const running = (patch: g.SettingsPatch = {}): Walker => {
  const walker = begin(patch);
  walker.send(g.writes('look()'));
  return walker;
};

// ---- What is looked at ----

export const outcome = (walker: Walker): Outcome =>
  outcomeOf(walker.tree()) ?? assert.fail(`the run is not over: ${g.rootOf(walker.tree()).name}`);

export const state = (walker: Walker, node = 'n0'): CodeState =>
  walker.tree().nodes[node] ?? assert.fail(`${node} is gone`);

/** All actions of a kind over the whole walk, or of its last step. */
export const actionsOf = <T extends TreeAction['type']>(
  steps: readonly TreeStep[],
  type: T,
): readonly Extract<TreeAction, { readonly type: T }>[] =>
  steps
    .flatMap(({ actions }) => actions)
    .filter((action): action is Extract<TreeAction, { readonly type: T }> => action.type === type);
export const allOf = <T extends TreeAction['type']>(walker: Walker, type: T) =>
  actionsOf(walker.steps(), type);
export const lastOf = <T extends TreeAction['type']>(walker: Walker, type: T) =>
  actionsOf([walker.last()], type);

/** The states of a run in the seed's words: `INIT PROMPTING DONE`, and the events between them. */
export const seedTrace = (walker: Walker, node = 'n0'): string => {
  const edges = walker.steps().flatMap(({ path }) => path.filter((edge) => edge.node === node));
  const { steps } = projectEdges('INIT', edges);
  return steps.map(({ from, event, to }) => `${from} -${event}-> ${to}`).join('; ');
};
/** The same of every run that ever was. */
export const seedTraces = (walker: Walker): readonly string[] => {
  const nodes = new Set(walker.steps().flatMap(({ path }) => path.map(({ node }) => node)));
  return [...nodes].map((node) => seedTrace(walker, node));
};

/** The conversation as lines of `role: text`. */
export const talk = (conversation: Conversation): readonly string[] =>
  messagesOf(conversation).map(
    ({ role, parts }) =>
      `${role}: ${parts.map((part) => ('text' in part ? part.text : '')).join('')}`,
  );
/** What the model was told last. */
export const lastTold = (walker: Walker, node = 'n0'): string =>
  talk(state(walker, node).run.conversation).findLast((line) => line.startsWith('user: ')) ?? '';
