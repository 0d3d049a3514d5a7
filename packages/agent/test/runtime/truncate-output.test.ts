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
  assert.match(outcome.text, /read or search blob:f00 for its beginning and its end/);
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
    /^first line\nx+\n… 4,969,301 bytes left out; read or search blob:sha-1 for the whole output …\nx+\nlast line$/,
  );
  assert.ok(Buffer.byteLength(outcome.text) < 31_000);
});

/** 5,000 lines of a test run, with some in between. */
const testLog = (more: Readonly<Record<number, string>>): string =>
  Array.from(
    { length: 5_000 },
    (_, at) => more[at + 1] ?? `ok ${at + 1} - fails with an error when line ${at + 1} is read`,
  ).join('\n');

const cutLog = async (text: string, limitBytes = 30_720): Promise<string> =>
  (await cutOutcome({ status: 'failed', text, isLog: true }, limitBytes, noBlobs)).text;

test('the output of a command that ended well is not searched for errors', async () => {
  const text = testLog({ 1500: '+displays usage errors for problems' });
  const outcome: ToolOutcome = { status: 'ok', text, isLog: true };
  const shown = async (one: ToolOutcome): Promise<string> =>
    (await cutOutcome(one, 30_720, noBlobs)).text;
  assert.match(await shown(outcome), /1500: \+displays/, 'the control: a job that runs');
  assert.doesNotMatch(await shown({ ...outcome, endedWell: true }), /displays|look like errors/);
});

test('of a long log the model sees 4 kB of its head, 20 kB of its tail, and lines between that look like errors', async () => {
  const text = testLog({
    1500: 'not ok 1500 - adds',
    2000: 'Tests: 0 failed, no errors',
    2500: '  TypeError: x is not a function',
    3000: `ERROR ${'y'.repeat(2_000)}`,
    3001: 'src/a.ts(3,5): error TS2322: no such type',
  });
  const shown = await cutLog(text);
  const parts =
    /^(.*)\n… ([\d,]+) bytes left out \(from line (\d+) to line (\d+)\); read or search blob:f00 for the whole output; lines that look like errors:\n(.*)\n… the end, from line (\d+) on:\n(.*)$/s.exec(
      shown,
    ) ?? assert.fail(shown);
  const [, head = '', leftOut = '', first = '', last = '', errors = '', next = '', tail = ''] =
    parts;
  assert.ok(head.length > 3_900 && head.length <= 4_096, `${head.length}`);
  assert.ok(tail.length > 20_000 && tail.length <= 20_480, `${tail.length}`);
  assert.equal(last, next);
  const lines = text.split('\n');
  assert.equal(head, lines.slice(0, Number(first) - 1).join('\n'));
  assert.equal(tail, lines.slice(Number(next) - 1).join('\n'));
  assert.equal(Number(leftOut.replaceAll(',', '')), text.length - head.length - tail.length - 1);
  assert.deepEqual(errors.split('\n'), [
    '1500: not ok 1500 - adds',
    '2500:   TypeError: x is not a function',
    `3000: ERROR ${'y'.repeat(294)}…`,
    '3001: src/a.ts(3,5): error TS2322: no such type',
  ]);
});

test('below a line that looks like an error, its message and two places of the own source are shown', async () => {
  const shown = await cutLog(
    testLog({
      1500: 'not ok 1500 - adds',
      1501: '  at run (node:internal/test:125:3)',
      1502: '  at run (/src/node_modules/tape/index.js:3:4)',
      1503: '  at Test.<anonymous> (/src/test/add.test.cjs:14:3)',
      1504: '  expected: 7',
      1505: '  actual: 8',
      1506: '  at /src/add.cjs:3',
      1507: '  at /src/main.cjs:9',
      2000: '  at /src/elsewhere.cjs:1',
      2500: 'Traceback (most recent call last):',
      2501: '  File "/src/add.py", line 12, in add',
      3000: "thread 'main' panicked",
      3001: 'ok 3001 - names src/main.rs:3',
      3002: '  --> src/later.rs:3:5',
      3500: 'ERROR in ./src/m1700.ts:14:7',
      3501: '',
      3502: "TS2322: Type 'string' is not assignable to type 'number'.",
      3503: '  const size: number = name;',
      3504: '  ^^^^',
    }),
  );
  const [, errors = ''] = /look like errors:\n(.*)\n… the end/s.exec(shown) ?? assert.fail(shown);
  assert.deepEqual(errors.split('\n'), [
    '1500: not ok 1500 - adds',
    '1503:   at Test.<anonymous> (/src/test/add.test.cjs:14:3)',
    '1504:   expected: 7',
    '1506:   at /src/add.cjs:3',
    '2500: Traceback (most recent call last):',
    '2501:   File "/src/add.py", line 12, in add',
    "3000: thread 'main' panicked",
    '3500: ERROR in ./src/m1700.ts:14:7',
    "3502: TS2322: Type 'string' is not assignable to type 'number'.",
    '3503:   const size: number = name;',
  ]);
});

test('lines that differ in numbers alone are shown three times, and all in 6 kB at most', async () => {
  const alike = Object.fromEntries(
    Array.from({ length: 2_000 }, (_, at) => [1_000 + at, `${at} warnings, error code ${at}`]),
  );
  const few = await cutLog(testLog(alike));
  assert.equal(few.match(/error code/g)?.length, 3);
  assert.match(few, /\n… 1,997 more lines look like errors; the end, from line \d+ on:\n/);
  const names = Object.fromEntries(
    Array.from({ length: 2_000 }, (_, at) => [
      1_000 + at,
      `error in ${String.fromCharCode(97 + (at % 26)).repeat(at % 90)}`,
    ]),
  );
  const many = await cutLog(testLog(names));
  assert.ok(Buffer.byteLength(many) < 31_000, `${Buffer.byteLength(many)}`);
  assert.match(many, /\n… 1,\d+ more lines look like errors; the end/);
});

test('a log without errors, and one with endless lines, is cut in two parts', async () => {
  assert.match(
    await cutLog(testLog({})),
    /\n… [\d,]+ bytes left out \(from line \d+ to line \d+\); read or search blob:f00 for the whole output …\nok /,
  );
  const endless = await cutLog(`first\n${'x'.repeat(5_000_000)}\n[exit code 0, 1.0 s]`);
  assert.match(
    endless,
    /^first\nx{4000,}\n… [^\n]*from line 2 to line 2\)[^\n]*…\nx{20000,}\n\[exit/,
  );
  assert.ok(endless.length < 31_000);
  for (let limit = 8; limit < 40; limit++)
    assert.match(await cutLog('€\n'.repeat(40), limit), /^[€\n]*… [^\n]* …\n[€\n]*$/, `${limit}`);
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
    /left out; the results of one reply are bounded together; read or search blob:f00 for the whole output/,
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
