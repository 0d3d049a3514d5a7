import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type HistoryEntry, type Listener, startMachine } from '../src/builder/drive.js';
import { door, kick, notes, type Place, pull, push } from './door.js';

/** Those who listen to a running machine cannot stop it, nor each other. */

const machine = door()
  .transition('Closed', 'Push', 'Open')
  .transition('Open', 'Pull', 'Closed')
  .transition('Open', 'Kick', 'Broken')
  .build('Closed');
const clock = { now: () => 1_000 };

/** Until everything that was to be told has been told. */
const settled = async (): Promise<void> => {
  await new Promise((resolve) => setImmediate(resolve));
};

describe('listeners', () => {
  it('are told of each entry, in order, after the step', async () => {
    const running = startMachine(machine, notes, clock);
    const heard: HistoryEntry<Place>[] = [];
    running.listen((entry) => void heard.push(entry));
    running.send(push());
    running.send(pull);
    assert.deepEqual(heard, [], 'nobody is told inside a step');
    await settled();
    assert.deepEqual(heard, running.history());
  });

  it('are told nothing any more once they have left', async () => {
    const running = startMachine(machine, notes, clock);
    const heard: string[] = [];
    const leave = running.listen(({ to }) => void heard.push(to));
    running.send(push());
    await settled();
    leave();
    running.send(pull);
    await settled();
    assert.deepEqual(heard, ['Open']);
  });

  it('that leave before they were told are not told, and that is no reason to report them', async () => {
    const options = { ...clock, onDropped: () => assert.fail('reported') };
    const running = startMachine(machine, notes, options);
    const leave = running.listen(() => assert.fail('told'));
    running.send(push());
    running.send(pull);
    leave();
    await settled();
  });

  it('that throw are dropped even if their report throws', async () => {
    const loud: unknown[] = [];
    const hear = (reason: unknown): void => void loud.push(reason);
    process.on('unhandledRejection', hear);
    const onDropped = (): void => assert.fail('no report');
    const running = startMachine(machine, notes, { ...clock, onDropped });
    running.listen(() => assert.fail('deaf'));
    running.send(push());
    await settled();
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', hear);
    assert.deepEqual(loud, []);
  });

  it('that throw and that nobody asks about are dropped in silence', async () => {
    const running = startMachine(machine, notes, clock);
    const loud: unknown[] = [];
    const hear = (reason: unknown): void => void loud.push(reason);
    process.on('unhandledRejection', hear);
    let told = 0;
    running.listen(() => {
      told += 1;
      throw new Error('deaf');
    });
    running.send(push());
    await settled();
    running.send(pull);
    await settled();
    process.off('unhandledRejection', hear);
    assert.deepEqual([told, loud], [1, []]);
  });

  it('may send events themselves', async () => {
    const running = startMachine(machine, notes, clock);
    running.listen(({ to }) => {
      if (to === 'Open') running.send(kick);
    });
    running.send(push());
    await settled();
    assert.equal(running.state, 'Broken');
  });

  it('that throw are dropped and reported; the machine and the others go on', async () => {
    const dropped: (readonly [Listener<Place>, string])[] = [];
    const options = {
      ...clock,
      onDropped: (one: Listener<Place>, why: string) => void dropped.push([one, why]),
    };
    const running = startMachine(machine, notes, options);
    const heard: string[] = [];
    const throws = (): void => assert.fail('deaf');
    const rejects = async (): Promise<void> => Promise.reject(new Error('later'));
    running.listen(throws);
    running.listen(rejects);
    running.listen(({ to }) => void heard.push(to));
    running.send(push());
    running.send(pull);
    await settled();
    running.send(push());
    await settled();
    assert.deepEqual(heard, ['Open', 'Closed', 'Open']);
    assert.deepEqual(dropped, [
      [throws, 'it threw: deaf'],
      [rejects, 'it threw: later'],
    ]);
  });

  it('that are slow are told one entry at a time, and dropped and reported when too many wait', async () => {
    const dropped: string[] = [];
    const options = {
      ...clock,
      waitingMax: 3,
      onDropped: (_: unknown, why: string) => void dropped.push(why),
    };
    const running = startMachine(machine, notes, options);
    const heard: string[] = [];
    let fail: (error: Error) => void = () => assert.fail('it was not told');
    running.listen(({ to }) => {
      heard.push(to);
      return new Promise((_resolve, reject) => {
        fail = reject;
      });
    });
    running.send(push());
    await settled();
    for (const event of [pull, push(), pull]) running.send(event);
    await settled();
    assert.deepEqual([heard, dropped], [['Open'], []]);
    running.send(push());
    assert.equal(running.state, 'Open', 'the machine goes on');
    await settled();
    assert.deepEqual([heard, dropped], [['Open'], ['3 entries wait for it']]);
    running.send(pull);
    fail(new Error('much later'));
    await settled();
    assert.deepEqual([heard.length, dropped.length], [1, 1], 'it is told and reported once');
  });
});
