/**
 * Reduces the machine to the states in which it waits, and the ways between them through transient
 * states.
 */

import type { ArrowKind } from '../../packages/inspector/src/model/chart.js';
import type { Edge, MachineDescription } from '../../packages/machine/src/kernel/table.js';

export type RestingArrow = {
  readonly from: string;
  readonly to: string;
  /** `onward`: work goes on; `stopped`: a turn ends early; `closed`: the session ends. */
  readonly kind: ArrowKind;
  /** Events that begin it; where none is needed, guards in brackets. */
  readonly causes: readonly string[];
  /** Each way there, as the names of the states that are passed. */
  readonly ways: readonly (readonly string[])[];
};

type Way = { readonly to: string; readonly passed: readonly string[] };

/** Transient states of the agent that end a turn early. */
export const EARLY_ENDS: readonly string[] = ['Cancelled', 'BudgetExceeded', 'Failed'];

export const restingStates = ({ states, transient }: MachineDescription): readonly string[] =>
  Object.keys(states).filter((name) => !transient.includes(name));

const causeOf = ({ event, when }: Edge): string => event ?? (when === '' ? '' : `[${when}]`);

/**
 * Every resting state that is reached from `state`, which is one itself or is passed. A path visits
 * a state once.
 */
const waysFrom = (
  machine: MachineDescription,
  state: string,
  passed: readonly string[],
): readonly Way[] => {
  if (!machine.transient.includes(state)) return [{ to: state, passed }];
  if (passed.includes(state)) return [];
  return machine.edges
    .filter(({ from, kind }) => from === state && kind === 'go')
    .flatMap(({ to }) => waysFrom(machine, to, [...passed, state]));
};

const kindOf = (machine: MachineDescription, { to, passed }: Way): ArrowKind => {
  if (machine.ends.includes(to)) return 'closed';
  return passed.some((name) => EARLY_ENDS.includes(name)) ? 'stopped' : 'onward';
};

const unique = (words: readonly string[]): readonly string[] => [...new Set(words)];

/**
 * Every arrow from one resting state to another, in the order of the table; arrows back to the same
 * state are left out.
 */
export const restingArrows = (machine: MachineDescription): readonly RestingArrow[] => {
  const found = new Map<string, RestingArrow>();
  for (const from of restingStates(machine)) {
    for (const edge of machine.edges.filter((one) => one.from === from && one.kind === 'go')) {
      for (const way of waysFrom(machine, edge.to, [])) {
        if (way.to === from) continue;
        const kind = kindOf(machine, way);
        const key = `${from} ${way.to} ${kind}`;
        const known = found.get(key);
        const ways = [...(known?.ways ?? []), way.passed];
        found.set(key, {
          from,
          to: way.to,
          kind,
          causes: unique([...(known?.causes ?? []), causeOf(edge)]).filter((cause) => cause !== ''),
          ways: [...new Map(ways.map((passed) => [passed.join(' '), passed])).values()],
        });
      }
    }
  }
  return [...found.values()];
};
