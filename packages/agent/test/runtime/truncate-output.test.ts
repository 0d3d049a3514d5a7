import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Blobs } from '../../src/ports/journal.js';
import type { ToolOutcome } from '../../src/ports/tool.js';
import { BatchRoom, cutOutcome, cutText } from '../../src/session/result-text.js';

const noBlobs: Blobs = { put: async () => 'f00', get: async () => undefined };

test('text within the limit is left alone, to the byte', () => {
  assert.equal(cutText('a'.repeat(100), 100), null);
  assert.equal(cutText('ä'.repeat(50), 100), null);
});

test('text over the limit keeps its head and its tail, and counts what is missing', () => {
  const cut = cutText(`${'a'.repeat(80)}${'b'.repeat(80)}`, 100);
  assert.deepEqual(cut, { head: 'a'.repeat(50), tail: 'b'.repeat(50), leftOutBytes: 60 });
});

test('a cut never splits a character', () => {
  for (let limit = 8; limit < 40; limit++) {
    const cut = cutText('€'.repeat(40), limit);
    assert.ok(cut !== null);
    assert.match(cut.head + cut.tail, /^€+$/, `limit ${limit}`);
    assert.equal(Buffer.byteLength(cut.head + cut.tail) + cut.leftOutBytes, 120);
    assert.ok(Buffer.byteLength(cut.head + cut.tail) <= limit);
  }
});

test('of output that the tool has dropped the model is told that it is gone, not that it can be read', async () => {
  const text = `first\n${'x'.repeat(1_000)}\nlast`;
  const outcome = await cutOutcome({ status: 'ok', text, droppedBytes: 198_000_000 }, 100, noBlobs);
  assert.match(outcome.text, /bytes left out; 198,000,000 more are gone/);
  assert.match(outcome.text, /its beginning and its end can be read as blob:f00/);
  assert.doesNotMatch(outcome.text, /whole output/);
  assert.ok(!('droppedBytes' in outcome), 'it is no part of the journal');
});

test('of 5 MB the model sees head, tail, the count, and the blob that holds all', async () => {
  const kept: string[] = [];
  const blobs: Blobs = { ...noBlobs, put: async (text) => `sha-${kept.push(text)}` };
  const text = `first line\n${'x'.repeat(5_000_000)}\nlast line`;
  const outcome = await cutOutcome({ status: 'ok', text }, 30_720, blobs);
  assert.deepEqual(kept, [text]);
  assert.equal(outcome.blob, 'sha-1');
  assert.match(
    outcome.text,
    /^first line\nx+\n… 4,969,301 bytes left out; the whole output can be read as blob:sha-1 …\nx+\nlast line$/,
  );
  assert.ok(Buffer.byteLength(outcome.text) < 31_000);
});

test('output whose blob cannot be written is cut all the same, and says that the rest is gone', async () => {
  const blobs: Blobs = { ...noBlobs, put: async () => Promise.reject(new Error('no space')) };
  const outcome = await cutOutcome({ status: 'failed', text: 'y'.repeat(1_000) }, 100, blobs);
  assert.equal(outcome.blob, undefined);
  assert.equal(outcome.status, 'failed');
  assert.match(outcome.text, /900 bytes left out; the whole output could not be kept: no space/);
});

test('a long diff is cut without a blob, since it is for display only', async () => {
  const outcome = await cutOutcome(
    { status: 'ok', text: 'done', diff: '+'.repeat(1_000) },
    100,
    noBlobs,
  );
  assert.equal(outcome.blob, undefined);
  assert.match(outcome.diff ?? '', /900 bytes left out/);
});

const result = (bytes: number): ToolOutcome => ({ status: 'ok', text: 'x'.repeat(bytes) });
const none = (): readonly string[] => [];

test('the results of a batch are about 100 kB together: the last ones are cut, with the reason', async () => {
  const room = new BatchRoom();
  const shown: string[] = [];
  for (let call = 0; call < 25; call++) {
    const outcome = result(30_000);
    const { limitBytes, why } = room.take('b', outcome, 30_720, none);
    shown.push((await cutOutcome(outcome, limitBytes, noBlobs, why)).text);
  }
  const bytes = shown.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  assert.ok(bytes > 95_000 && bytes < 130_000, String(bytes));
  assert.deepEqual(
    shown.slice(0, 3).map((text) => text.length),
    [30_000, 30_000, 30_000],
  );
  assert.match(
    shown.at(-1) ?? '',
    /left out; the results of one reply are bounded together; the whole output can be read as blob:f00/,
  );
  assert.equal(room.take('c', result(30_000), 30_720, none).why, '', 'the next batch has room');
});

test('a resumed batch counts the results that it has; a small result is never cut', () => {
  const room = new BatchRoom();
  const before = ['x'.repeat(60_000), 'y'.repeat(39_500)];
  assert.equal(room.take('b', result(900), 30_720, () => before).why, '');
  assert.equal(room.take('b', result(900), 30_720, () => []).why, '');
  assert.equal(room.take('b', result(5_000), 30_720, none).limitBytes, 1_000);
});

test('a tool that bounds its text itself is not cut, unless the limit was lowered', () => {
  const whole = { ...result(50_000), cutBytes: 51_000 };
  assert.equal(new BatchRoom().take('b', whole, 30_720, none).limitBytes, 51_000);
  assert.equal(new BatchRoom().take('b', whole, 600, none).limitBytes, 600);
});
