import assert from 'node:assert/strict';
import test from 'node:test';
import { edgesJson, markdownTable, mermaid } from '@pawl/machine/kernel/diagrams';
import { lamp } from '../../../../test/kit/machine-kit/lamp.js';
import { agent } from '../../src/machine/machine.js';

/** The pictures of a machine tell what its table says, no more and no less. */

test('the diagram has one line for each pair of states that an arrow leads between', () => {
  for (const machine of [lamp, agent]) {
    const lines = mermaid(machine).split('\n');
    const going = machine.edges.filter((edge) => edge.kind === 'go');
    const pairs = new Set(going.map((edge) => `${edge.from} --> ${edge.to}`));
    const drawn = lines
      .filter((line) => /^ {2}\w+ --> \w+: ./.test(line))
      .map((line) => line.trim().split(':')[0]);
    assert.deepEqual([...drawn].sort(), [...pairs].sort());
    assert.ok(lines.includes(`  [*] --> ${machine.initial}`));
    for (const end of machine.ends) assert.ok(lines.includes(`  ${end} --> [*]`));
  }
});

test('the diagram of the lamp', () => {
  assert.equal(
    mermaid(lamp),
    [
      'stateDiagram-v2',
      '  [*] --> Off',
      '  Off --> Checking: Press',
      '  Off --> Blinking: Blink',
      '  Off --> Broken: Drop',
      '  On --> Off: Press, Dim, [isDark]',
      '  On --> Blinking: Blink',
      '  On --> Broken: Drop',
      '  Blinking --> Off: Press, [wantsNothing]',
      '  Blinking --> Broken: Drop',
      '  Blinking --> Blinking: [wantsForever]',
      '  Checking --> Broken: [isWorn]',
      '  Checking --> On: otherwise',
      '  Broken --> [*]',
      '  classDef passed stroke-dasharray: 4 4',
      '  class Checking passed',
    ].join('\n'),
  );
});

const onOneLine = (...events: readonly string[]) =>
  lamp.edges
    .filter((edge) => edge.id === 'Off/Press/0')
    .flatMap((edge) => events.map((event) => ({ ...edge, event })));

test('up to four words stand on a line, more than that are counted', () => {
  const four = onOneLine('A', 'B', 'C', 'D');
  assert.match(mermaid({ ...lamp, edges: four }), /Off --> Checking: A, B, C, D\n/);
  const many = onOneLine('A', 'B', 'C', 'D', 'E', 'F');
  assert.match(mermaid({ ...lamp, edges: many }), /Off --> Checking: A, B, C, … 3 more\n/);
});

test('an arrow that has no word takes no place on a line that it shares', () => {
  const [press, other] = onOneLine('A', 'B');
  assert.ok(press !== undefined && other !== undefined);
  const edges = [{ ...press, event: null, when: '', then: '' }, other];
  assert.match(mermaid({ ...lamp, edges }), /Off --> Checking: B\n/);
});

test('the table has a row for each arrow in order, and one for each pair that is ignored', () => {
  for (const machine of [lamp, agent]) {
    const [arrows = '', ignored = ''] = markdownTable(machine).split('\n\n');
    const rows = arrows.split('\n').slice(2);
    assert.equal(rows.length, machine.edges.length);
    machine.edges.forEach((edge, index) => {
      const [, from, event, when, to, does] = (rows[index] ?? '')
        .split('|')
        .map((cell) => cell.trim());
      assert.deepEqual(
        [from, event, when, does],
        [edge.from, edge.event ?? '–', edge.when, edge.then],
      );
      assert.equal(
        to,
        edge.kind === 'stay' ? 'stays' : edge.as === '' ? edge.to : `${edge.to} (${edge.as})`,
      );
    });
    assert.deepEqual(
      ignored.split('\n').slice(2),
      machine.ignored.map(
        (pair) => `| ${pair.state} | ${pair.event} | ${pair.ignore} | ${pair.why} |`,
      ),
    );
  }
});

test('the edges as JSON come back as they were, complete enough to draw the same pictures', () => {
  for (const machine of [lamp, agent]) {
    const json = edgesJson(machine);
    // What JSON.parse gives is compared with what went in, so its type is proved by the next line.
    const back = JSON.parse(JSON.stringify(json)) as typeof json;
    assert.deepEqual(back, json);
    assert.equal(mermaid(back), mermaid(machine));
    assert.equal(markdownTable(back), markdownTable(machine));
  }
});

test('every arrow of the agent has a named move, and every guard a name, so that no picture has a blank', () => {
  const next = (index: number) => agent.edges[index + 1];
  const hidden = agent.edges.filter(
    (edge, index) =>
      edge.when === '' && next(index)?.from === edge.from && next(index)?.event === edge.event,
  );
  assert.deepEqual(hidden, [], 'an arrow without a guard stands before another one');
  assert.deepEqual(
    agent.edges.filter((edge) => edge.then === '').map((edge) => edge.id),
    [],
  );
});

test('an arrow with neither event nor guard nor move is drawn bare; what a machine has not is left out', () => {
  const edges = lamp.edges
    .filter((edge) => edge.id === 'Off/Press/0')
    .map((edge) => ({ ...edge, event: null, when: '', then: '' }));
  const bare = { ...lamp, edges, transient: [], ends: [], ignored: [] };
  assert.equal(mermaid(bare), 'stateDiagram-v2\n  [*] --> Off\n  Off --> Checking');
  assert.equal(
    markdownTable(bare),
    [
      '| in | event | when | goes to | does |',
      '|---|---|---|---|---|',
      '| Off | – |  | Checking |  |',
    ].join('\n'),
  );
});

test('what arrows ask for is one more column; an arrow that asks for nothing has an empty cell', () => {
  const edges = lamp.edges.filter(({ id }) => id === 'Off/Press/0' || id === 'On/Dim/2');
  const asked = { 'Off/Press/0': 'Say' };
  assert.equal(
    markdownTable({ ...lamp, edges, ignored: [] }, asked),
    [
      '| in | event | when | goes to | does | asks for |',
      '|---|---|---|---|---|---|',
      '| Off | Press |  | Checking | switchOn | Say |',
      '| On | Dim |  | stays | dim |  |',
    ].join('\n'),
  );
  assert.doesNotMatch(mermaid({ ...lamp, transient: [] }), /class/);
});
