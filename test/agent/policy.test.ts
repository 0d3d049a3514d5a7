import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JudgedCall } from '../../src/agent/call.js';
import { decide } from '../../src/agent/policy.js';
import { type Grant, presetRules, type Rule } from '../../src/agent/settings.js';
import { edit, grep } from './given.js';

// Rules and grants by themselves (R31): which rule fits a call, and which grant covers it.

const touching = (call: JudgedCall, ...paths: readonly string[]): JudgedCall => ({
  ...call,
  facts: { ...call.facts, paths },
});
const rule = (decision: Rule['decision'], limits: Partial<Rule> = {}): Rule => ({
  decision,
  tool: '*',
  where: 'anywhere',
  touches: 'anything',
  why: `${decision} it`,
  ...limits,
});
const ask = (rules: readonly Rule[], call: JudgedCall, grants: readonly Grant[] = []) =>
  decide({ rules, workspace: '/project' }, grants, call).decision;

type Row = {
  readonly title: string;
  readonly rules: readonly Rule[];
  readonly call: JudgedCall;
  readonly grants?: readonly Grant[];
  readonly says: Rule['decision'];
};

const inside = [rule('allow', { where: 'inside' })];
const outside = [rule('allow', { where: 'outside' })];
const asks = [rule('ask')];

const rows: readonly Row[] = [
  { title: 'without rules nothing is allowed', rules: [], call: grep('1'), says: 'deny' },
  {
    title: 'the first rule that fits decides',
    rules: [rule('ask'), rule('deny')],
    call: grep('1'),
    says: 'ask',
  },
  {
    title: 'a rule for one tool fits it',
    rules: [rule('allow', { tool: 'grep' })],
    call: grep('1'),
    says: 'allow',
  },
  {
    title: 'a rule for one tool fits no other one',
    rules: [rule('allow', { tool: 'grep' }), rule('ask')],
    call: edit('1'),
    says: 'ask',
  },
  {
    title: 'the workspace itself is inside',
    rules: inside,
    call: touching(grep('1'), '/project'),
    says: 'allow',
  },
  {
    title: 'a file in it is inside',
    rules: inside,
    call: touching(grep('1'), '/project/a/b.ts'),
    says: 'allow',
  },
  { title: 'a call without paths is inside', rules: inside, call: touching(grep('1')), says: 'allow' },
  {
    title: 'a folder whose name goes on is outside',
    rules: inside,
    call: touching(grep('1'), '/projects/a.ts'),
    says: 'deny',
  },
  {
    title: 'one path outside is enough to be outside',
    rules: inside,
    call: touching(grep('1'), '/project/a.ts', '/etc/passwd'),
    says: 'deny',
  },
  {
    title: 'one path outside is enough for a rule about what is outside',
    rules: outside,
    call: touching(grep('1'), '/project/a.ts', '/etc/passwd'),
    says: 'allow',
  },
  {
    title: 'a rule about what is outside fits nothing inside',
    rules: outside,
    call: touching(grep('1'), '/project/a.ts'),
    says: 'deny',
  },
  {
    title: 'a rule about changes fits a change',
    rules: [rule('allow', { touches: 'mutates' })],
    call: edit('1'),
    says: 'allow',
  },
  {
    title: 'a rule about changes fits no reading',
    rules: [rule('allow', { touches: 'mutates' })],
    call: grep('1'),
    says: 'deny',
  },
  {
    title: 'a rule about reading fits no change',
    rules: [rule('allow', { touches: 'reads' })],
    call: edit('1'),
    says: 'deny',
  },
  {
    title: 'a grant for the session covers every call of its tool',
    rules: asks,
    call: edit('1'),
    grants: [{ scope: 'session', tool: 'edit' }],
    says: 'allow',
  },
  {
    title: 'a grant covers no other tool',
    rules: asks,
    call: edit('1'),
    grants: [{ scope: 'session', tool: 'grep' }],
    says: 'ask',
  },
  {
    title: 'a grant for a shape covers that shape',
    rules: asks,
    call: edit('1'),
    grants: [{ scope: 'shape', tool: 'edit', shape: 'edit a.ts' }],
    says: 'allow',
  },
  {
    title: 'a grant for a shape covers no other one',
    rules: asks,
    call: edit('1'),
    grants: [{ scope: 'shape', tool: 'edit', shape: 'edit b.ts' }],
    says: 'ask',
  },
  {
    title: 'one grant that covers a call is enough',
    rules: asks,
    call: edit('1'),
    grants: [
      { scope: 'session', tool: 'grep' },
      { scope: 'session', tool: 'edit' },
    ],
    says: 'allow',
  },
  {
    title: 'a grant does not help against a rule that denies',
    rules: [rule('deny')],
    call: edit('1'),
    grants: [{ scope: 'session', tool: 'edit' }],
    says: 'deny',
  },
];

for (const { title, rules, call, grants, says } of rows) {
  test(`${title}: ${says}`, () => assert.equal(ask(rules, call, grants), says));
}

test('of a workspace at the root everything is inside', () => {
  const call = touching(grep('1'), '/etc/passwd');
  assert.equal(decide({ rules: inside, workspace: '/' }, [], call).decision, 'allow');
});

test('a decision says why', () => {
  const settings = { rules: asks, workspace: '/project' };
  assert.equal(decide(settings, [], edit('1')).why, 'ask it');
  assert.equal(decide({ ...settings, rules: [] }, [], edit('1')).why, 'no rule allows it');
  const granted = decide(settings, [{ scope: 'session', tool: 'edit' }], edit('1'));
  assert.equal(granted.why, 'you allowed it before');
});

test('what the presets make of reading, of changing, and of what lies outside', () => {
  const calls = [
    grep('1'),
    edit('1'),
    touching(grep('1'), '/etc/passwd'),
    touching(edit('1'), '/etc/passwd'),
  ];
  const decisions = (['plan', 'careful', 'auto', 'ci'] as const).map((preset) => [
    preset,
    ...calls.map((call) => ask(presetRules[preset], call)),
  ]);
  assert.deepEqual(decisions, [
    ['plan', 'allow', 'deny', 'deny', 'deny'],
    ['careful', 'allow', 'ask', 'deny', 'deny'],
    ['auto', 'allow', 'allow', 'deny', 'deny'],
    ['ci', 'allow', 'allow', 'deny', 'deny'],
  ]);
});
