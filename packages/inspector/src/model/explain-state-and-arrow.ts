/**
 * Explains a state or an arrow of a chart, in the words of the table and of docs/design/rules.md. A
 * projection shows the session in the states of another published machine: its own words are used.
 */

import { agent } from '@pawl/agent/machine/machine';
import type { Projection } from '@pawl/verify/projections/projection';
import type { Hop } from './chart.js';

export type Explanation = {
  readonly title: string;
  readonly about: string;
  /** Conditions, in the order in which they are tried: `LlmFailed [mayRetry] / scheduleRetry`. */
  readonly branches: readonly string[];
  readonly rules: readonly { readonly anchor: string; readonly text: string }[];
};

/** A rule of docs/design/rules.md. The build puts them into the page. */
export type MachineRule = {
  readonly anchor: string;
  readonly text: string;
  readonly states: readonly string[] | 'every';
  readonly events: readonly string[] | 'every';
};

export const explainState = (
  name: string,
  projection: Projection | null,
  rules: readonly MachineRule[],
): Explanation => {
  if (projection !== null) {
    const ours = projection.ours.states[name];
    const about = [projection.states[name], ours === undefined ? '' : `Ours: ${ours}`];
    return { title: name, about: about.filter((text) => text).join('. '), branches: [], rules: [] };
  }
  const kind = agent.transient.some((state) => state === name)
    ? 'Passed at once'
    : 'Waits for an event';
  const states: Readonly<Record<string, string>> = agent.states;
  return {
    title: name,
    about: `${states[name] ?? ''}. ${kind}.`,
    branches: [],
    rules: rulesAbout(name, null, rules),
  };
};

/**
 * The branches of the table that are this arrow. An arrow between two resting states may pass
 * others on its way: then no branch is it, and only its end is described.
 */
export const explainArrow = (
  { from, to }: Hop,
  projection: Projection | null,
  rules: readonly MachineRule[],
): Explanation => {
  const title = `${from} → ${to}`;
  if (projection !== null) {
    const branches = projection.edges
      .filter((edge) => edge.from === from && edge.to === to)
      .map(({ event, when, action }) => branchText({ event, when, then: action ?? '' }));
    return { title, about: '', branches, rules: [] };
  }
  const edges = agent.edges.filter(
    (edge) => edge.from === from && edge.to === to && edge.kind === 'go',
  );
  const events = edges.flatMap(({ event }) => (event === null ? [] : [event]));
  const states: Readonly<Record<string, string>> = agent.states;
  return {
    title,
    about: `${states[to] ?? ''}.`,
    branches: edges.map(branchText),
    rules: rulesAbout(to, events.length === 0 ? null : events, rules),
  };
};

const RULES_MAX = 6;

/** The rules about a state. Those that name few states say more about it, so they come first. */
const rulesAbout = (
  state: string,
  events: readonly string[] | null,
  rules: readonly MachineRule[],
): Explanation['rules'] =>
  rules
    .filter(
      (rule) =>
        rule.states !== 'every' &&
        rule.states.some((name) => name === state) &&
        (events === null ||
          rule.events === 'every' ||
          rule.events.some((name) => events.includes(name))),
    )
    .sort((left, right) => left.states.length - right.states.length)
    .slice(0, RULES_MAX)
    .map(({ anchor, text }) => ({ anchor, text }));

const branchText = ({
  event,
  when,
  then,
}: {
  event: string | null;
  when: string;
  then: string;
}): string =>
  [event ?? '', when === '' ? '' : `[${when}]`, then === '' ? '' : `/ ${then}`]
    .filter((word) => word !== '')
    .join(' ');
