import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
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

test('a state folder inside the workspace: commands are not run, and the words say why', async (t) => {
  const place = makePlace(t);
  const state = join(place.workspace, 'state');
  const script = join(place.folder, 'script.json');
  const replies = [
    { calls: [{ tool: 'bash', input: { command: 'echo hello' } }] },
    { text: 'Fine.' },
  ];
  writeFileSync(script, JSON.stringify({ replies }));
  const inside = { ...place, environment: { ...place.environment, XDG_STATE_HOME: state } };
  const { stderr } = await runInProcess(inside, [
    '--model',
    `scripted/${script}`,
    '--on-ask',
    'deny',
    '-p',
    'x',
  ]);
  assert.match(
    stderr,
    /The workspace holds .*state\/pawl, where Pawl keeps its sessions\. Set XDG_STATE_HOME/,
  );
});
