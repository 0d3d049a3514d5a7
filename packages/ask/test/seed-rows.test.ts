import assert from 'node:assert/strict';
import { test } from 'node:test';
import { projectEdges, seedEdges } from '../src/run/seed-projection.js';
import { codeMode } from '../src/run/table.js';
import * as g from './given.js';
import { allOf, begin, outcome, seedTrace, type Walker } from './walker.js';

/** Seed 004, code mode: each row of its table as a run of ours, in its own words. */

type Row = {
  readonly row: string;
  readonly title: string;
  readonly given: () => Walker;
};

const rows: readonly Row[] = [
  {
    row: 'INIT -DepthExceeded-> SHALLOW_CALL',
    title: 'a run that is too deep makes one plain call',
    given: () => begin({ ...g.asSeed, depthMax: 0 }),
  },
  {
    row: 'SHALLOW_CALL -LLMResponseReceived-> DONE',
    title: 'the reply of a plain call is its answer',
    given: () => {
      const walker = begin({ ...g.asSeed, depthMax: 0 });
      walker.send(g.says('42'));
      return walker;
    },
  },
  {
    row: 'INIT -LLMResponseReceived-> PROMPTING',
    title: 'the first reply is looked at',
    given: () => {
      const walker = begin(g.asSeed);
      walker.send(g.says('FINAL_VAR(x)'));
      return walker;
    },
  },
  {
    row: 'PROMPTING -FinalAnswerFound-> DONE',
    title: 'FINAL without code ends the run',
    given: () => {
      const walker = begin(g.asSeed);
      walker.send(g.says('FINAL(42)'));
      return walker;
    },
  },
  {
    row: 'PROMPTING -CodeBlocksFound-> EXECUTING',
    title: 'code is run',
    given: () => {
      const walker = begin(g.asSeed);
      walker.send(g.writes('x = 1'));
      return walker;
    },
  },
  {
    row: 'EXECUTING -CodeExecuted-> PROMPTING',
    title:
      'the next reply, which the seed asks for before it leaves EXECUTING, begins the next iteration',
    given: () => {
      const walker = begin(g.asSeed);
      walker.send(g.writes('x = 1'), g.prints('1'), g.says('FINAL_VAR(x)'));
      return walker;
    },
  },
  {
    row: 'EXECUTING -FinalAnswerFound-> DONE',
    title: 'FINAL in the same reply counts after its code',
    given: () => {
      const walker = begin(g.asSeed);
      walker.send(g.says(`${g.program('x = 1')}\nFINAL(1)`), g.prints(''));
      return walker;
    },
  },
  {
    row: 'EXECUTING -MaxIterationsReached-> DONE',
    title: 'at the limit one more call asks for the answer',
    given: () => {
      const walker = begin({ ...g.asSeed, iterationsMax: 1 });
      walker.send(g.writes('x = 1'), g.prints(''), g.says('about 42'));
      return walker;
    },
  },
];

test('the table of the seed has eight rows, and each has its test', () => {
  const named = seedEdges.map(({ from, event, to }) => `${from} -${event}-> ${to}`);
  assert.equal(seedEdges.length, 8);
  assert.deepEqual(named.toSorted(), rows.map(({ row }) => row).toSorted());
});

for (const { row, title, given } of rows) {
  test(`seed 004, code mode, ${row}: ${title}`, () => {
    const trace = seedTrace(given());
    assert.ok(trace.endsWith(row), trace);
  });
}

test('every edge of ours between two states has a name of the seed, or ends its trace in DONE', () => {
  for (const { from, to, as } of codeMode.edges) {
    if (from === to || (as === '' && to === 'DONE')) continue;
    const row = seedEdges.find((edge) => edge.from === from && edge.event === as && edge.to === to);
    assert.ok(row !== undefined, `${from} -${as}-> ${to}`);
  }
});

test('a step that the table of the seed does not have is seen', () => {
  const illegal =
    codeMode.edges.find(({ as }) => as === 'CodeExecuted') ?? assert.fail('no such edge');
  const { cursor, steps } = projectEdges('INIT', [illegal, illegal]);
  assert.equal(cursor, 'ended');
  assert.deepEqual(steps, [{ from: 'INIT', event: 'CodeExecuted', to: 'PROMPTING', edge: null }]);
});

test('a trace ends at a step that the seed does not have', () => {
  const walker = begin();
  walker.send(g.writes('x = 1'), g.cancels());
  assert.equal(
    seedTrace(walker),
    'INIT -LLMResponseReceived-> PROMPTING; PROMPTING -CodeBlocksFound-> EXECUTING',
  );
  assert.equal(outcome(walker).status, 'cancelled');
});

test('root calls are iterations + 1', () => {
  const walker = begin({ ...g.asSeed, iterationsMax: 3 });
  for (const code of ['a()', 'b()', 'c()']) walker.send(g.writes(code), g.prints(code));
  walker.send(g.says('the answer'));
  assert.equal(allOf(walker, 'CallModel').length, 4);
  assert.deepEqual(
    allOf(walker, 'CallModel').map(({ purpose }) => purpose),
    ['iteration', 'iteration', 'iteration', 'answer'],
  );
});
