import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Action } from '@pawl/agent/machine/action';
import type { Call } from '@pawl/agent/machine/call';
import { agent } from '@pawl/agent/machine/machine';
import type { State } from '@pawl/agent/machine/state';
import type { Step } from '@pawl/machine/kernel/table';
import {
  batch,
  failed,
  llm,
  running,
  session,
  waiting,
} from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import { LATE, NOTICE } from '../../../../test/kit/agent/step-rows.js';
import { createModel } from '../../src/exploration/exploration-model.js';
import {
  type ExplorationEvent,
  type ExplorationNode,
  fate,
  user,
  world,
} from '../../src/exploration/exploration-node.js';
import { projections } from '../../src/projections/all-projections.js';
import type { Projection } from '../../src/projections/projection.js';
import { loom } from '../../src/projections/seed-loom.js';
import { minimal } from '../../src/projections/seed-minimal.js';
import { configurationNamed } from './small.js';

/** The world around the machine as the exploration sees it: what counts as a goal, and what counts as moving. */

const { model } = createModel(configurationNamed('everything'), agent, projections);
const at = (state: State): ExplorationNode => ({ ...model.initial, state });
const [prompt, turnsEnd] = model.goals;
const asking: Call = {
  judged: g.edit('2'),
  requestedAt: 1,
  status: 'awaitingApproval',
  why: 'x',
} as Call; // as policy makes it

const goals: readonly (readonly [
  title: string,
  state: State,
  isPrompt: boolean,
  isTurnsEnd: boolean,
])[] = [
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
    assert.deepEqual(
      [prompt?.holds(at(state)), turnsEnd?.holds(at(state))],
      [isPrompt, isTurnsEnd],
    );
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
const stale: ExplorationEvent = fate({ type: 'TimerFired', at: 0, timerId: 'timer-9' });
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
  const { node: called } = model.next(
    node,
    user({ type: 'UserInput', at: 0, text: 'hi', mode: 'steer' }),
  );
  assert.equal(called.state.name, 'CallingLlm');
  assert.notDeepEqual(called.cursors, node.cursors);
});

// ---- What the views are asked about ----

/** A view whose seed takes a step whenever it is asked. */
const restless: Projection = {
  ...loom,
  project: ({ state }) => ({ cursor: { state: `${state}+` }, steps: [] }),
};
const still: Projection = { ...minimal, project: (cursor) => ({ cursor, steps: [] }) };

/** A machine that always answers with this one step, and what comes of it where nothing happens. */
const answering = (
  step: Partial<Step<State, Action>>,
  seen: readonly Projection[],
): ExplorationNode => {
  const one = { state: resting.state, actions: [], path: [], diagnostics: [], ...step };
  const { model: own } = createModel(
    configurationNamed('everything'),
    { step: () => one, ignored: agent.ignored },
    seen,
  );
  return own.next({ ...own.initial, state: resting.state }, stale).node;
};
const moved = waiting(session({ notes: ['x'] }));
const steps: readonly (readonly [
  title: string,
  step: Partial<Step<State, Action>>,
  isAsked: boolean,
])[] = [
  ['was refused', { diagnostics: [LATE] }, false],
  ['was taken in silence', {}, true],
  ['was refused and changed something', { state: moved, diagnostics: [LATE] }, true],
  ['was refused and did something', { actions: [NOTICE], diagnostics: [LATE] }, true],
  ['changed something', { state: moved }, true],
  ['did something', { actions: [NOTICE] }, true],
];
for (const [title, step, isAsked] of steps) {
  test(`a view is ${isAsked ? '' : 'not '}asked about an event that ${title}`, () => {
    const [cursor] = answering(step, [restless]).cursors;
    assert.equal(cursor?.state, isAsked ? `${loom.begin.state}+` : loom.begin.state);
  });
}

test('an event that changes nothing but where one view of two stands leads on', () => {
  for (const seen of [
    [restless, still],
    [still, restless],
  ])
    assert.deepEqual(
      answering({}, seen).cursors.map(({ state }) => state),
      seen.map(({ begin, name }) => (name === restless.name ? `${begin.state}+` : begin.state)),
    );
});

// ---- What the world owes ----

test('a batch that is cancelled waits for its timer, where it has one', () => {
  const timersOf = (graceTimerId: string | null) =>
    model
      .labels(at({ ...batch([]), phase: { mode: 'cancelling', graceTimerId, cause: 'user' } }))
      .flatMap(({ by, event }) =>
        by === 'world' && event.type === 'TimerFired' ? [event.timerId] : [],
      );
  assert.deepEqual([timersOf(null), timersOf('timer-7')], [[], ['timer-7']]);
});
