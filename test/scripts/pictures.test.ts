import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { agent } from '../../packages/agent/src/machine/machine.js';
import type { Chart } from '../../packages/inspector/src/model/chart.js';
import type { Edge, MachineDescription } from '../../packages/machine/src/kernel/table.js';
import { chartPlans, restingPlan } from '../../scripts/pictures/charts.js';
import { layOut } from '../../scripts/pictures/layout.js';
import { machinePictures } from '../../scripts/pictures/machine.js';
import { restingArrows, restingStates } from '../../scripts/pictures/resting.js';
import { readmePicture } from '../../scripts/pictures/session.js';

const fileOf = (name: string): string =>
  readFileSync(new URL(`../../docs/pictures/${name}`, import.meta.url), 'utf8');
const pictureOf = (theme: string): string => fileOf(`machine-${theme}.svg`);

const charts: Readonly<Record<string, Chart>> = JSON.parse(
  readFileSync(new URL('../../packages/inspector/src/charts/charts.json', import.meta.url), 'utf8'),
);
const chartNamed = (name: string): Chart => {
  const chart = charts[name];
  assert.ok(chart, `charts.json has no chart ${name}: npm run update`);
  return chart;
};

/** What is drawn: states, and arrows as `kind from to`. */
const drawnIn = (svg: string) => ({
  states: [...svg.matchAll(/data-state="(\w+)"/g)].map(([, name]) => name).toSorted(),
  arrows: [...svg.matchAll(/class="(\w+)" data-from="(\w+)" data-to="(\w+)"/g)]
    .map(([, kind, from, to]) => `${kind} ${from} ${to}`)
    .toSorted(),
});

const inTable = (machine: MachineDescription) => ({
  states: restingStates(machine).toSorted(),
  arrows: restingArrows(machine)
    .map(({ kind, from, to }) => `${kind} ${from} ${to}`)
    .toSorted(),
});

const edge = (from: string, to: string, event: string | null, when = ''): Edge => ({
  id: `${from}/${event ?? ''}/${to}`,
  from,
  event,
  when,
  to,
  as: '',
  then: 'move',
  kind: from === to ? 'stay' : 'go',
});

const small: MachineDescription = {
  edges: [
    edge('Idle', 'Looking', 'Asked'),
    edge('Looking', 'Working', null, 'isFine'),
    edge('Looking', 'Failed', null),
    edge('Failed', 'Idle', null),
    edge('Working', 'Looking', 'More'),
    edge('Working', 'Working', 'Progress'),
    edge('Working', 'Closed', 'Stop'),
    edge('Working', 'Idle', 'Done'),
    edge('Working', 'Idle', null, 'isEmpty'),
  ],
  ignored: [],
  states: {
    Idle: 'rests',
    Looking: 'is passed',
    Working: 'works',
    Failed: 'is passed',
    Closed: 'the end',
  },
  events: {},
  initial: 'Idle',
  transient: ['Looking', 'Failed'],
  ends: ['Closed'],
};

describe('pictures of the machine', () => {
  it('have the arrows between resting states, through those that are passed', () => {
    assert.deepEqual(restingArrows(small), [
      { from: 'Idle', to: 'Working', kind: 'onward', causes: ['Asked'], ways: [['Looking']] },
      {
        from: 'Working',
        to: 'Idle',
        kind: 'stopped',
        causes: ['More'],
        ways: [['Looking', 'Failed']],
      },
      { from: 'Working', to: 'Closed', kind: 'closed', causes: ['Stop'], ways: [[]] },
      { from: 'Working', to: 'Idle', kind: 'onward', causes: ['Done', '[isEmpty]'], ways: [[]] },
    ]);
  });

  it('draw each of them once', async () => {
    const pictures = machinePictures(small, await layOut(restingPlan(small)));
    assert.deepEqual(drawnIn(pictures.dark), inTable(small));
    assert.ok(
      pictures.light.includes('is empty') && pictures.light.includes('· Looking'),
      pictures.light,
    );
    assert.notEqual(pictures.light, pictures.dark);
  });

  it('every chart in charts.json has the states and arrows of its table (if not: npm run update)', () => {
    for (const [name, { states, arrows }] of chartPlans(agent)) {
      const { boxes, lines, width, height } = chartNamed(name);
      assert.deepEqual(
        boxes.map((box) => box.name),
        states.map((state) => state.name),
        name,
      );
      const drawn = lines.map(({ from, to, kind, label }) => ({ from, to, kind, label }));
      assert.deepEqual(drawn, arrows, name);
      const spots = [...boxes.map(({ x, y }) => [x, y]), ...lines.flatMap(({ points }) => points)];
      for (const [x = -1, y = -1] of spots)
        assert.ok(x >= 0 && y >= 0 && x <= width && y <= height, name);
    }
  });

  for (const theme of ['dark', 'light']) {
    it(`docs/pictures/machine-${theme}.svg draws what the table says (if not: npm run update)`, () => {
      assert.deepEqual(drawnIn(pictureOf(theme)), inTable(agent));
    });
  }

  it('are drawn from the chart in charts.json (if not: npm run update)', () => {
    const pictures = machinePictures(agent, chartNamed('resting'));
    assert.equal(pictureOf('dark'), pictures.dark);
    assert.equal(pictureOf('light'), pictures.light);
  });

  for (const theme of ['dark', 'light'] as const) {
    it(`docs/pictures/session-${theme}.svg is drawn from its recording (if not: npm run update)`, async () => {
      const picture = await readmePicture(fileOf(`session-${theme}.cast`), theme);
      assert.equal(fileOf(`session-${theme}.svg`), picture);
      for (const words of [
        'Killed',
        '$ pawl --continue',
        'recovered after a restart',
        'from beginning to end: all eight steps passed.',
      ])
        assert.ok(picture.includes(words), words);
    });
  }

  it('show what is in a recording, each screen for as long as it was there', async () => {
    const lines = [
      { version: 2, width: 20, height: 4 },
      [0, 'o', 'first\r\n'],
      [0.5, 'o', 'not shown\r'],
      [0.51, 'o', '\u001b[2Jsecond <\u001b[1mx\u001b[0m'],
    ];
    const picture = await readmePicture(
      lines.map((line) => JSON.stringify(line)).join('\n'),
      'light',
    );
    assert.match(picture, />second &lt;<\/text><text [^>]*font-weight:bold[^>]*>x<\/text>/);
    assert.match(picture, />first<\/text>/);
    assert.doesNotMatch(picture, /not shown/);
    // Half a second of six and a half, then the last screen.
    assert.match(picture, /0%\{transform:translateY\(0px\)\}7\.69%\{/);
    assert.match(picture, /animation:play 6\.5s/);
  });
});
