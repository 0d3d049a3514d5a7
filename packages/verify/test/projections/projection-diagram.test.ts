import assert from 'node:assert/strict';
import { test } from 'node:test';
import { projections } from '../../src/projections/all-projections.js';
import {
  projectionDiagram,
  projectionJson,
  projectionTable,
} from '../../src/projections/projection.js';
import { loom } from '../../src/projections/seed-loom.js';
import { minimal } from '../../src/projections/seed-minimal.js';
import { sketch } from '../../src/projections/seed-sketch.js';

/** The pictures of a seed are its own: its words, its arrows, nothing of ours. */

for (const view of projections) {
  test(`${view.name}: the chart has a line for each pair of states with an arrow`, () => {
    const lines = projectionDiagram(view).split('\n');
    assert.ok(lines.includes(`  [*] --> ${view.initial}`));
    const pairs = new Set(view.edges.map(({ from, to }) => `${from} --> ${to}`));
    const drawn = lines
      .map((line) => /^ {2}(\w+ --> \w+)(: .+)?$/.exec(line)?.[1])
      .filter((pair) => pair !== undefined);
    assert.deepEqual(drawn.toSorted(), [...pairs].toSorted());
  });

  test(`${view.name}: the table has a row for each arrow`, () => {
    const rows = projectionTable(view).trim().split('\n').slice(2);
    assert.deepEqual(
      rows,
      view.edges.map(({ from, event, when, to, action, source }) => {
        const target = source === 'text' ? to : `${to} (${source})`;
        return `| ${from} | ${event ?? '–'} | ${when} | ${target} | ${action ?? ''} |`;
      }),
    );
  });

  test(`${view.name}: as JSON it is plain and complete`, () => {
    const json = projectionJson(view);
    assert.deepEqual(JSON.parse(JSON.stringify(json)), json);
    assert.deepEqual(json.edges, view.edges);
    assert.ok(!('project' in json));
  });
}

test('the condition stands beside its event, a condition alone in brackets', () => {
  const lines = projectionDiagram(loom).split('\n');
  assert.ok(lines.includes('  CallingLlm --> WaitingForUserInput: Error (retries >= max)'));
  assert.ok(lines.includes('  ProcessingLlmResponse --> ExecutingTools: [has tool calls]'));
  assert.ok(lines.includes('  CallingLlm --> CallingLlm: TextDelta, ToolCallDelta'));
  assert.ok(projectionDiagram(minimal).includes('class ProcessingLlmResponse passed'));
});

test('a chart without events has bare arrows, and says of an arrow that is not in the text where it is from', () => {
  const lines = projectionDiagram(sketch).split('\n');
  assert.ok(lines.includes('  Ready --> WaitingForUserInput'));
  assert.ok(lines.includes('  WaitingForUserInput --> Compacting: code'));
  assert.ok(lines.includes('  RunningTool --> Cancelled: forced'));
  assert.equal(lines.filter((line) => line.includes('passed')).length, 0);
});
