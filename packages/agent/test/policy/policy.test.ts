import assert from 'node:assert/strict';
import { test } from 'node:test';
import { edit, grep } from '../../../../test/kit/agent/given.js';
import { decide } from '../../src/policy/decide.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import { allowHosts, type PolicyRule, presetRules } from '../../src/policy/presets.js';
import type { Grant } from '../../src/policy/rules.js';

// Rules and grants by themselves: which rule fits a call, and which grant covers it.

const touching = (call: JudgedCall, ...paths: readonly string[]): JudgedCall => ({
  ...call,
  facts: { ...call.facts, paths },
});
const rule = (decision: PolicyRule['decision'], limits: Partial<PolicyRule> = {}): PolicyRule => ({
  decision,
  tool: '*',
  where: 'anywhere',
  touches: 'anything',
  why: `${decision} it`,
  ...limits,
});
const ask = (rules: readonly PolicyRule[], call: JudgedCall, grants: readonly Grant[] = []) =>
  decide({ rules, workspace: '/project' }, grants, call).decision;

type Row = {
  readonly title: string;
  readonly rules: readonly PolicyRule[];
  readonly call: JudgedCall;
  readonly grants?: readonly Grant[];
  readonly says: PolicyRule['decision'];
};

const inside = [rule('allow', { where: 'inside' })];
const outside = [rule('allow', { where: 'outside' })];
const asks = [rule('ask')];
const reaching = (...hosts: readonly string[]): JudgedCall => {
  const call = grep('1');
  return { ...call, facts: { ...call.facts, paths: [], hosts } };
};

const rows: readonly Row[] = [
  {
    title: 'a rule that names no hosts allows no call that reaches one',
    rules: [rule('allow')],
    call: reaching('example.com'),
    says: 'deny',
  },
  {
    title: 'nor is a call that reaches a host asked for by it',
    rules: [rule('ask'), rule('allow', { hosts: ['example.com'] })],
    call: reaching('example.com'),
    says: 'allow',
  },
  {
    title: 'a rule that denies fits calls that reach hosts, too',
    rules: [rule('deny'), rule('allow', { hosts: ['*'] })],
    call: reaching('example.com'),
    says: 'deny',
  },
  {
    title: 'one of several patterns is enough for a host',
    rules: [rule('allow', { hosts: ['a.com', 'b.com'] })],
    call: reaching('b.com'),
    says: 'allow',
  },
  {
    title: 'a rule that asks about a host does not fit a call to another one',
    rules: [rule('ask', { hosts: ['a.com'] }), rule('allow', { hosts: ['b.com'] })],
    call: reaching('b.com'),
    says: 'allow',
  },
  {
    title: 'a rule that denies a host does not fit a call that reaches none',
    rules: [rule('deny', { hosts: ['a.com'] }), rule('allow')],
    call: reaching(),
    says: 'allow',
  },
  {
    title: 'a rule for hosts does not fit a call that reaches none',
    rules: [rule('allow', { hosts: ['*'] })],
    call: reaching(),
    says: 'deny',
  },
  {
    title: 'every host of a call must be allowed',
    rules: [rule('allow', { hosts: ['a.com'] })],
    call: reaching('a.com', 'b.com'),
    says: 'deny',
  },
  {
    title: 'one host that is asked for is enough to ask',
    rules: [rule('ask', { hosts: ['b.com'] }), rule('allow', { hosts: ['*'] })],
    call: reaching('a.com', 'b.com'),
    says: 'ask',
  },
  {
    title: 'a pattern never allows a private host',
    rules: [rule('allow', { hosts: ['*', '*.internal'] })],
    call: reaching('db.internal'),
    says: 'deny',
  },
  {
    title: 'a private host is allowed by its name',
    rules: [rule('allow', { hosts: ['localhost:3000'] })],
    call: reaching('localhost:3000'),
    says: 'allow',
  },
  {
    title: 'a pattern asks for private hosts, too',
    rules: [rule('ask', { hosts: ['*'] })],
    call: reaching('10.0.0.5'),
    says: 'ask',
  },
  ...(
    [
      ['plan', 'deny'],
      ['careful', 'ask'],
      ['auto', 'ask'],
      ['ci', 'deny'],
    ] as const
  ).flatMap(([preset, says]): readonly Row[] => [
    {
      title: `a host that nobody named: the preset ${preset} says ${says}`,
      rules: presetRules[preset],
      call: reaching('example.com'),
      says,
    },
    {
      title: `a host that was named is allowed with the preset ${preset}`,
      rules: allowHosts(presetRules[preset], ['example.com']),
      call: reaching('example.com'),
      says: 'allow',
    },
  ]),
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
  {
    title: 'a call without paths is inside',
    rules: inside,
    call: touching(grep('1')),
    says: 'allow',
  },
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

test('every path is inside a workspace at the root', () => {
  const call = touching(grep('1'), '/etc/passwd');
  assert.equal(decide({ rules: inside, workspace: '/' }, [], call).decision, 'allow');
});

test('a decision says why', () => {
  const settings = { rules: asks, workspace: '/project' };
  assert.equal(decide(settings, [], edit('1')).why, 'ask it');
  assert.equal(decide({ ...settings, rules: [] }, [], edit('1')).why, 'no rule allows it');
  const plan = { ...settings, rules: presetRules.plan };
  assert.match(
    decide(plan, [], reaching('example.com')).why,
    /^the preset plan reaches only hosts/,
  );
  const granted = decide(settings, [{ scope: 'session', tool: 'edit' }], edit('1'));
  assert.equal(granted.why, 'you allowed it before');
});

test('each preset decides about reading, changing and paths outside', () => {
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
    ['careful', 'allow', 'ask', 'ask', 'ask'],
    ['auto', 'allow', 'allow', 'ask', 'ask'],
    ['ci', 'allow', 'allow', 'deny', 'deny'],
  ]);
});

test('the hosts that are named replace those that were named before', () => {
  const rules = allowHosts(allowHosts(presetRules.auto, ['a.com']), ['b.com']);
  assert.equal(ask(rules, reaching('a.com')), 'ask');
  assert.equal(ask(rules, reaching('b.com')), 'allow');
  assert.deepEqual(allowHosts(rules, []), presetRules.auto);
});
