import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { forAll, roam } from '../../../../test/kit/agent/random.js';
import type { ProjectionEdge } from '../../src/projections/projection.js';
import { tools } from '../../src/projections/seed-tools-mode.js';
import { check, INTO_TOOLS, inSeedWords, type Row, round, run } from './tools-rows.js';

// Tools mode of seed 004: its rows, case by case, and every random walk.

const rows: readonly Row[] = [
  {
    title: 'text only',
    given: [g.says('a house')],
    path: ['INIT', 'LLMResponseReceived PROMPTING', 'NoToolCalls DONE'],
    finish: 'stop',
  },
  {
    title: 'one tool round',
    given: [...round('1'), g.says('a house')],
    path: [...INTO_TOOLS, 'ToolsExecuted PROMPTING', 'NoToolCalls DONE'],
    finish: 'stop',
  },
  {
    title: 'a policy stop in PROMPTING with calls answers them as not executed',
    settings: { limits: { usd: 1 } },
    given: [g.completed({ calls: [g.grep('1')], usage: g.usage(2) })],
    path: ['INIT', 'LLMResponseReceived PROMPTING', 'PolicyStop DONE'],
    finish: 'policy_stop',
  },
  {
    title: 'a policy stop after tools makes no further call',
    settings: { userPolicy: 'ask' },
    given: [...round('1'), g.policyStops()],
    path: [...INTO_TOOLS, 'PolicyStop DONE'],
    finish: 'policy_stop',
  },
  {
    title: 'the limit of iterations: the model is asked for its answer, without tools',
    settings: { limits: { rounds: 1 }, atLimit: 'finish' },
    given: [...round('1'), g.says('a house')],
    path: [...INTO_TOOLS, 'MaxIterationsReached DONE'],
    finish: 'max_iterations',
  },
  {
    title: 'the same call again and again',
    settings: { limits: { repeats: 2 } },
    given: [...round('1', 'a'), ...round('1', 'b')],
    path: [
      ...INTO_TOOLS,
      'ToolsExecuted PROMPTING',
      'ToolCallsFound EXECUTING_TOOLS',
      'PolicyStop DONE',
    ],
    finish: 'policy_stop',
  },
  {
    title: 'errors in a row, with the answer asked for',
    settings: { limits: { errors: 1 }, atLimit: 'finish' },
    given: [g.wants(g.grep('1')), g.ended('1', 'failed', 'no'), g.says('I could not')],
    path: [...INTO_TOOLS, 'PolicyStop DONE'],
    finish: 'policy_stop',
  },
  {
    title:
      'a call that can not run is an error result even where the limit stops the run in the same step',
    settings: { limits: { rounds: 1 } },
    given: [g.wants(g.unknownTool('1'))],
    path: [...INTO_TOOLS, 'MaxIterationsReached DONE'],
    finish: 'max_iterations',
  },
  {
    title: 'a policy that stops before the first call ends the run, which the seed can not',
    settings: { userPolicy: 'ask' },
    given: [g.policyStops()],
    path: ['INIT'],
    finish: 'policy_stop',
  },
  {
    title: 'a cancel ends the run without a reason of the seed',
    given: [...round('1'), g.cancel],
    path: INTO_TOOLS,
    finish: null,
  },
];

check(rows);

test('seed 004, tools mode: every row of the table is taken by some of these', () => {
  const reached = new Set<ProjectionEdge>();
  for (const { settings = {}, given } of rows) inSeedWords(run(settings, ...given), reached);
  assert.deepEqual(
    tools.edges.filter((edge) => !reached.has(edge)).map(({ id }) => id),
    [],
  );
});

test('every random walk is legal in the words of tools mode', (t) => {
  forAll(t, 60, (walked) => {
    inSeedWords(roam(walked));
  });
});
