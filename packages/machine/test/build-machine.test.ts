import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BadRegistration, MachineFrozen, stateMachine } from '../src/builder/builder.js';
import { door, kick, type Notes, notes, pull, push, say } from './door.js';

/** Machines that are put together call by call: what registering means, and what one step does. */

describe('registering', () => {
  it('returns the builder, so that calls can be chained', () => {
    const builder = door();
    assert.equal(builder.state('Open'), builder);
    assert.equal(builder.transition('Closed', 'Push', 'Open'), builder);
    assert.equal(builder.always('Closed', 'Open', { guard: () => false }), builder);
    assert.equal(builder.terminal('Broken'), builder);
    assert.equal(builder.error('Broken'), builder);
  });

  it('needs no state to be registered before a transition names it', () => {
    const machine = door().transition('Closed', 'Push', 'Open').build('Closed');
    assert.equal(machine.step('Closed', notes, push()).state, 'Open');
  });

  it('of a state twice takes the later callbacks', () => {
    const machine = door()
      .state('Open', { onEnter: say('old') })
      .state('Open', { onEnter: say('new') })
      .transition('Closed', 'Push', 'Open')
      .build('Closed');
    assert.deepEqual(machine.step('Closed', notes, push()).context.said, ['new']);
  });

  it('after build is an error that says what was registered', () => {
    const builder = door();
    builder.build('Closed');
    for (const register of [
      () => builder.state('Open'),
      () => builder.transition('Closed', 'Push', 'Open'),
      () => builder.always('Closed', 'Open'),
      () => builder.terminal('Open'),
      () => builder.error('Open'),
      () => builder.build('Closed'),
    ]) {
      assert.throws(register, MachineFrozen);
    }
    assert.throws(
      () => builder.transition('Closed', 'Push', 'Open'),
      /transition Closed --Push--> Open: .*built/,
    );
  });

  it('of several sources and events registers each pair', () => {
    const machine = door()
      .transition(['Closed', 'Locked'], ['Push', 'Kick'], 'Open')
      .build('Closed');
    for (const state of ['Closed', 'Locked'] as const) {
      for (const event of [push(), kick])
        assert.equal(machine.step(state, notes, event).state, 'Open');
    }
    assert.equal(machine.edges.length, 4);
  });

  it('of an internal transition that would lead elsewhere is refused', () => {
    for (const from of ['Closed', ['Open', 'Closed'], '*'] as const) {
      assert.throws(
        () => door().transition(from, 'Push', 'Open', { internal: true }),
        BadRegistration,
      );
    }
    door().transition(['Open'], 'Push', 'Open', { internal: true });
    door().transition('*', 'Push', '*', { internal: true });
  });

  it('gives a machine that is frozen', () => {
    const machine = door().transition('Closed', 'Push', 'Open').build('Closed');
    assert.ok(
      Object.isFrozen(machine) &&
        Object.isFrozen(machine.edges) &&
        Object.isFrozen(machine.edges[0]),
    );
  });

  it('of terminal and error states is what the machine tells', () => {
    const machine = door().terminal('Open', 'Broken').error('Broken').build('Closed');
    assert.deepEqual(
      (['Closed', 'Open', 'Broken'] as const).map((state) => [
        machine.isTerminal(state),
        machine.isError(state),
      ]),
      [
        [false, false],
        [true, false],
        [true, true],
      ],
    );
  });
});

const loud = (label: string) => ({ onEnter: say(`enter ${label}`), onExit: say(`exit ${label}`) });

describe('a step', () => {
  it('#184 runs onExit, action, onEnter, in that order', () => {
    const machine = door()
      .state('Closed', loud('Closed'))
      .state('Open', loud('Open'))
      .transition('Closed', 'Push', 'Open', { action: say('action') })
      .build('Closed');
    const { state, context } = machine.step('Closed', notes, push());
    assert.deepEqual([state, context.said], ['Open', ['exit Closed', 'action', 'enter Open']]);
  });

  it('#185 to the same state runs all three; an internal one runs only the action', () => {
    const machine = door()
      .state('Open', loud('Open'))
      .transition('Open', 'Push', 'Open', { action: say('action') })
      .transition('Open', 'Pull', 'Open', { action: say('action'), internal: true })
      .transition('*', 'Kick', '*', { action: say('kicked') })
      .build('Open');
    assert.deepEqual(machine.step('Open', notes, push()).context.said, [
      'exit Open',
      'action',
      'enter Open',
    ]);
    assert.deepEqual(machine.step('Open', notes, pull).context.said, ['action']);
    assert.deepEqual(machine.step('Open', notes, kick).context.said, [
      'exit Open',
      'kicked',
      'enter Open',
    ]);
    assert.deepEqual(
      machine.edges.filter(({ from }) => from === 'Open').map(({ kind, to }) => `${kind} ${to}`),
      ['go Open', 'stay Open', 'go Open'],
    );
  });

  it('runs only the callbacks that there are', () => {
    const machine = door().state('Open', {}).transition('Closed', 'Push', 'Open').build('Closed');
    assert.equal(machine.step('Closed', notes, push()).context, notes);
  });

  it('gives event and context to guard and action', () => {
    const seen: unknown[] = [];
    const machine = door()
      .transition('Closed', 'Push', 'Open', {
        guard: (event, context) => seen.push(event, context) > 0,
        action: (event, context) => {
          seen.push(event, context);
          return { ...context, count: event.force };
        },
      })
      .build('Closed');
    const event = push(7);
    assert.equal(machine.step('Closed', notes, event).context.count, 7);
    assert.deepEqual(seen, [event, notes, event, notes]);
  });

  it('takes a transition whose guard holds, and none whose guard does not', () => {
    const machine = door()
      .transition('Closed', 'Push', 'Open', { guard: ({ force }) => force > 3 })
      .build('Closed');
    assert.equal(machine.step('Closed', notes, push(4)).state, 'Open');
    const left = machine.step('Closed', notes, push(3));
    assert.deepEqual([left.state, left.path, left.diagnostics.length], ['Closed', [], 1]);
  });

  it('#187 with two transitions of which the first guard does not hold takes the second', () => {
    const machine = door()
      .transition('Closed', 'Push', 'Broken', { guard: () => false })
      .transition('Closed', 'Push', 'Open', { guard: () => true })
      .build('Closed');
    assert.equal(machine.step('Closed', notes, push()).state, 'Open');
  });

  it('#188 with two transitions whose guards hold takes the one registered first, and asks no further', () => {
    const machine = door()
      .transition('Closed', 'Push', 'Open', { guard: () => true })
      .transition('Closed', 'Push', 'Broken', { guard: () => assert.fail('asked') })
      .build('Closed');
    assert.equal(machine.step('Closed', notes, push()).state, 'Open');
  });

  it('#196 prefers a transition that names the state to one from anywhere, in whatever order', () => {
    const machine = door()
      .transition('*', 'Kick', 'Broken')
      .transition('Open', 'Kick', 'Closed')
      .transition('Locked', 'Kick', 'Open', { guard: () => false })
      .build('Closed');
    assert.equal(machine.step('Open', notes, kick).state, 'Closed');
    assert.equal(machine.step('Closed', notes, kick).state, 'Broken');
    assert.equal(machine.step('Locked', notes, kick).state, 'Broken');
  });

  it('leaves a terminal state only by a transition that names it', () => {
    const builder = door().terminal('Broken', 'Open').transition('*', 'Kick', 'Closed');
    const machine = builder.transition('Open', 'Pull', 'Closed').build('Closed');
    assert.equal(machine.step('Broken', notes, kick).state, 'Broken');
    assert.equal(machine.step('Open', notes, pull).state, 'Closed');
  });

  it('without a transition stays, and says which event in which state', () => {
    const machine = door().transition('Closed', 'Push', 'Open').build('Closed');
    for (const event of [push(), pull]) {
      const { state, context, path, diagnostics } = machine.step('Open', notes, event);
      assert.deepEqual([state, path], ['Open', []]);
      assert.equal(context, notes);
      assert.deepEqual(
        diagnostics.map((one) => [one.state, one.event]),
        [['Open', event.type]],
      );
    }
  });

  it('tells the path that was taken as edges of the machine', () => {
    const machine = door()
      .transition('Closed', 'Push', 'Open', { label: 'gently' })
      .always('Open', 'Locked')
      .build('Closed');
    const { path, state } = machine.step('Closed', notes, push());
    assert.equal(state, 'Locked');
    assert.deepEqual(
      path.map(({ from, event, to, as }) => [from, event, to, as]),
      [
        ['Closed', 'Push', 'Open', 'gently'],
        ['Open', null, 'Locked', ''],
      ],
    );
    for (const edge of path) assert.ok(machine.edges.includes(edge));
  });

  it('is not confused by names that every object has', () => {
    type State = 'constructor' | '__proto__' | 'toString';
    type Event =
      | { readonly type: 'constructor' }
      | { readonly type: '__proto__' }
      | { readonly type: 'hasOwnProperty' };
    const machine = stateMachine<State, Event, Notes>()
      .transition('constructor', '__proto__', '__proto__')
      .transition('__proto__', 'constructor', 'toString')
      .build('constructor');
    assert.equal(machine.step('constructor', notes, { type: '__proto__' }).state, '__proto__');
    assert.equal(machine.step('__proto__', notes, { type: 'constructor' }).state, 'toString');
    assert.equal(machine.step('toString', notes, { type: 'hasOwnProperty' }).diagnostics.length, 1);
    assert.equal(machine.step('constructor', notes, { type: 'constructor' }).diagnostics.length, 1);
  });
});
