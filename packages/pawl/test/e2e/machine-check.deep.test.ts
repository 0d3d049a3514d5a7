import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { defaultBounds } from '@pawl/verify/exploration/configuration';
import { bin, expectCode, makePlace, type Place, runPawl } from './pawl.js';

// What is printed, and how it ends: packages/pawl/test/cli/check-machine.test.ts.

/** Explores for as long as it takes: the whole file has a limit. */
const runWhole = (
  { workspace, environment }: Place,
  words: readonly string[],
): Promise<{ code: number | null; stdout: string }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [bin, ...words], {
      cwd: workspace,
      env: environment,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.on('error', reject).on('close', (code) => resolve({ code, stdout }));
  });

test('machine --check at the default bounds: complete, nothing broken, every arrow reached or explained', async (context) => {
  const place = makePlace(context);
  const { code, stdout } = await runWhole(place, ['machine', '--check', '--json']);
  const check = JSON.parse(stdout);
  const { reads, edits, retries, steers, followUps, ...others } = check.bounds;
  assert.deepEqual([reads, edits, retries, steers, followUps], [2, 1, 2, 1, 1]);
  assert.ok(
    Object.values(others).every((value) => value === 1),
    'nothing is left out',
  );
  assert.equal(check.violation, null);
  assert.deepEqual([check.complete, check.violations, check.illegalProjections], [true, 0, 0]);
  const [everything] = check.configurations;
  assert.equal(everything.name, 'everything');
  assert.ok(everything.states > 15_000, `${everything.states} states`);
  assert.deepEqual([check.edges.missing, check.edges.mistaken], [[], []]);
  assert.equal(check.edges.reached + check.edges.explained.length, check.edges.all);
  const names = check.views.map((view: { name: string }) => view.name);
  for (const name of ['minimal', 'loom', 'sketch']) assert.ok(names.includes(name), name);
  for (const { name, reached, all, explained, missing, mistaken } of check.views) {
    assert.deepEqual([missing, mistaken], [[], []], name);
    assert.equal(reached + explained.length, all, name);
    for (const { id, why } of explained)
      assert.match(`${id}: ${why}`, /ShutdownRequested.*never rests/, name);
  }
  assert.equal(code, 0);
  assert.equal(existsSync(join(place.workspace, 'counterexample.trace')), false);
});

/** One reply without a call. */
const NOTHING = Object.keys(defaultBounds).map((name) => `${name}=0`);

test('machine --check within small bounds: nothing is broken, people are told what it found, and how far it is on stderr', async (context) => {
  const ended = await runPawl(makePlace(context), [
    'machine',
    '--check',
    '--bounds',
    NOTHING.join(),
  ]);
  expectCode(ended, 0);
  assert.match(
    ended.stdout,
    /^configuration +states +steps +depth\neverything +[\d,]+ +[\d,]+ +\d+ {2}all bounds/,
  );
  assert.match(
    ended.stdout,
    /\ncomplete: 0 violations, 0 illegal projections\nmachine: \d+ of \d+ arrows reached\n/,
  );
  assert.match(ended.stdout, /\n {2}\S+ was not reached\n {2}and \d+ more, which --json lists\n/);
  assert.doesNotMatch(ended.stdout, /strike the reason/);
  assert.match(ended.stderr, /^everything: [\d,]+ states, [\d,]+ steps$/m);
});
