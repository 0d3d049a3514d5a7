import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { chooseRows, countCases, SEED } from '../../../../test/tier.js';
import { buildKillPoints, type Ending } from './kill-points.js';
import {
  describeTrial,
  type Outcome,
  randomFrom,
  randomTrial,
  recordSteps,
  runAll,
  runOne,
} from './run-trials.js';
import { type Scenario, scenarios } from './scenarios.js';
import { PLAIN } from './stage.js';

/**
 * The program is ended at steps of real sessions, and goes on: a sample of `npm run torture`.
 *
 * PAWL_COUNT sets how often, PAWL_SEED chooses.
 */

const RUNS = countCases(3);

const folder = mkdtempSync(path.join(tmpdir(), 'pawl-torture-'));
after(() => removeFolderSync(folder));
const library = buildKillPoints(folder);

const named = (name: string): Scenario =>
  scenarios.find((scenario) => scenario.name === name) ?? assert.fail(`there is no ${name}`);

const shown = ({ trial, end }: Outcome): string =>
  end.findings.map(({ kind, text }) => `${describeTrial(trial)}\n${kind}: ${text}`).join('\n\n');

const expectNone = (outcomes: readonly Outcome[]): void =>
  assert.equal(outcomes.map(shown).filter(Boolean).join('\n\n'), '');

const sampled = chooseRows(['an edit, torn', 'a call of a server', 'a command of 0.3 s']);
const endings: readonly Ending[] = [
  'kill',
  'kill',
  'kill',
  'term',
  'int',
  'quit',
  'usr1',
  'fullDisk',
];

test('there are at least 50 scenarios, each with a name of its own', () => {
  assert.ok(scenarios.length >= 50, String(scenarios.length));
  assert.equal(new Set(scenarios.map(({ name }) => name)).size, scenarios.length);
});

test(`${RUNS} times ended somewhere: nothing is lost, nothing happens twice, nothing is left`, async (context) => {
  const random = randomFrom(SEED);
  const outcomes: Outcome[] = [];
  const keep = (outcome: Outcome): void => void outcomes.push(outcome);
  const steps = await recordSteps(sampled.map(named), library, keep);
  const trials = Array.from({ length: RUNS }, () =>
    randomTrial(steps, endings, random, { isVaried: true }),
  );
  await runAll(trials, library, keep);
  context.diagnostic(
    `${RUNS} endings, ${outcomes.filter(({ end }) => end.reached).length} reached`,
  );
  for (const { trial } of outcomes) context.diagnostic(describeTrial(trial));
  expectNone(outcomes);
});

test('control: an effect that happens twice, an untrue result, a lock and a broken repository are found', async () => {
  const scenario: Scenario = {
    ...named("a commit of a command's file"),
    flags: [],
    prepare:
      'git init -q && touch .git/index.lock && echo a > effects && echo begin call-1 > ledger && echo x > .git/HEAD',
  };
  const { end } = await runOne({ ...PLAIN, scenario, point: null, again: 'at once' }, library);
  const kinds = end.findings.map(({ kind }) => kind);
  for (const kind of ['repeated', 'truth', 'lock', 'repository', 'file'] as const)
    assert.ok(kinds.includes(kind), `${kind} in ${kinds}`);
});

/** Threads of Node that work on files, unless told otherwise. */
const THREADS = 4;

test('control: a kill is a kill, at the step that was chosen', async () => {
  const scenario = named('a new file');
  const point = { ending: 'kill', at: 30, when: 'after' } as const;
  const { end } = await runOne({ ...PLAIN, scenario, point, again: 'at once' }, library);
  assert.equal(end.reached, true);
  // other threads of the process may be in the middle of a step of their own
  const more = end.steps.length - point.at;
  assert.ok(more >= 0 && more <= THREADS, `${more} steps after the kill`);
});
