import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
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
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, type Place } from './pawl.js';

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
