import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { type TestContext, test } from 'node:test';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { makePlace, type Place } from './context.js';

/** A command waits behind its fence while the user changes things: the next command finds them as they are now. */

/** With `.envrc`, which is protected, and the next command parked. */
const parkedPlace = async (t: TestContext): Promise<Place> => {
  const place = await makePlace(t, process.env, 'workspace');
  writeFileSync(place.path('.envrc'), 'old\n');
  await place.run('bash', { command: 'git init -q .' });
  await place.run('bash', { command: ':' });
  const isParked = (): boolean =>
    processesWith(place.workspace).some((line) => line.startsWith('/bin/sh'));
  await until('the next command waits', isParked);
  return place;
};

/** As editors do it. */
const replace = (place: Place, name: string, text: string): void => {
  writeFileSync(place.path('new-file'), text);
  renameSync(place.path('new-file'), place.path(name));
};

test('bash: a workspace that was replaced meanwhile is the one that is worked in', async (t) => {
  const place = await parkedPlace(t);
  const old = `${place.workspace}-old`;
  t.after(() => removeFolderSync(old));
  renameSync(place.workspace, old);
  mkdirSync(place.workspace);
  writeFileSync(place.path('here'), '');
  const { text } = await place.run('bash', { command: 'ls; echo x >made' });
  assert.match(text, /^here\n/);
  assert.deepEqual(readdirSync(place.workspace).toSorted(), ['here', 'made']);
  assert.equal(readdirSync(old).includes('made'), false);
});

test('bash: a workspace that is gone meanwhile is a failure that says so', async (t) => {
  const place = await parkedPlace(t);
  rmSync(place.workspace, { recursive: true });
  const { status, text } = await place.run('bash', { command: 'echo up' });
  assert.equal(status, 'failed');
  assert.match(text, /not started: .*(workspace|Can't)/);
});

test('bash: a protected file that was replaced or made meanwhile is not to be written', async (t) => {
  const place = await parkedPlace(t);
  replace(place, '.envrc', 'new\n');
  const first = await place.run('bash', { command: 'cat .envrc; echo bad >>.envrc' });
  assert.match(first.text, /^new\n.*Read-only file system/);
  assert.equal(readFileSync(place.path('.envrc'), 'utf8'), 'new\n');
  mkdirSync(place.path('inner'));
  writeFileSync(place.path('inner/.envrc'), 'inner\n');
  replace(place, '.git/config', readFileSync(place.path('.git/config'), 'utf8'));
  const second = await place.run('bash', {
    command: 'echo bad >>inner/.envrc; git config core.pager bad; echo end',
  });
  assert.match(second.text, /inner\/\.envrc: Read-only file system\n.*\nend/);
  assert.equal(readFileSync(place.path('inner/.envrc'), 'utf8'), 'inner\n');
  assert.doesNotMatch(readFileSync(place.path('.git/config'), 'utf8'), /bad/);
});

test('bash: a folder that has become a link out of the workspace meanwhile leads nowhere', async (t) => {
  const place = await parkedPlace(t);
  const outside = await makePlace(t);
  writeFileSync(outside.path('secret'), 'seeded\n');
  symlinkSync(outside.workspace, place.path('link'));
  const { text } = await place.run('bash', {
    command: 'cat link/secret; echo x >link/made; echo end',
  });
  assert.doesNotMatch(text, /seeded/);
  assert.match(text, /end\n\[exit code 0/);
  assert.deepEqual(readdirSync(outside.workspace), ['secret']);
});

test('bash: what a job does to the files that wait changes nothing for the next command', async (t) => {
  const place = await parkedPlace(t);
  const job = 'mv .envrc moved; echo bad >.envrc; mv .git gone; echo tried >tried; sleep 1000';
  await place.run('bash', { command: job, background: true });
  await until('the job has tried', () => readdirSync(place.workspace).includes('tried'));
  const { text } = await place.run('bash', {
    command: 'cat .envrc; git status >/dev/null; echo $?',
  });
  assert.match(text, /^old\n0\n/);
});
