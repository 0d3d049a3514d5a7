import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import {
  type LeanController,
  LeanReadable,
  LeanTextDecoder,
  LeanTransform,
} from '../../src/platform/web-streams.js';

/** A stream of these pieces, one for each pull. */
const of = <T>(...pieces: readonly T[]): LeanReadable<T> => {
  let next = 0;
  return new LeanReadable<T>({
    pull(controller) {
      if (next < pieces.length)
        controller.enqueue(pieces[next++] as T); // in bounds
      else controller.close();
    },
  });
};

const all = async <T>(stream: LeanReadable<T>): Promise<readonly T[]> => {
  const found: T[] = [];
  for await (const piece of stream) found.push(piece);
  return found;
};

test('pieces come in order, through transforms that make none, one or many of them', async () => {
  const many = new LeanTransform<number, number>({
    transform(count, controller) {
      for (let index = 0; index < count; index++) controller.enqueue(count);
    },
  });
  const late = new LeanTransform<number, string>({
    async transform(count, controller) {
      await turn();
      controller.enqueue(String(count));
    },
    flush: (controller) => controller.enqueue('end'),
  });
  assert.deepEqual(await all(of(0, 1, 0, 3, 2).pipeThrough(many).pipeThrough(late)), [
    ...['1', '3', '3', '3', '2', '2', 'end'],
  ]);
});

test('text is decoded across pieces, without a byte order mark', async () => {
  const bytes = Buffer.from('\uFEFFé♥𝄞');
  const pieces = [...bytes].map((byte) => Uint8Array.of(byte));
  assert.equal((await all(of(...pieces).pipeThrough(new LeanTextDecoder()))).join(''), 'é♥𝄞');
  const torn = await all(of(Uint8Array.of(0xe2)).pipeThrough(new LeanTextDecoder()));
  assert.equal(torn.join(''), '\uFFFD');
});

test('what came before a failure is read before it', async () => {
  let controller: LeanController<number> | undefined;
  const stream = new LeanReadable<number>({
    start(own) {
      controller = own;
    },
  });
  controller?.enqueue(1);
  controller?.error(new Error('broken'));
  const reader = stream.getReader();
  assert.deepEqual(await reader.read(), { done: false, value: 1 });
  await assert.rejects(reader.read(), /broken/);
  await assert.rejects(reader.read(), /broken/);
});

test('a failure of a source, of a transform and of a flush reaches the reader', async () => {
  const failing = {
    source: new LeanReadable({
      pull() {
        throw new Error('source');
      },
    }),
    later: new LeanReadable({ pull: async () => Promise.reject(new Error('later')) }),
    transform: of(1).pipeThrough(
      new LeanTransform({
        transform() {
          throw new Error('transform');
        },
      }),
    ),
    flush: of(1).pipeThrough(
      new LeanTransform({
        async flush() {
          throw new Error('flush');
        },
      }),
    ),
    told: of(1).pipeThrough(
      new LeanTransform<number, number>({
        transform(_, controller) {
          controller.error(new Error('told'));
        },
      }),
    ),
  };
  for (const [title, stream] of Object.entries(failing)) {
    await assert.rejects(all(stream as LeanReadable<unknown>), new RegExp(title), title);
  }
});

test('a reader that waits is answered when a piece comes, one after the other', async () => {
  let controller: LeanController<number> | undefined;
  const stream = new LeanReadable<number>({
    start(own) {
      controller = own;
    },
  });
  const reader = stream.getReader();
  const reads = Promise.all([reader.read(), reader.read(), reader.read()]);
  controller?.enqueue(1);
  controller?.enqueue(2);
  controller?.close();
  assert.deepEqual(
    (await reads).map(({ value }) => value),
    [1, 2, undefined],
  );
});

test('a source is asked for no more than is read', async () => {
  let pulls = 0;
  const stream = new LeanReadable<number>({
    pull(controller) {
      pulls++;
      controller.enqueue(pulls);
    },
  });
  const through = stream.pipeThrough(
    new LeanTransform<number, number>({
      transform: (piece, controller) => controller.enqueue(piece),
    }),
  );
  const reader = through.getReader();
  await reader.read();
  await reader.read();
  await turn();
  assert.equal(pulls, 2);
});

test('cancelling reaches the source through every transform, once', async () => {
  const reasons: unknown[] = [];
  const stream = new LeanReadable<number>({
    pull: (controller) => controller.enqueue(1),
    cancel: (reason) => void reasons.push(reason),
  });
  const through = stream
    .pipeThrough(new LeanTransform<number, number>())
    .pipeThrough(new LeanTransform());
  await through.cancel('enough');
  await through.cancel('again');
  assert.deepEqual(reasons, ['enough']);
  assert.deepEqual(await through.read(), { done: true, value: undefined });
});

test('both branches of a tee have all pieces; the source is cancelled when both are', async () => {
  let cancelled = 0;
  const stream = () => {
    let next = 0;
    return new LeanReadable<number>({
      pull: (controller) => (next < 4 ? controller.enqueue(next++) : controller.close()),
      cancel: () => void cancelled++,
    });
  };
  const [left, right] = stream().tee();
  assert.deepEqual(await all(left), [0, 1, 2, 3]);
  assert.deepEqual(await all(right), [0, 1, 2, 3]);
  const [first, rest] = stream().tee();
  const reader = first.getReader();
  assert.equal((await reader.read()).value, 0);
  await reader.cancel();
  assert.equal(cancelled, 0);
  assert.equal((await rest.read()).value, 0);
  await rest.cancel();
  assert.equal(cancelled, 1);
});

test('a tee hands a failure to both branches', async () => {
  const broken = new LeanReadable<number>({
    pull: (controller) => controller.error(new Error('broken')),
  });
  const [left, right] = broken.tee();
  await assert.rejects(left.read(), /broken/);
  await assert.rejects(right.read(), /broken/);
});
