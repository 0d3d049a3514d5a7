import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  commandPlace,
  decide,
  firstOf,
  type PolicySettings,
  withExpectedNeeds,
} from '../../src/policy/decide.js';
import type { CallFacts, HookDecision, JudgedCall } from '../../src/policy/judged-call.js';
import { isMcpPattern } from '../../src/policy/patterns.js';
import {
  allowedHosts,
  allowHosts,
  gitTexts,
  isNeedsReason,
  type PolicyRule,
  type Preset,
  presetAfterPlan,
  presetRules,
  type WrittenRule,
} from '../../src/policy/presets.js';
import type { Grant } from '../../src/policy/rules.js';

// Built-in opinions, questions of the model and hooks: reasons, and how long an answer counts.

const FACTS: CallFacts = { argv: [], paths: [], hosts: [], shape: 'x' };
const callOf = (facts: Partial<CallFacts>, more: Partial<JudgedCall> = {}): JudgedCall => ({
  ...{ callId: '1', tool: 'x', input: {}, verdict: { kind: 'ok' } },
  traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 0 },
  ...{ facts: { ...FACTS, ...facts }, ...more },
});
const asking = (asks: 'question' | 'plan', more: Partial<JudgedCall> = {}): JudgedCall =>
  callOf({}, { traits: { ...callOf({}).traits, asks }, ...more });
const runs = (text: string, facts: Partial<CallFacts> = {}): JudgedCall => {
  const commands = [{ words: text.split(' '), assignments: [], writes: [], program: '/usr/bin/x' }];
  return callOf({ shell: { commands, unclear: null }, unrecoverable: [], ...facts });
};
const settings = (preset: Preset, more: Partial<PolicySettings> = {}): PolicySettings => ({
  ...{ rules: presetRules[preset], preset, workspace: '/w', sandbox: 'workspace', ...more },
});
/** `DECISION GRANTABLE BY: WHY`. */
const say = (
  preset: Preset,
  call: JudgedCall,
  more: Partial<PolicySettings> = {},
  grants: readonly Grant[] = [],
) => {
  const { decision, grantable, by, why } = decide(settings(preset, more), grants, call);
  return `${decision} ${grantable} ${by}: ${why}`;
};
const EVERY: readonly Grant[] = [{ scope: 'session', tool: 'x', needs: 'outside' }];
const SAME: readonly Grant[] = [{ scope: 'shape', tool: 'x', shape: 'x', needs: 'outside' }];

test('only the user answers a question or a plan of the model', () => {
  assert.equal(say('full', asking('question'), {}, EVERY), 'ask once built in: the model asks you');
  assert.match(say('auto', asking('question'), { onAsk: 'stop' }), /^deny .* Decide yourself/);
  assert.match(
    say('auto', asking('plan')),
    /^deny once built in: a plan is proposed in the preset plan/,
  );
  const before = { presetBefore: 'auto' } as const;
  assert.match(say('plan', asking('plan'), before), /^ask once .*: a yes goes on in preset auto$/);
  assert.match(say('auto', asking('plan', { reply: '' })), /^ask once .* in preset careful$/);
  assert.match(
    say('plan', asking('plan'), { onAsk: 'deny' }),
    /^deny .* Give the plan as your answer/,
  );
  const after = (['auto', 'ci', 'careful', 'full', 'plan', undefined] as const).map(
    presetAfterPlan,
  );
  assert.deepEqual(after, ['auto', 'ci', 'careful', 'careful', 'careful', 'careful']);
});

test('a hook asks and denies for one call, and allows nothing', () => {
  const hooked = (decision: HookDecision) =>
    callOf({}, { hooks: [{ hook: 'h', decision, reason: 'r' }] });
  assert.equal(say('auto', hooked('ask'), {}, EVERY), 'ask once hook h: the hook h: r');
  assert.equal(say('auto', hooked('deny')), 'deny once hook h: the hook h: r');
  assert.match(say('careful', hooked('allow')), /^ask any preset careful: /);
  assert.match(say('auto', hooked('allow')), /^allow any preset auto: /);
  assert.match(
    say('auto', asking('question', { hooks: hooked('deny').hooks ?? [] })),
    /^deny once hook/,
  );
});

test('protected paths and credentials ask each time, and plan and ci deny them', () => {
  const secret = callOf({ paths: ['/w/a'], secret: ['/w/a', '/w/b'] });
  const marked = 'credentials are kept in /w/a, /w/b';
  const guarded = callOf({ protected: ['/w/.git'] });
  const end = 'what the user is to do.';
  const obeyed = '/w/.git is run or obeyed later without a question';
  for (const [call, why] of [
    [secret, marked],
    [guarded, obeyed],
  ] as const) {
    for (const grants of [EVERY, SAME])
      assert.equal(say('auto', call, {}, grants), `ask once built in: ${why}`);
    for (const preset of ['plan', 'ci'] as const)
      assert.equal(say(preset, call), `deny once built in: ${why}: the preset ${preset} denies it`);
    assert.equal(
      say('auto', call, { onAsk: 'stop' }),
      `deny once built in: ${why}. Nobody is there to be asked. Do without it, or end with ${end}`,
    );
    assert.match(say('full', call), /^allow/);
  }
  const reading = { ...guarded, traits: { ...guarded.traits, mutating: false } };
  assert.match(say('auto', reading), /^allow/);
});

test('git that destroys work asks, and names what is lost of others', () => {
  const restore = (...discarded: readonly string[]) =>
    say('auto', runs('git restore a', { discarded }));
  assert.match(restore(), /^allow/);
  assert.match(restore('a'), /^ask thisCall built in: .* would be lost: a$/);
  assert.match(restore(...'abcdefg'), /: a, b, c, d, e and 2 more$/);
  assert.equal(firstOf(['a', 'b'], 2), 'a, b');
  assert.match(say('auto', runs('git restore a')), /could be lost/);
  const drop = runs('git stash drop', { discarded: [] });
  assert.match(say('auto', drop), /^ask thisCall/);
  assert.match(say('auto', drop, {}, EVERY), /^ask/);
  assert.equal(say('auto', drop, {}, SAME), 'allow thisCall grant: you allowed it before');
});

test('rules of a project count but with full, and those of a folder do not cover lost work', () => {
  const rule = (decision: WrittenRule['decision'], from?: 'project' | 'folder'): WrittenRule => ({
    ...{ decision, kind: 'command', words: ['git'], origin: 'f:1' },
    ...(from === undefined ? {} : { from }),
  });
  const decision = (preset: Preset, text: string, ...writtenRules: readonly WrittenRule[]) =>
    say(preset, runs(text), { writtenRules }).split(' ')[0];
  assert.equal(decision('full', 'git x', rule('deny', 'project')), 'allow');
  assert.equal(decision('full', 'git x', rule('deny')), 'deny');
  assert.equal(decision('auto', 'git x', rule('deny', 'project')), 'deny');
  assert.equal(decision('auto', 'git reset --hard', rule('allow')), 'allow');
  assert.equal(decision('auto', 'git reset --hard', rule('allow', 'folder')), 'ask');
  const stopped = { onAsk: 'stop', writtenRules: [rule('ask')] } as const;
  const leaving = runs('git x', { needs: 'network' });
  assert.match(say('auto', leaving, stopped), /^deny .* leaves the sandbox, and nobody/);
  const writtenRules = [rule('allow')];
  const allowed = say('careful', runs('git x', { needs: 'network' }), {
    writtenRules: [{ ...rule('allow'), kind: 'command', words: ['git'], needs: 'network' }],
  });
  assert.equal(
    allowed,
    'allow any allow "git" (f:1): a rule of yours allows it: allow "git" (f:1)',
  );
  assert.match(
    say('careful', runs('git x', { needs: 'network' }), { writtenRules }),
    /^ask any preset careful/,
  );
  const unknown = callOf({
    shell: {
      commands: [{ words: [null], assignments: [], writes: [], program: null }],
      unclear: null,
    },
  });
  assert.match(
    say('auto', unknown, { writtenRules: [rule('deny')] }),
    /: which command it is, is known only when it runs/,
  );
  assert.doesNotMatch(say('auto', runs('git x'), { writtenRules: [rule('ask')] }), /which command/);
});

test('a command that is expected to need access is asked about at once, or runs without it', () => {
  const expects = { needs: 'network', words: 'npm ci' } as const;
  const shape = 'x (needs: network)';
  const widened = runs('npm ci', { needs: 'network', shape, expects });
  const facts = (call: JudgedCall, preset: Preset = 'auto', more: Partial<PolicySettings> = {}) => {
    const actual = withExpectedNeeds(settings(preset, more), [], call).facts;
    return `${actual.needs ?? '-'} ${actual.shape} ${actual.expects?.words}`;
  };
  const [asked, inside] = ['network x (needs: network) npm ci', '- x npm ci'];
  assert.equal(facts(runs('npm ci', { expects })), asked);
  assert.equal(facts(widened), asked);
  for (const more of [{ onAsk: 'stop' }, { sandbox: 'workspace+net' }] as const)
    for (const call of [widened, runs('npm ci', { expects })])
      assert.equal(facts(call, 'auto', more), inside);
  assert.equal(facts(runs('npm ci', { expects, unrecoverable: ['a'] }), 'careful'), inside);
  assert.equal(facts(runs('npm ci', { expects, needs: 'outside' })), 'outside x npm ci');
  const why = (call: JudgedCall, sandbox: 'workspace' | 'missing') =>
    say('careful', call, { sandbox });
  assert.match(why(widened, 'workspace'), /: npm ci needs the network$/);
  assert.match(why(widened, 'missing'), /: there is no sandbox here/);
  assert.match(
    why(runs('npm ci', { expects, needs: 'outside' }), 'workspace'),
    /: it leaves the sandbox$/,
  );
});

test('an earlier answer for a prefix covers any option in the sandbox', () => {
  const grants = [{ scope: 'prefix', tool: 'x', words: ['npm', 'test'] }] as const;
  const losing = (needs: Partial<CallFacts>) =>
    runs('npm test --odd', { unrecoverable: ['a'], ...needs });
  assert.match(say('careful', losing({}), {}, grants), /^allow any grant/);
  const reaching = [{ ...grants[0], needs: 'outside' }] as const;
  assert.match(say('careful', losing({ needs: 'network' }), {}, reaching), /^ask/);
});

test('a command runs where the sandbox, its needs and its text put it', () => {
  const empty = { commands: [], unclear: null };
  const places = [
    commandPlace({ sandbox: 'off' }, callOf({})),
    commandPlace({ sandbox: 'off' }, callOf({ mcp: { server: 's', tool: 't' } })),
    commandPlace({ sandbox: 'off' }, callOf({ shell: empty })),
    commandPlace({ sandbox: 'off' }, callOf({ shell: { ...empty, unclear: 'x' } })),
    commandPlace({}, callOf({ shell: { ...empty, indirect: 'x' } })),
    commandPlace({ sandbox: 'missing' }, runs('a')),
    commandPlace({ sandbox: 'workspace' }, runs('a')),
    commandPlace({ sandbox: 'workspace' }, runs('a', { needs: 'network' })),
    commandPlace({ sandbox: 'workspace+net' }, runs('a', { needs: 'network' })),
    commandPlace({ sandbox: 'workspace+net' }, runs('a', { needs: 'outside' })),
  ];
  const expected =
    '- mcpServer sandboxed unfenced unfenced missing sandboxed leaving sandboxed leaving';
  assert.equal(places.map((place) => place ?? '-').join(' '), expected);
});

test('careful asks about lost files, but not about what a program makes', () => {
  const { unrecoverable: _, ...facts } = runs('rm a').facts;
  const careful = (text: string) =>
    say(
      'careful',
      callOf({
        ...facts,
        ...(runs(text).facts.shell === undefined ? {} : { shell: runs(text).facts.shell }),
      }),
    );
  assert.match(careful('rm a'), /^ask any preset careful: .*: a file that the command names$/);
  assert.match(careful('cp a b'), /^ask/);
  assert.match(careful('uniq a b'), /^allow/);
  assert.match(say('careful', runs('ls', { unrecoverable: [...'abcd'] })), /: a, b, c and 1 more$/);
});

test('hosts are allowed by name, and full reaches private ones', () => {
  const reading = callOf({ hosts: ['10.0.0.5'] });
  assert.match(say('full', reading), /^allow/);
  const rule = { decision: 'allow', kind: 'host', pattern: '10.0.0.5', origin: 'f:1' } as const;
  const fetch = { ...reading, traits: { ...reading.traits, mutating: false } };
  assert.match(say('ci', fetch, { writtenRules: [rule] }), /^allow/);
  assert.match(say('ci', fetch), /^deny/);
  assert.deepEqual(allowedHosts(allowHosts(presetRules.ci, ['a.com'])), ['a.com']);
  assert.deepEqual(allowedHosts(presetRules.ci), []);
  assert.match(say('full', callOf({ mcp: { server: 's', tool: 't' } })), /^allow/);
  const leaves = { ...presetRules.careful[2], why: 'it leaves the sandbox' } as const;
  assert.deepEqual(gitTexts(leaves as PolicyRule), { why: 'it changes git folders' });
  const texts = gitTexts({ ...(leaves as PolicyRule), unattended: 'x' });
  assert.equal(texts.unattended, 'x');
  assert.ok(isMcpPattern('docs') && !isMcpPattern('docs/'));
  const reasons = [
    'it leaves the sandbox',
    'it changes git folders',
    'the path lies outside the workspace',
  ];
  assert.ok(reasons.every(isNeedsReason) && !isNeedsReason('x'));
  const { by } = decide({ rules: [], workspace: '/w' }, [], callOf({}));
  assert.equal(by, 'preset');
});
