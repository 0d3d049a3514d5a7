/**
 * Bodies of all wires in any chunks, cut, broken, with other line ends, damaged: the chunks change nothing, every stream
 * ends once, and nothing is thrown outside.
 */
import '../../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pick, type Random, randomFrom } from '../../../../../test/kit/agent/mutations.js';
import { countCases, SEED } from '../../../../../test/tier.js';
import { play } from './replay-stream.js';
import { streamBodies } from './stream-bodies.js';

type Outcome = Awaited<ReturnType<typeof play>>;
type StreamBody = Awaited<ReturnType<typeof streamBodies>>[number];

/** Inputs for each of the random tests. */
const RUNS = countCases(30);

const bodies = await streamBodies();
const whole = new Map<StreamBody, Outcome>();
for (const body of bodies) whole.set(body, await play(body.wire, { chunks: [body.bytes] }));
const wholeOf = (body: StreamBody): Outcome => {
  const outcome = whole.get(body);
  assert.ok(outcome);
  return outcome;
};

/** Between 0 and `end`. */
const upTo = (random: Random, end: number): number => Math.floor(random() * (end + 1));

/** Cuts bytes into chunks: a few, many, or single bytes; empty chunks too. */
const chunksOf = (bytes: Buffer, random: Random): readonly Buffer[] => {
  const longest = pick(random, [1, 2, 7, 40, 300, 2_000]);
  const chunks: Buffer[] = [];
  for (let start = 0; start < bytes.length; ) {
    const length = upTo(random, longest);
    chunks.push(bytes.subarray(start, start + length));
    start += length;
  }
  return chunks;
};

/** Runs a property over random bodies. A failure names the seed and the run. */
const forBodies = (
  title: string,
  property: (body: StreamBody, random: Random) => Promise<void>,
  from: readonly StreamBody[] = bodies,
): void => {
  test(title, async (context) => {
    context.diagnostic(`PAWL_SEED=${SEED}`);
    for (let run = 0; run < RUNS; run += 1) {
      const random = randomFrom(SEED + run);
      const body = pick(random, from);
      try {
        await property(body, random);
      } catch (error) {
        throw new Error(`seed ${SEED}, run ${run}: ${body.wire}, ${body.name}`, { cause: error });
      }
    }
  });
};

test('the bodies are whole replies, failures and broken replies of all wires', () => {
  assert.deepEqual(
    new Set(bodies.map(({ wire }) => wire)),
    new Set(['anthropic', 'openai', 'google', 'chat']),
  );
  const kinds = [...whole.values()].map(({ ending }) => ending.type);
  assert.ok(kinds.filter((kind) => kind === 'completed').length >= 12, kinds.join());
  assert.ok(kinds.filter((kind) => kind === 'failed').length >= 8, kinds.join());
});

for (const body of bodies.filter(({ name }) => name === 'text alone')) {
  test(`${body.wire}: two chunks, cut at every byte`, async () => {
    for (let at = 0; at <= body.bytes.length; at += 1) {
      const chunks = [body.bytes.subarray(0, at), body.bytes.subarray(at)];
      assert.deepEqual(await play(body.wire, { chunks }), wholeOf(body), `cut at ${at}`);
    }
  });
}

test('chunks of single bytes give the same events', async () => {
  for (const body of bodies) {
    const chunks = Array.from(body.bytes, (_, at) => body.bytes.subarray(at, at + 1));
    assert.deepEqual(await play(body.wire, { chunks }), wholeOf(body), body.name);
  }
});

forBodies('any chunks give the same events', async (body, random) => {
  assert.deepEqual(await play(body.wire, { chunks: chunksOf(body.bytes, random) }), wholeOf(body));
});

/** Line ends that may be mixed: after a carriage return, a line feed would be half of the same end. */
const LINE_ENDS = [['\n'], ['\r\n'], ['\r'], ['\n', '\r\n'], ['\r', '\r\n']] as const;

for (const [name, end] of [
  ['CRLF', '\r\n'],
  ['CR', '\r'],
] as const) {
  test(`lines that end in ${name} give the same events`, async () => {
    for (const body of bodies) {
      const chunks = [Buffer.from(body.bytes.toString().replaceAll('\n', end))];
      assert.deepEqual(
        await play(body.wire, { chunks }),
        wholeOf(body),
        `${body.wire}: ${body.name}`,
      );
    }
  });
}

forBodies('other line ends, and a byte order mark, give the same events', async (body, random) => {
  const lines = body.bytes.toString().split('\n');
  const ends: readonly string[] = pick<readonly string[]>(random, LINE_ENDS);
  const mark = random() < 0.5 ? '\ufeff' : '';
  const text = lines.reduce((left, right) => `${left}${pick(random, ends)}${right}`);
  const chunks = chunksOf(Buffer.from(mark + text), random);
  assert.deepEqual(await play(body.wire, { chunks }), wholeOf(body));
});

/** A broken stream shows the beginning of what the whole one shows; it is complete only with the same parts. */
const assertBeginning = (broken: Outcome, { streamed, ending }: Outcome): void => {
  assert.deepEqual(broken.streamed, streamed.slice(0, broken.streamed.length));
  if (broken.ending.type !== 'completed') return;
  assert.equal(ending.type, 'completed');
  if (ending.type !== 'completed') return;
  assert.deepEqual(broken.ending.parts, ending.parts);
  assert.equal(broken.ending.stopReason, ending.stopReason);
};

forBodies(
  'a body that ends anywhere, or a connection that breaks, ends the stream',
  async (body, random) => {
    const bytes = body.bytes.subarray(0, upTo(random, body.bytes.length - 1));
    const end = pick(random, ['closed', 'broken'] as const);
    const broken = await play(body.wire, { chunks: chunksOf(bytes, random), end });
    assertBeginning(broken, wholeOf(body));
  },
);

type Damage = (bytes: Buffer, random: Random) => Buffer;

const replaced = (bytes: Buffer, start: number, end: number, by: Uint8Array): Buffer =>
  Buffer.concat([bytes.subarray(0, start), by, bytes.subarray(end)]);

const framesOf = (bytes: Buffer): readonly string[] => bytes.toString().split(/(?<=\n\n)/);

const damages: Readonly<Record<string, Damage>> = {
  'bytes that are no UTF-8': (bytes, random) => {
    const at = upTo(random, bytes.length);
    const wrong = pick(random, [
      [0xff],
      [0xc3],
      [0xe2, 0x82],
      [0xf0, 0x9f, 0x98],
      [0xed, 0xa0, 0x80],
      [0x80],
    ]);
    return replaced(bytes, at, at, Buffer.from(wrong));
  },
  'a changed byte': (bytes, random) => {
    const at = upTo(random, bytes.length - 1);
    return replaced(bytes, at, at + 1, Buffer.from([upTo(random, 255)]));
  },
  'missing bytes': (bytes, random) => {
    const at = upTo(random, bytes.length - 1);
    return replaced(bytes, at, at + upTo(random, 30), Buffer.alloc(0));
  },
  'a doubled event': (bytes, random) => {
    const frames = framesOf(bytes);
    const index = upTo(random, frames.length - 1);
    return Buffer.from([...frames.slice(0, index + 1), ...frames.slice(index)].join(''));
  },
  'a missing event': (bytes, random) => {
    const frames = framesOf(bytes);
    const index = upTo(random, frames.length - 1);
    return Buffer.from(frames.filter((_, each) => each !== index).join(''));
  },
  'two events in the wrong order': (bytes, random) => {
    const frames = [...framesOf(bytes)];
    const index = upTo(random, frames.length - 2);
    return Buffer.from(
      [
        ...frames.slice(0, index),
        frames[index + 1],
        frames[index],
        ...frames.slice(index + 2),
      ].join(''),
    );
  },
  'an event of nothing': (bytes, random) => {
    const frames = [...framesOf(bytes)];
    const nothing = pick(random, [
      'data: {}\n\n',
      'data:\n\n',
      'data: null\n\n',
      'data: []\n\n',
      'data: {"choices":[]}\n\n',
      'data: {"usage":null}\n\n',
      ':\n\n',
      'event: ping\n\n',
      'data: {"type":"ping"}\n\n',
      '\n\n\n',
      'data: 7\n\n',
      'data: {"error":null}\n\n',
    ]);
    frames.splice(upTo(random, frames.length), 0, nothing);
    return Buffer.from(frames.join(''));
  },
};
const damagesList = Object.values(damages);

forBodies(
  'a damaged body gives the same events in any chunks, and ends the stream',
  async (body, random) => {
    let { bytes } = body;
    for (let count = upTo(random, 2); count >= 0; count -= 1)
      bytes = pick(random, damagesList)(bytes, random);
    const atOnce = await play(body.wire, { chunks: [bytes] });
    const inChunks = await play(body.wire, { chunks: chunksOf(bytes, random) });
    assert.deepEqual(inChunks, atOnce);
  },
);
