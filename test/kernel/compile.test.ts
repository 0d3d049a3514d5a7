import assert from 'node:assert/strict';
import { test } from 'node:test';
import { machine } from '../../src/kernel/machine.js';
import type { Next } from '../../src/kernel/table.js';

/** What runs when a state is left, entered and rested in, each alone: one of them is enough to be run. */

type Place = { readonly name: 'Left' } | { readonly name: 'Right' };
type Go = { readonly type: 'Go' };
type Said = { readonly type: 'Said'; readonly text: string };
type To<N extends Place['name']> = Next<Extract<Place, { readonly name: N }>, Said>;

const said = (text: string): Said => ({ type: 'Said', text });
const right = (text: string) => (): To<'Right'> => ({ state: { name: 'Right' }, actions: [said(text)] });
const make = machine<Place, Go, Said>()({
  initial: 'Left',
  transient: [],
  defaults: [],
  ends: [],
  states: { Left: 'here', Right: 'there' },
  events: { Go: 'go' },
});
const table = {
  on: {
    Left: { Go: { to: 'Right', then: right('moved') } },
    Right: { Go: { stay: right('stayed') } },
  },
  any: {},
  transient: {},
} as const;

const rows = [
  ['nothing', make(table), ['moved']],
  ['an exit', make({ ...table, exit: { Left: () => [said('left')] } }), ['left', 'moved']],
  ['an entry', make({ ...table, entry: { Right: right('entered') } }), ['moved', 'entered']],
  ['a rest', make({ ...table, rest: { Right: right('rested') } }), ['moved', 'rested']],
] as const;

for (const [title, { step }, texts] of rows) {
  test(`a table that has ${title} beside its arrows runs it when one goes, and not when one stays`, () => {
    const going = step({ name: 'Left' }, { type: 'Go' });
    assert.deepEqual(going.actions, texts.map(said));
    assert.deepEqual(step({ name: 'Right' }, { type: 'Go' }).actions, [said('stayed')]);
  });
}
