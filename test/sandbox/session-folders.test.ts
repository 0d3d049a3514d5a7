import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { temporaryFolder } from '../temporary-folder.js';

const UNKNOWN = '54321';
const folder = temporaryFolder({ after }, 'session-folders');

/** Runs it as a user that no list of users knows, which bubblewrap makes of us. */
const asUnknownUser = (script: string): string =>
  execFileSync(
    'bwrap',
    [
      ...['--unshare-user', '--uid', UNKNOWN, '--gid', UNKNOWN, '--dev-bind', '/', '/'],
      ...[process.execPath, '--import', 'tsx', '--input-type=module', '-e', script],
    ],
    { encoding: 'utf8' },
  );

const module = pathToFileURL(path.resolve('src/sandbox/session/session-folders.ts')).href;

test('the control: Node knows nothing of a user without an entry', () => {
  assert.throws(() => asUnknownUser("import { userInfo } from 'node:os'; userInfo()"), /uv_os_get_passwd/);
});

test('a user without an entry gets one, with the home of the session', () => {
  const top = path.join(folder, 'session');
  const words = JSON.stringify(top);
  asUnknownUser(
    `const { makeFolders } = await import('${module}'); makeFolders(${words}, { links: [] }, '');`,
  );
  const [first] = readFileSync(path.join(top, 'passwd'), 'utf8').split('\n');
  assert.equal(first, `user:x:${UNKNOWN}:${UNKNOWN}::/run/pawl/home:/bin/sh`);
});
