import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Needs } from '../../src/agent/call.js';
import { type CommandLevel, levelOfCall } from '../../src/agent/policy/call-sandbox-level.js';
import type { Settings } from '../../src/agent/settings.js';

type Row = readonly [Settings['sandbox'], Needs | undefined, CommandLevel];

const rows: readonly Row[] = [
  ['workspace', undefined, 'workspace'],
  ['workspace', 'network', 'workspace+net'],
  ['workspace', 'outside', 'off'],
  ['workspace+net', undefined, 'workspace+net'],
  ['workspace+net', 'network', 'workspace+net'],
  ['read-only', undefined, 'read-only'],
  ['read-only', 'network', 'read-only+net'],
  ['read-only', 'outside', 'off'],
  ['off', undefined, 'off'],
  ['off', 'network', 'off'],
  ['missing', undefined, 'off'],
  [undefined, 'network', 'off'],
];

test('A command runs at the level of the session, widened by what was granted to the call', () => {
  for (const [setting, needs, level] of rows)
    assert.equal(levelOfCall(setting, needs), level, `${setting} with ${needs}`);
});
