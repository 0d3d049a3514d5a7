import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import type { PolicySettings } from '../../src/policy/decide.js';
import { type Preset, presetRules, type WrittenRule } from '../../src/policy/presets.js';
import { explainCommand } from '../../src/policy/shell/explain-command.js';

// Well-known commands ask for what they need at once, where somebody can be asked or a rule allows
// it. Elsewhere they run in the sandbox, as if nothing were known.

const find = (name: string): string => `/usr/bin/${name}`;

const createWorkspace = (t: Parameters<typeof temporaryFolder>[0], remote: string): string => {
  const workspace = temporaryFolder(t, 'needs');
  mkdirSync(path.join(workspace, '.git'));
  writeFileSync(
    path.join(workspace, '.git/config'),
    `[remote "origin"]\n\turl = ${remote}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n`,
  );
  mkdirSync(path.join(workspace, 'node_modules/.bin'), { recursive: true });
  writeFileSync(path.join(workspace, 'node_modules/.bin/tsc'), '');
  return workspace;
};

const settings = (workspace: string, more: Partial<PolicySettings> = {}): PolicySettings => ({
  rules: presetRules.auto,
  preset: 'auto',
  sandbox: 'workspace',
  onAsk: 'ask',
  workspace,
  ...more,
});

const network: readonly (readonly [text: string, words: string])[] = [
  ['npm install', 'npm install'],
  ['npm ci --ignore-scripts', 'npm ci'],
  ['pnpm add left-pad', 'pnpm add'],
  ['yarn', 'yarn'],
  ['cd sub && npm i', 'npm i'],
  ['npx create-app x', 'npx create-app'],
  ['pip install requests', 'pip install'],
  ['python3 -m pip install -r requirements.txt', 'pip install'],
  ['cargo fetch', 'cargo fetch'],
  ['go mod download', 'go mod download'],
  ['go get example.com/x', 'go get'],
  ['git fetch', 'git fetch'],
  ['git pull --rebase', 'git pull'],
  ['git push origin main', 'git push'],
  ['git clone https://example.com/a.git', 'git clone'],
  ['git clone git@example.com:a/b.git x', 'git clone'],
  ['curl -s https://example.com/x | head', 'curl'],
  ['wget example.com/x.tar.gz', 'wget'],
  ['timeout 60 npm install', 'npm install'],
];

for (const [text, words] of network) {
  test(`${text} asks for the network at once`, async (t) => {
    const workspace = createWorkspace(t, 'https://example.com/a.git');
    const explained = await explainCommand(text, settings(workspace), { find });
    assert.equal(explained.decision, 'ask');
    assert.equal(explained.why, `${words} needs the network`);
    assert.equal(explained.place, 'leaving');
  });
}

const inside: readonly string[] = [
  'npm test',
  'npm run install',
  'npm install --offline',
  'npx tsc -p .',
  'npx --no-install eslint',
  'pip list',
  'pip install --no-index x',
  'cargo build',
  'go build ./...',
  'go install ./cmd/x',
  'git status',
  'git log origin/main',
  'git clone ./a b',
  'git push ../other main',
  'curl http://localhost:3000/x',
  'curl -s 127.0.0.1:8080',
  'curl "$URL"',
  'curl http://localhost:8080/x -o openapi.json',
  'curl -o out.json localhost:3000',
  'cd packages/x && npx jest',
  'echo npm install',
  'grep curl README.md',
];

for (const text of inside) {
  test(`${text} runs in the sandbox unasked`, async (t) => {
    const workspace = createWorkspace(t, 'https://example.com/a.git');
    const explained = await explainCommand(text, settings(workspace), { find });
    assert.deepEqual([explained.decision, explained.place], ['allow', 'sandboxed']);
  });
}

test('git in a repository whose remotes are folders needs no network', async (t) => {
  const workspace = createWorkspace(t, '/srv/a.git');
  for (const text of ['git fetch', 'git push', 'git pull origin main'])
    assert.equal((await explainCommand(text, settings(workspace), { find })).decision, 'allow');
});

test('remotes and submodules are those that git finds in the configuration', async (t) => {
  const workspace = createWorkspace(t, '/srv/a.git');
  for (const [config, decision] of [
    ['[remote "a"] url = "https://example.com/a b.git"', 'ask'],
    ['[remote "a"]\nurl = \\\nhttps://example.com/a.git', 'ask'],
    ['[user]\nurl = https://example.com/a.git', 'allow'],
    ['[submodule "a"]\nurl = https://example.com/a.git', 'ask'],
    ['# [remote "a"]\n; url = https://example.com/a.git', 'allow'],
  ] as const) {
    writeFileSync(path.join(workspace, '.git/config'), config);
    const explained = await explainCommand('git fetch', settings(workspace), { find });
    assert.equal(explained.decision, decision, config);
  }
});

test('packages of the system ask to leave the sandbox', async (t) => {
  const workspace = createWorkspace(t, '/srv/a.git');
  const explained = await explainCommand('apt-get install -y jq', settings(workspace), { find });
  assert.equal(explained.why, 'apt-get install has to run outside the sandbox');
});

test('a worktree that is there is removed or moved outside of the sandbox, which holds its git files', async (t) => {
  const workspace = createWorkspace(t, '/srv/a.git');
  mkdirSync(path.join(workspace, 'tree'));
  writeFileSync(path.join(workspace, 'tree/.git'), 'gitdir: ../.git/worktrees/tree\n');
  const explain = (text: string) => explainCommand(text, settings(workspace), { find });
  for (const text of ['git worktree remove tree', 'git worktree move tree other']) {
    const { decision, place, why } = await explain(text);
    assert.deepEqual([decision, place], ['ask', 'leaving'], text);
    assert.match(why, /^git worktree (remove|move) has to run outside the sandbox$/);
  }
  for (const text of [
    'git worktree add new && git worktree remove new',
    'git worktree list',
    'git worktree remove -h',
    'git worktree prune',
    'cd tree && git worktree remove tree',
  ])
    assert.equal((await explain(text)).place, 'sandboxed', text);
});

test('where nobody can be asked, or the preset denies it, the command runs in the sandbox', async (t) => {
  const workspace = createWorkspace(t, 'https://example.com/a.git');
  const placeWith = async (more: Partial<PolicySettings>) => {
    const explained = await explainCommand('npm install', settings(workspace, more), { find });
    return [explained.decision, explained.place];
  };
  const preset = (name: Preset) => ({ preset: name, rules: presetRules[name] });
  assert.deepEqual(await placeWith({ onAsk: 'stop' }), ['allow', 'sandboxed']);
  assert.deepEqual(await placeWith({ onAsk: 'deny' }), ['allow', 'sandboxed']);
  assert.deepEqual(await placeWith(preset('ci')), ['allow', 'sandboxed']);
  assert.deepEqual(await placeWith(preset('plan')), ['allow', 'sandboxed']);
  assert.deepEqual(await placeWith(preset('careful')), ['ask', 'leaving']);
  const careful = { ...preset('careful'), onAsk: 'stop' } as const;
  assert.deepEqual(await placeWith(careful), ['allow', 'sandboxed']);
  assert.deepEqual(await placeWith({ sandbox: 'workspace+net' }), ['allow', 'sandboxed']);
  assert.deepEqual(await placeWith({ sandbox: 'off' }), ['allow', 'unfenced']);
});

test('a rule for the network lets it run with the network unasked, also where nobody is', async (t) => {
  const workspace = createWorkspace(t, 'https://example.com/a.git');
  const head = { kind: 'command', words: ['npm', 'install'], origin: 'config.toml:1' } as const;
  const allowed: WrittenRule = { ...head, decision: 'allow', needs: 'network' };
  const denied: WrittenRule = { ...head, decision: 'deny' };
  const decisionWith = async (rule: WrittenRule) => {
    const more = { onAsk: 'stop', writtenRules: [rule] } as const;
    const explained = await explainCommand('npm install', settings(workspace, more), { find });
    return [explained.decision, explained.place];
  };
  assert.deepEqual(await decisionWith(allowed), ['allow', 'leaving']);
  assert.deepEqual(await decisionWith(denied), ['deny', 'sandboxed']);
});
