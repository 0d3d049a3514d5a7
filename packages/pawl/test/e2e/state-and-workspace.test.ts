import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { memoryJournals } from '@pawl/agent/journal/memory-store';
import { scriptedModel } from '@pawl/agent/models/scripted-model';
import { openSession, workspaceFault } from '@pawl/agent/session/create-agent';
import { chooseRows } from '../../../../test/tier.js';
import { prepareAsk, submit } from './asking.js';
import { runInProcess } from './in-process.js';
import { bin, type Ended, expectCode, makePlace, type Place, runPawl, start } from './pawl.js';

/** Where sessions may lie, and where they may work. */

const makeScripted = (t: TestContext): Place & { readonly model: string } => {
  const place = makePlace(t);
  const script = join(place.folder, 'script.json');
  writeFileSync(script, JSON.stringify({ replies: [{ text: 'Fine.' }, { text: 'Fine.' }] }));
  return { ...place, model: `scripted/${script}` };
};

const PROTECTED = [
  '.git',
  '.git/hooks',
  '.github/workflows',
  '.vscode',
  '.husky',
  'a/.idea/b',
  '.GIT/hooks',
];

for (const name of PROTECTED)
  test(`no session works in ${name}: it is refused in words, also through a link`, async (t) => {
    const place = makeScripted(t);
    const folder = join(place.workspace, name);
    mkdirSync(folder, { recursive: true });
    const link = join(place.folder, 'link');
    symlinkSync(folder, link);
    for (const workspace of [folder, link]) {
      const words = ['--model', place.model, '--workspace', workspace, '-p', 'x'];
      const refused = await runInProcess(place, words);
      expectCode(refused, 2);
      assert.match(
        refused.stderr,
        /can't be the workspace, since it lies in .*: .*--workspace FOLDER/,
      );
    }
    const model = scriptedModel({ replies: [{ text: 'Fine.' }] });
    await assert.rejects(
      openSession({ model, journals: memoryJournals(), workspace: folder }),
      /can't be the workspace/,
    );
  });

test('folders of the system and of Pawl are no workspaces; projects below them, in homes and in worktrees of tools are', (t) => {
  const place = makePlace(t);
  const { environment, home } = place;
  const refused = [
    '/',
    '/etc',
    '/etc/ssh',
    '/usr',
    '/proc/1',
    '/dev',
    join(place.state, 'pawl'),
    join(home, '.ssh'),
  ];
  for (const folder of refused) assert.notEqual(workspaceFault(folder, environment), null, folder);
  const worktree = join(home, '.cursor', 'worktrees', 'a');
  mkdirSync(worktree, { recursive: true });
  writeFileSync(join(worktree, '.git'), 'gitdir: elsewhere\n');
  const fit = [
    place.workspace,
    home,
    worktree,
    '/usr/src/app',
    '/var/www/x',
    '/dev/shm/x',
    join(home, 'project'),
  ];
  for (const folder of fit) assert.equal(workspaceFault(folder, environment), null, folder);
});

test('a repository around or in a folder of secrets makes no workspace of it, one below it does', (t) => {
  const { environment, home } = makePlace(t);
  const below = join(home, '.claude', 'worktrees', 'a');
  for (const folder of [home, join(home, '.aws'), below])
    mkdirSync(join(folder, '.git'), { recursive: true });
  for (const name of ['.aws', '.gnupg', '.claude'])
    assert.equal(workspaceFault(join(home, name), environment), 'secrets are kept there', name);
  assert.equal(workspaceFault(below, environment), null);
});

test('a state folder that others may write is refused, with the repair', async (t) => {
  const place = makeScripted(t);
  const words = ['--model', place.model, '-p', 'x'];
  expectCode(await runInProcess(place, words), 0);
  const state = join(place.state, 'pawl');
  for (const folder of [state, join(state, 'sessions')]) {
    chmodSync(folder, 0o777);
    for (const way of [words, [...words, '--continue'], ['import', place.model]]) {
      const refused = await runInProcess(place, way);
      expectCode(refused, 78);
      assert.ok(refused.stderr.includes(`others may write there`), refused.stderr);
      assert.ok(refused.stderr.includes(`chmod go-w ${folder}`), refused.stderr);
    }
    chmodSync(folder, 0o700);
  }
  expectCode(await runInProcess(place, [...words, '--continue']), 0);
});

// Only root can give a folder away; for others the same check is kept by the modes above.
if (process.geteuid?.() === 0)
  test('a state folder of another user is refused, with the repair', async (t) => {
    const place = makeScripted(t);
    const folder = join(place.state, 'pawl', 'sessions');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(join(place.state, 'pawl'), 0o700);
    chownSync(folder, 12_345, 12_345);
    const refused = await runInProcess(place, ['--model', place.model, '-p', 'x']);
    expectCode(refused, 78);
    assert.match(refused.stderr, /belongs to another user \(uid 12345.*chown -R 0 /);
  });

test('a state folder inside the workspace: commands run, and neither see nor change it', async (t) => {
  const place = makePlace(t);
  const state = join(place.workspace, 'state');
  const script = join(place.folder, 'script.json');
  const command =
    'echo hello > made; ls state; echo BAD > state/pawl/trust; mv state away; rm -rf state';
  const calls = [{ tool: 'bash', input: { command } }];
  const replies = [{ calls }, { calls }, { text: 'Fine.' }];
  writeFileSync(script, JSON.stringify({ replies }));
  const inside = { ...place, environment: { ...place.environment, XDG_STATE_HOME: state } };
  const words = ['--model', `scripted/${script}`, '--on-ask', 'deny', '--json', '-p', 'x'];
  const { stdout } = await runInProcess(inside, words);
  assert.equal(readFileSync(join(place.workspace, 'made'), 'utf8'), 'hello\n', stdout);
  assert.match(stdout, /cannot open directory 'state'/);
  assert.doesNotMatch(stdout, /\[the sandbox/);
  assert.deepEqual(readdirSync(place.workspace).sort(), ['made', 'state']);
  const list = await runInProcess(inside, ['rewind', '--json']);
  assert.doesNotMatch(list.stdout, /"path":"state/, 'its own files are no changes of the session');
});

test("no session works where a link leads to Pawl's own folder", (t) => {
  const { folder } = makePlace(t);
  const [config, target] = [join(folder, 'config'), join(folder, 'dotfiles/pawl')];
  for (const made of [config, target]) mkdirSync(made, { recursive: true });
  const environment = { HOME: folder, XDG_CONFIG_HOME: config };
  assert.equal(workspaceFault(target, environment), null, 'control');
  symlinkSync(target, join(config, 'pawl'));
  assert.match(workspaceFault(target, environment) ?? '', /Pawl keeps its own files in/);
  assert.equal(workspaceFault(join(folder, 'dotfiles'), environment), null, 'control');
});

test('in a home as workspace credentials and the key of the configuration are read and shown after a question only', async (t) => {
  const place = makePlace(t);
  const home = place.workspace;
  const environment = { ...place.environment, HOME: home, XDG_CONFIG_HOME: undefined };
  const script = join(place.folder, 'script.json');
  const [key, config] = [join(home, 'files/key'), join(home, '.config/pawl')];
  for (const folder of [config, join(home, 'files'), join(home, '.ssh')])
    mkdirSync(folder, { recursive: true });
  writeFileSync(join(home, '.ssh/id'), 'NEEDLE private\n');
  writeFileSync(join(home, 'files/notes'), 'NEEDLE notes\n');
  writeFileSync(key, 'NEEDLE-key\n', { mode: 0o600 });
  writeFileSync(join(config, 'config.toml'), '[providers.openai]\napi_key_file = "~/files/key"\n');
  const calls = [
    { tool: 'search', input: { pattern: 'NEEDLE' } },
    { tool: 'read', input: { path: 'files/key' } },
    { tool: 'read', input: { path: '.ssh/id' } },
    { tool: 'read', input: { path: 'files/notes' } },
    { tool: 'write', input: { path: '.config/nvim/init.lua', content: 'x' } },
    { tool: 'bash', input: { command: 'echo x >> .config/pawl/config.toml' } },
  ];
  writeFileSync(script, JSON.stringify({ replies: [{ calls }, { text: 'Fine.' }] }));
  const words = ['--model', `scripted/${script}`, '--on-ask', 'deny', '--json', '-p', 'x'];
  const { stdout, stderr } = await runInProcess({ ...place, environment }, words);
  const results = stdout.split('\n').filter((line) => line.includes('NEEDLE'));
  assert.match(results.join('\n'), /NEEDLE notes/, `control: ${stdout}${stderr}`);
  assert.doesNotMatch(results.join('\n'), /NEEDLE private|NEEDLE-key/);
  const said = stderr.split('\n').filter((line) => line.includes('whole home'));
  assert.equal(said.length, 1, stderr);
  assert.deepEqual(readdirSync(join(home, '.config')), ['pawl']);
  assert.match(readFileSync(join(config, 'config.toml'), 'utf8'), /key"\n$/);
});

/**
 * A repository that brings programs along, for a user who has its node_modules/.bin in the PATH: relative, as many
 * have it, and absolute. Each planted program notes that it ran, with the key that it found in its environment.
 */

const PROGRAMS = [
  ...[
    'bash',
    'sh',
    'git',
    'bwrap',
    'python3',
    'ldd',
    'rg',
    'node',
    'wl-paste',
    'xclip',
    'xdg-open',
  ],
  ...['systemd-run', 'env', 'true', 'unshare', 'less', 'cat', 'stty', 'tput'],
];
const KEY = 'planted-key-check';

type Planted = Place & { readonly log: string };

const plant = (t: TestContext, entry: 'relative' | 'absolute' | 'empty'): Planted => {
  const place = makePlace(t, { ANTHROPIC_API_KEY: KEY, DISPLAY: ':9' });
  const bin = join(place.workspace, 'node_modules', '.bin');
  const log = join(place.folder, 'log');
  mkdirSync(bin, { recursive: true });
  const folders = entry === 'empty' ? [bin, place.workspace] : [bin];
  for (const folder of folders) {
    for (const name of PROGRAMS) {
      const text = `#!/bin/sh\necho "${name} $* $ANTHROPIC_API_KEY" >> ${log}\nexit 1\n`;
      writeFileSync(join(folder, name), text);
      chmodSync(join(folder, name), 0o755);
    }
  }
  execFileSync('git', ['init', '--quiet', place.workspace]);
  // a script of the user's own, as version managers have them, that looks for its shell by name
  const shims = join(place.folder, 'shims');
  mkdirSync(shims);
  writeFileSync(join(shims, 'git'), '#!/usr/bin/env bash\nexec /usr/bin/git "$@"\n');
  chmodSync(join(shims, 'git'), 0o755);
  const first = { relative: './node_modules/.bin', absolute: bin, empty: '' }[entry];
  return {
    ...place,
    log,
    environment: { ...place.environment, PATH: `${first}:${shims}:${process.env.PATH}` },
  };
};

const ranIn = ({ log }: Planted): string => (existsSync(log) ? readFileSync(log, 'utf8') : '');

/** Every command of ours that starts programs by itself. */
const useAll = async (place: Planted, run: typeof runPawl): Promise<void> => {
  await run(place, ['doctor']);
  const asked = prepareAsk(place, { replies: [{ text: submit('python', '"found"') }] });
  const ask = await run(place, [...asked, '--environment', 'python', 'what is in it?']);
  expectCode(ask, 0);
  writeFileSync(
    join(place.workspace, 'session.json'),
    JSON.stringify({
      replies: [
        { calls: [{ tool: 'search', input: { pattern: 'a' } }] },
        { calls: [{ tool: 'write', input: { path: 'a.txt', content: 'a' } }] },
        { text: 'done' },
      ],
    }),
  );
  const session = await run(place, [
    '-p',
    'go',
    '--model',
    'scripted/session.json',
    '--sandbox',
    'off',
  ]);
  expectCode(session, 0);
};

for (const entry of chooseRows(['relative', 'absolute', 'empty'] as const)) {
  test(`programs of a repository are not run where its folder is in the PATH (${entry})`, async (t) => {
    const place = plant(t, entry);
    await useAll(place, entry === 'relative' ? runPawl : runInProcess);
    assert.equal(ranIn(place), '');
  });
}

test('control: whoever starts programs by name runs them', (t) => {
  const place = plant(t, 'relative');
  const options = { cwd: place.workspace, env: place.environment };
  assert.throws(() => execFileSync('git', ['status'], options));
  assert.match(ranIn(place), /^git status planted-key-check\n/);
});

/** Where few files can be opened, the program works or says so: never with a stack. */

const script = JSON.stringify({
  replies: [
    {
      calls: [
        { tool: 'bash', input: { command: 'echo hi' } },
        { tool: 'search', input: { pattern: 'x' } },
        { tool: 'write', input: { path: 'made', content: 'x' } },
      ],
    },
    { text: 'done' },
  ],
});

const runWith = (place: Place, files: number, ...words: readonly string[]): Promise<Ended> =>
  start(place, '/bin/sh', [
    ...['-c', 'ulimit -n "$1"; shift; exec "$@"', 'sh', String(files)],
    ...[process.execPath, bin, ...words],
  ]).ended;

/** Files that Node itself needs until it runs us. */
const leastFiles = async (place: Place): Promise<number> => {
  let [few, enough] = [11, 64];
  while (enough - few > 1) {
    const files = Math.floor((few + enough) / 2);
    if ((await runWith(place, files, '--help')).code === 0) enough = files;
    else few = files;
  }
  return enough;
};

const OUTPUT_OF_US = /^[!✗✓•·\s]|^pawl: |^done$/;

test('few open files: a session works, or ends with a sentence and an exit code that says so', async (t) => {
  const place = makePlace(t);
  writeFileSync(join(place.workspace, 'script.json'), script);
  execFileSync('git', ['init', '-q', place.workspace]);
  const least = await leastFiles(place);
  let refused = 0;
  const few = [0, 3, 6, 9, 12, 15].map((more) => least + more);
  for (const files of chooseRows(few, (one) => String(one === least))) {
    const { code, stderr } = await runWith(
      place,
      files,
      '--model',
      'scripted/script.json',
      '-p',
      'hi',
    );
    assert.doesNotMatch(stderr, /internal fault|^\s+at \S+ \(/m, `${files} files`);
    // The cause is the limit, and not bubblewrap.
    assert.doesNotMatch(stderr, /bubblewrap does not work/, `${files} files`);
    assert.ok([0, 65, 74, 78].includes(code ?? 1), `${files} files: exit ${code}\n${stderr}`);
    for (const line of stderr
      .trimEnd()
      .split('\n')
      .filter((one) => one !== ''))
      assert.match(line, OUTPUT_OF_US, `${files} files`);
    if (/EMFILE/.test(stderr)) refused += 1;
  }
  assert.ok(refused > 0, 'control: there were too few for some');
  const { code } = await runWith(place, 256, '--model', 'scripted/script.json', '-p', 'hi');
  assert.equal(code, 0, 'control: 256 are enough');
});

test('too little space for the reserve of a session: it is said at the start', async (t) => {
  const place = makePlace(t);
  writeFileSync(join(place.workspace, 'script.json'), script);
  const runWithSpace = (blocks: string): Promise<Ended> =>
    start(place, '/bin/sh', [
      ...['-c', 'ulimit -f "$1"; shift; exec "$@"', 'sh', blocks],
      ...[process.execPath, bin, '--model', 'scripted/script.json', '-p', 'hi'],
    ]).ended;
  assert.match((await runWithSpace('200')).stderr, /Too little space is free for the session/);
  assert.doesNotMatch((await runWithSpace('unlimited')).stderr, /Too little space/);
});
