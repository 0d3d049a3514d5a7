import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  BadSetting,
  type BuiltMachine,
  CallbackFailed,
  UnmatchedEvents,
} from '../src/builder/builder.js';
import { type RunOptions, run, runAsync } from '../src/builder/drive.js';
import {
  door,
  kick,
  listed,
  mutableDoor,
  type Notes,
  notes,
  type Pad,
  type Place,
  type Push,
  pull,
  push,
  say,
  turn,
  write,
} from './door.js';

/** Runs with a source of events: each row holds for `run` and for `runAsync`, whose only difference is the waiting. */

type Source<C> = (state: Place, context: C) => Push | null | undefined;
type Drive = <C>(
  machine: BuiltMachine<Place, Push, C>,
  context: C,
  source: Source<C>,
  options?: RunOptions<Place, C>,
) => Promise<{ readonly state: Place; readonly context: C }>;

const drives: readonly (readonly [string, Drive])[] = [
  ['run', async (machine, context, source, options) => run(machine, context, source, options)],
  [
    'runAsync',
    (machine, context, source, options) =>
      runAsync(
        machine,
        context,
        async (state, held) => {
          await new Promise((resolve) => setImmediate(resolve));
          return source(state, held);
        },
        options,
      ),
  ],
];

const simple = () =>
  door()
    .transition('Closed', 'Push', 'Open')
    .transition('Open', 'Pull', 'Closed')
    .transition('*', 'Kick', 'Broken')
    .terminal('Broken');

for (const [name, drive] of drives) {
  describe(name, () => {
    it('goes from state to state until it is in a terminal one, and asks no further', async () => {
      const { asked, source } = listed(push(), pull, kick, push());
      const { state, context } = await drive(simple().build('Closed'), notes, source);
      assert.equal(state, 'Broken');
      assert.equal(context, notes);
      assert.deepEqual(asked, ['Closed', 'Open', 'Closed']);
    });

    it('runs the onEnter of the initial state, even if that is terminal, and does not ask then', async () => {
      const machine = simple()
        .state('Broken', { onEnter: say('broken from the start') })
        .build('Broken');
      const { state, context } = await drive(machine, notes, () => assert.fail('asked'));
      assert.deepEqual([state, context.said], ['Broken', ['broken from the start']]);
    });

    it('begins where it is told to', async () => {
      const { asked, source } = listed(pull);
      const { state } = await drive(simple().build('Closed'), notes, source, { initial: 'Open' });
      assert.equal(state, 'Closed');
      assert.deepEqual(asked, ['Open', 'Closed']);
    });

    it('#191 ends in a state that is not terminal when the source has nothing more, without an error', async () => {
      for (const nothing of [null, undefined]) {
        const { state } = await drive(simple().build('Closed'), notes, (now) =>
          now === 'Open' ? nothing : push(),
        );
        assert.equal(state, 'Open');
      }
    });

    it('gives state and context to the source as they are at that moment', async () => {
      const seen: unknown[] = [];
      const machine = simple()
        .transition('Closed', 'Turn', 'Locked', { action: say('locked') })
        .build('Closed');
      await drive(machine, notes, (state, context) => {
        seen.push([state, context.count]);
        return state === 'Closed' ? turn() : null;
      });
      assert.deepEqual(seen, [
        ['Closed', 0],
        ['Locked', 1],
      ]);
    });

    it('calls all callbacks of a way in order', async () => {
      const machine = door()
        .state('Closed', { onEnter: say('enter Closed'), onExit: say('exit Closed') })
        .state('Open', { onEnter: say('enter Open'), onExit: say('exit Open') })
        .transition('Closed', 'Push', 'Open', { action: say('push') })
        .transition('Open', 'Kick', 'Broken', { action: say('kick') })
        .terminal('Broken')
        .build('Closed');
      const { context } = await drive(machine, notes, listed(push(), kick).source);
      assert.deepEqual(context.said, [
        'enter Closed',
        'exit Closed',
        'push',
        'enter Open',
        'exit Open',
        'kick',
      ]);
    });

    it('#194 of a machine that mutates gives back the very context', async () => {
      const machine = mutableDoor()
        .transition('Closed', 'Push', 'Open', { action: write('pushed') })
        .terminal('Open')
        .build('Closed');
      const pad: Pad = { said: [] };
      assert.equal((await drive(machine, pad, listed(push()).source)).context, pad);
      assert.deepEqual(pad.said, ['pushed']);
    });

    it('asks again in the same state after an event without a transition, and tells of it', async () => {
      const told: string[] = [];
      const { asked, source } = listed(pull, turn(), push(), kick);
      const { state } = await drive(simple().build('Closed'), notes, source, {
        onDiagnostic: (diagnostic) => told.push(`${diagnostic.event} in ${diagnostic.state}`),
      });
      assert.equal(state, 'Broken');
      assert.deepEqual(asked, ['Closed', 'Closed', 'Closed', 'Open']);
      assert.deepEqual(told, ['Pull in Closed', 'Turn in Closed']);
    });

    it('#190 is an error after 100 events in a row without a transition, which names state and event', async () => {
      let asked = 0;
      const spinning = drive(simple().build('Closed'), notes, () => {
        asked += 1;
        return pull;
      });
      await assert.rejects(spinning, (error) => {
        assert.ok(error instanceof UnmatchedEvents);
        assert.deepEqual([error.state, error.event, error.times], ['Closed', 'Pull', 100]);
        assert.match(
          error.message,
          /100 events in a row had no transition, the last was Pull in Closed/,
        );
        return true;
      });
      assert.equal(asked, 100);
    });

    it('counts only events in a row: one transition in between begins anew', async () => {
      let asked = 0;
      const machine = simple()
        .transition('Closed', 'Turn', '*', { internal: true })
        .build('Closed');
      const { state } = await drive(machine, notes, () => {
        asked += 1;
        if (asked > 500) return null;
        return asked % 100 === 0 ? turn() : pull;
      });
      assert.equal(state, 'Closed');
    });

    it('has a bound that can be set, and is an error at once with a bound of 1', async () => {
      const machine = simple().build('Closed');
      await assert.rejects(
        drive(machine, notes, () => pull, { maxUnmatched: 1 }),
        /an event had no transition, the last was Pull in Closed/,
      );
      for (const maxUnmatched of [0, 1.5, Number.NaN]) {
        await assert.rejects(
          drive(machine, notes, () => null, { maxUnmatched }),
          BadSetting,
        );
      }
    });

    it('ends with what the source throws, and with what a callback throws', async () => {
      const machine = simple()
        .state('Open', { onEnter: () => assert.fail('no') })
        .build('Closed');
      const failing = () => {
        throw new RangeError('the source broke');
      };
      await assert.rejects(drive(machine, notes, failing), RangeError);
      await assert.rejects(
        drive(machine, notes, () => push()),
        CallbackFailed,
      );
    });

    it('can be repeated with the same machine: a run leaves nothing in it', async () => {
      const machine = simple()
        .transition('Closed', 'Turn', 'Locked', { action: say('x') })
        .build('Closed');
      const once = (): Promise<{ readonly state: Place; readonly context: Notes }> =>
        drive(machine, notes, listed(turn(), kick).source);
      assert.deepEqual(await Promise.all([once(), once()]), [await once(), await once()]);
    });
  });
}

it('a guard that falls through leaves the choice to the next, in both ways of driving', async () => {
  const machine = door()
    .transition('Closed', 'Push', 'Broken', { guard: ({ force }) => force > 10 })
    .transition('Closed', 'Push', 'Open', { guard: ({ force }) => force > 5 })
    .transition('Closed', 'Push', 'Closed')
    .terminal('Broken', 'Open')
    .build('Closed');
  for (const [, drive] of drives) {
    const { asked, source } = listed(push(1), push(2), push(7));
    assert.equal((await drive(machine, notes, source)).state, 'Open');
    assert.deepEqual(asked, ['Closed', 'Closed', 'Closed']);
  }
});
