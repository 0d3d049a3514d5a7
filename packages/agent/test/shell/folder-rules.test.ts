import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createFolderRule,
  describeGrant,
  describeQuestion,
} from '../../src/policy/approval-question.js';
import { decide, type PolicySettings } from '../../src/policy/decide.js';
import type { JudgedCall, Needs } from '../../src/policy/judged-call.js';
import { presetRules, type WrittenRule } from '../../src/policy/presets.js';
import { explainCommand } from '../../src/policy/shell/explain-command.js';
import { command, decisionOf, WORKSPACE } from './decisions.js';

// Rules that the answer `P` writes: what they are offered for, and what they do not cover.

const ofFolder = (words: string, needs?: Needs): WrittenRule => ({
  ...command('allow', words, needs),
  from: 'folder',
});

const settings = (rules: readonly WrittenRule[] = []): PolicySettings => ({
  rules: presetRules.careful,
  preset: 'careful',
  sandbox: 'off',
  onAsk: 'ask',
  workspace: WORKSPACE,
  writtenRules: rules,
});

const find = (name: string): string =>
  name.includes('/') ? `${WORKSPACE}/${name}` : `/usr/bin/${name}`;

const judge = async (text: string, needs?: Needs): Promise<JudgedCall> => {
  const { facts } = await explainCommand(text, settings(), { find });
  return {
    callId: 'a',
    tool: 'bash',
    input: { command: text },
    verdict: { kind: 'ok' },
    traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 0 },
    facts: {
      argv: [text],
      paths: [WORKSPACE],
      hosts: [],
      shape: text,
      shell: facts,
      ...(needs === undefined ? {} : { needs }),
    },
  };
};

const offered = async (text: string, rules?: readonly WrittenRule[], needs?: Needs) => {
  const rule = createFolderRule(await judge(text, needs), settings(rules));
  if (rule === null || rule.kind !== 'command') return rule;
  return [rule.words.join(' '), ...(rule.needs === undefined ? [] : [rule.needs])].join(', ');
};

test('a rule is offered for plain commands, by the words that a prefix has', async () => {
  assert.equal(await offered('npm test a'), 'npm test');
  assert.equal(await offered('npm install left-pad', [], 'network'), 'npm install, network');
  for (const words of ['git fetch origin', 'git push origin'])
    assert.equal(await offered(`${words} main`, [], 'network'), `${words}, network`);
});

test('what is offered for a command that reaches a remote names the remote, and holds for the call', async () => {
  const offersPrefix = async (text: string): Promise<boolean> => {
    const call = await judge(text, 'network');
    const question = { type: 'RequestApproval', batchId: 'b', call, why: 'w' } as const;
    return describeQuestion(question, WORKSPACE).choices.some(({ answer }) => answer === 'prefix');
  };
  assert.ok(await offersPrefix('git push origin main'));
  for (const text of [
    'git push',
    'git pull',
    'git push https://elsewhere.example/x main',
    'git push ../other main',
    'git push host:x main',
    'git push -u origin main',
    'git push origin main --porcelain', // not known to be harmless
  ]) {
    assert.ok(!(await offersPrefix(text)), text);
    assert.equal(await offered(text, [], 'network'), null, text);
  }
});

test('none is offered where it would not hold, or would hold for what a repository can change', async () => {
  const rows: readonly (readonly [string, (readonly WrittenRule[])?, Needs?])[] = [
    ['git checkout .'], // destroys work
    ['git reset --hard'],
    ['git push --force'],
    ['rm -rf x'], // never a prefix
    ['rimraf dist'], // loses files
    ['./build.sh'], // the repository's own program
    ['npm test | tee x'],
    ['$CMD test'],
    ['git commit -m x', [], 'repository'],
    ['npm test', [command('ask', 'npm test')]], // the user's own rule asks
    ['npm test', [command('deny', 'npm')]],
  ];
  for (const [text, rules, needs] of rows)
    assert.equal(await offered(text, rules, needs), null, text);
});

test('a rule of a folder keeps the questions about lost work; one that was written by hand does not', async () => {
  for (const [words, harmless, destructive] of [
    ['git checkout', 'git checkout main', 'git checkout .'],
    ['git stash', 'git stash list', 'git stash drop'],
    ['rimraf', 'rimraf', 'rimraf dist'],
  ] as const) {
    const rules = [ofFolder(words)];
    assert.equal(await decisionOf(harmless, { rules }), 'allow', harmless);
    assert.equal(await decisionOf(destructive, { rules }), 'ask', destructive);
    const byHand = [command('allow', words)];
    assert.equal(await decisionOf(destructive, { rules: byHand }), 'allow', destructive);
    assert.equal(
      await decisionOf(destructive, { rules: [...byHand, ...rules] }),
      'allow',
      'the rule of hand covers it',
    );
    assert.equal(
      await decisionOf(`npm test && ${destructive}`, { rules: [...rules, ofFolder('npm test')] }),
      'ask',
    );
  }
});

test('a rule of a folder is one for the need that it names, and overrules no other rule', async () => {
  const inFence = { sandbox: 'workspace', needs: 'network' } as const;
  const rows = [
    [[ofFolder('npm install', 'network')], 'allow'],
    [[ofFolder('npm install')], 'ask'],
    [[ofFolder('npm install', 'network'), command('deny', 'npm')], 'deny'],
  ] as const;
  for (const [rules, expected] of rows)
    assert.equal(await decisionOf('npm install x', { ...inFence, rules }), expected);
  assert.equal(
    await decisionOf('npm install x', { ...inFence, preset: 'plan', rules: rows[0][0] }),
    'deny',
  );
});

test('hosts and tools of servers have rules by their exact names; a project’s server has none', () => {
  const call = (facts: Partial<JudgedCall['facts']>): JudgedCall => ({
    callId: 'a',
    tool: 'x',
    input: {},
    verdict: { kind: 'ok' },
    traits: { effect: 'opaque', parallelSafe: false, mutating: false, deadlineMs: 1_000 },
    facts: { argv: [], paths: [], hosts: [], shape: 'x', ...facts },
  });
  const rule = (facts: Partial<JudgedCall['facts']>) => createFolderRule(call(facts), settings());
  const docs = { server: 'docs', tool: 'get' };
  assert.deepEqual(rule({ hosts: ['example.com'] }), { kind: 'host', pattern: 'example.com' });
  assert.deepEqual(rule({ mcp: docs }), { kind: 'mcp', pattern: 'docs/get' });
  assert.equal(rule({ mcp: { ...docs, from: 'project' } }), null);
  assert.equal(rule({ mcp: { ...docs, tool: 'get*' } }), null, 'it would mean others');
  assert.equal(rule({ mcp: { ...docs, tool: 'a b' } }), null, 'no file could hold it');
  assert.equal(rule({ hosts: ['a.com', 'b.com'] }), null);
  const changed = { ...docs, declaration: 'changed' } as const;
  assert.equal(rule({ mcp: changed }), null, 'its declaration has changed');
  const allowed = { ...call({ mcp: docs }) };
  const rules = [
    { kind: 'mcp', pattern: 'docs/get', decision: 'allow', origin: '', from: 'folder' },
  ] as const;
  assert.equal(decide(settings(rules), [], allowed).decision, 'allow');
});

test('a grant names the whole path, or that from the folder on', () => {
  const edit = { scope: 'shape', tool: 'edit', shape: '/project/x.ts' } as const;
  assert.equal(describeGrant(edit), 'edit /project/x.ts');
  assert.equal(describeGrant(edit, '/project'), 'edit x.ts');
});

test('a question counts the line breaks that push a part of the command out of sight', async () => {
  const oddIn = async (text: string) => {
    const call = await judge(text);
    const request = { type: 'RequestApproval', batchId: 'b', call, why: '' } as const;
    return describeQuestion(request, WORKSPACE).oddCharacters;
  };
  assert.deepEqual(await oddIn(`ls${'\n'.repeat(20)}rm x`), [
    { code: 'U+000A', name: 'run of line breaks', count: 20 },
  ]);
  assert.deepEqual(await oddIn('ls\n\nrm x'), []);
});
