import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Call } from '../../../src/agent/call.js';
import { modelOf } from '../../../src/agent/exploration/model.js';
import { fate, type Label, type Node, user, world } from '../../../src/agent/exploration/node.js';
import { agent } from '../../../src/agent/machine.js';
import type { State } from '../../../src/agent/state.js';
import { views } from '../../../src/agent/views/views.js';
import { batch, failed, llm, running, session, waiting } from '../by-hand.js';
import * as g from '../given.js';
import { configurationNamed } from './small.js';

/** The world around the machine as the exploration sees it: what counts as a goal, and what counts as moving. */

const { model } = modelOf(configurationNamed('everything'), agent, views);
const at = (state: State): Node => ({ ...model.initial, state });
const [prompt, turnsEnd] = model.goals;
const asking: Call = { judged: g.edit('2'), requestedAt: 1, status: 'awaitingApproval', why: 'x' } as Call; // as policy makes it

const goals: readonly (readonly [title: string, state: State, isPrompt: boolean, isTurnsEnd: boolean])[] = [
  ['a wait', waiting(), true, true],
  ['a call of the model', llm(), false, false],
  ['a wait to try again', failed(session(), 1), false, false],
  ['tools that run', batch([running('1')]), false, false],
  ['a question', batch([asking]), false, true],
  ['a question beside a tool that runs', batch([running('1'), asking]), false, true],
  ['the end', { name: 'ShuttingDown', session: session() }, false, true],
];
for (const [title, state, isPrompt, isTurnsEnd] of goals) {
  test(`${title} is ${isPrompt ? '' : 'not '}the prompt, and ${isTurnsEnd ? '' : 'not '}the end of a turn`, () => {
    assert.deepEqual([prompt?.holds(at(state)), turnsEnd?.holds(at(state))], [isPrompt, isTurnsEnd]);
  });
}

test('fate leads to no goal, and what the user may do ends no turn', () => {
  const labels = [world(g.begin), user(g.begin), fate(g.begin)];
  assert.deepEqual(
    labels.map((label) => [prompt?.via(label), turnsEnd?.via(label)]),
    [
      [true, true],
      [true, false],
      [false, false],
    ],
  );
});

/** A timer that nobody waits for. */
const stale: Label = fate({ type: 'TimerFired', at: 0, timerId: 'timer-9' });
const resting = at(waiting());

test('an event that changes nothing leads to the very same node', () => {
  const { node, faults } = model.next(resting, stale);
  assert.equal(node, resting);
  assert.deepEqual(faults, []);
});

test('an event that changes nothing but costs something leads on, with less to spend', () => {
  const { node } = model.next({ ...resting, costlyLeft: 2 }, { ...stale, costly: true });
  assert.equal(node.costlyLeft, 1);
  assert.equal(node.state, resting.state);
});

test('an event that changes nothing but the time leads on', () => {
  const { node } = model.next(resting, { ...stale, event: { ...stale.event, at: 7 } });
  assert.equal(node.now, 7);
});

test('an event that moves the machine moves the views with it', () => {
  const { node } = model.next(model.initial, user({ type: 'Start', at: 0 }));
  assert.equal(node.state.name, 'WaitingForUserInput');
  const { node: called } = model.next(node, user({ type: 'UserInput', at: 0, text: 'hi', mode: 'steer' }));
  assert.equal(called.state.name, 'CallingLlm');
  assert.notDeepEqual(called.cursors, node.cursors);
});
