import assert from 'node:assert/strict';
import { test } from 'node:test';
import { initialState } from '../../../src/agent/machine.js';
import type { State } from '../../../src/agent/state.js';
import { follow } from '../../../src/agent/views/follow.js';
import { tools } from '../../../src/agent/views/tools.js';
import type { ViewCursor, ViewEdge } from '../../../src/agent/views/view.js';
import { finishReasonOf } from '../../../src/recursive/tools-mode.js';
import * as g from '../given.js';
import { forAll, roam } from '../random.js';
import { settingsOf } from '../settings.js';
import { type Walker, walk } from '../walker.js';

// Tools mode of seed 004: its rows, case by case (4.10), and every random walk.

/** The states that a walk goes through in the seed's words; throws at a step that is not in its table. */
const inSeedWords = (walker: Walker, reached = new Set<ViewEdge>()): readonly string[] => {
  let cursor: ViewCursor = tools.begin;
  let before = walker.steps()[0]?.state as State; // a walk has at least its first state
  const said: string[] = [cursor.state];
  walker.events().forEach((event, index) => {
    const step = walker.steps()[index + 1];
    assert.ok(step !== undefined);
    const followed = follow(tools, cursor, before, event, step);
    assert.deepEqual(followed.faults, []);
    for (const { event: name, to, edge } of followed.steps) {
      said.push(`${name} ${to}`);
      if (edge !== null) reached.add(edge);
    }
    cursor = followed.cursor;
    before = step.state;
  });
  return said;
};

const run = (settings: Parameters<typeof settingsOf>[0], ...given: readonly g.Given[]): Walker => {
  const walker = walk(initialState(settingsOf({ ...settings, hooks: 'never', autoRearm: 'off' })));
  for (const one of [g.begin, g.input('what is in a.ts?'), ...given]) {
    walker.send(g.eventOf(one, walker.state()));
  }
  return walker;
};

const finishOf = (walker: Walker): string | null => {
  const state = walker.state();
  return state.name === 'WaitingForUserInput' ? finishReasonOf(state) : null;
};

const round = (callId: string, text = `result ${callId}`): readonly g.Given[] => [
  g.wants(g.grep(callId)),
  g.ended(callId, 'ok', text),
];

type Row = {
  readonly title: string;
  readonly settings?: Parameters<typeof settingsOf>[0];
  readonly given: readonly g.Given[];
  readonly path: readonly string[];
  readonly finish: string | null;
};

const INTO_TOOLS = ['INIT', 'LLMResponseReceived PROMPTING', 'ToolCallsFound EXECUTING_TOOLS'];

const rows: readonly Row[] = [
  {
    title: 'case 226: text only',
    given: [g.says('a house')],
    path: ['INIT', 'LLMResponseReceived PROMPTING', 'NoToolCalls DONE'],
    finish: 'stop',
  },
  {
    title: 'case 227: one tool round',
    given: [...round('1'), g.says('a house')],
    path: [...INTO_TOOLS, 'ToolsExecuted PROMPTING', 'NoToolCalls DONE'],
    finish: 'stop',
  },
  {
    title: 'case 229: a policy stop in PROMPTING with calls answers them as not executed',
    settings: { limits: { usd: 1 } },
    given: [g.completed({ calls: [g.grep('1')], usage: g.usage(2) })],
    path: ['INIT', 'LLMResponseReceived PROMPTING', 'PolicyStop DONE'],
    finish: 'policy_stop',
  },
  {
    title: 'case 230: a policy stop after tools makes no further call',
    settings: { userPolicy: 'ask' },
    given: [...round('1'), g.policyStops()],
    path: [...INTO_TOOLS, 'PolicyStop DONE'],
    finish: 'policy_stop',
  },
  {
    title: 'case 232: an unknown tool is an error result, and the run goes on',
    given: [g.wants(g.unknownTool('1')), g.says('then without')],
    path: [...INTO_TOOLS, 'ToolsExecuted PROMPTING', 'NoToolCalls DONE'],
    finish: 'stop',
  },
  {
    title: 'case 233: a tool that throws is an error result, and the run goes on',
    given: [g.wants(g.grep('1')), g.ended('1', 'failed', 'it threw'), g.says('then without')],
    path: [...INTO_TOOLS, 'ToolsExecuted PROMPTING', 'NoToolCalls DONE'],
    finish: 'stop',
  },
  {
    title: 'the limit of iterations: the model is asked for its answer, without tools',
    settings: { limits: { rounds: 1 }, atLimit: 'finish' },
    given: [...round('1'), g.says('a house')],
    path: [...INTO_TOOLS, 'MaxIterationsReached DONE'],
    finish: 'max_iterations',
  },
  {
    title: 'the limit of iterations without a last question',
    settings: { limits: { rounds: 1 } },
    given: round('1'),
    path: [...INTO_TOOLS, 'MaxIterationsReached DONE'],
    finish: 'max_iterations',
  },
  {
    title: 'a model that calls tools where it was asked for its answer: they do not run',
    settings: { limits: { rounds: 1 }, atLimit: 'finish' },
    given: [...round('1'), g.wants(g.grep('2'))],
    path: [...INTO_TOOLS, 'MaxIterationsReached DONE'],
    finish: 'max_iterations',
  },
  {
    title: 'the same call again and again',
    settings: { limits: { repeats: 2 } },
    given: [...round('1', 'a'), ...round('1', 'b')],
    path: [...INTO_TOOLS, 'ToolsExecuted PROMPTING', 'ToolCallsFound EXECUTING_TOOLS', 'PolicyStop DONE'],
    finish: 'policy_stop',
  },
  {
    title: 'the same results again and again',
    settings: { limits: { sameResults: 2 } },
    given: [...round('1', 'a'), ...round('2', 'a')],
    path: [...INTO_TOOLS, 'ToolsExecuted PROMPTING', 'ToolCallsFound EXECUTING_TOOLS', 'PolicyStop DONE'],
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
    title: 'errors that are not in a row stop nothing',
    settings: { limits: { errors: 2 } },
    given: [
      g.wants(g.grep('1')),
      g.ended('1', 'failed', 'no'),
      ...round('2'),
      g.wants(g.grep('3')),
      g.ended('3', 'failed', 'no'),
      g.says('done'),
    ],
    path: [
      ...INTO_TOOLS,
      'ToolsExecuted PROMPTING',
      'ToolCallsFound EXECUTING_TOOLS',
      'ToolsExecuted PROMPTING',
      'ToolCallsFound EXECUTING_TOOLS',
      'ToolsExecuted PROMPTING',
      'NoToolCalls DONE',
    ],
    finish: 'stop',
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

for (const { title, settings = {}, given, path, finish } of rows) {
  test(`seed 004, tools mode: ${title}`, () => {
    const walker = run(settings, ...given);
    assert.deepEqual(inSeedWords(walker), path);
    assert.equal(finishOf(walker), finish);
  });
}

test('seed 004, tools mode: every row of the table is taken by some of these', () => {
  const reached = new Set<ViewEdge>();
  for (const { settings = {}, given } of rows) inSeedWords(run(settings, ...given), reached);
  assert.deepEqual(
    tools.edges.filter((edge) => !reached.has(edge)).map(({ id }) => id),
    [],
  );
});

test('case 235: every random walk is legal in the words of tools mode', (t) => {
  forAll(t, 60, (walked) => {
    inSeedWords(roam(walked));
  });
});
