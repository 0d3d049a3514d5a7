import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultSettings } from '@pawl/agent/machine/settings';
import type { CallVerdict } from '@pawl/agent/policy/judged-call';
import { createReply } from '../../src/exploration/configuration.js';

/** The letters that the calls of a reply are written in. */

const callsOf = (letters: string) => createReply({ calls: letters }, defaultSettings.limits).calls;

const rows: readonly (readonly [letter: string, tool: string, verdict: CallVerdict])[] = [
  ['R', 'grep', { kind: 'ok' }],
  ['E', 'edit', { kind: 'ok' }],
  ['N', 'teleport', { kind: 'noSuchTool', known: ['grep', 'edit'] }],
  ['I', 'edit', { kind: 'invalid', field: 'path', why: 'must be a string' }],
];
for (const [letter, name, expected] of rows) {
  test(`${letter} is a call of ${name}, judged ${expected.kind}`, () => {
    assert.deepEqual(
      callsOf(letter).map(({ callId, tool, verdict }) => [callId, tool, verdict]),
      [['c1', name, expected]],
    );
  });
}

test('T is a call under the id of the first one', () => {
  assert.deepEqual(
    callsOf('RT').map(({ callId }) => callId),
    ['c1', 'c1'],
  );
});

test('a letter of no call is refused', () => {
  assert.deepEqual(
    callsOf('R?E').map(({ callId, tool }) => [callId, tool]),
    [
      ['c1', 'grep'],
      ['c3', 'edit'],
    ],
  );
});
