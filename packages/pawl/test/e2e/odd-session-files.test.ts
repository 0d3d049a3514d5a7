import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, sessionOf } from './pawl.js';

/** A named pipe that nobody writes to would be waited for without end, if it were opened as a file. */

test('named pipes among the session files hold nobody up, and are not gone on with', async (t) => {
  const place = makePlace(t);
  const replies = ['one', 'two', 'three'].map((text) => ({ text }));
  writeFileSync(join(place.workspace, 'script.json'), JSON.stringify({ replies }));
  const words = ['--model', 'scripted/script.json'];
  expectCode(await runInProcess(place, [...words, '-p', 'first']), 0);
  const good = sessionOf(place);
  const newest = '20991231-000000-aaaaaaaa';
  for (const name of [`${newest}.jsonl`, `${good}.lock`, `${newest}.lock`, 'pipe'])
    execFileSync('mkfifo', [join(place.state, 'pawl', 'sessions', name)]);
  const resumed = await runInProcess(place, [...words, '--continue', '-p', 'second']);
  expectCode(resumed, 0);
  assert.match(resumed.stdout, /two/);
  const listed = await runInProcess(place, ['sessions']);
  expectCode(listed, 0);
  assert.match(listed.stdout, new RegExp(`${good}[\\s\\S]*${newest}.*cannot be read`));
  for (const way of [
    ['show', newest],
    ['--resume', newest, '-p', 'x'],
    ['fork', newest, '--at', '1', 'x'],
  ]) {
    const { code, stderr } = await runInProcess(place, way);
    assert.deepEqual(
      [code, /is not a regular file/.test(stderr)],
      [65, true],
      `${way.join(' ')}: ${stderr}`,
    );
  }
});
