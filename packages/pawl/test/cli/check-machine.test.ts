import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { defaultBounds } from '@pawl/verify/exploration/configuration';
import type { CheckResult, Coverage } from '@pawl/verify/exploration/explore';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { checkExit, leaveTrace, readBounds, reportText } from '../../src/commands/machine-check.js';
import { exitCodes } from '../../src/process/exit-codes.js';

const reach: Coverage = { reached: 3, all: 3, explained: [], missing: [], mistaken: [] };
const sound: CheckResult = {
  complete: true,
  states: 1_234,
  steps: 56_789,
  violations: 0,
  illegalProjections: 0,
  configurations: [
    {
      name: 'one',
      about: 'what it is for',
      states: 1_234,
      steps: 56_789,
      depth: 7,
      complete: true,
    },
  ],
  edges: reach,
  views: [{ name: 'loom', ...reach }],
  violation: null,
};
const violation = {
  configuration: 'one',
  faults: ['every-call-answered: the last calls are not answered'],
  kind: 'promise' as const,
  events: 2,
  trace: '# Found.\n! auto {}\n> Start\n\n> CancelTurn\n',
};

test('bounds that are not named stay as they are', () => {
  assert.deepEqual(readBounds(''), defaultBounds);
  assert.deepEqual(readBounds('reads=3,retries=0'), { ...defaultBounds, reads: 3, retries: 0 });
});

test('a bound that is not understood is refused with the names that there are', () => {
  for (const text of [
    'writes=1',
    'constructor=1',
    'reads',
    'reads=many',
    'reads=-1',
    'reads=1;edits=2',
    '=1',
  ]) {
    assert.throws(
      () => readBounds(text),
      /--bounds needs name=number.*reads, edits, retries/,
      text,
    );
  }
});

test('a sound check is done, whatever the bounds', () => {
  assert.equal(checkExit(sound, defaultBounds), exitCodes.done);
  assert.equal(checkExit(sound, { ...defaultBounds, reads: 9 }), exitCodes.done);
});

test('an arrow that was not reached counts unless the bounds are small', () => {
  const missing = { ...sound, edges: { ...reach, reached: 2, missing: ['A/B/0'] } };
  assert.equal(checkExit(missing, defaultBounds), exitCodes.taskFailed);
  assert.equal(checkExit(missing, { ...defaultBounds, reads: 9 }), exitCodes.taskFailed);
  assert.equal(checkExit(missing, { ...defaultBounds, cancels: 0 }), exitCodes.done);
});

test('a violation, or a check that did not come to its end, counts always', () => {
  const small = { ...defaultBounds, cancels: 0 };
  assert.equal(checkExit({ ...sound, violations: 1, violation }, small), exitCodes.taskFailed);
  assert.equal(checkExit({ ...sound, complete: false }, small), exitCodes.taskFailed);
});

test('the text tells of every configuration, of every view, and of what is missing', () => {
  const edges = {
    ...reach,
    missing: ['A/B/0'],
    explained: [{ id: 'C//1', why: 'it never rests' }],
    mistaken: ['D//2'],
  };
  assert.deepEqual(
    reportText({ ...sound, edges, complete: false, violations: 2, violation }).split('\n'),
    [
      'configuration  states   steps  depth',
      'one             1,234  56,789      7  what it is for',
      'together        1,234  56,789',
      '',
      'not complete: 2 violations, 0 illegal projections',
      'machine: 3 of 3 arrows reached',
      "  C//1 can't be: it never rests",
      '  A/B/0 was not reached',
      "  D//2 was reached, or is gone: strike the reason why it can't be",
      'view loom: 3 of 3 arrows reached',
      '',
    ],
  );
});

test('a violation leaves its trace in the folder, and the user is told where', (t) => {
  const folder = temporaryFolder(t, 'check');
  assert.equal(leaveTrace(sound, folder), '');
  const told = leaveTrace({ ...sound, violations: 1, violation }, folder);
  const file = join(folder, 'counterexample.trace');
  assert.equal(
    told,
    `pawl: after 2 events in the configuration 'one':\n  every-call-answered: the last calls are not answered\nThe events are in ${file}.\n`,
  );
  assert.equal(readFileSync(file, 'utf8'), violation.trace);
});
