import assert from 'node:assert/strict';
import { test } from 'node:test';
import { edit } from '../../../../test/kit/agent/given.js';
import type { Settings } from '../../src/machine/settings.js';
import { type CommandLevel, decide, levelOfCall } from '../../src/policy/decide.js';
import type { JudgedCall, Needs } from '../../src/policy/judged-call.js';
import { presetRules } from '../../src/policy/presets.js';

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

test('a command that stays in the sandbox and changes git folders is not said to leave it', () => {
  const bash = (needs: Needs): JudgedCall => ({
    ...edit('1'),
    tool: 'bash',
    facts: {
      argv: ['x'],
      paths: ['/project'],
      hosts: [],
      shape: 'x',
      needs,
      shell: {
        commands: [{ words: ['x'], assignments: [], writes: [], program: null }],
        unclear: null,
      },
    },
  });
  const saysIn = (
    preset: 'careful' | 'auto' | 'ci',
    needs: Needs,
    onAsk: 'ask' | 'deny',
  ): string => {
    const settings = { preset, rules: presetRules[preset], workspace: '/project', onAsk } as const;
    return decide({ ...settings, sandbox: 'workspace' }, [], bash(needs)).why;
  };
  assert.equal(saysIn('careful', 'repository', 'ask'), 'it changes git folders');
  assert.equal(saysIn('careful', 'network', 'ask'), 'it leaves the sandbox');
  assert.match(
    saysIn('auto', 'repository', 'deny'),
    /^the command changes git folders, and nobody is there/,
  );
  assert.match(
    saysIn('auto', 'network', 'deny'),
    /^the command leaves the sandbox, and nobody is there/,
  );
  assert.equal(
    saysIn('ci', 'repository', 'ask'),
    'it changes git folders, and the preset ci never does',
  );
});
