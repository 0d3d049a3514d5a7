import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultSettings } from '@pawl/agent/machine/settings';
import * as g from '../../../../test/kit/agent/given.js';
import { countOf } from '../../../../test/kit/agent/rows.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import { bring, type Walker } from '../../../../test/kit/agent/walker.js';
import type { Projection } from '../../src/projections/projection.js';
import { loom } from '../../src/projections/seed-loom.js';
import { minimal, minimalHead } from '../../src/projections/seed-minimal.js';
import { sketch } from '../../src/projections/seed-sketch.js';
import { tools } from '../../src/projections/seed-tools-mode.js';
import { delaysOf, sentBy } from './retries.js';

/** So many retries that fail. */
const failsAgain = (times: number): readonly g.Given[] =>
  Array.from({ length: times }, () => [g.rings(), g.fails()]).flat();

/**
 * What the texts of the seeds say of their machines, and what their settings make of ours, whatever was set before: a
 * profile is also given to a session that had settings of its own.
 */

const OTHERWISE: SettingsPatch = {
  maxRetries: 1,
  retrySchedule: { kind: 'list', delaysMs: [7] },
  retryJitterMs: 500,
  emptyRetries: 2,
  limits: {
    usd: 0.5,
    tokens: 5,
    timeMs: 60_000,
    rounds: 1,
    truncation: 1,
    repeats: 1,
    errors: 1,
    sameResults: 1,
  },
  atLimit: 'stop',
  compactAtRatio: 0.01,
  compactMidRatio: 0.01,
  hooks: 'always',
  formatter: 'onChanges',
  autoCommit: 'on',
};

/** A call of the user's message is in flight. */
const asked = ({ settings }: Projection, patch: SettingsPatch = {}): Walker => {
  const limits = { ...OTHERWISE.limits, ...settings.limits };
  return bring('C[u]', { ...OTHERWISE, ...settings, ...patch, limits });
};

const texts: readonly (readonly [
  view: Projection,
  seeds: string,
  begins: string,
  ends: string,
  passed: string,
])[] = [
  // "Terminal state"; "Transient state parsing LLM response".
  [minimal, '000', 'WaitingForUserInput', 'ShuttingDown', 'ProcessingLlmResponse'],
  [minimalHead, '000', 'WaitingForUserInput', 'ShuttingDown', 'ProcessingLlmResponse'],
  // `ShuttingDown --> [*]`; what leads into and out of ProcessingLlmResponse is internal.
  [loom, '001 002', 'WaitingForUserInput', 'ShuttingDown', 'ProcessingLlmResponse'],
  // `[*] --> StateReady`, and no arrow to an end.
  [sketch, '003', 'Ready', '', ''],
  // "Terminal: return result"; PROMPTING reads the reply that is there, and waits for nothing.
  [tools, '004', 'INIT', 'DONE', 'PROMPTING'],
];
for (const [view, seeds, begins, ends, passed] of texts) {
  test(`${view.name} is seed ${seeds}: it begins in ${begins}, ends in "${ends}", passes "${passed}"`, () => {
    const names = [
      view.seeds.join(' '),
      view.initial,
      view.ends.join(' '),
      view.transient.join(' '),
    ];
    assert.deepEqual(names, [seeds, begins, ends, passed]);
    assert.equal(view.begin.state, begins);
  });
}

test('seeds 000, 001 and 002 know no limit of any kind', () => {
  const none = Object.fromEntries(
    Object.keys(defaultSettings.limits).map((name) => [name, 'unlimited']),
  );
  for (const { settings } of [minimal, minimalHead, loom]) assert.deepEqual(settings.limits, none);
});

for (const view of [minimal, loom]) {
  test(`${view.name}: the same dear call that fails goes on for ever, and nothing is summarised`, () => {
    const walker = asked(view);
    const dear = { calls: [g.grep('1')], usage: g.usage(5, 127_000) };
    for (let round = 0; round < 4; round++)
      walker.send(g.completed(dear), g.ended('1', 'failed', 'no'));
    const cut = { ...dear, stopReason: 'maxTokens' } as const;
    for (let round = 0; round < 3; round++) walker.send(g.completed(cut));
    assert.equal(walker.state().name, 'CallingLlm');
    assert.equal(sentBy(walker), 8);
  });

  test(`${view.name}: an empty reply ends the turn`, () => {
    const walker = asked(view);
    walker.send(g.empty);
    assert.equal(walker.state().name, 'WaitingForUserInput');
    assert.equal(sentBy(walker), 1);
  });
}

test('seed 000: "Max retries: 3", after "1s, 2s, 3s"', () => {
  for (const view of [minimal, minimalHead]) {
    const walker = asked(view);
    walker.send(g.fails({ jitter: 1 }), ...failsAgain(3));
    assert.deepEqual(delaysOf(walker), [1_000, 2_000, 3_000]);
    assert.equal(walker.state().name, 'WaitingForUserInput');
  }
});

test('seeds 001 and 002: two retries; when is left to the caller, ours waits 1 s and 2 s', () => {
  const walker = asked(loom);
  walker.send(g.fails({ jitter: 1 }), ...failsAgain(2));
  assert.deepEqual(delaysOf(walker), [1_000, 2_000]);
  assert.equal(walker.state().name, 'WaitingForUserInput');
});

/** The phases of hooks that run after a batch, each of which finds something to do for the next one. */
const phasesAfter = (view: Projection, given: readonly g.Given[]): readonly string[] => {
  const walker = asked(view);
  walker.send(...given);
  const phases: string[] = [];
  for (let state = walker.state(); state.name === 'PostToolsHook'; state = walker.state()) {
    phases.push(state.phase);
    const commits = state.phase === 'CheckingGitCommits' ? g.commits(1) : [];
    walker.send(g.hookDone({ commits, changedFiles: ['a.ts'], dirty: true }));
  }
  assert.equal(countOf(walker, 'RunHook'), phases.length);
  return phases;
};

test('what runs after tools: nothing in 000 and 004, hooks in the later 000, auto-commit in Loom, formatters in Sketch', () => {
  const changes = [g.wants(g.edit('1')), g.ended('1')];
  const reads = [g.wants(g.grep('1')), g.ended('1')];
  const phases = [minimal, tools, minimalHead, loom, sketch].map((view) => [
    view.name,
    phasesAfter(view, changes),
    phasesAfter(view, reads),
  ]);
  const [checks, formats, commits] = [
    'CheckingGitCommits',
    'RunningAutoformatters',
    'AutoCommitting',
  ];
  assert.deepEqual(phases, [
    ['minimal', [], []],
    ['tools', [], []],
    ['minimal-head', [checks], [checks]],
    ['loom', [checks, commits], []],
    ['sketch', [checks, formats], [checks, formats]],
  ]);
});

/** Rounds of tools mode until it stops running tools; null where the model may go on after this many. */
const stopsAfter = (
  rounds: number,
  round: (index: number) => readonly g.Given[],
): number | null => {
  const walker = asked(tools);
  for (let index = 1; index <= rounds; index++) {
    walker.send(...round(index));
    const { name, session } = walker.state();
    if (name !== 'CallingLlm' || session.turn.finishing !== 'no') return index;
  }
  return null;
};
const other = (index: number): g.Given =>
  g.completed({ calls: [{ ...g.grep('1'), input: { path: `${index}.ts` } }], usage: g.usage(5) });

test('seed 004: ten iterations', () => {
  assert.equal(
    stopsAfter(20, (index) => [other(index), g.ended('1', 'ok', `${index}`)]),
    10,
  );
});

test('seed 004: at the limit the model is asked once more, for its answer: a call more than iterations', () => {
  const walker = asked(tools);
  for (let index = 1; index <= 10; index++)
    walker.send(other(index), g.ended('1', 'ok', `${index}`));
  assert.equal(walker.state().name, 'CallingLlm');
  walker.send(g.says('a house'));
  assert.equal(walker.state().name, 'WaitingForUserInput');
  assert.equal(sentBy(walker), 11);
});

const policies: readonly (readonly [
  title: string,
  round: (index: number) => readonly g.Given[],
  number,
])[] = [
  ['the same call', (index) => [g.wants(g.grep('1')), g.ended('1', 'ok', `${index}`)], 3],
  ['the same result', (index) => [other(index), g.ended('1', 'ok', 'same')], 3],
  ['an error', (index) => [other(index), g.ended('1', 'failed', `no ${index}`)], 3],
  [
    'a reply that is cut',
    (index) => [
      g.completed({
        calls: [{ ...g.grep('1'), input: { path: `${index}.ts` } }],
        stopReason: 'maxTokens',
      }),
    ],
    2,
  ],
];
for (const [title, round, rounds] of policies) {
  test(`seed 004: the stopping policies of ours end a run at ${title}, ${rounds} times in a row`, () => {
    assert.equal(stopsAfter(20, round), rounds);
  });
}
