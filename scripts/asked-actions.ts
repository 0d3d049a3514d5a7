/**
 * What each arrow (edge) of the agent's table asks for: the actions of its move, of the exit and
 * entry of the states, and of `rest`, which runs when the last state of a step waits. They are seen
 * in the golden traces, which walk every arrow.
 */

import { readdirSync, readFileSync } from 'node:fs';
import type { Action } from '../packages/agent/src/machine/action.js';
import { type AgentTable, agentMachine } from '../packages/agent/src/machine/names.js';
import { table } from '../packages/agent/src/machine/table.js';
import type { Edge } from '../packages/machine/src/kernel/table.js';
import { play } from '../test/kit/agent/trace-player.js';

const TRACES = new URL('../test/traces/', import.meta.url);

type Kind = 'move' | 'exit' | 'entry' | 'rest';
type MoveCall = { readonly kind: Kind; readonly actions: readonly Action[] };

const KINDS: Readonly<Record<string, Kind>> = {
  then: 'move',
  stay: 'move',
  exit: 'exit',
  entry: 'entry',
  rest: 'rest',
};

/** What a move, an entry or a rest gives, or the actions of an exit. */
const actionsIn = (result: unknown): readonly Action[] =>
  (Array.isArray(result)
    ? result
    : (result as { readonly actions: readonly Action[] }).actions) as readonly Action[]; // by the types of the table

/** The same table, whose functions tell each call. */
const withListener = (value: unknown, onCall: (called: MoveCall) => void): unknown => {
  if (Array.isArray(value)) return value.map((one) => withListener(one, onCall));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const kind = KINDS[key];
      if (kind === undefined || typeof inner !== 'function')
        return [key, withListener(inner, onCall)];
      const called = (...given: readonly unknown[]): unknown => {
        const result: unknown = Reflect.apply(inner, undefined, given);
        onCall({ kind, actions: actionsIn(result) });
        return result;
      };
      return [key, called];
    }),
  );
};

/** Types of actions by the id of the arrow. */
const askedByArrows = (): ReadonlyMap<string, ReadonlySet<string>> => {
  const calls: MoveCall[] = [];
  // the copy has the shape of the table
  const machine = agentMachine(withListener(table, (called) => calls.push(called)) as AgentTable);
  const rows: Readonly<Record<string, { readonly exit?: unknown; readonly entry?: unknown }>> =
    table.states;
  const asked = new Map<string, Set<string>>();
  for (const file of readdirSync(TRACES).filter((name) => name.endsWith('.trace')))
    for (const { before, event } of play(readFileSync(new URL(file, TRACES), 'utf8')).steps) {
      calls.length = 0;
      const { path } = machine.step(before, event);
      const take = (kind: Kind): readonly Action[] => {
        const index = calls.findIndex((called) => called.kind === kind);
        return index < 0 ? [] : (calls.splice(index, 1)[0]?.actions ?? []);
      };
      const note = ({ id }: Edge, actions: readonly Action[]): void => {
        const known = asked.get(id) ?? new Set();
        for (const { type } of actions) known.add(type);
        asked.set(id, known);
      };
      for (const edge of path) {
        const leaves = edge.kind === 'go';
        if (leaves && rows[edge.from]?.exit !== undefined) note(edge, take('exit'));
        note(edge, take('move'));
        if (leaves && rows[edge.to]?.entry !== undefined) note(edge, take('entry'));
      }
      const last = path.at(-1);
      if (last !== undefined) note(last, take('rest'));
    }
  return asked;
};

/** Names of actions by the id of the arrow, for the table of the machine's page. */
export const askedActions = (): Readonly<Record<string, string>> =>
  Object.fromEntries([...askedByArrows()].map(([id, types]) => [id, [...types].join(', ')]));
