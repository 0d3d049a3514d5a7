import assert from 'node:assert/strict';
import { execFileSync, execSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { createSessionSandbox } from '../../src/command/session-sandbox.js';
import { SYSTEM_SHELL } from '../../src/platform/start-program.js';

// What the user or another program does to protected files while a command runs: both he and the model hear of it.

const makeWorkspace = (t: TestContext): string => {
  const workspace = realpathSync(temporaryFolder(t, 'of-others'));
  execFileSync('git', ['init', '-q', workspace]);
  for (const folder of ['.vscode', '.git/hooks', 'src'])
    mkdirSync(path.join(workspace, folder), { recursive: true });
  writeFileSync(path.join(workspace, '.git/hooks/pre-commit'), '#!/bin/sh\n');
  writeFileSync(path.join(workspace, '.vscode/settings.json'), '{}\n');
  writeFileSync(path.join(workspace, 'Makefile.txt'), 'x\n');
  writeFileSync(path.join(workspace, '.envrc'), 'old\n');
  return workspace;
};

type World = {
  /** A path in the workspace. */
  at(name: string): string;
  /** The user allowed the model to write there. */
  allow(place: string): void;
};

/** Runs commands, each with what somebody else does meanwhile. */
const runBeside = async (t: TestContext, meanwhile: readonly ((world: World) => void)[]) => {
  const workspace = makeWorkspace(t);
  const told: string[] = [];
  const sandbox = createSessionSandbox({
    environment: { ...process.env, XDG_STATE_HOME: temporaryFolder(t, 'of-others-state') },
    tellUser: (text) => told.push(text),
  });
  t.after(() => sandbox.close());
  const commands = await sandbox.of(workspace);
  const lines: string[] = [];
  const at = (name: string): string => path.join(workspace, name);
  for (const act of meanwhile) {
    const prepared = await commands.prepare({
      level: 'workspace',
      repository: 'read',
      program: SYSTEM_SHELL,
      words: ['-c', 'echo made > made.txt'],
      environment: {},
    });
    act({ at, allow: (place) => commands.allow(place) });
    const ended = spawnSync(prepared.program, prepared.words, {
      cwd: prepared.folder,
      env: prepared.environment,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe', ...prepared.descriptors],
    });
    assert.equal(ended.status, 0, ended.stderr);
    prepared.started();
    lines.push(...(await prepared.finish()));
  }
  return { at, lines: lines.join('\n'), told: told.join('\n') };
};

const SAID = ({ names, what }: { names: string; what: string }): RegExp =>
  new RegExp(
    `${names} ${what} while a command ran in the sandbox, in which it was read-only: by another ` +
      'program or by a fault of the sandbox; it was left as it is',
  );

type Change = {
  readonly when: string;
  readonly act: (world: World) => void;
  readonly said: RegExp;
  /** A file that stays as somebody left it; null: it stays away. */
  readonly stays: readonly [name: string, text: RegExp | null];
};

const CHANGES: readonly Change[] = [
  {
    when: 'git config writes .git/config',
    act: ({ at }) => execFileSync('git', ['-C', at('.'), 'config', 'core.fsmonitor', 'evil']),
    said: SAID({ names: '\\.git/config', what: 'was changed' }),
    stays: ['.git/config', /evil/],
  },
  {
    when: 'a hook of git is written to in place',
    act: ({ at }) => appendFileSync(at('.git/hooks/pre-commit'), 'evil\n'),
    said: SAID({ names: '\\.git/hooks/pre-commit', what: 'was changed' }),
    stays: ['.git/hooks/pre-commit', /evil/],
  },
  {
    when: 'a hook of git is made',
    act: ({ at }) => writeFileSync(at('.git/hooks/post-merge'), 'evil\n'),
    said: SAID({ names: '\\.git/hooks/post-merge', what: 'was changed' }),
    stays: ['.git/hooks/post-merge', /evil/],
  },
  {
    when: 'attributes of git appear',
    act: ({ at }) => {
      mkdirSync(at('.git/info'), { recursive: true });
      writeFileSync(at('.git/info/attributes'), '* filter=evil\n');
    },
    said: SAID({ names: '\\.git/info/attributes', what: 'appeared' }),
    stays: ['.git/info/attributes', /evil/],
  },
  {
    when: 'settings of an editor are changed',
    act: ({ at }) => writeFileSync(at('.vscode/settings.json'), '{"evil": 1}\n'),
    said: SAID({ names: '\\.vscode/settings\\.json', what: 'was changed' }),
    stays: ['.vscode/settings.json', /evil/],
  },
  {
    when: '.envrc is changed without a change of its size and modification time',
    act: ({ at }) => {
      writeFileSync(at('.envrc'), 'new\n');
      utimesSync(at('.envrc'), 1, 1);
    },
    said: SAID({ names: '\\.envrc', what: 'was changed' }),
    stays: ['.envrc', /new/],
  },
  {
    when: '.envrc is removed',
    act: ({ at }) => rmSync(at('.envrc')),
    said: SAID({ names: '\\.envrc', what: 'was removed' }),
    stays: ['.envrc', null],
  },
];

for (const { when, act, said, stays } of CHANGES)
  test(`while a command runs ${when}: it stays, and the user and the model hear of it`, async (t) => {
    const { at, lines, told } = await runBeside(t, [() => undefined, act, () => undefined]);
    assert.match(lines, said);
    assert.match(told, said);
    assert.match(told, /Look at it if that was not you\.$/);
    assert.equal(lines.split('\n').length, 1, 'once');
    assert.equal(told.split('\n').length, 1, 'once');
    const [name, text] = stays;
    if (text === null) assert.ok(!existsSync(at(name)));
    else assert.match(readFileSync(at(name), 'utf8'), text);
  });

const SILENT: readonly (readonly [when: string, act: (world: World) => void])[] = [
  ['nobody changes anything', () => undefined],
  ['a file without protection is changed', ({ at }) => writeFileSync(at('Makefile.txt'), 'new')],
  ['a protected file gets another mode', ({ at }) => chmodSync(at('.envrc'), 0o600)],
  ['a protected file is written as it was', ({ at }) => writeFileSync(at('.envrc'), 'old\n')],
  [
    'a tool writes a protected file that the user allowed',
    ({ at, allow }) => {
      allow(at('.envrc'));
      writeFileSync(at('.envrc'), 'new\n');
    },
  ],
  [
    'a tool writes a hook that the user allowed',
    ({ at, allow }) => {
      allow(at('.git/hooks/pre-commit'));
      writeFileSync(at('.git/hooks/pre-commit'), 'new\n');
    },
  ],
];

for (const [when, act] of SILENT)
  test(`control: nothing is said where ${when}`, async (t) => {
    const { lines, told } = await runBeside(t, [() => undefined, act, () => undefined]);
    assert.deepEqual({ lines, told }, { lines: '', told: '' });
  });

test('control: nothing is said of what the user changes between commands', async (t) => {
  const workspace = makeWorkspace(t);
  const told: string[] = [];
  const sandbox = createSessionSandbox({
    environment: { ...process.env, XDG_STATE_HOME: temporaryFolder(t, 'of-others-state') },
    tellUser: (text) => told.push(text),
  });
  t.after(() => sandbox.close());
  const commands = await sandbox.of(workspace);
  for (const text of ['one', 'two']) {
    const prepared = await commands.prepare({
      level: 'workspace',
      program: SYSTEM_SHELL,
      words: [],
      environment: {},
    });
    prepared.started();
    assert.deepEqual(await prepared.finish(), []);
    writeFileSync(path.join(workspace, '.envrc'), text);
    appendFileSync(path.join(workspace, '.git/hooks/pre-commit'), text);
  }
  assert.deepEqual(told, []);
});

test('a protected file that the user makes while a command runs is moved, and he is told how to get it back', async (t) => {
  const file = '.env rc/.envrc';
  const { at, lines, told } = await runBeside(t, [
    ({ at }) => {
      mkdirSync(path.dirname(at(file)));
      writeFileSync(at(file), 'mine');
    },
  ]);
  assert.ok(!existsSync(at(file)));
  assert.match(lines, /\.envrc is protected .* was moved away; if that was on purpose, /);
  assert.match(
    told,
    /^the sandbox: .*\.envrc is protected .* was moved away\. .* mv \S+set-aside\S+ /,
  );
  const [, command = ''] =
    /If you made it, move it back when no command runs: (mv .*)$/.exec(told) ?? [];
  execSync(command);
  assert.equal(readFileSync(at(file), 'utf8'), 'mine');
});

test('a command writes the protected file that the user allowed, and none beside it', async (t) => {
  const workspace = makeWorkspace(t);
  const at = (name: string): string => path.join(workspace, '.vscode', name);
  writeFileSync(at('tasks.json'), 'old\n');
  const sandbox = createSessionSandbox({
    environment: { ...process.env, XDG_STATE_HOME: temporaryFolder(t, 'of-others-state') },
  });
  t.after(() => sandbox.close());
  const commands = await sandbox.of(workspace);
  const prepared = await commands.prepare({
    level: 'workspace',
    program: SYSTEM_SHELL,
    words: [
      '-c',
      'cd .vscode; echo new > settings.json; echo x > tasks.json; echo x > launch.json; mv ../.vscode ../x',
    ],
    environment: {},
    writable: [at('settings.json')],
  });
  spawnSync(prepared.program, prepared.words, {
    cwd: prepared.folder,
    env: prepared.environment,
    stdio: ['ignore', 'pipe', 'pipe', ...prepared.descriptors],
  });
  prepared.started();
  const lines = await prepared.finish();
  assert.match(lines.join('\n'), /\.vscode\/launch\.json is protected/);
  assert.equal(readFileSync(at('settings.json'), 'utf8'), 'new\n');
  assert.equal(readFileSync(at('tasks.json'), 'utf8'), 'old\n');
  assert.ok(!existsSync(at('launch.json')));
});
