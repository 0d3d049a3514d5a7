import assert from 'node:assert/strict';
import { test } from 'node:test';
import { edit } from '../../../../test/kit/agent/given.js';
import { decide } from '../../src/policy/decide.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import { type Preset, presetRules, type WrittenRule } from '../../src/policy/presets.js';

// What the policy says about tools of MCP servers: they leave the sandbox.

const call = (server = 'github', tool = 'get_issue'): JudgedCall => ({
  ...edit('1'),
  tool: `mcp__${server}__${tool}`,
  facts: { argv: [], paths: [], hosts: [], shape: 'x', mcp: { server, tool } },
});

type McpRule = Extract<WrittenRule, { kind: 'mcp' }>;

const written = (decision: WrittenRule['decision'], pattern: string): McpRule => ({
  kind: 'mcp',
  decision,
  pattern,
  origin: 'config.toml:1',
});

type Row = readonly [preset: Preset, rules: readonly McpRule[], says: string, headless?: string];

const rows: readonly Row[] = [
  ['plan', [], 'deny'],
  ['careful', [], 'ask', 'deny'],
  ['auto', [], 'ask', 'deny'],
  ['ci', [], 'deny'],
  ['plan', [written('allow', 'github')], 'deny'],
  ['careful', [written('allow', 'github')], 'allow'],
  ['auto', [written('allow', 'github/get_issue')], 'allow'],
  ['auto', [written('allow', 'github/get_*')], 'allow'],
  ['ci', [written('allow', 'github/get_*')], 'allow'],
  ['auto', [written('allow', 'git')], 'ask', 'deny'],
  ['auto', [written('allow', 'github/get')], 'ask', 'deny'],
  ['auto', [written('allow', 'gitlab/get_issue')], 'ask', 'deny'],
  ['auto', [written('allow', 'github'), written('deny', 'github/get_*')], 'deny'],
  ['ci', [written('allow', 'github'), written('ask', 'github/get_issue')], 'deny'],
];

for (const [preset, writtenRules, says, headless = says] of rows)
  test(`${preset} with ${writtenRules.map(({ decision, pattern }) => `${decision} ${pattern}`).join(', ') || 'no rule'}`, () => {
    const settings = { preset, rules: presetRules[preset], writtenRules, workspace: '/project' };
    assert.equal(decide(settings, [], call()).decision, says);
    const { decision, why } = decide({ ...settings, onAsk: 'deny' }, [], call());
    assert.equal(decision, headless);
    if (says === 'ask' && headless === 'deny') assert.match(why, /\[rules\.mcp\] allow/);
  });

for (const [from, tool, pattern] of [
  [undefined, 'get_issue', 'github/get_issue'],
  ['project', 'get_issue', 'project:github/get_issue'],
  ['project', 'get "all"', 'project:github'],
] as const)
  for (const preset of ['auto', 'careful', 'ci'] as const)
    test(`${preset} names the pattern that allows ${tool} of ${from ?? 'the user'}, and it does`, () => {
      const asked = call('github', tool);
      const mcp = { server: 'github', tool, ...(from === undefined ? {} : { from }) };
      const judged = { ...asked, facts: { ...asked.facts, mcp } };
      const settings = { preset, rules: presetRules[preset], workspace: '/project' };
      const { why } = decide({ ...settings, onAsk: 'deny' }, [], judged);
      const [, named = ''] = /\[rules\.mcp\] allow = \["([^"]*)"\]/.exec(why) ?? [];
      assert.equal(named, pattern, why);
      const writtenRules = [written('allow', named)];
      assert.equal(decide({ ...settings, writtenRules }, [], judged).decision, 'allow');
      const both = `${why} ${decide(settings, [], judged).why}`;
      assert.equal(/outside the sandbox/.test(both), from === undefined, both);
    });

test("a project's server has none of what the user allowed a server of the same name, and all that was denied", () => {
  const says = (
    preset: Preset,
    from: 'project' | undefined,
    ...writtenRules: readonly McpRule[]
  ): string => {
    const asked = call();
    const mcp = { server: 'github', tool: 'get_issue', ...(from === undefined ? {} : { from }) };
    const facts = { ...asked.facts, mcp };
    const settings = { preset, rules: presetRules[preset], writtenRules, workspace: '/project' };
    return decide(settings, [], { ...asked, facts }).decision;
  };
  for (const pattern of ['github', 'github/get_issue', 'github/get_*']) {
    assert.equal(says('auto', 'project', written('allow', pattern)), 'ask', pattern);
    assert.equal(says('ci', 'project', written('allow', pattern)), 'deny', pattern);
    assert.equal(says('auto', 'project', written('allow', `project:${pattern}`)), 'allow', pattern);
    assert.equal(says('ci', 'project', written('allow', `project:${pattern}`)), 'allow', pattern);
    assert.equal(says('auto', undefined, written('allow', `project:${pattern}`)), 'ask', pattern);
    for (const denied of [pattern, `project:${pattern}`])
      assert.equal(
        says('auto', 'project', written('allow', 'project:github'), written('deny', denied)),
        'deny',
        denied,
      );
    assert.equal(
      says('auto', undefined, written('allow', 'github'), written('deny', `project:${pattern}`)),
      'allow',
    );
  }
});

test('a tool whose declaration has changed is asked about once, whatever rule or grant allows it', () => {
  const asked = call();
  const mcp = { server: 'github', tool: 'get_issue', declaration: 'changed' } as const;
  const changed = { ...asked, facts: { ...asked.facts, mcp } };
  const grant = { scope: 'session', tool: asked.tool } as const;
  for (const [preset, says, headless] of [
    ['plan', 'deny', 'deny'],
    ['careful', 'ask', 'deny'],
    ['auto', 'ask', 'deny'],
    ['ci', 'ask', 'deny'],
  ] as const) {
    const writtenRules = [written('allow', 'github')];
    const settings = { preset, rules: presetRules[preset], writtenRules, workspace: '/project' };
    const { decision, grantable } = decide(settings, [grant], changed);
    assert.equal(decision, says, preset);
    if (says === 'ask') assert.equal(grantable, 'once', preset);
    const unattended = decide({ ...settings, onAsk: 'deny' }, [grant], changed);
    assert.equal(unattended.decision, headless, preset);
    if (says === 'ask')
      assert.match(unattended.why, /describes its tool get_issue otherwise.*in a terminal/);
    const denied = [...writtenRules, written('deny', 'github')];
    assert.equal(
      decide({ ...settings, writtenRules: denied }, [], changed).decision,
      'deny',
      preset,
    );
  }
});

test('a grant for the tool turns the question into a yes, and for no other tool', () => {
  const settings = { preset: 'auto', rules: presetRules.auto, workspace: '/project' } as const;
  const grant = { scope: 'session', tool: 'mcp__github__get_issue' } as const;
  assert.equal(decide(settings, [grant], call()).decision, 'allow');
  assert.equal(decide(settings, [grant], call('github', 'close_issue')).decision, 'ask');
});

test('rules that are silent about MCP servers, as in older sessions, do not allow their tools', () => {
  const rules = presetRules.auto.filter(({ runs }) => runs !== 'mcpServer');
  assert.equal(decide({ rules, workspace: '/project' }, [], call()).decision, 'deny');
  const named = [
    {
      ...presetRules.auto[0],
      decision: 'allow',
      tool: call().tool,
      where: 'anywhere',
      touches: 'anything',
      why: 'named',
    },
  ] as const;
  const { runs: _, ...rule } = named[0];
  assert.equal(decide({ rules: [rule], workspace: '/project' }, [], call()).decision, 'allow');
});
