/**
 * The agent's machine with its environment, as a finite model for the explorer: a first node, the
 * labels (possible events) of each node, the node after a label, and the faults of each step. A
 * projection tells the same steps as steps of another agent (a seed); its cursor is the state in
 * which the machine of that agent then is.
 */

import type { Action } from '@pawl/agent/machine/action';
import type { Event } from '@pawl/agent/machine/event';
import { initialState } from '@pawl/agent/machine/machine';
import { defaultSettings, type Settings } from '@pawl/agent/machine/settings';
import { isBusy, type State } from '@pawl/agent/machine/state';
import { presetRules } from '@pawl/agent/policy/presets';
import type { FiniteModel } from '@pawl/machine/explorer/explore';
import { AppendList } from '@pawl/machine/kernel/append-list';
import type { Edge, Step } from '@pawl/machine/kernel/table';
import { brokenRule, requiredRequestFaults, stateFaults, stepFaults } from '../invariants.js';
import { isRefused, type Projection, type ProjectionEdge } from '../projections/projection.js';
import { checkRefinements, initialCursors } from '../projections/refinement-check.js';
import { chargeFor, noCharges } from './charges.js';
import { type Configuration, createReply } from './configuration.js';
import type { ExplorationContext, ExplorationEvent, ExplorationNode } from './exploration-node.js';
import { adversarialEvents, pendingResponses, userEvents } from './possible-events.js';
import { stateKeyFor } from './state-key.js';

/** The machine under test: the agent's, or one with a planted fault. */
export type AgentMachine = {
  readonly step: (state: State, event: Event) => Step<State, Action>;
  readonly ignored: readonly { readonly state: string; readonly event: string }[];
};

/** The edges that an exploration has taken so far. */
type CoveredArrows = {
  readonly edges: Set<Edge>;
  /** Edges of all projections. */
  readonly arrows: Set<ProjectionEdge>;
};

export const createSettings = ({ preset, patch, bounds }: Configuration): Settings => {
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

const createContext = (configuration: Configuration, machine: AgentMachine): ExplorationContext => {
  const settings = createSettings(configuration);
  return {
    configuration,
    bounds: configuration.bounds,
    settings,
    replies: configuration.replies.map((kind) => createReply(kind, settings.limits)),
    ignored: new Set(machine.ignored.map(({ state, event }) => `${state}/${event}`)),
  };
};

export const createModel = (
  configuration: Configuration,
  machine: AgentMachine,
  projections: readonly Projection[],
): {
  readonly model: FiniteModel<ExplorationNode, ExplorationEvent>;
  readonly seen: CoveredArrows;
} => {
  const context = createContext(configuration, machine);
  const seen: CoveredArrows = { edges: new Set(), arrows: new Set() };
  let latest: Step<State, Action> | null = null;
  const model: FiniteModel<ExplorationNode, ExplorationEvent> = {
    initial: {
      state: initialState(context.settings),
      cursors: initialCursors(projections),
      costlyLeft: configuration.bounds.budgetStops,
      charges: noCharges,
      now: 0,
    },
    labels: (node) => [
      ...pendingResponses(node, context),
      ...userEvents(node, context),
      ...adversarialEvents(node, context),
    ],
    next: (node, label) => {
      latest = machine.step(node.state, label.event);
      return take(node, label, latest, projections, seen, configuration.charges);
    },
    key: stateKeyFor(configuration),
    // `from`: the node before the latest step, which is made once more.
    findFaults: (_node, from, { event }) =>
      deepEqual(latest, machine.step(from.state, event))
        ? []
        : [brokenRule('deterministic', 'the same step twice gives two answers')],
    // From every node some path of such labels must lead to each goal.
    goals: [
      {
        name: 'the prompt, by what the world owes and the user may do',
        holds: ({ state }) => state.name === 'WaitingForUserInput',
        via: ({ by }) => by !== 'fate',
      },
      {
        name: 'the end of the turn, or a question to the user, by what the world owes alone',
        holds: ({ state }) => !isBusy(state) || asksUser(state),
        via: ({ by }) => by === 'world',
      },
    ],
  };
  return { model, seen };
};

const asksUser = (state: State): boolean =>
  state.name === 'ExecutingTools' &&
  state.calls.some(({ status }) => status === 'awaitingApproval');

/** Takes a step, and checks the rules of the machine, of the projections and of charges. */
const take = (
  node: ExplorationNode,
  label: ExplorationEvent,
  taken: Step<State, Action>,
  projections: readonly Projection[],
  seen: CoveredArrows,
  hasCharges: boolean,
): { readonly node: ExplorationNode; readonly faults: readonly string[] } => {
  const { event, costly } = label;
  const before = node.state;
  for (const edge of taken.path) seen.edges.add(edge);
  const faults = [
    ...stateFaults(before, event, taken),
    ...stepFaults(before, event, taken),
    ...requiredRequestFaults(before, event, taken),
  ];
  const cursors = isRefused(before, taken)
    ? node.cursors
    : follow(node, event, taken, projections, faults, seen);
  const charged = hasCharges ? chargeFor(node, label, taken) : null;
  faults.push(...(charged?.faults ?? []));
  const charges = charged?.charges ?? node.charges;
  // The identical node tells the explorer that nothing has changed.
  const isUnmoved =
    taken.state === before &&
    charges === node.charges &&
    cursors.every((cursor, index) => cursor === node.cursors[index]);
  if (isUnmoved && !costly && event.at === node.now) return { node, faults };
  const costlyLeft = node.costlyLeft - (costly ? 1 : 0);
  return { node: { state: taken.state, cursors, costlyLeft, charges, now: event.at }, faults };
};

/** Checks the step against every projection and adds the faults. */
const follow = (
  { state, cursors }: ExplorationNode,
  event: Event,
  taken: Step<State, Action>,
  projections: readonly Projection[],
  faults: string[],
  seen: CoveredArrows,
): ExplorationNode['cursors'] => {
  const followed = checkRefinements(projections, cursors, state, event, taken);
  faults.push(...followed.faults);
  for (const arrow of followed.reached) seen.arrows.add(arrow);
  return followed.cursors;
};

/** Whether two values of plain data are equal. Shared parts are not compared. */
export const deepEqual = (one: unknown, other: unknown): boolean => {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return false;
  if (one instanceof AppendList) return other instanceof AppendList && isSameLog(one, other);
  // Both are objects, so their fields have names.
  const [fields, others] = [one as Record<string, unknown>, other as Record<string, unknown>];
  let count = 0;
  for (const name in fields) {
    if (!deepEqual(fields[name], others[name])) return false;
    count += 1;
  }
  for (const _ in others) count -= 1;
  return count === 0;
};

/**
 * Compares only the last two messages, since both lists come from the same list: a step adds at
 * most two messages, or makes a new list of at most two.
 */
const isSameLog = (one: AppendList<unknown>, other: AppendList<unknown>): boolean =>
  one.length === other.length &&
  deepEqual(one.at(one.length - 1), other.at(one.length - 1)) &&
  deepEqual(one.at(one.length - 2), other.at(one.length - 2));
