import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Replies } from '../../../../test/servers/anthropic.js';
import { makeServed } from './pawl.js';
import { openReady } from './window.js';
import { call, done, message } from './wire-words.js';

/** The answer `P`: a rule for ever, in the user's own file, until it is revoked. */

const counts = (name: string) => message(call(name, 'bash', { command: `wc ${name}.txt` }));
const FOR_EVER = 'P  for ever in this folder: every command that begins with: wc';
/** The keys of the question are shown once it takes them. */
const ARMED = 'y a p s P n · ';
const words = ['--sandbox', 'off', '--preset', 'careful'];

const makeHere = async (context: TestContext, replies: Replies, name = 'work') => {
  const place = await makeServed(context, replies);
  const workspace = join(place.folder, name);
  if (workspace !== place.workspace) renameSync(place.workspace, workspace);
  for (const file of ['a', 'b', 'c']) writeFileSync(join(workspace, `${file}.txt`), 'one\n');
  mkdirSync(join(place.home, '.config/pawl'), { recursive: true });
  const file = join(place.home, '.config/pawl/config.toml');
  return { ...place, workspace, file };
};

test('P writes a rule that the next session has, and /permissions revokes it', async (context) => {
  const replies = [counts('a'), counts('b'), done, counts('c'), done, counts('a'), done];
  const place = await makeHere(context, replies, 'a "folder" of\nmine');
  const settings = '# mine\nmax_rounds = 50 # enough\n';
  writeFileSync(place.file, settings);
  const first = await openReady(context, place, { words });
  first.press('count\r');
  await first.sees(FOR_EVER);
  await first.sees(ARMED);
  first.press('P');
  await first.sees(/config\.toml:5: allow = \["wc"\]/);
  await first.sees('Done.');
  first.press('/quit\r');
  assert.equal(await first.ended, 0);
  const written = readFileSync(place.file, 'utf8');
  assert.ok(written.startsWith(settings), written);
  assert.match(
    written,
    /\n\[folder\."[^\n]*a \\"folder\\" of\\nmine"\.rules\]\nallow = \["wc"\]\n$/,
  );

  const next = await openReady(context, place, { words });
  next.press('again\r');
  await next.sees('Done.');
  next.press('/permissions\r');
  await next.sees(/1 {2}allow "wc" \([^)]*config\.toml:5, in this folder\)/);
  next.press('/permissions revoke 1\r');
  await next.sees('asks again for: allow "wc"');
  assert.equal(readFileSync(place.file, 'utf8'), settings);
  next.press('once more\r');
  await next.sees(FOR_EVER);
  await next.sees(ARMED);
  next.press('y');
  await next.sees(/Done\.[\s\S]*Done\./);
  next.press('/quit\r');
  assert.equal(await next.ended, 0);
});

test('a file that can not be changed is named, and the answer holds for the session', async (context) => {
  const place = await makeHere(context, [counts('a'), counts('b'), done]);
  const window = await openReady(context, place, { words });
  window.press('count\r');
  await window.sees(FOR_EVER);
  await window.sees(ARMED);
  writeFileSync(place.file, 'max_rounds = [\n');
  window.press('P');
  await window.sees(/is not changed: it has an[\s\S]*error,[\s\S]*allowed in this\s+session only/);
  await window.sees('Done.');
  assert.equal(readFileSync(place.file, 'utf8'), 'max_rounds = [\n');
  window.press('/permissions\r');
  await window.sees('1  every command that begins with: wc');
  window.press('/quit\r');
  assert.equal(await window.ended, 0);
});
