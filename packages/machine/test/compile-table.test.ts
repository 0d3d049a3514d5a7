import assert from 'node:assert/strict';
import { test } from 'node:test';
import { machine } from '../src/kernel/machine.js';
import type { MoveResult } from '../src/kernel/table.js';

/** What runs when a state is left, entered and rested in, each alone: one of them is enough to be run. */

type Place = { readonly name: 'Left' } | { readonly name: 'Right' };
type Go = { readonly type: 'Go' };
type Said = { readonly type: 'Said'; readonly text: string };
type To<N extends Place['name']> = MoveResult<Extract<Place, { readonly name: N }>, Said>;

const said = (text: string): Said => ({ type: 'Said', text });
const right = (text: string) => (): To<'Right'> => ({
  state: { name: 'Right' },
  actions: [said(text)],
});
const make = machine<Place, Go, Said>()({
  initial: 'Left',
  transient: [],
  defaults: [],
  ends: [],
  states: { Left: 'here', Right: 'there' },
  events: { Go: 'go' },
});
const left = { on: { Go: { to: 'Right', then: right('moved') } } } as const;
const other = { on: { Go: { stay: right('stayed') } } } as const;
const plain = { Left: left, Right: other };
const build = (states: Parameters<typeof make>[0]['states']) => make({ states, defaults: {} });

const rows = [
  ['nothing', build(plain), ['moved']],
  [
    'an exit',
    build({ ...plain, Left: { ...left, exit: () => [said('left')] } }),
    ['left', 'moved'],
  ],
  [
    'an entry',
    build({ ...plain, Right: { ...other, entry: right('entered') } }),
    ['moved', 'entered'],
  ],
  ['a rest', build({ ...plain, Right: { ...other, rest: right('rested') } }), ['moved', 'rested']],
] as const;

for (const [title, { step }, texts] of rows) {
  test(`a table that has ${title} beside its arrows runs it when one goes, and not when one stays`, () => {
    const going = step({ name: 'Left' }, { type: 'Go' });
    assert.deepEqual(going.actions, texts.map(said));
    assert.deepEqual(step({ name: 'Right' }, { type: 'Go' }).actions, [said('stayed')]);
  });
}
