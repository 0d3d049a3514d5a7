import type { Model } from '../../kernel/explore.js';
import type { Edge, Step } from '../../kernel/step.js';
import type { Action } from '../action.js';
import type { Event } from '../event.js';
import { violations } from '../invariants.js';
import { initialState } from '../machine.js';
import { defaultSettings, presetRules, type Settings } from '../settings.js';
import type { State } from '../state.js';
import { ruleFaults } from '../step-rules.js';
import { beginAll, followAll } from '../views/follow.js';
import type { View, ViewEdge } from '../views/view.js';
import { chosen } from './chosen.js';
import type { Configuration } from './configuration.js';
import { fateful } from './fateful.js';
import { keysOf } from './key.js';
import type { Label, Node, Scenery } from './node.js';
import { owed } from './owed.js';
import { replyOf } from './replies.js';
import { isSame } from './same.js';

/** The agent machine, and a world around it, as a model that can be explored. */

/** The machine under test: the agent's own, or one with a fault. */
export type Machine = {
  readonly step: (state: State, event: Event) => Step<State, Action>;
  readonly ignored: readonly { readonly state: string; readonly event: string }[];
};

/** What an exploration came by: filled while it goes. */
export type Seen = {
  readonly edges: Set<Edge>;
  /** Of all views. */
  readonly arrows: Set<ViewEdge>;
};

export const settingsOf = ({ preset, patch, bounds }: Configuration): Settings => {
  const { limits, ...others } = patch;
  return {
    ...defaultSettings,
    model: 'test/model',
    workspace: '/project',
    rules: presetRules[preset],
    maxRetries: bounds.retries,
    ...others,
    limits: { ...defaultSettings.limits, ...limits },
  };
};

const sceneryOf = (configuration: Configuration, machine: Machine): Scenery => {
  const settings = settingsOf(configuration);
  return {
    configuration,
    bounds: configuration.bounds,
    settings,
    replies: configuration.replies.map((kind) => replyOf(kind, settings.limits)),
    ignored: new Set(machine.ignored.map(({ state, event }) => `${state}/${event}`)),
  };
};

const busy = new Set<State['name']>(['CallingLlm', 'Error', 'PostToolsHook', 'Compacting', 'ExecutingTools']);

export const modelOf = (
  configuration: Configuration,
  machine: Machine,
  views: readonly View[],
): { readonly model: Model<Node, Label>; readonly seen: Seen } => {
  const scenery = sceneryOf(configuration, machine);
  const seen: Seen = { edges: new Set(), arrows: new Set() };
  const model: Model<Node, Label> = {
    initial: {
      state: initialState(scenery.settings),
      cursors: beginAll(views),
      costlyLeft: configuration.bounds.budgetStops,
      now: 0,
    },
    labels: (node) => [...owed(node, scenery), ...chosen(node, scenery), ...fateful(node, scenery)],
    next: (node, label) => take(node, label, machine, views, seen),
    keyOf: keysOf(configuration),
    faultsOf: (node, from, { event }) => {
      const again = machine.step(from.state, event);
      return isSame(node.state, again.state) ? [] : ['8: the same step twice gives two answers'];
    },
    goals: [
      {
        name: 'the prompt, by what the world owes and the user may do',
        holds: ({ state }) => state.name === 'WaitingForUserInput',
        via: ({ by }) => by !== 'fate',
      },
      {
        name: 'the end of the turn, or a question to the user, by what the world owes alone',
        holds: ({ state }) => !busy.has(state.name) || asks(state),
        via: ({ by }) => by === 'world',
      },
    ],
  };
  return { model, seen };
};

const asks = (state: State): boolean =>
  state.name === 'ExecutingTools' && state.calls.some(({ status }) => status === 'awaitingApproval');

const take = (
  node: Node,
  { event, costly }: Label,
  machine: Machine,
  views: readonly View[],
  seen: Seen,
): { readonly node: Node; readonly faults: readonly string[] } => {
  const before = node.state;
  const taken = machine.step(before, event);
  for (const edge of taken.path) seen.edges.add(edge);
  const faults = [...violations(before, event, taken), ...ruleFaults(before, event, taken)];
  // An event that was refused is no step of any seed's machine.
  const isRefused = taken.state === before && taken.actions.length === 0 && taken.diagnostics.length > 0;
  const cursors = isRefused ? node.cursors : follow(node, event, taken, views, faults, seen);
  const isUnmoved =
    taken.state === before && cursors.every((cursor, index) => cursor === node.cursors[index]);
  if (isUnmoved && !costly && event.at === node.now) return { node, faults };
  const costlyLeft = node.costlyLeft - (costly ? 1 : 0);
  return { node: { state: taken.state, cursors, costlyLeft, now: event.at }, faults };
};

/** The step in the words of every view; what is wrong with that joins the faults. */
const follow = (
  { state, cursors }: Node,
  event: Event,
  taken: Step<State, Action>,
  views: readonly View[],
  faults: string[],
  seen: Seen,
): Node['cursors'] => {
  const followed = followAll(views, cursors, state, event, taken);
  faults.push(...followed.faults);
  for (const arrow of followed.reached) seen.arrows.add(arrow);
  return followed.cursors;
};
