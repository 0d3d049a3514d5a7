import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agent, initialState } from '@pawl/agent/machine/machine';
import { tryAgain } from '@pawl/agent/machine/moves/retry';
import { agentMachine } from '@pawl/agent/machine/names';
import type { State } from '@pawl/agent/machine/state';
import { table } from '@pawl/agent/machine/table';
import { late } from '@pawl/machine/kernel/table';
import { eventFrom } from '../../../../test/kit/agent/trace-events.js';
import { play, settingsFrom } from '../../../../test/kit/agent/trace-player.js';
import type { AgentMachine } from '../../src/exploration/exploration-model.js';
import {
  combineResults,
  type ExplorationResult,
  exploreOne,
  isSound,
} from '../../src/exploration/explore.js';
import { stepFaults } from '../../src/invariants.js';
import { projections } from '../../src/projections/all-projections.js';
import type { Projection } from '../../src/projections/projection.js';
import { loom } from '../../src/projections/seed-loom.js';
import { minimal } from '../../src/projections/seed-minimal.js';
import { configurationNamed } from './small.js';

const STATES_MAX = 100_000;
const run = (
  name: string,
  machine: AgentMachine = agent,
  seen: readonly Projection[] = projections,
): ExplorationResult =>
  exploreOne(configurationNamed(name), machine, seen, STATES_MAX, () => undefined);

const everyEdge = agent.edges.map(({ id }) => id);

const { states } = table;

/** A copy of the table in which any timer at all ends the wait for a retry. */
const hasty = agentMachine({
  ...table,
  states: {
    ...states,
    Error: {
      ...states.Error,
      on: { ...states.Error.on, TimerFired: { to: 'CallingLlm', then: tryAgain } },
    },
  },
});

test('a fault in the table is found, by a shortest trace that can be played', () => {
  const { violation } = run('everything', hasty);
  assert.ok(violation !== null);
  assert.deepEqual(
    [violation.kind, violation.events, violation.faults],
    [
      'promise',
      3,
      [
        'stale-events: a stale TimerFired left no diagnostic',
        'stale-events: a stale TimerFired changed Error',
      ],
    ],
  );
  // The machine as it should be plays it to its end; the faulty one breaks the same rule at the same place.
  assert.match(play(violation.trace).text, /\n= Error overloaded/);
  const lines = violation.trace.split('\n');
  let state: State = initialState(settingsFrom(lines[1]?.slice(2) ?? ''));
  const faults = lines
    .filter((line) => line.startsWith('> '))
    .map((line) => {
      const event = eventFrom(line.slice(2), 0);
      const taken = hasty.step(state, event);
      const found = stepFaults(state, event, taken);
      state = taken.state;
      return found;
    });
  assert.deepEqual(faults, [[], [], violation.faults]);
});

test('a step that a seed has no arrow for is found', () => {
  const edges = loom.edges.filter(({ to }) => to !== 'PostToolsHook');
  const { violation } = run('hooks', agent, [{ ...loom, edges }]);
  assert.equal(violation?.kind, 'view');
  assert.match(
    violation?.faults.join() ?? '',
    /^loom: ExecutingTools --ToolCompleted--> PostToolsHook/,
  );
});

test('a state from which there is no way back to the user is found', () => {
  const closed = agentMachine({
    ...table,
    states: {
      ...states,
      ShuttingDown: {
        ...states.ShuttingDown,
        on: { ...states.ShuttingDown.on, Resumed: late('it is over') },
      },
    },
  });
  const { violation } = run('queue goes on', closed);
  assert.match(violation?.faults.join() ?? '', /^out of reach: the prompt/);
  assert.match(violation?.trace ?? '', /\n> ShutdownRequested\n$/);
  assert.equal(violation?.events, 1);
});

test('a machine that answers the same step twice in two ways is found', () => {
  let epoch = 0;
  const fickle: AgentMachine = {
    ...agent,
    step: (state, event) => {
      const taken = agent.step(state, event);
      epoch += 1;
      return { ...taken, state: { ...taken.state, session: { ...taken.state.session, epoch } } };
    },
  };
  const { violation } = run('queue goes on', fickle);
  assert.deepEqual(violation?.faults, ['deterministic: the same step twice gives two answers']);
});

test('a machine that does the same step twice with other actions is found', () => {
  let count = 0;
  const fickle: AgentMachine = {
    ...agent,
    step: (state, event) => {
      const taken = agent.step(state, event);
      count += 1;
      const timer = { type: 'CancelTimer', timerId: `${count}` } as const;
      return { ...taken, actions: [...taken.actions, timer] };
    },
  };
  const { violation } = run('queue goes on', fickle);
  assert.deepEqual(violation?.faults, ['deterministic: the same step twice gives two answers']);
});

test('a step that breaks a promise and has no arrow in a seed is told as the fault of a view', () => {
  const { rest: _, ...silent } = states.WaitingForUserInput;
  const mute = agentMachine({ ...table, states: { ...states, WaitingForUserInput: silent } });
  const homeless = { ...loom, stands: { ...loom.stands, WaitingForUserInput: [] } };
  const { violation } = run('hooks', mute, [minimal, homeless]);
  assert.deepEqual(violation?.faults, [
    'back-to-the-user: the user is asked 0 times',
    'loom: the seed stands in WaitingForUserInput where we rest in WaitingForUserInput',
  ]);
  assert.equal(violation?.kind, 'view');
});

test('an exploration without a fault says what it has taken, as far as it went', () => {
  const few = exploreOne(configurationNamed('hooks'), agent, [loom], 10, () => undefined);
  assert.deepEqual([few.violation, few.complete], [null, false]);
  assert.ok(few.states < 100, `${few.states} states`);
  assert.ok(few.edges.includes('Ready/Start/0') && few.edges.every((id) => everyEdge.includes(id)));
  const ids = loom.edges.map(({ id }) => id);
  const { loom: taken = [] } = few.arrows;
  assert.ok(taken.includes('WaitingForUserInput/UserInput/CallingLlm'), taken.join());
  assert.ok(taken.length < ids.length && taken.every((id) => ids.includes(id)), taken.join());
});

const explored = (own: Partial<ExplorationResult>): ExplorationResult => ({
  name: 'one',
  about: '',
  states: 1,
  steps: 2,
  depth: 3,
  complete: true,
  violation: null,
  edges: [],
  arrows: {},
  ...own,
});
const violation = (events: number, kind: 'promise' | 'view' = 'promise') => ({
  configuration: 'one',
  faults: ['x'],
  kind,
  events,
  trace: '',
});
const whole = (own: Partial<ExplorationResult> = {}) =>
  combineResults([explored({ edges: everyEdge, ...own })], agent.edges, [], {});

test('the reached arrows are the union of all configurations', () => {
  const [first = '', ...rest] = everyEdge;
  const parts = [explored({ edges: [first] }), explored({ edges: rest, states: 10, steps: 20 })];
  const check = combineResults(parts, agent.edges, [], {});
  assert.deepEqual(
    [check.states, check.steps, check.edges.reached, check.edges.missing],
    [11, 22, everyEdge.length, []],
  );
  assert.equal(isSound(check), true);
});

test('an arrow that nobody takes is a fault, unless it has a reason', () => {
  const [first = '', ...rest] = everyEdge;
  const parts = [explored({ edges: rest })];
  const silent = combineResults(parts, agent.edges, [], {});
  assert.deepEqual([silent.edges.missing, isSound(silent)], [[first], false]);
  assert.deepEqual([silent.edges.reached, silent.edges.explained], [everyEdge.length - 1, []]);
  const said = combineResults(parts, agent.edges, [], { [first]: 'nobody comes here' });
  assert.deepEqual(
    [said.edges.explained, isSound(said)],
    [[{ id: first, why: 'nobody comes here' }], true],
  );
});

test('a reason for an arrow that is taken, or that is gone, is a fault', () => {
  const [first = ''] = everyEdge;
  for (const id of [first, 'Nowhere//0']) {
    const check = combineResults([explored({ edges: everyEdge })], agent.edges, [], {
      [id]: 'not so',
    });
    assert.deepEqual([check.edges.mistaken, isSound(check)], [[id], false]);
  }
});

test('the arrows of a view are looked at like those of the machine', () => {
  const ids = loom.edges.map(({ id }) => id);
  const taken = ids.filter((id) => loom.unreached[id] === undefined);
  const sound = combineResults(
    [explored({ edges: everyEdge, arrows: { loom: taken } })],
    agent.edges,
    [loom],
    {},
  );
  assert.equal(isSound(sound), true);
  const noEdges = combineResults([explored({ arrows: { loom: taken } })], agent.edges, [loom], {});
  assert.equal(isSound(noEdges), false);
  const [blind] = combineResults([explored({})], agent.edges, [loom], {}).views;
  assert.deepEqual([blind?.reached, blind?.missing], [0, taken]);
  const [view] = combineResults(
    [explored({ arrows: { loom: taken.slice(1) } })],
    agent.edges,
    [loom],
    {},
  ).views;
  assert.deepEqual([view?.name, view?.missing], ['loom', taken.slice(0, 1)]);
});

test('the shortest of several violations is shown, and an incomplete check is not sound', () => {
  const check = combineResults(
    [explored({ violation: violation(7) }), explored({ violation: violation(4) })],
    agent.edges,
    [],
    {},
  );
  assert.deepEqual([check.violations, check.violation?.events, isSound(check)], [2, 4, false]);
  assert.equal(isSound(whole({ violation: violation(1) })), false);
  assert.equal(isSound(whole({ complete: false })), false);
  assert.equal(isSound(whole()), true);
});

test('faults of the machine and of the views are counted apart', () => {
  const found = [violation(7), violation(4, 'view'), violation(5)];
  const check = combineResults(
    found.map((one) => explored({ violation: one })),
    agent.edges,
    [],
    {},
  );
  assert.deepEqual([check.violations, check.illegalProjections], [2, 1]);
});

test('the whole is complete when every part is', () => {
  const parts = [explored({ edges: everyEdge }), explored({ complete: false })];
  assert.equal(combineResults(parts, agent.edges, [], {}).complete, false);
});

test('the figures of each configuration are told', () => {
  const { configurations } = whole({ violation: violation(1) });
  assert.deepEqual(configurations, [
    { name: 'one', about: '', states: 1, steps: 2, depth: 3, complete: true },
  ]);
});
