import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Edge } from '@pawl/machine/kernel/table';
import type { Given } from '../../../../test/kit/agent/given.js';
import * as g from '../../../../test/kit/agent/given.js';
import { bring, type Place, type Step } from '../../../../test/kit/agent/walker.js';
import type { Projection } from '../../src/projections/projection.js';
import { checkRefinement } from '../../src/projections/refinement-check.js';
import { loom } from '../../src/projections/seed-loom.js';
import { minimal, minimalHead } from '../../src/projections/seed-minimal.js';
import { sketch } from '../../src/projections/seed-sketch.js';
import { projected, takenBy } from './projected.js';

/** A check that finds nothing proves nothing: machines that do wrong, and what each seed says of them. */

/** The arrow of our machine that leads somewhere else than it should. */
const arrow = (from: string, to: string, as = ''): Edge => ({
  id: `${from}//planted`,
  from,
  event: null,
  when: '',
  to,
  as,
  then: 'planted',
  kind: 'go',
});

const without =
  (...types: readonly string[]) =>
  (step: Step): Step => ({
    ...step,
    actions: step.actions.filter(({ type }) => !types.includes(type)),
  });
const through =
  (...path: readonly Edge[]) =>
  (step: Step): Step => ({ ...step, path });
const resting =
  (place: Place) =>
  (step: Step): Step => ({ ...step, state: bring(place).state() });

type Fault = {
  readonly title: string;
  readonly view: Projection;
  readonly given: Place;
  readonly send: Given;
  readonly plant: (step: Step) => Step;
  readonly says: RegExp;
};

const wants = g.wants(g.grep('1'));

const faults: readonly Fault[] = [
  {
    title: 'a retry that nobody schedules',
    view: minimal,
    given: 'C[u]',
    send: g.fails(),
    plant: without('ScheduleTimer'),
    says: /CallingLlm --LlmError--> Error \/ WaitForEvent is no arrow/,
  },
  {
    title: 'a machine that is already somewhere else',
    view: minimal,
    given: 'C[u]',
    send: g.fails(),
    plant: resting('X'),
    says: /the seed stands in Error where we rest in ExecutingTools/,
  },
  {
    title: 'a hook that swallows the request',
    view: minimalHead,
    given: 'H[c]',
    send: g.hookDone(),
    plant: without('SendLlmRequest', 'RunHook'),
    says: /PostToolsHook --HooksCompleted--> CallingLlm \/ WaitForEvent is no arrow/,
  },
  {
    title: 'a hook that is never run',
    view: loom,
    given: 'X',
    send: g.toolsFail,
    plant: (step) =>
      resting('H[c]')(without('RunHook')(through(arrow('ExecutingTools', 'PostToolsHook'))(step))),
    says: /ExecutingTools --ToolCompleted--> PostToolsHook \/ WaitForInput is no arrow/,
  },
  {
    title: 'a retry out of the tools',
    view: loom,
    given: 'X',
    send: g.toolsFail,
    plant: (step) => resting('Er')(through(arrow('ExecutingTools', 'Error'))(step)),
    says: /ExecutingTools --Error--> Error \/ WaitForInput is no arrow/,
  },
  // What the program of seed 003 itself asks for, and its own table forbids.
  {
    title: 'its own loop: over the budget before the tools',
    view: sketch,
    given: 'C[u]',
    send: wants,
    plant: through(
      arrow('CallingLlm', 'ProcessingLlmResponse'),
      arrow('ProcessingLlmResponse', 'BudgetExceeded'),
    ),
    says: /ProcessingLLMResponse ----> Cancelled is no arrow/,
  },
  {
    title: 'tools run although the turn was cancelled',
    view: sketch,
    given: 'C[u]',
    send: wants,
    plant: through(arrow('CallingLlm', 'Cancelled'), arrow('Cancelled', 'ExecutingTools')),
    says: /Cancelled ----> RunningTool is no arrow/,
  },
];

for (const { title, view, given, send, plant, says } of faults) {
  test(`${view.name} finds ${title}`, () => {
    const walker = bring(given, { ...view.settings, hooks: 'mutating' });
    const cursor = projected(view, takenBy(walker)).at(-1)?.cursor ?? view.begin;
    walker.send(send);
    const [last] = takenBy(walker).slice(-1);
    assert.ok(last !== undefined);
    const { faults: none } = checkRefinement(view, cursor, last.before, last.event, last.step);
    assert.deepEqual(none, [], 'without the fault it is legal');
    const { faults: found } = checkRefinement(
      view,
      cursor,
      last.before,
      last.event,
      plant(last.step),
    );
    assert.match(found.join('\n'), says);
  });
}

test('every view has a fault that it finds', () => {
  assert.deepEqual(
    new Set(faults.map(({ view }) => view)),
    new Set([minimal, minimalHead, loom, sketch]),
  );
});

test('a view that invents arrows, skips some or lies about them is found out, too', () => {
  const walker = bring('C[u]', loom.settings);
  const cursor = projected(loom, takenBy(walker)).at(-1)?.cursor ?? loom.begin;
  walker.send(wants);
  const [last] = takenBy(walker).slice(-1);
  assert.ok(last !== undefined);
  const { before, event, step } = last;
  const honest = loom.project(cursor, before, event, step);
  const told = (steps: typeof honest.steps): string =>
    checkRefinement(
      { ...loom, project: () => ({ ...honest, steps }) },
      cursor,
      before,
      event,
      step,
    ).faults.join('\n');
  assert.equal(told(honest.steps), '');
  const copied = honest.steps.map((one) => ({
    ...one,
    edge: one.edge === null ? null : { ...one.edge },
  }));
  assert.match(told(copied), /is no arrow/);
  assert.match(told(honest.steps.slice(1)), /begins elsewhere: the seed stands in CallingLlm/);
  const [first] = honest.steps;
  assert.match(
    told(honest.steps.map((one) => ({ ...one, edge: first?.edge ?? null }))),
    /is no arrow/,
  );
  assert.match(told(honest.steps.map((one) => ({ ...one, action: 'Shutdown' }))), /is no arrow/);
});
