import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { chooseRows } from '../../../../test/tier.js';
import { decide } from '../../src/policy/decide.js';
import { PROTECTED_PATHS } from '../../src/policy/paths.js';
import { presetRules } from '../../src/policy/presets.js';
import { judgeCall } from '../../src/session/judge-call.js';
import { builtinTools } from '../../src/tools/builtin-tools.js';

// Files that are run or obeyed later are never written unasked, however they are named, whether they exist or not.

const VARIANTS: readonly (readonly [name: string, of: (path: string) => string])[] = [
  ['as it is', (it) => it],
  ['upper case', (it) => it.toUpperCase()],
  ['mixed case', (it) => it.replace(/[a-z]/, (letter) => letter.toUpperCase())],
  ['below a folder', (it) => `packages/core/${it}`],
  ['with a way back', (it) => `a/../${it}`],
  ['with dots and slashes', (it) => `.//./${it}`],
  ['with a blank at its end', (it) => `${it} `],
  ['with a dot at its end', (it) => `${it}.`],
  ['with a character that is not seen', (it) => it.replace(/^(\.?.)/, '$1\u200c')],
  ['through a link to the workspace', (it) => `here/${it}`],
  [
    'full width',
    (it) =>
      it.replace(/[a-z]/, (letter) => String.fromCodePoint((letter.codePointAt(0) ?? 0) + 0xfee0)),
  ],
];

const fileOf = (protectedPath: string): string => protectedPath.replace('*', 'x');

test('every protected path in every spelling asks, and no grant covers it', async () => {
  const workspace = realpathSync(mkdtempSync(path.join(tmpdir(), 'protected-')));
  try {
    symlinkSync(workspace, path.join(workspace, 'here'));
    for (const existing of ['.git/hooks', '.vscode', '.github/workflows'])
      mkdirSync(path.join(workspace, existing), { recursive: true });
    for (const existing of ['.envrc', '.git/config', '.vscode/tasks.json', 'AGENTS.md'])
      writeFileSync(path.join(workspace, existing), 'x');
    symlinkSync('.git/config', path.join(workspace, 'innocent.txt'));
    symlinkSync('.husky', path.join(workspace, 'hooks-not-there-yet'));
    const names = (): readonly string[] =>
      ['.', '.git', '.git/hooks', '.vscode', '.github'].flatMap((folder) =>
        readdirSync(path.join(workspace, folder)),
      );
    const before = names();
    const tools = new Map(builtinTools().map((tool) => [tool.name, tool]));
    const judge = (tool: string, file: string) => {
      const input =
        tool === 'write'
          ? { path: file, content: 'x' }
          : { path: file, edits: [{ oldText: 'x', newText: 'y' }] };
      return judgeCall(
        { type: 'call', callId: '1', tool, rawInput: JSON.stringify(input) },
        tools,
        workspace,
      );
    };
    const spelled = chooseRows(
      PROTECTED_PATHS.flatMap(({ path: place }) =>
        VARIANTS.map(([, of]) => ({ place, file: of(fileOf(place)) })),
      ),
      ({ place }) => place,
    ).map(({ file }) => file);
    const cases = [
      ...spelled,
      ...PROTECTED_PATHS.map((one) => `${fileOf(one.path)}/below`),
      'innocent.txt',
      'hooks-not-there-yet/pre-commit',
      '.git/HOOKS/pre-commit',
      'git~1/config',
      'vendor/HEAD',
    ];
    for (const tool of ['write', 'edit'])
      for (const file of cases) {
        const call = await judge(tool, file);
        const says = (preset: 'plan' | 'careful' | 'auto' | 'ci') =>
          decide(
            { rules: presetRules[preset], preset, workspace },
            [
              { scope: 'session', tool },
              { scope: 'shape', tool, shape: call.facts.shape },
            ],
            call,
          ).decision;
        assert.deepEqual([says('careful'), says('auto')], ['ask', 'ask'], `${tool} ${file}`);
        assert.deepEqual([says('plan'), says('ci')], ['deny', 'deny'], `${tool} ${file}`);
      }
    const control = await judge('write', 'src/ordinary.ts');
    assert.equal(
      decide({ rules: presetRules.auto, preset: 'auto', workspace }, [], control).decision,
      'allow',
      'control',
    );
    const unmarked = await judge('write', '.envrc');
    const { protected: _, ...facts } = unmarked.facts;
    assert.equal(
      decide({ rules: presetRules.auto, preset: 'auto', workspace }, [], { ...unmarked, facts })
        .decision,
      'allow',
      'control: without the mark it is written unasked',
    );
    assert.deepEqual(names(), before, 'judging touches nothing');
  } finally {
    removeFolderSync(workspace);
  }
});

test('files that the configuration of git names ask, and others beside them do not', async () => {
  const workspace = realpathSync(mkdtempSync(path.join(tmpdir(), 'protected-named-')));
  try {
    mkdirSync(path.join(workspace, '.git/objects'), { recursive: true });
    writeFileSync(path.join(workspace, '.git/HEAD'), 'ref: refs/heads/main\n');
    const config =
      '[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../conf\n[filter "x"]\n\tclean = sh ./clean.sh %f\n';
    writeFileSync(path.join(workspace, '.git/config'), config);
    const tools = new Map(builtinTools().map((tool) => [tool.name, tool]));
    const decisionFor = async (file: string): Promise<string> => {
      const input = { path: file, content: 'x' };
      const raw = {
        type: 'call',
        callId: '1',
        tool: 'write',
        rawInput: JSON.stringify(input),
      } as const;
      const call = await judgeCall(raw, tools, workspace);
      return decide({ rules: presetRules.auto, preset: 'auto', workspace }, [], call).decision;
    };
    for (const file of [
      'tools/hooks/pre-commit',
      'tools/hooks/x/y',
      'conf',
      'clean.sh',
      './x/../conf',
    ])
      assert.equal(await decisionFor(file), 'ask', file);
    for (const file of ['tools/other', 'conf2', 'src/clean.sh'])
      assert.equal(await decisionFor(file), 'allow', file);
    writeFileSync(path.join(workspace, '.git/config'), '');
    assert.equal(await decisionFor('conf'), 'allow', 'control: it is not named any more');
  } finally {
    removeFolderSync(workspace);
  }
});

test('places of credentials are asked about one by one, also to be read; headless they are denied', async () => {
  const tools = new Map(builtinTools().map((tool) => [tool.name, tool]));
  const judge = (file: string) =>
    judgeCall(
      { type: 'call', callId: '1', tool: 'read', rawInput: JSON.stringify({ path: file }) },
      tools,
      '/workspace-that-is-not-there',
    );
  for (const file of [
    '~/.ssh/id_ed25519',
    '~/.aws/credentials',
    '~/.npmrc',
    '~/.config/gh/hosts.yml',
    '/etc/shadow',
    '/proc/self/environ',
  ]) {
    const call = await judge(file);
    const settings = {
      rules: presetRules.auto,
      preset: 'auto',
      workspace: '/workspace-that-is-not-there',
    } as const;
    const session = [{ scope: 'session', tool: 'read', needs: 'outside' }] as const;
    assert.deepEqual(
      [
        decide(settings, session, call).decision,
        decide({ ...settings, onAsk: 'stop' }, session, call).decision,
      ],
      ['ask', 'deny'],
      file,
    );
  }
});
