import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed, type Place } from './pawl.js';
import { call, done, message } from './wire-words.js';

/** The list as a person sees it: a title and the word for how the session stands. */
const listed = async (context: TestContext, place: Place): Promise<ReadonlyMap<string, string>> => {
  const before = Object.getOwnPropertyDescriptor(process.stdout, 'isTTY');
  const restore = (): void => {
    if (before === undefined) Reflect.deleteProperty(process.stdout, 'isTTY');
    else Object.defineProperty(process.stdout, 'isTTY', before);
  };
  context.after(restore);
  Object.defineProperty(process.stdout, 'isTTY', { value: true, configurable: true });
  const { stdout } = await runInProcess(place, ['sessions']);
  restore();
  return new Map(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => {
        const columns = line.split(/ {2,}/);
        return [columns.at(-1) ?? '', columns[2] ?? ''] as const;
      }),
  );
};

test('the list says of a closed session how its last turn ended', async (context) => {
  const place = await makeServed(context, [
    done,
    message(call('a', 'read', { path: 'none' })),
    { type: 'error', status: 400, errorType: 'invalid_request_error', message: 'no' },
    done,
  ]);
  expectCode(await runInProcess(place, ['-p', 'an answer']), 0);
  expectCode(await runInProcess(place, ['-p', 'too much', '--max-rounds', '1']), 126);
  expectCode(await runInProcess(place, ['-p', 'refused']), 78);
  const words = await listed(context, place);
  assert.deepEqual([...words].sort(), [
    ['an answer', 'done'],
    ['refused', 'failed'],
    ['too much', 'limit'],
  ]);
});
