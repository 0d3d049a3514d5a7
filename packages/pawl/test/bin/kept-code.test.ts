import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { expectCode, makeServed, runPawl } from '../e2e/pawl.js';
import { call, done, message } from '../e2e/wire-words.js';

test('the compiled code that a session keeps is used by the next session, and stays as it is', async (context) => {
  // A command: the shell's grammar changes flags of V8 while it loads.
  const command = message(call('toolu_1', 'bash', { command: 'echo one && (echo two)' }));
  const served = await makeServed(context, [command, done, command, done, command, done]);
  // not the folder that all tests share
  const folder = join(served.home, '.cache');
  const place = { ...served, environment: { ...served.environment, XDG_CACHE_HOME: folder } };
  const caches = join(folder, 'pawl');
  const written: number[] = [];
  for (let start = 0; start < 3; start++) {
    expectCode(await runPawl(place, ['-p', 'go', '--preset', 'auto']), 0);
    const [file = ''] = readdirSync(caches).filter((name) => name.startsWith('code-'));
    written.push(statSync(join(caches, file)).mtimeMs);
  }
  // The second start knows that the sandbox works, and may compile what the first did not.
  assert.equal(written[2], written[1]);
  const results = JSON.stringify(served.server.requests.map(({ body }) => body));
  assert.match(results, /two/, 'the command has run');
});
