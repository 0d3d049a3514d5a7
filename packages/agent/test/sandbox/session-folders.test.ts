import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { bundleProgram } from '../../../../test/bundled-program.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';

const UNKNOWN = '54321';
const folder = temporaryFolder({ after }, 'session-folders');

/** Runs it as a user that no list of users knows, which bubblewrap makes of us. */
const asUnknownUser = async (context: TestContext, code: string): Promise<string> =>
  execFileSync(
    'bwrap',
    [
      ...['--unshare-user', '--uid', UNKNOWN, '--gid', UNKNOWN, '--dev-bind', '/', '/'],
      ...[process.execPath, await bundleProgram(context, { code })],
    ],
    { encoding: 'utf8' },
  );

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
