import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { probeSandbox } from '../../src/command/session-sandbox.js';

test('a probe of this process is shared while it runs, and asked again after it', async (context) => {
  const folder = temporaryFolder(context, 'probe');
  const first = probeSandbox(process.env, folder, 'kept');
  assert.equal(probeSandbox(process.env, folder, 'kept'), first);
  const fresh = probeSandbox(process.env, folder, 'fresh');
  const elsewhere = probeSandbox({ ...process.env, PATH: '/nowhere' }, folder, 'kept');
  for (const other of [fresh, elsewhere]) assert.notEqual(other, first);
  await Promise.all([first, fresh, elsewhere]);
  assert.notEqual(probeSandbox(process.env, folder, 'kept'), first);
});
