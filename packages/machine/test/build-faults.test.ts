import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CallbackFailed, EndlessTransitions } from '../src/builder/builder.js';
import {
  door,
  mutableDoor,
  type Notes,
  notes,
  type Pad,
  pull,
  push,
  say,
  turn,
  write,
} from './door.js';

/** What a step of a built machine does without an event, and what it does where a callback throws. */

const loud = (label: string) => ({ onEnter: say(`enter ${label}`), onExit: say(`exit ${label}`) });

describe('transitions without an event', () => {
  it('are followed until none applies, callbacks included', () => {
    const machine = door()
      .transition('Closed', 'Push', 'Open')
      .state('Locked', loud('Locked'))
      .always('Open', 'Locked', { action: say('on') })
      .always('Locked', 'Broken', { guard: ({ count }) => count > 1, label: 'worn' })
      .build('Closed');
    const { state, context } = machine.step('Closed', notes, push());
    assert.deepEqual([state, context.said], ['Broken', ['on', 'enter Locked', 'exit Locked']]);
  });

  it('are followed when the machine begins, and after an internal transition', () => {
    const machine = door()
      .state('Closed', { onEnter: say('enter') })
      .transition('Closed', 'Pull', '*', { internal: true, action: say('pulled') })
      .always('Closed', 'Open', { guard: ({ count }) => count > 1 })
      .build('Closed');
    assert.equal(machine.enter('Closed', notes).state, 'Closed');
    assert.equal(machine.enter('Closed', { said: [], count: 1 }).state, 'Open');
    assert.equal(machine.step('Closed', { said: [], count: 1 }, pull).state, 'Open');
  });

  it('#197 that go in a circle are an error after the bound, and nothing has changed', () => {
    const pad: Notes = { said: ['before'], count: 0 };
    const machine = door()
      .transition('Locked', 'Turn', 'Closed')
      .always('Closed', 'Open')
      .always('Open', 'Closed', { action: say('round') })
      .build('Locked');
    assert.throws(
      () => machine.step('Locked', pad, turn()),
      (error) => {
        assert.ok(error instanceof EndlessTransitions);
        assert.deepEqual([error.state, error.event], ['Locked', 'Turn']);
        const last = 'Open -> Closed -> Open -> Closed -> Open -> Closed';
        assert.ok(
          error.message.startsWith(
            `Turn in Locked: 100 states passed without coming to rest: … ${last}; a guard `,
          ),
          error.message,
        );
        return true;
      },
    );
    assert.deepEqual(pad, { said: ['before'], count: 0 });
    assert.throws(() => machine.enter('Open', pad), /to begin in Open: 100 states/);
  });
});

it('a state that the machine does not have is an error of its own', () => {
  const machine = door().transition('Closed', 'Push', 'Open').build('Closed');
  const renamed = 'Ajar' as 'Open'; // as a store may have it
  for (const use of [
    () => machine.step(renamed, notes, push()),
    () => machine.enter(renamed, notes),
    () => machine.move(renamed, notes, 'Open'),
    () => machine.move('Open', notes, renamed),
  ])
    assert.throws(use, /this machine has no state Ajar/);
});

it('a registration that never applies is refused, and a list with * means any state', () => {
  assert.throws(() => door().transition([], 'Push', 'Open'), /never applies/);
  assert.throws(() => door().transition('Closed', [], 'Open'), /never applies/);
  const any = door()
    .state('Locked')
    .transition(['Closed', '*' as 'Open'], 'Push', 'Broken')
    .build('Closed');
  assert.equal(any.step('Locked', notes, push()).state, 'Broken');
});

it('a hundred transitions without an event may follow one another, and no more', () => {
  const climb = (rounds: number) =>
    door()
      .transition('Closed', 'Push', 'Open')
      .always('Open', 'Open', { guard: ({ count }) => count < rounds, action: say('round') })
      .build('Closed')
      .step('Closed', notes, push());
  assert.equal(climb(100).context.count, 100);
  assert.throws(() => climb(101), EndlessTransitions);
});

describe('a callback that throws', () => {
  const failing = new Error('it broke');
  const fail = (): never => {
    throw failing;
  };
  const rows = [
    [
      'guard',
      door().transition('Closed', 'Push', 'Open', { guard: fail, label: 'gently' }),
      'gently',
      'Closed',
    ],
    ['action', door().transition('Closed', 'Push', 'Open', { action: fail }), 'fail', 'Closed'],
    [
      'onExit',
      door()
        .state('Closed', { onExit: fail })
        .transition('Closed', 'Push', 'Open', { label: 'gently' }),
      'gently',
      'Closed',
    ],
    [
      'onEnter',
      door().state('Open', { onEnter: fail }).transition('Closed', 'Push', 'Open'),
      '',
      'Open',
    ],
  ] as const;
  for (const [callback, builder, label, state] of rows) {
    it(`as ${callback} is reported with state, event and label`, () => {
      const machine = builder.build('Closed');
      const before = structuredClone(notes);
      assert.throws(
        () => machine.step('Closed', notes, push()),
        (error) => {
          assert.ok(error instanceof CallbackFailed);
          assert.deepEqual(
            [error.callback, error.state, error.event, error.label],
            [callback, state, 'Push', label],
          );
          assert.equal(error.cause, failing);
          assert.match(error.message, /failed in (Closed|Open) on Push: it broke$/);
          return true;
        },
      );
      assert.deepEqual(notes, before);
    });
  }

  it('that is async is refused, since its context would be a Promise', () => {
    const later = (async () => ({ said: [] })) as never; // plain JavaScript can give it
    const builders = [
      door().transition('Closed', 'Push', 'Open', { action: later }),
      door().transition('Closed', 'Push', 'Open', { guard: later }),
      door().state('Closed', { onExit: later }).transition('Closed', 'Push', 'Open'),
      door().state('Open', { onEnter: later }).transition('Closed', 'Push', 'Open'),
    ];
    for (const builder of builders)
      assert.throws(
        () => builder.build('Closed').step('Closed', notes, push()),
        /^CallbackFailed: .* failed in (Closed|Open) on Push: it returned a Promise; callbacks are synchronous/,
      );
  });

  it('without an event names none', () => {
    const machine = door()
      .state('Closed', { onEnter: fail })
      .always('Locked', 'Open', { guard: fail })
      .build('Closed');
    assert.throws(
      () => machine.enter('Closed', notes),
      /^CallbackFailed: onEnter failed in Closed: it broke$/,
    );
    assert.throws(
      () => machine.enter('Locked', notes),
      /^CallbackFailed: guard of fail failed in Locked: it broke$/,
    );
  });
});

describe('a machine whose callbacks change the context', () => {
  const pad = (): Pad => ({ said: [] });

  it('#194 gives back the same object, whatever callbacks return', () => {
    const machine = mutableDoor()
      .state('Open', { onEnter: write('enter') })
      .transition('Closed', 'Push', 'Open', { action: (_event, { said }) => said.push('action') })
      .build('Closed');
    const held = pad();
    const { context } = machine.step('Closed', held, push());
    assert.equal(context, held);
    assert.deepEqual(held.said, ['action', 'enter']);
  });

  it('#193 is not advanced by an action that throws; what was changed before stays changed', () => {
    const machine = mutableDoor()
      .state('Closed', { onExit: write('exit') })
      .transition('Closed', 'Push', 'Open', {
        action: () => {
          throw new Error('it broke');
        },
      })
      .build('Closed');
    const held = pad();
    assert.throws(() => machine.step('Closed', held, push()), CallbackFailed);
    assert.deepEqual(held.said, ['exit']);
  });
});
