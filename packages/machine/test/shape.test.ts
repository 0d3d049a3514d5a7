import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Lamp, lamp } from '../../../test/kit/machine-kit/lamp.js';
import { stateMachine } from '../src/builder/builder.js';
import { startMachine } from '../src/builder/drive.js';
import {
  amount,
  bool,
  count,
  countFromOne,
  countTo,
  either,
  faultIn,
  finite,
  isRecord,
  jsonObject,
  list,
  nullable,
  type ObjectShape,
  object,
  oneOf,
  optional,
  partly,
  type Shape,
  share,
  text,
  trimmed,
  variant,
} from '../src/kernel/shape.js';
import { door, notes, push } from './door.js';

type Pet = { readonly name: string; readonly legs: number; readonly owner?: string };
const pet: ObjectShape<Pet> = object<Pet>({ name: text, legs: count, owner: optional(text) });
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
  type Row = [string | null, Shape<never>, unknown];
  const shelfOf = (name: string) =>
    object<object>({ shelf: object<object>({ [name]: list(text) } as never) } as never) as never;
  const rows: readonly Row[] = [
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
    ...[finite, amount, count, countTo(3), countFromOne, share].map(
      (shape): Row => [
        `it is a symbol; it must be ${shape.check('x')?.must}`,
        shape as never,
        Symbol('x'),
      ],
    ),
    ...['a b', '1a', 'a-', '-a', ''].map(
      (name): Row => [
        `shelf["${name}"][0] is 1; it must be a text`,
        shelfOf(name),
        { shelf: { [name]: [1] } },
      ],
    ),
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

test('numbers are checked to the last one that is allowed', () => {
  const largest = Number.MAX_SAFE_INTEGER;
  const rows: readonly [Shape<number>, string, readonly unknown[], readonly unknown[]][] = [
    [
      amount,
      'a finite number from 0',
      [0, 0.5, largest],
      [-0.1, largest + 1, Number.NaN, Number.POSITIVE_INFINITY, '1', null, 1n],
    ],
    [count, 'a whole number from 0', [0, 1, largest], [-1, 0.5, largest + 1, '1', 1n]],
    [countTo(3), 'a whole number from 0 to 3', [0, 3], [-1, 4, 2.5, '1', 1n]],
    [countFromOne, 'a whole number from 1', [1, largest], [0, 1.5, largest + 1, '1', 1n]],
    [share, 'a number from 0 to 1', [0, 0.5, 1], [-0.1, 1.1, Number.NaN, '1', 1n]],
    [finite, 'a finite number', [-1.5, 0], [Number.NaN, Number.NEGATIVE_INFINITY, '1']],
  ];
  for (const [shape, must, good, bad] of rows) {
    for (const value of good) assert.equal(shape.check(value), null, `${must}: ${value}`);
    for (const value of bad) assert.equal(shape.check(value)?.must, must, String(value));
  }
  assert.equal(bool.check(false), null);
  assert.equal(bool.check(0)?.must, 'true or false');
});

test('a text is quoted whole up to 40 characters', () => {
  const quoted = (length: number): string | undefined => finite.check('x'.repeat(length))?.is;
  assert.equal(quoted(40), `"${'x'.repeat(40)}"`);
  assert.equal(quoted(41), `"${'x'.repeat(40)}"…`);
});

test('a fault of one shape or another names both', () => {
  const shape = either(count, text);
  for (const value of [1, 'a']) assert.equal(shape.check(value), null);
  assert.equal(
    faultIn(shape, null, 'it'),
    'it is null; it must be a whole number from 0, or a text',
  );
});

test('trimming leaves only the fields that shapes name, at every depth, and no value that does not fit', () => {
  const rex = { name: 'Rex', legs: 4 };
  const odd = { ...rex, tail: { long: true } };
  assert.deepEqual(trimmed(pet, odd), rex);
  assert.deepEqual(trimmed(nullable(pet), odd), rex);
  assert.equal(trimmed(nullable(pet), null), null);
  assert.deepEqual(trimmed(list(pet), [odd, 5]), [rex, 5]);
  assert.equal(trimmed(list(pet), 'no list'), 'no list');
  assert.deepEqual(trimmed(thing, { kind: 'pets', all: [odd], more: 1 }), {
    kind: 'pets',
    all: [rex],
  });
  for (const value of [null, 5, [odd], { kind: 'cars', all: [odd] }]) {
    assert.equal(trimmed(thing, value), value);
    if (!isRecord(value)) assert.equal(trimmed(pet, value), value);
  }
  assert.equal(trimmed(text, 'as it is'), 'as it is');
  assert.deepEqual(trimmed(object<Partial<Pet>>(partly(pet.fields)), { legs: 2, tail: 1 }), {
    legs: 2,
  });
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
  assert.equal(faultIn(json, doubled, 'it'), 'it is too large; it must be JSON');
  assert.match(faultIn(json, { a: { b: [1n] } }, 'it') ?? '', /is a bigint/);
  assert.equal(faultIn(json, { a: undefined }, 'it'), null);
  assert.equal(faultIn(json, { a: [true, 'b', 1.5, null] }, 'it'), null);
  // The most parts that are looked at: the list and what is in it.
  assert.equal(faultIn(json, { all: Array(4_999_999).fill(null) }, 'it'), null);
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
