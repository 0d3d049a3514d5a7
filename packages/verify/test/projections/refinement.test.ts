import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { State } from '@pawl/agent/machine/state';
import { forAll, roam } from '../../../../test/kit/agent/random.js';
import { play } from '../../../../test/kit/agent/trace-player.js';
import { projectionNamed, projections } from '../../src/projections/all-projections.js';
import type { Projection } from '../../src/projections/projection.js';
import {
  checkRefinements,
  initialCursors,
  missingArrows,
} from '../../src/projections/refinement-check.js';
import { sketch } from '../../src/projections/seed-sketch.js';
import { lineOf, projected, type Seen, type Taken, takenBy } from './projected.js';

/** Whatever our machine does, each seed's machine could have done. */

test('on random walks every step is a step of every seed, and ends where the seed would stand', (t) => {
  forAll(t, 200, (walked) => {
    const taken = takenBy(roam(walked));
    for (const view of projections) standsRight(view, projected(view, taken));
  });
});

const golden = readdirSync(new URL('../../../../test/traces/', import.meta.url)).filter((name) =>
  name.endsWith('.trace'),
);

for (const name of golden) {
  test(`${name} is legal in every seed`, () => {
    const taken = goldenSteps(name);
    assert.ok(taken.length > 0);
    for (const view of projections) standsRight(view, projected(view, taken));
  });
}

test('every arrow of every seed is walked by some golden trace, or has a reason why none can', () => {
  const traces = golden.map(goldenSteps);
  for (const view of projections) {
    const seen = traces.flatMap((taken) => projected(view, taken));
    const reached = new Set(seen.flatMap(({ steps }) => steps.flatMap(({ edge }) => edge ?? [])));
    assert.deepEqual(
      missingArrows(view, reached).map(({ id }) => `${view.name}: ${id}`),
      [],
    );
    for (const { id } of reached)
      assert.equal(view.unreached[id], undefined, `${id} was said never to be taken`);
  }
});

test('all views at once say what each says alone', () => {
  const taken = goldenSteps('hooks-run-after-changes.trace');
  const alone = projections.map((view) => projected(view, taken));
  let cursors = initialCursors(projections);
  taken.forEach(({ before, event, step }, index) => {
    const all = checkRefinements(projections, cursors, before, event, step);
    assert.deepEqual(all.faults, []);
    assert.deepEqual(
      all.cursors,
      alone.map((seen) => seen[index]?.cursor),
    );
    const edges = alone.flatMap((seen) => (seen[index]?.steps ?? []).map(({ edge }) => edge));
    assert.deepEqual(all.reached, edges);
    cursors = all.cursors;
  });
});

const goldenSteps = (name: string): readonly Taken[] =>
  play(readFileSync(new URL(`../../../../test/traces/${name}`, import.meta.url), 'utf8')).steps;

test('a cursor is small and plain, and there are few of them', (t) => {
  const seen = new Map<string, Set<string>>();
  forAll(t, 60, (walked) => {
    const taken = takenBy(roam(walked));
    for (const view of projections) {
      const cursors = seen.get(view.name) ?? new Set();
      seen.set(view.name, cursors);
      for (const { cursor } of projected(view, taken)) {
        assert.deepEqual(JSON.parse(JSON.stringify(cursor)), cursor);
        assert.ok(view.states[cursor.state] !== undefined, cursor.state);
        cursors.add(JSON.stringify(cursor));
      }
    }
  });
  for (const view of projections)
    assert.ok((seen.get(view.name)?.size ?? 0) <= Object.keys(view.states).length + 1);
});

// ---- Where the seeds stand (the table of projections, written down a second time) ----

const plainPlace = (state: State, cursor: string, hook: string): boolean => {
  switch (state.name) {
    case 'Ready':
    case 'Rewinding':
      return cursor === 'WaitingForUserInput';
    case 'PostToolsHook':
      return cursor === hook;
    case 'Compacting': {
      const waits = state.mode.kind === 'idle' && state.mode.resume === 'rest';
      return cursor === (waits ? 'WaitingForUserInput' : 'CallingLlm');
    }
    default:
      return cursor === state.name;
  }
};

const callOf = (purpose: 'user' | 'toolResults'): string =>
  purpose === 'user' ? 'SendingToLLM' : 'SendingToolResults';

const sketchPlace = (state: State, cursor: string): boolean => {
  switch (state.name) {
    case 'CallingLlm':
    case 'Error':
      return cursor === callOf(state.purpose);
    case 'ExecutingTools':
      return cursor === 'RunningTool';
    case 'PostToolsHook':
      return state.phase === 'AutoCommitting'
        ? cursor === 'CheckingGitCommits' || cursor === 'RunningAutoformatters'
        : cursor === state.phase;
    case 'Compacting':
      if (state.mode.kind === 'overflow') return cursor === callOf(state.mode.purpose);
      return cursor === (state.mode.kind === 'idle' ? 'Compacting' : 'GatheringAdditionalMessages');
    case 'Rewinding':
      return cursor === 'WaitingForUserInput';
    case 'ShuttingDown':
      return cursor === 'Ready';
    default:
      return cursor === state.name;
  }
};

type Places = (state: State, cursor: string) => boolean;
/** Tools mode has its own tests. */
const places: Readonly<Record<Projection['name'], Places | null>> = {
  minimal: (state, cursor) => plainPlace(state, cursor, 'ExecutingTools'),
  'minimal-head': (state, cursor) => plainPlace(state, cursor, 'PostToolsHook'),
  loom: (state, cursor) => plainPlace(state, cursor, 'PostToolsHook'),
  sketch: sketchPlace,
  tools: null,
};

/** Nothing is told twice and nothing is left out: each place is the one that the table of projections asks for. */
const standsRight = (view: Projection, seen: readonly Seen[]): void => {
  const isRight = places[view.name];
  for (const { step, cursor } of seen) {
    const place = JSON.stringify({ ...step.state, session: null });
    assert.ok(
      isRight === null || isRight(step.state, cursor.state),
      `${view.name}: ${cursor.state} in ${place}`,
    );
  }
  if (isRight !== null && view !== sketch) eachCallOnce(seen);
};

/** In 000 and Loom each call of a reply ends in one ToolCompleted, unless the session ends before. */
const eachCallOnce = (seen: readonly Seen[]): void => {
  let open = 0;
  for (const { event, steps } of seen) {
    for (const step of steps) {
      if (step.to === 'ExecutingTools' && step.event === null)
        open = event.type === 'LlmCompleted' ? event.calls.length : 0;
      if (step.event === 'ShutdownRequested') open = 0;
      if (step.event !== 'ToolCompleted') continue;
      open--;
      assert.equal(open === 0, step.to !== 'ExecutingTools', `${lineOf(step)} with ${open} left`);
    }
  }
};

test('the views are found by their names, which are all different', () => {
  assert.deepEqual(
    projections.map(({ name }) => projectionNamed(name)),
    projections,
  );
  assert.equal(new Set(projections.map(({ name }) => name)).size, projections.length);
  assert.equal(projectionNamed('weaver'), undefined);
});

test('an arrow that is declared unreachable exists and has a reason', () => {
  for (const view of projections) {
    const ids = new Set(view.edges.map(({ id }) => id));
    assert.equal(ids.size, view.edges.length, 'two arrows of one id');
    for (const [id, why] of Object.entries(view.unreached))
      assert.ok(ids.has(id) && why.length > 20, id);
  }
});

test('arrows lead between states that are listed, by events and with actions that are listed', () => {
  for (const { states, events, actions, edges, initial, ends, transient, ours } of projections) {
    for (const { from, to, event, action } of edges) {
      assert.ok(states[from] !== undefined && states[to] !== undefined, `${from} ${to}`);
      assert.ok(event === null || events[event] !== undefined, String(event));
      assert.ok(action === null || actions[action] !== undefined, String(action));
    }
    for (const name of [initial, ...ends, ...transient])
      assert.ok(states[name] !== undefined, name);
    assert.deepEqual(Object.keys(ours.states), Object.keys(states));
    assert.deepEqual(Object.keys(ours.events), Object.keys(events));
    assert.deepEqual(Object.keys(ours.actions), Object.keys(actions));
    const walked = (
      names: readonly string[],
      of: (edge: (typeof edges)[number]) => string | null,
    ) =>
      assert.deepEqual(
        names.filter((name) => !edges.some((edge) => of(edge) === name)),
        [],
      );
    walked(Object.keys(events), (edge) => edge.event);
    walked(Object.keys(actions), (edge) => edge.action);
  }
});
