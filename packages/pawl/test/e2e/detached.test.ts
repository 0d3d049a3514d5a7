import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Replies } from '../../../../test/servers/anthropic.js';
import { expectCode, makeServed, type Place, runPawl, sessionOf } from './pawl.js';
import { openWindow } from './window.js';
import { call, done, message, text } from './wire-words.js';

/** Sessions in processes of their own: started, listed, looked at, answered, ended, brought back. */

type Row = {
  readonly sessionId: string;
  readonly status: string;
  readonly state: string;
  readonly questions: readonly { readonly callId: string }[];
  readonly workspace: string;
};

const listed = async (place: Place): Promise<readonly Row[]> => {
  const ended = await runPawl(place, ['sessions', '--live', '--json']);
  expectCode(ended, 0);
  return ended.stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
};

/** Polls the list until a session is in a state. */
const seesState = async (place: Place, id: string, wanted: RegExp): Promise<Row> => {
  const endsAt = Date.now() + 60_000;
  for (;;) {
    const row = (await listed(place)).find(({ sessionId }) => sessionId === id);
    if (row !== undefined && wanted.test(`${row.status}: ${row.state}`)) return row;
    assert.ok(Date.now() < endsAt, `${wanted} is not ${JSON.stringify(row)}`);
  }
};

const pidOf = (place: Place, id: string): number =>
  JSON.parse(readFileSync(join(place.state, 'pawl', 'detached', `${id}.json`), 'utf8')).process.pid;

const kill = (place: Place, id: string): void => {
  try {
    process.kill(pidOf(place, id), 'SIGKILL');
  } catch {
    // it has ended
  }
};

/** Starts a session; its process is gone after the test. */
const detach = async (
  context: TestContext,
  place: Place,
  words: readonly string[],
): Promise<string> => {
  const ended = await runPawl(place, ['-p', ...words, '--detach']);
  expectCode(ended, 0);
  const id = ended.stdout.trim();
  assert.match(id, /^\d{8}-\d{6}-\w+$/);
  context.after(() => {
    try {
      kill(place, id);
    } catch {
      // its record is gone, and so is its process
    }
  });
  return id;
};

const served = (context: TestContext, replies: Replies) =>
  makeServed(context, replies, { PAWL_SANDBOX: 'off', PAWL_PRESET: 'careful' });

const asks = message(call('c1', 'bash', { command: 'echo published >> out.txt' }));
const published = (place: Place): string => readFileSync(join(place.workspace, 'out.txt'), 'utf8');

test('a detached session waits for an answer, which lands once, goes on, and is ended in order', async (context) => {
  const place = await served(context, [asks, done]);
  const id = await detach(context, place, ['publish it']);
  assert.equal(id, sessionOf(place));
  const row = await seesState(place, id, /runs: waits for your answer: echo published/);
  assert.equal(row.questions.length, 1);
  expectCode(await runPawl(place, ['answer', id, 'c9', 'yes']), 65);
  expectCode(await runPawl(place, ['answer', id, 'yes']), 0);
  await seesState(place, id, /runs: has answered/);
  assert.equal(published(place), 'published\n');
  expectCode(await runPawl(place, ['answer', id, 'yes']), 65);
  expectCode(await runPawl(place, ['stop', id]), 0);
  assert.deepEqual(await listed(place), []);
  assert.match((await runPawl(place, ['show', id])).stdout, /publish it/);
});

test('a terminal shows a session of another process, answers, types, leaves it running, and comes back', async (context) => {
  const place = await served(context, [
    asks,
    message(text('It is published.')),
    message(text('The second answer.')),
  ]);
  const id = await detach(context, place, ['publish it']);
  await seesState(place, id, /waits for your answer/);
  const [first, second] = [0, 1].map(() => openWindow(context, place, { words: ['attach', id] }));
  assert.ok(first !== undefined && second !== undefined);
  for (const window of [first, second]) {
    await window.sees('publish it');
    await window.sees(/echo published/);
    await window.sees(/yes, once/i);
  }
  await new Promise((resolve) => setTimeout(resolve, 700)); // a question takes keys once it was read
  first.press('y');
  for (const window of [first, second]) await window.sees('It is published.');
  assert.equal(published(place), 'published\n');
  second.press('and now?\r');
  for (const window of [first, second]) {
    await window.sees('and now?');
    await window.sees('The second answer.');
  }
  first.press('/quit\r');
  assert.equal(await first.ended, 0);
  await first.sees(/goes on without this window/);
  process.kill(second.pid, 'SIGKILL');
  await seesState(place, id, /runs: has answered/);
  expectCode(await runPawl(place, ['stop', id]), 0);
});
