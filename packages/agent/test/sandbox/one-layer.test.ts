import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { findProgram } from '../../src/platform/find-program.js';
import { runCommand } from './commands-run.js';

/**
 * A bubblewrap that a fence does not show can't make the inner layer, which locks the mounts. Then
 * commands get no local sockets: none could hand over a folder without what protects it.
 */

const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'pawl-one-layer-')));
after(() => removeFolderSync(folder));

const ASKS = `python3 -c '
import socket
socket.socketpair()
print("a pair of its own")
socket.socket(socket.AF_UNIX)
print("a local socket")'`;

const run = async (state: string, searchPath: string): Promise<string> => {
  const environment = {
    ...process.env,
    PATH: searchPath,
    HOME: path.join(folder, 'home'),
    XDG_STATE_HOME: path.join(folder, state),
    XDG_CONFIG_HOME: path.join(folder, 'config'),
  };
  const workspace = realpathSync(mkdtempSync(path.join(folder, 'workspace-')));
  return JSON.stringify(
    await runCommand({
      workspace,
      command: ASKS,
      level: 'workspace',
      environment,
    }),
  );
};

test('a bubblewrap of the system: commands have local sockets', async () => {
  assert.match(await run('two', process.env.PATH ?? ''), /a pair of its own.*a local socket/);
});

test('a bubblewrap elsewhere: they have none, and go on otherwise', async () => {
  const own = findProgram('bwrap', { environment: process.env, workspace: folder });
  assert.ok(own !== null);
  copyFileSync(own, path.join(folder, 'bwrap'));
  const output = await run('one', `${folder}:${process.env.PATH}`);
  assert.match(output, /a pair of its own.*PermissionError/);
  assert.doesNotMatch(output, /a local socket/);
});
