import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { STORY, storeTrace } from '../../../../test/kit/inspector/stored-session.js';
import { bin, expectCode, makePlace, start } from './pawl.js';

/** `pawl inspect` and `pawl export --html`, started as a user does. */

test('pawl inspect serves the session until it is interrupted', async (context) => {
  const place = makePlace(context);
  await storeTrace(path.join(place.state, 'pawl'), 'story', STORY);
  const running = start(place, process.execPath, [bin, 'inspect', 'sto']);
  while (!running.stdout().includes('\n'))
    await once(running.child.stdout ?? running.child, 'data');
  const address = running.stdout().trim();
  assert.match(address, /^http:\/\/127\.0\.0\.1:\d+\/[\w-]{32}\/session\/story$/);
  const page = await fetch(address);
  assert.match(await page.text(), /<title>Pawl<\/title>/);
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, /^default-src 'none'; script-src 'sha256-/);
  assert.doesNotMatch(policy, /unsafe|\*/);
  assert.equal((await fetch(address.replace(/\/[\w-]{32}\//, '/wrong/'))).status, 403);
  running.child.kill('SIGINT');
  expectCode(await running.ended, 0);
});

test('pawl export --html writes one file with the session and without secrets', async (context) => {
  const place = makePlace(context, { DEPLOY_TOKEN: 'hx7-Qw91-kkTz-08aa' });
  const trace = '> Start\n> UserInput "use hx7-Qw91-kkTz-08aa"\n> LlmCompleted req-1 says "done"\n';
  await storeTrace(path.join(place.state, 'pawl'), 'story', trace);
  const file = path.join(place.workspace, 'story.html');
  const words = [bin, 'export', 'story', '--html', file];
  const ended = await start(place, process.execPath, words).ended;
  expectCode(ended, 0);
  assert.equal(ended.stdout.trim(), file);
  const html = readFileSync(file, 'utf8');
  assert.ok(!html.includes('hx7-Qw91'), 'the secret is in the file');
  assert.ok(html.includes('use [secret:$DEPLOY_TOKEN]'));
  assert.match(html, /connect-src 'none'/);
  const again = await start(place, process.execPath, words).ended;
  expectCode(again, 65);
  assert.match(again.stderr, /story\.html is there already and stays as it is/);
  assert.equal(readFileSync(file, 'utf8'), html);
  const missing = path.join(place.workspace, 'missing', 'story.html');
  const elsewhere = [bin, 'export', 'story', '--html', missing];
  const refused = await start(place, process.execPath, elsewhere).ended;
  expectCode(refused, 74);
  assert.match(refused.stderr, /Can't write .*Nothing was exported\. Name another file/);
  const unknown = await start(place, process.execPath, [bin, 'inspect', 'nothing']).ended;
  expectCode(unknown, 65);
  assert.match(unknown.stderr, /No session 'nothing'/);
});
