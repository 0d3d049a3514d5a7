import assert from 'node:assert/strict';
import test from 'node:test';
import { type Hand, type Lamp, lamp, type Sound, say } from '../../../test/kit/machine-kit/lamp.js';
import { machine } from '../src/kernel/machine.js';
import type { MoveResult } from '../src/kernel/table.js';

/** One step of a machine: what runs, in which order, and what a step can never do. */

const off = (lit = 0): Lamp => ({ name: 'Off', lit });
const on = (level: number, lit = 1): Lamp => ({ name: 'On', lit, level });
const press: Hand = { type: 'Press', level: 1 };
const dim = (by: number): Hand => ({ type: 'Dim', by });
const blink = (times: number): Hand => ({ type: 'Blink', times });
const tick: Hand = { type: 'Tick' };
const drop: Hand = { type: 'Drop' };

type Row = {
  readonly title: string;
  readonly given: Lamp;
  readonly when: Hand;
  readonly state: Lamp;
  readonly says: readonly string[];
  readonly path: readonly string[];
  readonly why?: string;
};

const rows: readonly Row[] = [
  {
    title: 'an edge into a transient state goes on to the state behind it: move, move, entry, rest',
    given: off(),
    when: press,
    state: on(11),
    says: ['click', 'light', 'warm', 'hum at 11'],
    path: ['Off/Press/0', 'Checking//1'],
  },
  {
    title: 'a transient state takes the first branch whose guard holds',
    given: off(3),
    when: press,
    state: { name: 'Broken' },
    says: ['click', 'bang'],
    path: ['Off/Press/0', 'Checking//0'],
  },
  {
    title: 'leaving a state: exit comes before the move',
    given: on(5),
    when: press,
    state: off(1),
    says: ['cool from 5', 'clack'],
    path: ['On/Press/0'],
  },
  {
    title: 'the first branch that fits is taken',
    given: on(5),
    when: dim(6),
    state: off(1),
    says: ['cool from 5', 'dark'],
    path: ['On/Dim/0'],
  },
  {
    title: 'a stay runs neither exit nor entry nor rest',
    given: on(5),
    when: dim(2),
    state: on(3),
    says: ['dimmer'],
    path: ['On/Dim/2'],
  },
  {
    title: 'a move may say that the event changed nothing',
    given: on(5),
    when: dim(0),
    state: on(5),
    says: [],
    path: ['On/Dim/1'],
    why: 'late: dimmed by nothing',
  },
  {
    title: 'a resting state that is always passed is passed after a stay, too: its exit runs',
    given: on(5),
    when: dim(5),
    state: off(1),
    says: ['dimmer', 'cool from 0', 'dark'],
    path: ['On/Dim/2', 'On//0'],
  },
  {
    title: 'a state that is passed on entry is passed when it is entered',
    given: off(),
    when: blink(0),
    state: off(),
    says: [],
    path: ['Off/Blink/0', 'Blinking//0'],
  },
  {
    title: 'a state that is passed on entry is not passed after a stay',
    given: { name: 'Blinking', lit: 0, left: 1 },
    when: tick,
    state: { name: 'Blinking', lit: 0, left: 0 },
    says: ['blink'],
    path: ['Blinking/Tick/0'],
  },
  {
    title: 'a default row serves every state without a cell of its own',
    given: { name: 'Blinking', lit: 0, left: 1 },
    when: drop,
    state: { name: 'Broken' },
    says: ['crash'],
    path: ['Blinking/Drop/0'],
  },
  {
    title: 'a cell of its own comes before the default row',
    given: { name: 'Broken' },
    when: drop,
    state: { name: 'Broken' },
    says: [],
    path: [],
    why: 'late: broken',
  },
  {
    title: 'a late event changes nothing and says so',
    given: off(),
    when: dim(1),
    state: off(),
    says: [],
    path: [],
    why: 'late: it is dark already',
  },
  {
    title: 'a fault of the runtime changes nothing and says so',
    given: off(),
    when: tick,
    state: off(),
    says: [],
    path: [],
    why: 'fault: nothing ticks',
  },
];

for (const { title, given, when, state, says, path, why } of rows) {
  test(title, () => {
    const step = lamp.step(given, when);
    assert.deepEqual(step.state, state);
    assert.deepEqual(step.actions, says.map(say));
    assert.deepEqual(
      step.path.map((edge) => edge.id),
      path,
    );
    assert.deepEqual(
      step.diagnostics.map((diagnostic) => `${diagnostic.kind}: ${diagnostic.why}`),
      why === undefined ? [] : [why],
    );
    assert.deepEqual(lamp.step(given, when), step, 'same state and event, same answer');
  });
}

test('a diagnostic names the state and the event', () => {
  assert.deepEqual(lamp.step(off(), tick).diagnostics, [
    { kind: 'fault', state: 'Off', event: 'Tick', why: 'nothing ticks' },
  ]);
});

test('a step that would never end changes nothing, does nothing, and names the loop', () => {
  const state = off();
  const step = lamp.step(state, blink(Number.POSITIVE_INFINITY));
  assert.equal(step.state, state);
  assert.deepEqual([step.actions, step.path], [[], []]);
  assert.equal(step.diagnostics.length, 1);
  assert.equal(step.diagnostics[0]?.kind, 'fault');
  const last = Array.from({ length: 6 }, () => 'Blinking').join(' -> ');
  assert.equal(step.diagnostics[0]?.why, `100 states passed without coming to rest: … ${last}`);
});

/** A machine that counts down without an event, one edge for each number. */
type Counter = { readonly name: 'Counting'; readonly left: number };
const isLeft = ({ left }: Counter): boolean => left > 0;
const countDown = ({ left }: Counter): MoveResult<Counter, never> => ({
  state: { name: 'Counting', left: left - 1 },
  actions: [],
});
const counter = machine<Counter, { readonly type: 'Start' }, never>()({
  initial: 'Counting',
  transient: [],
  defaults: [],
  ends: [],
  states: { Counting: 'counts' },
  events: { Start: 'starts' },
})({
  states: {
    Counting: {
      on: { Start: { to: 'Counting', then: countDown } },
      always: [{ when: isLeft, to: 'Counting', then: countDown }],
    },
  },
  defaults: {},
});

test('a step takes at most 100 edges without an event', () => {
  const start = { type: 'Start' } as const;
  const whole = counter.step({ name: 'Counting', left: 101 }, start);
  assert.deepEqual([whole.state.left, whole.path.length], [0, 101]);
  const cut = counter.step({ name: 'Counting', left: 102 }, start);
  assert.deepEqual([cut.state.left, cut.path.length, cut.diagnostics.length], [102, 0, 1]);
});

test('a state that the table does not have is a diagnostic, or the end of the step', () => {
  const nowhere = { name: 'Nowhere' } as unknown as Lamp; // types hold for our own code only
  assert.deepEqual(lamp.step(nowhere, press), {
    state: nowhere,
    actions: [],
    path: [],
    diagnostics: [
      {
        kind: 'fault',
        state: 'Nowhere',
        event: 'Press',
        why: 'no such pair of state and event',
      },
    ],
  });
  type Go = { readonly type: 'Go' };
  type Here = { readonly name: 'Here' };
  const lost = machine<Here, Go, Sound>()({
    initial: 'Here',
    transient: [],
    defaults: [],
    ends: [],
    states: { Here: 'here' },
    events: { Go: 'go' },
  })({
    states: {
      Here: {
        rest: (state) => ({ state, actions: [say('rests')] }),
        on: { Go: { to: 'Here', then: () => ({ state: nowhere as never, actions: [] }) } },
      },
    },
    defaults: {},
  });
  const { state, actions } = lost.step({ name: 'Here' }, { type: 'Go' });
  assert.deepEqual([state, actions], [nowhere, []]);
});

test('a state tries its edges without an event either always or on entry', () => {
  const always = [{ when: isLeft, to: 'Counting', then: countDown }] as const;
  const on = { Start: { stay: countDown } } as const;
  const make = machine<Counter, { readonly type: 'Start' }, never>()({
    initial: 'Counting',
    transient: [],
    defaults: [],
    ends: [],
    states: { Counting: 'counts' },
    events: { Start: 'starts' },
  });
  // @ts-expect-error one of both
  make({ states: { Counting: { on, always, alwaysOnEntry: always } }, defaults: {} });
});

test('an event that changes nothing leaves the very state it met', () => {
  const state = off();
  assert.equal(lamp.step(state, dim(1)).state, state);
});

test('an event that nobody knows, or a state that never rests, is a diagnostic and not an exception', () => {
  // From outside anything may come; the types only hold for our own code.
  const unknown = { type: 'Sing' } as unknown as Hand;
  assert.deepEqual(lamp.step(off(), unknown), {
    state: off(),
    actions: [],
    path: [],
    diagnostics: [
      {
        kind: 'malformed',
        state: 'Off',
        event: 'Sing',
        why: 'it is none of the events of this machine',
      },
    ],
  });
  assert.equal(lamp.step({ name: 'Checking', lit: 1 }, press).diagnostics[0]?.kind, 'fault');
});

test('edges are frozen, and the same objects in every step', () => {
  const first = lamp.step(off(), press).path;
  const second = lamp.step(off(1), press).path;
  assert.equal(first.length, 2);
  first.forEach((edge, index) => {
    assert.equal(edge, second[index]);
    assert.ok(lamp.edges.includes(edge));
    assert.ok(Object.isFrozen(edge));
  });
  assert.equal(
    lamp.step(off(), drop).path,
    lamp.step(off(1), drop).path,
    'a plain step makes no new path',
  );
  assert.ok(Object.isFrozen(lamp.step(off(), drop).path) && Object.isFrozen(lamp.edges));
});

test('an edge tells everything about its arrow', () => {
  const find = (id: string) => lamp.edges.find((edge) => edge.id === id);
  assert.deepEqual(find('On/Dim/0'), {
    id: 'On/Dim/0',
    from: 'On',
    event: 'Dim',
    when: 'isTooMuch',
    to: 'Off',
    as: 'dimmed',
    then: 'goDark',
    kind: 'go',
  });
  assert.deepEqual(find('On/Dim/2'), {
    id: 'On/Dim/2',
    from: 'On',
    event: 'Dim',
    when: '',
    to: 'On',
    as: '',
    then: 'dim',
    kind: 'stay',
  });
  assert.equal(find('Checking//0')?.event, null);
});

test('every pair of a resting state and an event is an edge or ignored for a reason', () => {
  const resting = Object.keys(lamp.states).filter((name) => !lamp.transient.includes(name));
  for (const state of resting) {
    for (const event of Object.keys(lamp.events)) {
      const edges = lamp.edges.filter((edge) => edge.from === state && edge.event === event);
      const ignored = lamp.ignored.filter((pair) => pair.state === state && pair.event === event);
      assert.equal(edges.length > 0 ? 1 : 0, 1 - ignored.length, `${state} on ${event}`);
    }
  }
  assert.ok(
    lamp.ignored.every(({ state, event }) => resting.includes(state) && event in lamp.events),
  );
  assert.equal(new Set(lamp.edges.map((edge) => edge.id)).size, lamp.edges.length);
});
