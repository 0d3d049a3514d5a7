import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Lamp, lamp } from '../../../test/kit/machine-kit/lamp.js';
import { stateMachine } from '../src/builder/builder.js';
import { startMachine } from '../src/builder/drive.js';
import {
  count,
  faultIn,
  finite,
  jsonObject,
  list,
  nullable,
  object,
  oneOf,
  optional,
  type Shape,
  text,
  variant,
} from '../src/kernel/shape.js';
import { door, notes, push } from './door.js';

type Pet = { readonly name: string; readonly legs: number; readonly owner?: string };
const pet: Shape<Pet> = object<Pet>({ name: text, legs: count, owner: optional(text) });
type Thing = { readonly kind: 'pets'; readonly all: readonly Pet[] } | { readonly kind: 'none' };
const thing: Shape<Thing> = variant<Thing, 'kind'>('kind', { pets: { all: list(pet) }, none: {} });

test('a shape that does not fit its type does not compile', () => {
  // @ts-expect-error a field is forgotten
  object<Pet>({ name: text, owner: optional(text) });
  // @ts-expect-error a field may be missing in the shape and not in the type
  object<Pet>({ name: optional(text), legs: count, owner: optional(text) });
  // @ts-expect-error a field is of another type
  object<Pet>({ name: count, legs: count, owner: optional(text) });
  // @ts-expect-error a member of the union is forgotten
  variant<Thing, 'kind'>('kind', { none: {} });
  // @ts-expect-error a word is forgotten: what has it would be refused
  oneOf<'a' | 'b'>({ a: 1 });
  // @ts-expect-error the shape lets through what the type does not have
  const narrow: Shape<'a'> = text;
  assert.ok(narrow);
});

test('a fault names the place, what is there, and what must be', () => {
  const rows: readonly [string | null, Shape<never>, unknown][] = [
    [null, pet as never, { name: 'Rex', legs: 4 }],
    ['legs is 4.5; it must be a whole number from 0', pet as never, { name: 'Rex', legs: 4.5 }],
    ['it is a list; it must be an object', pet as never, []],
    [
      'all[1].name is missing; it must be a text',
      thing as never,
      { kind: 'pets', all: [{ name: 'a', legs: 1 }, {}] },
    ],
    ['kind is "__proto__"; it must be one of pets, none', thing as never, { kind: '__proto__' }],
    [
      'all is an object; it must be a list',
      thing as never,
      { kind: 'pets', all: { length: 1, 0: {} } },
    ],
    ['it is a symbol; it must be a finite number', finite as never, Symbol('x')],
    [null, nullable(finite) as never, null],
    [
      `it is "${'x'.repeat(40)}"…; it must be a finite number`,
      finite as never,
      'x'.repeat(1_000_000),
    ],
  ];
  for (const [expected, shape, value] of rows) assert.equal(faultIn(shape, value, 'it'), expected);
});

test('unknown and undefined fields are refused', () => {
  const rex = { name: 'Rex', legs: 4 };
  assert.match(
    faultIn(pet, { ...rex, tail: 1 }, 'it') ?? '',
    /^tail is not known; it must be left out/,
  );
  assert.match(faultIn(pet, { ...rex, owner: undefined }, 'it') ?? '', /^owner is undefined/);
  assert.match(faultIn(thing, { kind: 'none', all: [] }, 'it') ?? '', /^all is not known/);
  assert.match(faultIn(pet, Object.create({ ...rex, tail: 1 }), 'it') ?? '', /^tail is not known/);
});

const nested = (levels: number): object => {
  let deep: object = {};
  for (let level = 1; level < levels; level++) deep = { deep };
  return deep;
};

test('JSON is looked through up to 200 levels; deeper values, circles and what doubles at each level are refused', () => {
  const json = jsonObject<object>();
  assert.equal(faultIn(json, nested(200), 'it'), null);
  for (const levels of [201, 6_000, 50_000])
    assert.match(faultIn(json, nested(levels), 'it') ?? '', /nested deeper than 200 levels/);
  const circle: { self?: object } = {};
  circle.self = circle;
  assert.match(faultIn(json, circle, 'it') ?? '', /it is a circle, or nested deeper/);
  let doubled: object = {};
  for (let level = 0; level < 64; level++) doubled = { one: doubled, other: doubled };
  assert.match(faultIn(json, doubled, 'it') ?? '', /too large/);
  assert.match(faultIn(json, { a: { b: [1n] } }, 'it') ?? '', /is a bigint/);
  assert.equal(faultIn(json, { a: undefined }, 'it'), null);
});

const NO_EVENTS: readonly unknown[] = [
  undefined,
  null,
  5,
  'Push',
  [],
  {},
  { type: 5 },
  {
    get type(): string {
      throw new Error('no');
    },
  },
];

test('a machine without a shape of its events, and one that was built, say that something is no event', () => {
  const machine = door().transition('Closed', 'Push', 'Open').build('Closed');
  const state: Lamp = { name: 'Off', lit: 0 };
  for (const event of NO_EVENTS) {
    const taken = lamp.step(state, event as never);
    assert.equal(taken.state, state);
    assert.deepEqual(
      taken.diagnostics.map(({ kind }) => kind),
      ['malformed'],
    );
    const built = machine.step('Closed', notes, event as never);
    assert.deepEqual([built.state, built.context, built.path], ['Closed', notes, []]);
    assert.deepEqual(
      built.diagnostics.map(({ kind }) => kind),
      ['malformed'],
    );
  }
});

test('a running machine goes on after what is no event', () => {
  const machine = door().transition('Closed', 'Push', 'Open').build('Closed');
  const running = startMachine(machine, notes, { now: () => 0 });
  for (const event of NO_EVENTS) assert.equal(running.send(event as never).path.length, 0);
  assert.equal(running.send(push()).state, 'Open');
});

test('names that every object has are no events and no states', () => {
  const odd = stateMachine<string, { readonly type: string }, null>()
    .transition('constructor', 'toString', '__proto__')
    .build('constructor');
  assert.equal(odd.step('constructor', null, { type: 'valueOf' }).state, 'constructor');
  assert.equal(odd.step('constructor', null, { type: 'toString' }).state, '__proto__');
  assert.equal(odd.step('__proto__', null, { type: 'toString' }).state, '__proto__');
});
