import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ServerReply } from '../../../../test/servers/anthropic.js';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid, makeServed, readRecords } from './pawl.js';
import { done, message, text } from './wire-words.js';

// A turn that ends with words of the model, and a warning that says why they are no success.

const CALL = '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>';
const again = (reply: ServerReply): readonly ServerReply[] => Array(5).fill(reply);

const rows: readonly (readonly [
  title: string,
  hook: string,
  replies: readonly ServerReply[],
  code: number,
  reason: string,
])[] = [
  ['a hook objects to the last', 'exit 2', again(done), 1, 'objection'],
  [
    'a hook objects no more',
    'echo x >> count; [ "$(wc -l < count)" -gt 3 ] || exit 2',
    again(done),
    0,
    'answer',
  ],
  ['a call comes as text', '', [message(text(CALL))], 1, 'callAsText'],
  ['an answer speaks of one', '', [message(text(`${CALL}\nThat is one.`))], 0, 'answer'],
  [
    'the model stops for a reason that nobody knows',
    '',
    [{ type: 'message', parts: [text('So')], stopReason: 'pause_turn' }],
    1,
    'stopped',
  ],
  [
    'the model refuses',
    '',
    [{ type: 'message', parts: [text('No')], stopReason: 'refusal' }],
    1,
    'refused',
  ],
];

test('JSON that was asked for may look like a call', async (context) => {
  const place = await makeServed(context, [message(text('{"name": "x", "arguments": {}}'))]);
  writeFileSync(join(place.workspace, 'schema.json'), '{"type": "object"}');
  expectCode(await runInProcess(place, ['-p', 'go', '--json-schema', 'schema.json']), 0);
});

for (const [title, hook, replies, code, reason] of rows)
  test(`${title}: ${code}`, async (context) => {
    const place = await makeServed(context, replies);
    const folder = join(place.home, '.config', 'pawl');
    mkdirSync(folder, { recursive: true });
    if (hook !== '')
      writeFileSync(
        join(folder, 'config.toml'),
        `[hook.tests]\non = "turn-end"\nsandbox = "off"\ncommand = ${JSON.stringify(hook)}\n`,
      );
    const ended = await runInProcess(place, ['-p', 'go', '--json']);
    expectCode(ended, code);
    const last = readRecords(ended.stdout).at(-1);
    assert.ok(last?.type === 'result');
    assert.deepEqual([last.ok, last.reason, last.exit], [code === 0, reason, code]);
    expectValid(place.server);
  });
