import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  BadSetting,
  CallbackFailed,
  IllegalTransition,
  MachineBusy,
} from '../src/builder/builder.js';
import { type HistoryEntry, startMachine } from '../src/builder/drive.js';
import { door, kick, mutableDoor, notes, type Place, pull, push, say, turn } from './door.js';

/** A machine with its state, its history and those who listen. */

const machine = door()
  .state('Closed', { onEnter: say('enter Closed'), onExit: say('exit Closed') })
  .state('Open', { onEnter: say('enter Open') })
  .transition('Closed', 'Push', 'Open', { label: 'gently', action: say('push') })
  .transition('Open', 'Pull', 'Closed')
  .transition('Closed', 'Turn', '*', { internal: true, action: say('turned') })
  .transition('Closed', 'Kick', '*')
  .transition('Open', 'Kick', 'Broken')
  .always('Locked', 'Closed', { guard: ({ count }) => count > 3 })
  .terminal('Broken')
  .error('Broken')
  .build('Closed');

/** A clock that is wound by hand. */
const newClock = () => {
  let atMs = 1_000;
  return {
    now: () => atMs,
    pass: (ms: number): void => {
      atMs += ms;
    },
  };
};

const shown = (entries: readonly HistoryEntry<Place>[]): readonly string[] =>
  entries.map(
    ({ from, to, event, forced }) =>
      `${from} ${event ?? '-'} ${to}${forced === 'yes' ? ' forced' : ''}`,
  );

describe('a running machine', () => {
  it('begins with the onEnter of its initial state, or of the one it is given', () => {
    const running = startMachine(machine, notes, newClock());
    assert.deepEqual([running.state, running.context.said], ['Closed', ['enter Closed']]);
    assert.equal(startMachine(machine, notes, { ...newClock(), initial: 'Open' }).state, 'Open');
  });

  it('takes an event, and tells what came of it', () => {
    const running = startMachine(machine, notes, newClock());
    const { state, path } = running.send(push());
    assert.equal(state, 'Open');
    assert.equal(path[0]?.as, 'gently');
    assert.deepEqual([running.state, running.context.said.at(-1)], ['Open', 'enter Open']);
    assert.equal(running.send(turn()).diagnostics[0]?.event, 'Turn');
    assert.equal(running.state, 'Open');
  });

  it('is what it was after a callback failed, and goes on', () => {
    let isBroken = true;
    const fragile = door()
      .transition('Closed', 'Push', 'Open', {
        action: (_event, context) => (isBroken ? assert.fail('no') : context),
      })
      .build('Closed');
    const running = startMachine(fragile, notes, newClock());
    assert.throws(() => running.send(push()), CallbackFailed);
    assert.deepEqual([running.state, running.context, running.history()], ['Closed', notes, []]);
    isBroken = false;
    assert.equal(running.send(push()).state, 'Open');
  });

  it('refuses a step from inside a step', () => {
    const busy = mutableDoor()
      .transition('Closed', 'Push', 'Open', { action: () => void running.send(pull) })
      .build('Closed');
    const running = startMachine(busy, { said: [] }, newClock());
    assert.throws(
      () => running.send(push()),
      (error) => error instanceof CallbackFailed && error.cause instanceof MachineBusy,
    );
    assert.equal(running.state, 'Closed');
  });

  it('says whether its state is terminal, and whether it means failure', () => {
    const running = startMachine(machine, notes, newClock());
    assert.deepEqual([running.isTerminal(), running.isError()], [false, false]);
    running.send(push());
    running.send(kick);
    assert.deepEqual([running.isTerminal(), running.isError()], [true, true]);
  });
});

describe('transitions without an event of their own', () => {
  it('are legal where some transition leads, whatever its guard; onExit and onEnter run, no action', () => {
    const running = startMachine(machine, notes, newClock());
    running.transitionTo('Open', 'by hand');
    assert.equal(running.state, 'Open');
    assert.deepEqual(running.context.said, ['enter Closed', 'exit Closed', 'enter Open']);
    assert.deepEqual(running.history(), [
      ...[
        {
          from: 'Closed',
          to: 'Open',
          event: null,
          label: '',
          atMs: 1_000,
          forced: 'no',
          reason: 'by hand',
        },
      ],
    ]);
  });

  it('are an error elsewhere, which says where one may go, and nothing has changed', () => {
    const running = startMachine(machine, notes, newClock());
    assert.throws(
      () => running.transitionTo('Broken'),
      (error) => {
        assert.ok(error instanceof IllegalTransition);
        assert.deepEqual(
          [error.from, error.to, error.legal],
          ['Closed', 'Broken', ['Closed', 'Open']],
        );
        assert.match(error.message, /from Closed to Broken; from there one goes to Closed, Open$/);
        return true;
      },
    );
    assert.deepEqual([running.state, running.history()], ['Closed', []]);
    running.forceTransition('Broken', 'test');
    assert.throws(() => running.transitionTo('Open'), /one goes nowhere$/);
  });

  it('can be forced, which the history marks', () => {
    const running = startMachine(machine, notes, newClock());
    running.forceTransition('Broken', 'the user pulled the plug');
    assert.equal(running.state, 'Broken');
    assert.deepEqual(shown(running.history()), ['Closed - Broken forced']);
    assert.equal(running.history()[0]?.reason, 'the user pulled the plug');
  });

  it('are followed by those that need none', () => {
    const running = startMachine(machine, { said: [], count: 3 }, newClock());
    running.forceTransition('Locked', 'test');
    assert.equal(running.state, 'Closed');
    assert.deepEqual(shown(running.history()), ['Closed - Locked forced', 'Locked - Closed']);
  });
});

describe('the history', () => {
  it('has each state left and entered, oldest first, with its time; what stays inside is not in it', () => {
    const clock = newClock();
    const running = startMachine(machine, notes, clock);
    clock.pass(5);
    running.send(turn());
    running.send(pull);
    running.send(push());
    clock.pass(7);
    running.send(pull);
    running.send(kick);
    assert.deepEqual(shown(running.history()), [
      'Closed Push Open',
      'Open Pull Closed',
      'Closed Kick Closed',
    ]);
    assert.deepEqual(
      running.history().map(({ atMs, label }) => [atMs, label]),
      [
        [1_005, 'gently'],
        [1_012, ''],
        [1_012, ''],
      ],
    );
  });

  it('keeps the last 100 entries, or as many as it is told to', () => {
    for (const [historyMax, kept] of [
      [undefined, 100],
      [1, 1],
      [3, 3],
    ] as const) {
      const clock = newClock();
      const options = historyMax === undefined ? clock : { ...clock, historyMax };
      const running = startMachine(machine, notes, options);
      for (let round = 0; round < 75; round += 1) {
        running.send(push());
        running.send(pull);
      }
      const history = running.history();
      assert.equal(history.length, kept);
      assert.equal(history.at(-1)?.event, 'Pull');
      assert.deepEqual(
        history.map(({ event }) => event).slice(-3),
        ['Pull', 'Push', 'Pull'].slice(-kept),
      );
    }
  });

  it('keeps at least one', () => {
    for (const historyMax of [0, -1, 2.5]) {
      assert.throws(() => startMachine(machine, notes, { ...newClock(), historyMax }), BadSetting);
    }
  });

  it('cannot be written to from outside', () => {
    const running = startMachine(machine, notes, newClock());
    running.send(push());
    assert.throws(() => Object.assign(running.history()[0] ?? {}, { to: 'Broken' }), TypeError);
    assert.notEqual(running.history(), running.history());
  });
});

it('time in state begins anew where a state is entered, and not where it only stays', () => {
  const clock = newClock();
  const running = startMachine(machine, notes, clock);
  clock.pass(10);
  assert.equal(running.timeInStateMs(), 10);
  running.send(turn());
  running.send(pull);
  clock.pass(1);
  assert.equal(running.timeInStateMs(), 11);
  running.send(kick);
  assert.equal(running.timeInStateMs(), 0);
  clock.pass(2);
  assert.equal(running.timeInStateMs(), 2);
});
