import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path, { join } from 'node:path';
import { test } from 'node:test';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, makeServed, type Place } from './pawl.js';

const write = (file: string, text: string): string => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
};

const mine = (place: Place, text: string): string =>
  write(path.join(place.home, '.config', 'pawl', 'config.toml'), text);
const project = (place: Place, text: string): string =>
  write(path.join(place.workspace, '.pawl', 'config.toml'), text);

const says = (text: string) => ({ type: 'message', parts: [{ type: 'text', text }] }) as const;
const calls = (name: string, input: object) =>
  ({ type: 'message', parts: [{ type: 'call', id: 'a', name, input }] }) as const;

test('pawl config says each value, its source and whom it wins over', async (context) => {
  const place = makePlace(context, { PAWL_HOOKS: 'never' });
  const user = mine(place, 'max_usd = 10\npreset = "auto"\n');
  const theirs = project(place, '\nmax_usd = 5\nmax_rounds = 200\n');
  const ended = await runInProcess(place, ['config', '--json', '--max-minutes', '3']);
  expectCode(ended, 0);
  const found = new Map(
    ended.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .map(({ key, ...rest }) => [key, rest]),
  );
  assert.deepEqual(found.get('max_usd'), {
    value: '5',
    origin: { layer: 'project', file: theirs, line: 2 },
    overruled: [
      {
        value: '10',
        origin: { layer: 'user', file: user, line: 1 },
        why: 'the project is stricter',
      },
    ],
  });
  assert.equal(found.get('max_rounds').value, '100 in a terminal, else none');
  assert.deepEqual(found.get('hooks').origin, { layer: 'environment', variable: 'PAWL_HOOKS' });
  assert.deepEqual(found.get('max_minutes').origin, { layer: 'flag', flag: '--max-minutes' });
  assert.deepEqual(found.get('silence_ms').origin, { layer: 'builtIn' });
  const text = await runInProcess(place, ['config', '--origin']);
  assert.match(
    text.stdout,
    new RegExp(`^max_usd +5 +${theirs}:2\n +not 10 of ${user}:1: the project`, 'm'),
  );
});

test('a project’s file tightens a run, and what it may not have is told and not done', async (context) => {
  const place = await makeServed(context, [
    calls('write', { path: 'a.txt', content: 'x' }),
    says('I may not'),
  ]);
  project(
    place,
    'preset = "plan"\nformatter = "on"\n[providers.anthropic]\nbase_url = "http://127.0.0.1:9"\n',
  );
  const ended = await runInProcess(place, ['-p', 'write a.txt']);
  expectCode(ended, 0);
  assert.equal(ended.stdout, 'I may not\n');
  assert.match(ended.stderr, /config\.toml:2: formatter = on is ignored: a project may only/);
  assert.match(
    ended.stderr,
    /config\.toml:4: providers\.anthropic\.base_url = .* is ignored: a project may not/,
  );
  assert.match(JSON.stringify(place.server.requests[1]), /the preset plan only reads/);
});

test('every fault is said at once, with its line, before anything is asked; the exit code is 78', async (context) => {
  const place = await makeServed(context, []);
  mine(place, 'max_usdd = 1\npreset = "autos"\n');
  project(place, 'max_rounds = \n');
  const ended = await runInProcess(place, ['-p', 'hi']);
  expectCode(ended, 78);
  assert.match(ended.stderr, /home\/\.config\/pawl\/config\.toml:1: .*Did you mean max_usd\?/);
  assert.match(ended.stderr, /home\/\.config\/pawl\/config\.toml:2: preset is one of/);
  assert.match(ended.stderr, /work\/\.pawl\/config\.toml:1: this is no TOML/);
  assert.equal(place.server.requests.length, 0);
  const shown = await runInProcess(place, ['config']);
  expectCode(shown, 78);
  assert.match(shown.stderr, /Did you mean max_usd\?/);
});

test('a key in a file of the user’s is used, is printed nowhere, and must be the user’s alone', async (context) => {
  const place = await makeServed(context, [says('hello')], { ANTHROPIC_API_KEY: '' });
  const key = write(path.join(place.home, 'key'), 'key\n');
  mine(place, '[providers.anthropic]\napi_key_file = "~/key"\n');
  chmodSync(key, 0o644);
  const open = await runInProcess(place, ['-p', 'hi']);
  expectCode(open, 78);
  assert.match(open.stderr, /others may read it. Make it yours alone: chmod 600 /);
  chmodSync(key, 0o600);
  const ended = await runInProcess(place, ['-p', 'hi']);
  expectCode(ended, 0);
  assert.equal(ended.stdout, 'hello\n');
});

for (const [variable, why] of [
  ['GOOGLE_GENERATIVE_AI_API_KEY', /since GOOGLE_GENERATIVE_AI_API_KEY is set/],
  ['GEMINI_API_KEY', /since GEMINI_API_KEY is set/],
  ['UNRELATED_KEY', /since your config\.toml names its key/],
] as const)
  test(`the model is that of a key in a file, or of the variable that wins over it: ${variable}`, async (context) => {
    const place = makePlace(context, {
      GOOGLE_GEMINI_BASE_URL: 'http://127.0.0.1:9',
      PAWL_MAX_RETRIES: '1',
      PAWL_RETRY_MS: '1',
      [variable]: 'key',
    });
    const key = write(path.join(place.home, 'key'), 'key\n');
    chmodSync(key, 0o600);
    mine(place, '[providers.google]\napi_key_file = "~/key"\n');
    const ended = await runInProcess(place, ['-p', 'hi']);
    assert.match(ended.stderr, why);
  });

test('no way of asking prints a key or a password', async (context) => {
  const secret = 'sk-ant-0123456789';
  const place = makePlace(context, {
    ANTHROPIC_API_KEY: secret,
    ANTHROPIC_BASE_URL: `http://me:${secret}@127.0.0.1:9`,
    OPENAI_API_KEY: secret,
  });
  const key = write(path.join(place.home, 'key'), secret);
  chmodSync(key, 0o600);
  mine(
    place,
    `[providers.google]\napi_key_file = "${key}"\nbase_url = "https://me:${secret}@a.example"\n`,
  );
  for (const words of [
    ['config'],
    ['config', '--origin'],
    ['config', '--json'],
    ['doctor'],
    ['doctor', '--json'],
  ]) {
    const { stdout, stderr } = await runInProcess(place, words);
    assert.notEqual(stdout, '');
    assert.doesNotMatch(stdout + stderr, /sk-ant/, words.join(' '));
  }
});

test('a session that is resumed keeps what it began with, whatever files say by now', async (context) => {
  const place = await makeServed(context, [says('one'), says('two')]);
  expectCode(await runInProcess(place, ['-p', 'hi', '--max-rounds', '7']), 0);
  mine(place, 'max_rounds = 3\npreset = "plan"\nmodel = "openai/other"\n');
  const ended = await runInProcess(place, ['-p', 'hi', '--continue']);
  expectCode(ended, 0);
  assert.equal(ended.stdout, 'two\n');
});

test('pawl doctor ends with 1 where something does not work, and with 0 where all does', async (context) => {
  const place = await makeServed(context, []);
  const well = await runInProcess(place, ['doctor', '--online', '--json']);
  expectCode(well, 0);
  const { ok, checks, found } = JSON.parse(well.stdout);
  assert.deepEqual(
    [ok, found.filter(({ level }: { level: string }) => level === 'fault')],
    [true, []],
  );
  assert.ok(checks.length >= 25);
  const without = { ...place, environment: { ...place.environment, ANTHROPIC_API_KEY: '' } };
  const ill = await runInProcess(without, ['doctor']);
  expectCode(ill, 1);
  assert.match(ill.stdout, /✗ No API key found for .* \(noKey\)\n {2}Set ANTHROPIC_API_KEY/);
  assert.match(ill.stdout, /checks: 1 to repair, \d+ to know\.\n$/);
});

// `pawl policy explain`, and rules of files as the program reads them.

test('policy explain says which rule decides, and where the command would run', async (context) => {
  const place = await makeServed(context, []);
  const folder = join(place.workspace, '.pawl');
  mkdirSync(folder);
  writeFileSync(
    join(folder, 'config.toml'),
    '[rules]\nallow = ["curl"]\ndeny = ["git push"]\n\n[rules.paths]\nask = [".env*"]\n',
  );
  const explain = (command: string, ...more: readonly string[]) =>
    runInProcess(place, [
      'policy',
      'explain',
      command,
      '--sandbox',
      'off',
      '--preset',
      'auto',
      ...more,
    ]);
  const denied = await explain('echo a; sudo git -C x push');
  expectCode(denied, 77);
  assert.match(denied.stdout, /^deny: a rule: deny "git push" \(.*config\.toml:3\)\n/);
  assert.match(denied.stdout, /└ git -C x push/);
  assert.match(denied.stderr, /allow "curl" .* is ignored: a project may only ask and deny/);
  const asked = await explain('cat .env.local', '--json');
  expectCode(asked, 1);
  const record = JSON.parse(asked.stdout);
  assert.deepEqual(
    [record.decision, record.place, record.reach.network],
    ['ask', 'unfenced', 'yes'],
  );
  expectCode(await explain('npm test'), 0);
  expectCode(await runInProcess(place, ['policy', 'what', 'x']), 2);
  const wordless = await runInProcess(place, ['policy', 'explain']);
  expectCode(wordless, 2);
  assert.match(wordless.stderr, /Which command\? For example: pawl policy explain "npm test"/);
});

test('policy explain looks up what a session looks up: files that git writes, changes, the shell', async (context) => {
  const place = await makeServed(context, []);
  const git = (...words: readonly string[]): void => {
    const who = ['-c', 'user.name=a', '-c', 'user.email=a@b'];
    execFileSync('git', [...who, ...words], { cwd: place.workspace, stdio: 'ignore' });
  };
  const write = (name: string, text: string): void =>
    writeFileSync(join(place.workspace, name), text);
  write('clean.txt', 'a\n');
  git('init', '-q', '-b', 'main');
  git('add', '-A');
  git('commit', '-qm', 'one');
  git('switch', '-qc', 'other');
  write('.gitattributes', '* text\n');
  write('.mcp.json', '{}\n');
  git('add', '-A');
  git('commit', '-qm', 'two');
  git('switch', '-q', 'main');
  git('branch', 'plain');
  const environment = { ...place.environment, SHELL: '/bin/bash' };
  const rows = [
    ['git checkout other', 'ask', /\.mcp\.json|protected|obey/],
    ['git checkout plain', 'allow', /./],
    ['git restore clean.txt', 'allow', /./],
    ["$SHELL -c 'ls'", 'allow', /./],
  ] as const;
  for (const [command, decision, why] of rows) {
    const words = ['policy', 'explain', command, '--preset', 'auto', '--sandbox', 'workspace'];
    const { stdout } = await runInProcess({ ...place, environment }, [...words, '--json']);
    const record = JSON.parse(stdout);
    assert.equal(record.decision, decision, stdout);
    assert.match(record.why, why, command);
  }
});

test('policy explain says what a command could reach with the access that it is expected to need', async (context) => {
  const place = await makeServed(context, []);
  const inside = 'writable: the workspace, a private /tmp and home';
  const rows: readonly (readonly [words: readonly string[], line: string])[] = [
    [['make'], `sandbox: workspace; network: no; ${inside}`],
    [['ls'], 'sandbox: workspace; network: no; writable: nothing but a private /tmp'],
    [['npm install'], `sandbox: workspace, left for the network; network: yes; ${inside}`],
    [['apt-get install x'], 'sandbox: left; network: yes; writable: everything that you can write'],
    [
      ['make', '--needs', 'repository'],
      `sandbox: workspace, left for git folders; network: no; ${inside}, git folders`,
    ],
  ];
  for (const [words, line] of rows) {
    const command = ['policy', 'explain', ...words, '--sandbox', 'workspace'];
    const { stdout } = await runInProcess(place, command);
    assert.ok(stdout.includes(`\n${line}\n`), stdout);
  }
});
