import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { explore, type FiniteModel, type Goal } from '../src/explorer/explore.js';

/** A toy: its nodes are names, its arcs a list of words like `a-go->b`. */
type Toy = FiniteModel<string, string>;

const toy = (initial: string, arcs: readonly string[], own: Partial<Toy> = {}): Toy => {
  const known = arcs.map((arc) => /^(\w+)-(\w+)->(\w+)$/.exec(arc)?.slice(1) ?? assert.fail(arc));
  return {
    initial,
    labels: (node) => known.filter(([from]) => from === node).map(([, label = '']) => label),
    next: (node, label) => {
      const [, , to = ''] =
        known.find(([from, by]) => from === node && by === label) ?? assert.fail();
      return { node: to, faults: to === 'bad' ? ['it is bad'] : [] };
    },
    key: (node) => node,
    findFaults: () => [],
    goals: [],
    ...own,
  };
};

const goal = (at: string, via = /./): Goal<string, string> => ({
  name: `to ${at}`,
  holds: (node) => node === at,
  via: (label) => via.test(label),
});

const ALL = { statesMax: 1_000 };

test('every node is found, and every arc is a step', () => {
  const found = explore(toy('a', ['a-go->b', 'a-jump->c', 'b-go->c', 'c-back->a']), ALL);
  assert.deepEqual(found, { states: 3, steps: 4, depth: 1, complete: true, violation: null });
});

test('the depth is the length of the longest of the shortest ways', () => {
  assert.equal(explore(toy('a', ['a-go->b', 'b-go->c', 'c-go->d', 'a-jump->c']), ALL).depth, 2);
});

test('a violation is found by a shortest way, and what it says is told', () => {
  const arcs = [
    'a-slow->b',
    'b-slow->c',
    'c-slow->bad',
    'a-quick->d',
    'd-quick->bad',
    'b-other->a',
  ];
  const { violation, complete, depth } = explore(toy('a', arcs), ALL);
  assert.deepEqual(violation, { faults: ['it is bad'], path: ['quick', 'quick'] });
  assert.deepEqual([complete, depth], [false, 2]);
});

test('nodes of one key are one node', () => {
  const counting: FiniteModel<number, 'up'> = {
    initial: 0,
    labels: () => ['up'],
    next: (node) => ({ node: node + 1, faults: [] }),
    key: (node) => String(node % 7),
    findFaults: () => [],
    goals: [],
  };
  assert.deepEqual(explore(counting, ALL), {
    states: 7,
    steps: 7,
    depth: 6,
    complete: true,
    violation: null,
  });
});

test('a step that leads to the very same node is looked at, leads nowhere, and asks for no key', () => {
  const asked: string[] = [];
  const standing: FiniteModel<{ readonly name: string }, string> = {
    initial: { name: 'a' },
    labels: () => ['stand', 'fall'],
    next: (node, label) => ({ node, faults: label === 'fall' ? ['it fell'] : [] }),
    key: ({ name }) => {
      asked.push(name);
      return name;
    },
    findFaults: () => [],
    goals: [],
  };
  assert.deepEqual(explore(standing, ALL).violation, { faults: ['it fell'], path: ['fall'] });
  assert.deepEqual(asked, ['a']);
});

test('a node is checked once, by the step that found it', () => {
  const asked: string[] = [];
  const arcs = ['a-go->b', 'a-jump->b', 'b-go->c', 'c-back->b'];
  explore(
    toy('a', arcs, {
      findFaults: (node, from, label) => {
        asked.push(`${from}-${label}->${node}`);
        return [];
      },
    }),
    ALL,
  );
  assert.deepEqual(asked, ['a-go->b', 'b-go->c']);
  const { violation } = explore(
    toy('a', arcs, { findFaults: (node) => (node === 'c' ? ['c is wrong'] : []) }),
    ALL,
  );
  assert.deepEqual(violation, { faults: ['c is wrong'], path: ['go', 'go'] });
});

test('a dead end is found, with a shortest way into it', () => {
  const arcs = [
    'home-out->wood',
    'wood-back->home',
    'wood-fall->pit',
    'pit-dig->hole',
    'hole-up->pit',
  ];
  const { violation, complete } = explore(toy('home', arcs, { goals: [goal('home')] }), ALL);
  assert.deepEqual(violation, { faults: ['out of reach: to home'], path: ['out', 'fall'] });
  assert.equal(complete, true);
});

test('a goal counts only by the labels that may be used for it', () => {
  const arcs = ['home-out->wood', 'wood-luck->home', 'wood-walk->field', 'field-walk->home'];
  const by = (via: RegExp) =>
    explore(toy('home', arcs, { goals: [goal('home', via)] }), ALL).violation?.path ?? null;
  assert.deepEqual([by(/./), by(/walk/), by(/luck/)], [null, null, ['out', 'walk']]);
});

test('the first unreachable goal is reported', () => {
  const arcs = ['a-go->b', 'b-back->a', 'b-go->c', 'c-back->b'];
  const goals = [goal('a'), goal('c'), goal('b', /go/)];
  const { violation } = explore(toy('a', arcs, { goals }), ALL);
  assert.deepEqual(violation, { faults: ['out of reach: to b'], path: ['go', 'go'] });
});

test('a model that is too large is not called complete, and says nothing of its goals', () => {
  const endless: FiniteModel<number, string> = {
    initial: 0,
    labels: () => ['up'],
    next: (node) => ({ node: node + 1, faults: [] }),
    key: String,
    findFaults: () => [],
    goals: [{ name: 'never', holds: () => false, via: () => true }],
  };
  const { states, complete, violation } = explore(endless, { statesMax: 50 });
  assert.deepEqual([states, complete, violation], [51, false, null]);
});

test('a large model is told of on the way', () => {
  const told: number[] = [];
  const grid: FiniteModel<number, number> = {
    initial: 0,
    labels: () => [1, 200],
    next: (node, step) => ({ node: (node + step) % 40_000, faults: [] }),
    key: String,
    findFaults: () => [],
    goals: [{ name: 'the start', holds: (node) => node === 0, via: () => true }],
  };
  const found = explore(grid, { statesMax: 100_000, watch: ({ states }) => told.push(states) });
  assert.deepEqual([found.states, found.steps, found.complete], [40_000, 80_000, true]);
  assert.equal(told.length, 4);
  assert.ok(told.every((states, index) => states > 10_000 * index));
});

const LONG = 12_000;
/** A way of as many nodes, one behind the other; `last` is where it leads from its end. */
const way = (
  last: number,
  own: Partial<FiniteModel<number, number>> = {},
): FiniteModel<number, number> => ({
  initial: 0,
  labels: (node) => [node],
  next: (node) => ({ node: node + 1 < LONG ? node + 1 : last, faults: [] }),
  key: String,
  findFaults: () => [],
  goals: [],
  ...own,
});

test('the path to a violation is whole, however long it is', () => {
  const far = way(0, { findFaults: (node) => (node === LONG - 1 ? ['the end'] : []) });
  const path = Array.from({ length: LONG - 1 }, (_, node) => node);
  assert.deepEqual(explore(far, { statesMax: LONG }).violation, { faults: ['the end'], path });
});

test('where a goal holds is known, however far it is, and nobody needs to watch', () => {
  const goals = [{ name: 'the end', holds: (node: number) => node === LONG - 1, via: () => true }];
  const found = explore(way(LONG - 1, { goals }), { statesMax: LONG });
  assert.deepEqual([found.states, found.complete, found.violation], [LONG, true, null]);
});

test('a goal is out of reach exactly where a search from every node says so', () => {
  const arcs = fc.array(
    fc.record({ from: fc.nat(12), to: fc.nat(12), by: fc.constantFrom('x', 'y') }),
    {
      maxLength: 40,
    },
  );
  fc.assert(
    fc.property(arcs, (list) => {
      const model: FiniteModel<number, number> = {
        initial: 0,
        labels: (node) => list.flatMap(({ from }, index) => (from === node ? [index] : [])),
        next: (_, label) => ({ node: list[label]?.to ?? 0, faults: [] }),
        key: String,
        findFaults: () => [],
        goals: [
          { name: 'three', holds: (node) => node === 3, via: (label) => list[label]?.by === 'x' },
        ],
      };
      const reach = (start: number, by: RegExp): ReadonlySet<number> => {
        const found = new Set([start]);
        for (const node of found)
          for (const arc of list) if (arc.from === node && by.test(arc.by)) found.add(arc.to);
        return found;
      };
      const lost = [...reach(0, /./)].filter((node) => !reach(node, /x/).has(3));
      const { violation } = explore(model, ALL);
      assert.equal(violation !== null, lost.length > 0);
      const end = violation?.path.reduce((_, label) => list[label]?.to ?? 0, 0) ?? null;
      assert.ok(end === null || lost.includes(end));
    }),
  );
});
