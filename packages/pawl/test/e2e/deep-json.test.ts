import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { decodeHeader, decodeRecord, encodeHeader, encodeRecord } from '@pawl/agent/journal/codec';
import type { AgentTypes, Entry } from '@pawl/agent/ports/journal';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, type Place, runPawl, sessionOf } from './pawl.js';

/** Arguments of a tool that nest thousands of levels deep: no recursion over them may end the process. */

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

const script = (place: Place, replies: readonly object[]): string => {
  const file = join(place.folder, 'script.json');
  writeFileSync(file, JSON.stringify({ replies }));
  return `scripted/${file}`;
};

test('a call whose arguments nest too deep is answered, live and when the session goes on', async (context) => {
  const place = makePlace(context);
  const rawInput = (depth: number): string => `{"path":"a.txt","deep":${nested(depth)}}`;
  const told = { contains: ['nested deeper than 100 levels'] };
  const model = script(place, [
    { calls: [3_000, 100_000].map((depth) => ({ tool: 'read', rawInput: rawInput(depth) })) },
    {
      expect: {
        results: ['call-1-1', 'call-1-2'].map((callId) => ({ callId, failed: true, ...told })),
      },
      text: 'I see.',
    },
    { text: 'Still here.' },
  ]);
  const live = await runInProcess(place, ['-p', 'read it', '--model', model]);
  expectCode(live, 0);
  assert.equal(live.stdout.trim(), 'I see.');
  const resumed = await runInProcess(place, ['-p', 'and now?', '--continue', '--model', model]);
  expectCode(resumed, 0);
  assert.equal(resumed.stdout.trim(), 'Still here.');
});

test('control: whatever walks over such a value by recursion fails', () => {
  assert.throws(() => JSON.stringify(JSON.parse(nested(100_000))), RangeError);
});

/** The journal as a version without the limit wrote it: cut after the reply, the input of its call as deep as that. */
const deepen = (file: string, input: unknown): void => {
  const lines = readFileSync(file).toString().trimEnd().split('\n');
  const [first = '', ...rest] = lines;
  const opened = decodeHeader<AgentTypes>(Buffer.from(first));
  assert.ok(opened.kind === 'header');
  const header = encodeHeader(opened.header);
  const written = [header.bytes];
  let { crc } = opened;
  let sum = header.crc;
  for (const [index, line] of rest.entries()) {
    const read = decodeRecord<AgentTypes>(Buffer.from(line), crc, index + 1);
    assert.ok(read.kind === 'record');
    crc = read.crc;
    const { seq, event } = read.recorded.entry;
    const isReply = event.type === 'LlmCompleted' && event.message !== null;
    // The same event with another input, which is JSON.
    const entry = (
      isReply
        ? {
            seq,
            event: {
              ...event,
              calls: event.calls.map((call) => ({ ...call, input })),
              message: {
                ...event.message,
                parts: event.message.parts.map((part) => ({ ...part, input })),
              },
            },
          }
        : { seq, event }
    ) as Entry;
    const encoded = encodeRecord({ entry, check: null }, sum);
    written.push(encoded.bytes);
    sum = encoded.crc;
    if (isReply) break;
  }
  writeFileSync(file, Buffer.concat(written));
  rmSync(file.replace('.jsonl', '.mark')); // older versions wrote none
};

test('a session of a version without that limit goes on, and can be looked at', async (context) => {
  const place = makePlace(context);
  writeFileSync(join(place.workspace, 'a.txt'), 'a\n');
  const model = script(place, [
    { calls: [{ tool: 'read', input: { path: 'a.txt' } }] },
    { text: 'Read.' },
    { text: 'Going on.' },
  ]);
  expectCode(await runInProcess(place, ['-p', 'read it', '--model', model]), 0);
  const session = sessionOf(place);
  const deep: unknown = JSON.parse(nested(3_000));
  deepen(join(place.state, 'pawl', 'sessions', `${session}.jsonl`), { path: 'a.txt', deep });
  for (const words of [
    ['replay', session],
    ['show', session],
    ['-p', 'go on', '--continue', '--model', model],
  ]) {
    const ended = await runInProcess(place, words);
    expectCode(ended, 0);
  }
});

test('a message of an editor that is nested too deep ends pawl acp with words, and not with 0', async (context) => {
  const place = makePlace(context);
  const { code, stderr } = await runPawl(
    place,
    ['acp'],
    `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}\n`,
  );
  assert.equal(code, 65, stderr);
  assert.match(stderr, /the editor sent a message that is nested too deep/);
  assert.equal((await runPawl(place, ['acp'])).code, 0);
});
