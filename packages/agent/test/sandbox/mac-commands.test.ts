import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { bundleProgram } from '../../../../test/bundled-program.js';
import { makeMac } from '../../../../test/kit/mac/mac.js';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';

/** How commands are started on macOS: by sandbox-exec, which fences nothing here. */

test('a command that is stopped where nobody tells of processes has perhaps left some', async (context) => {
  const mac = makeMac(context);
  mac.silencePs();
  const folder = temporaryFolder(context, 'mac-commands');
  const [workspace, home] = [path.join(folder, 'work'), path.join(folder, 'home')];
  for (const made of [workspace, home]) mkdirSync(made);
  const file = fileURLToPath(new URL('mac-commands.ts', import.meta.url));
  const program = await bundleProgram(context, { file });
  const [start, ...words] = mac.wrap([process.execPath, program, workspace, home, 'stop']);
  const env = { ...process.env, ...mac.environment };
  const { stdout } = await promisify(execFile)(start, words, { env });
  const [stopped = '', marked] = stdout.split('\n');
  assert.equal(JSON.parse(stopped).leftovers, 'unseen', stdout);
  assert.equal(marked, '"unseen"', 'of processes with a marker, too');
  assert.deepEqual(processesWith(folder), []);
});

test('commands run by sandbox-exec, with a home of the session, and end with all they started', async (context) => {
  const mac = makeMac(context);
  const folder = temporaryFolder(context, 'mac-commands');
  const [workspace, home] = [path.join(folder, `it's "a" (w)`), path.join(folder, 'home')];
  for (const made of [workspace, home]) mkdirSync(made);
  const file = fileURLToPath(new URL('mac-commands.ts', import.meta.url));
  const program = await bundleProgram(context, { file });
  const [start, ...words] = mac.wrap([process.execPath, program, workspace, home]);
  // Outside of the home, so nothing but a rule of its own hides them.
  const secrets = {
    NETRC: path.join(folder, 'secret'),
    XDG_CONFIG_HOME: path.join(folder, 'settings'),
  };
  for (const secret of Object.values(secrets)) mkdirSync(secret);
  const env = { ...process.env, ...mac.environment, ...secrets };
  const { stdout } = await promisify(execFile)(start, words, { env });
  const ran = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const session = /^(\S+)\/home /.exec(ran[0]?.text)?.[1] ?? assert.fail(stdout);
  assert.match(session, new RegExp(`^${home}/\\d+-a$`));
  const exited = (code: number) => ({ kind: 'exited', code });
  const own = `${session}/home ${session}/tmp ${workspace}`;
  assert.deepEqual(ran[0], {
    how: exited(3),
    leftovers: 'none',
    notes: [],
    text: `${own}\nit's\n$HOME\n`,
  });
  assert.deepEqual(ran[1], { how: exited(0), leftovers: 'ended', notes: [], text: 'kept\nleft\n' });
  assert.match(ran[2].text, /No such file/, 'a fresh home has no file of the session');
  assert.match(ran[2].notes.join(), /1 file or folder that the command left .* could not be kept/);
  assert.equal(ran[3].how.code, 0);
  assert.equal(ran[4].how.code, 137);
  assert.equal(ran.length, 6);
  for (const name of ran[5]) assert.match(name, /^\d+$|^alive-/, 'by the launcher');
  const named = new Set(mac.placesOfRules());
  for (const place of [...Object.values(secrets), home, workspace, tmpdir()])
    assert.ok(named.has(realpathSync(place)), place);
  assert.deepEqual(processesWith(folder), []);
  assert.deepEqual(readdirSync(home), []);
});
