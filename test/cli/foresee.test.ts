import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { JudgedCall } from '../../src/agent/call.js';
import type { JsonObject } from '../../src/agent/message.js';
import { foresee } from '../../src/cli/foresee.js';

const fileOf = (context: TestContext, content: string | null): string => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-foresee-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  if (content !== null) writeFileSync(join(folder, 'x.txt'), content);
  return join(folder, 'x.txt');
};

const callOf = (tool: string, file: string, input: JsonObject): JudgedCall => ({
  ...{ callId: 'a', tool, input, verdict: { kind: 'ok' } },
  traits: { effect: 'probeable', parallelSafe: false, mutating: true, deadlineMs: 1_000 },
  facts: { argv: [], paths: [file], hosts: [], shape: file },
});

const linesOf = (diff: string | null): readonly string[] =>
  (diff ?? '').split('\n').filter((line) => /^[-+ ](?![-+]{2})/.test(line));

test('a write over a file shows what differs', async (context) => {
  const file = fileOf(context, 'one\ntwo\n');
  const diff = await foresee(callOf('write', file, { path: file, content: 'one\n2\n' }));
  assert.deepEqual(linesOf(diff), [' one', '-two', '+2']);
});

test('a new file is all added', async (context) => {
  const file = fileOf(context, null);
  assert.deepEqual(linesOf(await foresee(callOf('write', file, { path: file, content: 'one\n' }))), ['+one']);
});

test('edits that fit show the file around them', async (context) => {
  const file = fileOf(context, 'one\ntwo\nthree\n');
  const edits = [
    { oldText: 'two', newText: '2' },
    { oldText: 'three', newText: '3' },
  ];
  const diff = await foresee(callOf('edit', file, { path: file, edits }));
  assert.deepEqual(linesOf(diff), [' one', '-two', '-three', '+2', '+3']);
});

test('edits that do not fit show what they say', async (context) => {
  const file = fileOf(context, 'one\none\n');
  const diff = await foresee(callOf('edit', file, { path: file, edits: [{ oldText: 'one', newText: '1' }] }));
  assert.deepEqual(linesOf(diff), ['-one', '+1']);
});

test('a command changes nothing that could be named', async (context) => {
  const file = fileOf(context, '');
  assert.equal(await foresee(callOf('bash', file, { command: 'rm x' })), null);
});
