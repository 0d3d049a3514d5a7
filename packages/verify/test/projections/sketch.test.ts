import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { bring } from '../../../../test/kit/agent/walker.js';
import { sketch } from '../../src/projections/seed-sketch.js';
import { check } from './projected.js';
import { delaysOf, sentBy } from './retries.js';

/** The diagram of seed 003; each name there begins with `State`. */
const DIAGRAM = `
[*] --> Ready
Ready --> WaitingForUserInput
WaitingForUserInput --> SendingToLLM
WaitingForUserInput --> Error
SendingToLLM --> ProcessingLLMResponse
SendingToLLM --> Error
ProcessingLLMResponse --> EndOfTurn
ProcessingLLMResponse --> ToolUseRequested
ProcessingLLMResponse --> Error
EndOfTurn --> WaitingForUserInput
ToolUseRequested --> CheckingForCancellation
CheckingForCancellation --> RunningTool
CheckingForCancellation --> Cancelled
RunningTool --> CheckingGitCommits
RunningTool --> Error
CheckingGitCommits --> RunningAutoformatters
CheckingGitCommits --> CheckingBudget
RunningAutoformatters --> CheckingBudget
CheckingBudget --> GatheringAdditionalMessages
CheckingBudget --> BudgetExceeded
GatheringAdditionalMessages --> SendingToolResults
GatheringAdditionalMessages --> Error
SendingToolResults --> ProcessingLLMResponse
SendingToolResults --> Error
Error --> WaitingForUserInput
Cancelled --> WaitingForUserInput
BudgetExceeded --> WaitingForUserInput
`;

const arrowsOf = (source: string): readonly string[] =>
  sketch.edges.filter((edge) => edge.source === source).map(({ from, to }) => `${from} --> ${to}`);

test('seed 003: the 26 arrows of its diagram, the 3 with Compacting of its program, and those its cancel forces', () => {
  const [first, ...drawn] = DIAGRAM.trim().split('\n');
  assert.equal(first, `[*] --> ${sketch.initial}`);
  assert.deepEqual(arrowsOf('text'), drawn);
  assert.equal(drawn.length, 26);
  assert.deepEqual(arrowsOf('code'), [
    'WaitingForUserInput --> Compacting',
    'Compacting --> WaitingForUserInput',
    'Compacting --> Error',
  ]);
  assert.ok(arrowsOf('forced').every((arrow) => arrow.endsWith(' --> Cancelled')));
  assert.equal(
    new Set(sketch.edges.map(({ from, to }) => `${from} ${to}`)).size,
    sketch.edges.length,
  );
});

test('seed 003: sixteen states in its text, and Compacting of its program; neither events nor actions', () => {
  const drawn = new Set(
    DIAGRAM.trim()
      .replaceAll('[*] --> ', '')
      .split(/ --> |\n/),
  );
  assert.equal(drawn.size, 16);
  assert.deepEqual(Object.keys(sketch.states), [
    ...Object.keys(sketch.states).filter((name) => drawn.has(name)),
    'Compacting',
  ]);
  assert.deepEqual([sketch.events, sketch.actions], [{}, {}]);
});

test('seed 003: ten retries, eleven attempts, after 30 s and then a minute each, with at most 1 s more', () => {
  const walker = bring('C[u]', sketch.settings);
  walker.send(g.fails());
  for (let retry = 0; retry < 10; retry++) walker.send(g.rings(), g.fails());
  assert.equal(walker.state().name, 'WaitingForUserInput');
  assert.equal(sentBy(walker), 11);
  assert.deepEqual(delaysOf(walker), [30_000, ...Array.from({ length: 9 }, () => 60_000)]);
  const late = bring('C[u]', sketch.settings);
  late.send(g.fails({ jitter: 1 }));
  assert.deepEqual(delaysOf(late), [31_000]);
});

test('seed 003: a reached budget of 10 dollars ends the turn and raises itself, so that the next message goes on', () => {
  const walker = bring('C[u]', { ...sketch.settings, hooks: 'never' });
  walker.send(g.completed({ calls: [g.grep('1')], usage: g.usage(10) }));
  assert.equal(walker.state().name, 'WaitingForUserInput');
  assert.equal(walker.state().session.settings.limits.usd, 20);
  walker.send(g.input('go on'));
  assert.equal(walker.state().name, 'CallingLlm');
});

check(sketch, [
  {
    title: 'a call that is tried again is still being sent',
    given: 'C[u]',
    send: [g.fails(), g.rings()],
    then: [],
  },
  {
    title: 'a turn whose time is up is cancelled',
    given: 'C[u]',
    settings: { limits: { timeMs: 60_000 } },
    send: [g.timeIsUp],
    then: ['SendingToLLM --> Cancelled', 'Cancelled --> WaitingForUserInput'],
  },
  {
    title: 'a session that is opened again begins a new trace',
    given: 'Z',
    send: [g.resumed],
    then: ['Ready --> WaitingForUserInput'],
  },
]);
