import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { bring, type Step } from '../../../../test/kit/agent/walker.js';
import { projections } from '../../src/projections/all-projections.js';
import type {
  Projection,
  ProjectionEdge,
  ProjectionStep,
} from '../../src/projections/projection.js';
import {
  checkRefinement,
  checkRefinements,
  initialCursors,
  missingArrows,
} from '../../src/projections/refinement-check.js';
import { loom } from '../../src/projections/seed-loom.js';

/** The check by itself: seeds that say anything, and what is wrong with that. */

const A_TO_B: ProjectionEdge = {
  id: 'A/go/B',
  from: 'A',
  event: 'go',
  when: '',
  to: 'B',
  action: 'Do',
  source: 'text',
};
const B_TO_A: ProjectionEdge = {
  id: 'B//A',
  from: 'B',
  event: null,
  when: '',
  to: 'A',
  action: null,
  source: 'text',
};
const there: ProjectionStep = { from: 'A', event: 'go', to: 'B', action: 'Do', edge: A_TO_B };
const back: ProjectionStep = { from: 'B', event: null, to: 'A', action: 'Whatever', edge: B_TO_A };

/** A seed that stands in A, and says of each step of ours that it is these. */
const saying = (
  steps: readonly ProjectionStep[],
  stands = steps.at(-1)?.to ?? 'A',
): Projection => ({
  ...loom,
  begin: { state: 'A' },
  edges: [A_TO_B, B_TO_A],
  unreached: {},
  stands: { ...loom.stands, CallingLlm: ['A', 'B'] },
  project: () => ({ cursor: { state: stands }, steps }),
});
const taken = bring('C[u]').last();
const before = bring('W').state();
const faultsOf = (view: Projection, step: Step = taken): readonly string[] =>
  checkRefinement(view, view.begin, before, g.cancel, step).faults;

const GO = 'loom: A --go--> B / Do';
const rows: readonly [title: string, view: Projection, ...says: string[]][] = [
  ['no step', saying([])],
  ['an arrow of its own', saying([there])],
  ['an arrow that names no action', saying([there, back])],
  ['a way round', saying([there, back, there])],
  ['no arrow', saying([{ ...there, edge: null }]), `${GO} is no arrow of the seed`],
  [
    'an arrow from elsewhere',
    saying([{ ...there, edge: { ...A_TO_B, from: 'B' } }]),
    `${GO} is no arrow of the seed`,
  ],
  [
    'an arrow that is not its own',
    saying([{ ...there, edge: { ...A_TO_B } }]),
    `${GO} is no arrow of the seed`,
  ],
  [
    'another event than the arrow has',
    saying([{ ...there, event: 'stop' }]),
    'loom: A --stop--> B / Do is no arrow of the seed',
  ],
  [
    'another action than the arrow has',
    saying([{ ...there, action: null }]),
    'loom: A --go--> B is no arrow of the seed',
  ],
  [
    'another end than the arrow has',
    saying([{ ...there, to: 'A' }]),
    'loom: A --go--> A / Do is no arrow of the seed',
  ],
  [
    'another beginning than the arrow has',
    saying([there, { ...there, from: 'B' }]),
    'loom: B --go--> B / Do is no arrow of the seed',
  ],
  [
    'an arrow that begins elsewhere',
    saying([back], 'A'),
    'loom: B ----> A / Whatever begins elsewhere: the seed stands in A',
  ],
  [
    'a second arrow that begins elsewhere',
    saying([there, there]),
    `${GO} begins elsewhere: the seed stands in B`,
  ],
  [
    'a place where it cannot stand',
    saying([there], 'C'),
    'loom: the seed stands in C where we rest in CallingLlm',
  ],
];

for (const [title, view, ...says] of rows) {
  test(`a step that is said to be ${title} has ${says.length} faults`, () => {
    assert.deepEqual(faultsOf(view), says);
  });
}

test('where a broken machine comes to rest in a state that never rests, no seed stands', () => {
  const { session } = bring('W').state();
  const state = { name: 'Cancelled', session, cause: 'user', text: 'cancelled' } as const;
  assert.deepEqual(faultsOf(saying([]), { ...taken, state }), [
    'loom: the seed stands in A where we rest in Cancelled',
  ]);
});

test('all seeds begin where each begins', () => {
  assert.deepEqual(
    initialCursors(projections),
    projections.map(({ begin }) => begin),
  );
});

test('arrows that are taken are told, and of a step without one only its faults', () => {
  const two = [saying([there]), saying([{ ...there, edge: null }])];
  const all = checkRefinements(two, initialCursors(two), before, g.cancel, taken);
  assert.deepEqual(all.reached, [A_TO_B]);
  assert.deepEqual(all.faults, [`${GO} is no arrow of the seed`]);
});

test('each seed goes on from where it stands; one that stands nowhere begins', () => {
  const going: Projection = {
    ...saying([]),
    project: ({ state }) => ({ cursor: { state: state === 'A' ? 'B' : 'A' }, steps: [] }),
  };
  const after = checkRefinements(
    [going, going, going],
    [{ state: 'A' }, { state: 'B' }],
    before,
    g.cancel,
    taken,
  );
  assert.deepEqual(after.cursors, [{ state: 'B' }, { state: 'A' }, { state: 'B' }]);
});

test('an arrow that nobody took is missing, unless there is a reason', () => {
  const view = saying([]);
  assert.deepEqual(missingArrows(view, new Set()), [A_TO_B, B_TO_A]);
  assert.deepEqual(missingArrows(view, new Set([A_TO_B])), [B_TO_A]);
  assert.deepEqual(
    missingArrows({ ...view, unreached: { 'B//A': 'never' } }, new Set([A_TO_B])),
    [],
  );
});
