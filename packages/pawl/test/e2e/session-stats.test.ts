import assert from 'node:assert/strict';
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed } from './pawl.js';
import { done } from './wire-words.js';

test('sums over all sessions: what a fork has copied counts once, and a damaged journal is named', async (context) => {
  const place = await makeServed(context, [done, done]);
  expectCode(await runInProcess(place, ['-p', 'hi']), 0);
  const folder = join(place.state, 'pawl', 'sessions');
  const [id = ''] = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
  const session = id.slice(0, -'.jsonl'.length);
  expectCode(await runInProcess(place, ['fork', session, '--at', '3']), 0);
  const statsNow = async () =>
    JSON.parse((await runInProcess(place, ['sessions', '--stats', '--json'])).stdout);
  const two = await statsNow();
  assert.deepEqual([two.sessions, two.forks, two.turns, two.models[0].requests], [2, 1, 1, 1]);
  assert.ok(two.usage.costUsd > 0 && two.damaged.length === 0);
  const broken = join(folder, '20200101-000000-00000000.jsonl');
  copyFileSync(join(folder, id), broken);
  writeFileSync(broken, readFileSync(broken, 'utf8').replace('Done.', 'Dune.'));
  const three = await statsNow();
  assert.deepEqual(
    three.damaged.map(({ sessionId }: { sessionId: string }) => sessionId),
    ['20200101-000000-00000000'],
  );
  const shown = await runInProcess(place, ['sessions', '--stats']);
  expectCode(shown, 0);
  assert.match(shown.stderr, /20200101-000000-00000000/);
});
