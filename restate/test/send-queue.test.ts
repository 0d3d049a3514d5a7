import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SendQueue } from '../src/send-queue.js';

const lengthsSent = async (lengths: readonly number[]): Promise<readonly (readonly number[])[]> => {
  const sent: number[][] = [];
  const queue = new SendQueue(async (inputs) => {
    sent.push(inputs.map((input) => (input.type === 'UserInput' ? input.text.length : 0)));
    return inputs.map((_, index) => ({ seq: index + 1, accepted: true }));
  });
  await Promise.all(
    lengths.map((length) =>
      queue.add({ type: 'UserInput', text: 'x'.repeat(length), mode: 'steer' }),
    ),
  );
  return sent;
};

test('inputs that wait go together, but large ones one by one: the engine has a limit for one message', async () => {
  assert.deepEqual(await lengthsSent([1, 2, 3]), [[1, 2, 3]]);
  const large = 900_000;
  assert.deepEqual(await lengthsSent([large, large, 5, large, 2 * large, 7]), [
    [large],
    [large, 5],
    [large],
    [2 * large],
    [7],
  ]);
  const many = Array.from({ length: 100 }, () => 1);
  assert.deepEqual(
    (await lengthsSent(many)).map(({ length }) => length),
    [64, 36],
  );
});

test('a queue rests as soon as its last sender has the answer, and takes an input that comes then', async () => {
  let count = 0;
  const queue = new SendQueue(async (inputs) =>
    inputs.map(() => ({ seq: ++count, accepted: true })),
  );
  const input = { type: 'UserInput', text: 'x', mode: 'steer' } as const;
  const seen = await queue.add(input).then(async ({ seq }) => {
    const { isIdle } = queue;
    return [isIdle, seq, (await queue.add(input)).seq];
  });
  assert.deepEqual(seen, [true, 1, 2]);
});
