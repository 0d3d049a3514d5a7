import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { bundleProgram } from '../../../../test/bundled-program.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { removeStale } from '../../src/command/earlier-processes.js';
import {
  carryOver,
  makeFolders,
  makeFreshFolders,
} from '../../src/command/sandbox/session-folders.js';
import { runCommands } from './commands-run.js';

const UNKNOWN = '54321';
const folder = temporaryFolder({ after }, 'session-folders');

/** Runs it as a user that no list of users knows, which bubblewrap makes of us. */
const asUnknownUser = async (context: TestContext, code: string): Promise<string> =>
  execFileSync(
    'bwrap',
    [
      ...['--unshare-user', '--uid', UNKNOWN, '--gid', UNKNOWN, '--cap-drop', 'ALL'],
      ...['--dev-bind', '/', '/'],
      ...[process.execPath, await bundleProgram(context, { code })],
    ],
    { encoding: 'utf8' },
  );

test('the folder of a process without a record may be of one that lives elsewhere: only an old one goes', () => {
  const own = path.join(folder, 'all', '1-own');
  const other = path.join(folder, 'all', '4194305-other');
  for (const made of [own, other]) mkdirSync(made, { recursive: true });
  removeStale(own, () => null);
  assert.ok(existsSync(other));
  utimesSync(other, 1_000, 1_000);
  removeStale(own, () => null);
  assert.ok(!existsSync(other));
});

test('the control: Node knows nothing of a user without an entry', async (context) => {
  await assert.rejects(
    asUnknownUser(context, "import { userInfo } from 'node:os'; userInfo()"),
    /uv_os_get_passwd/,
  );
});

test('a user without an entry gets one, with the home of the session', async (context) => {
  const top = path.join(folder, 'session');
  const words = JSON.stringify(top);
  await asUnknownUser(
    context,
    `import { makeFolders } from './packages/agent/src/command/sandbox/session-folders.ts'; makeFolders(${words}, { links: [] }, '');`,
  );
  const [first] = readFileSync(path.join(top, 'passwd'), 'utf8').split('\n');
  assert.equal(first, `user:x:${UNKNOWN}:${UNKNOWN}::/run/pawl/home:/bin/sh`);
});

const USES = 'echo home > ~/a && cat ~/a && echo tmp > /tmp/b && cat /tmp/b';

for (const command of ['chmod 000 ~', 'chmod 000 /tmp', 'chmod 500 ~ /tmp', 'true # the control'])
  test(`after \`${command}\` the next command has its home and /tmp`, async () => {
    const workspace = path.join(folder, 'work');
    mkdirSync(workspace, { recursive: true });
    const commands = [command, USES];
    const [first, next] = await runCommands({ workspace, commands, level: 'workspace' });
    assert.equal(first?.status, 'ok', first?.text);
    assert.equal(next?.status, 'ok', next?.text);
    assert.match(next?.text ?? '', /home\ntmp/);
  });

test("a fresh home's copies of the user's files do not replace those of the session", () => {
  const top = path.join(folder, 'copies');
  const env = path.join(folder, 'env');
  writeFileSync(env, 'new');
  const home = { links: [{ at: '.cargo/env', to: env, isDownload: false, isFile: true }] };
  const gitFiles = new Map([['.config/git/ignore', 'new']]);
  const session = makeFolders(top, home, gitFiles);
  const fresh = makeFreshFolders(top, 1, home, session, gitFiles);
  const names = ['.cargo/env', '.config/git/ignore', '.config/other'];
  for (const name of names) writeFileSync(path.join(session.home, name), 'changed');
  writeFileSync(path.join(fresh.home, '.config/other'), 'new');
  assert.equal(carryOver(fresh, session, home, gitFiles), 0);
  const texts = names.map((name) => readFileSync(path.join(session.home, name), 'utf8'));
  assert.deepEqual(texts, ['changed', 'changed', 'new']);
});

test('what a command leaves in a fresh home that it has closed is kept for later commands', async (context) => {
  const top = path.join(folder, 'closed');
  await asUnknownUser(
    context,
    `import { chmodSync, writeFileSync } from 'node:fs';
     import { carryOver, makeFolders, makeFreshFolders } from './packages/agent/src/command/sandbox/session-folders.ts';
     const [top, home] = [${JSON.stringify(top)}, { links: [] }];
     const session = makeFolders(top, home, new Map());
     const fresh = makeFreshFolders(top, 1, home, session, new Map());
     writeFileSync(fresh.home + '/kept', 'kept');
     for (const place of [fresh.home, session.home]) chmodSync(place, 0);
     carryOver(fresh, session, home, new Map());`,
  );
  assert.equal(readFileSync(path.join(top, 'home', 'kept'), 'utf8'), 'kept');
});
