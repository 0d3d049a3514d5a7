import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid, makeServed } from './pawl.js';
import { call, done, last, message, text } from './wire-words.js';

/** One turn of the real program against a strict server that speaks Anthropic Messages. */

test('a text reply is printed, and nothing else', async (context) => {
  const place = await makeServed(context, [message(text('Hello, world.'))]);
  const ended = await runInProcess(place, ['-p', 'say hello']);
  expectCode(ended, 0);
  assert.equal(ended.stdout, 'Hello, world.\n');
  assert.equal(ended.stderr, '');
  assert.equal(place.server.requests.length, 1);
});

test('the prompt is read from stdin', async (context) => {
  const place = await makeServed(context, [done, done, done]);
  for (const words of [['-p', '-'], ['-p'], ['run', '-']]) {
    expectCode(await runInProcess(place, words, 'from a pipe'), 0);
    assert.equal(last(place.server.requests.at(-1)?.body)[0]?.text, 'from a pipe');
  }
});

test('one call is run and its result sent back', async (context) => {
  const place = await makeServed(context, [
    message(text('I look.'), call('a', 'read', { path: 'note.txt' })),
    done,
  ]);
  writeFileSync(join(place.workspace, 'note.txt'), 'forty-two\n');
  expectCode(await runInProcess(place, ['-p', 'what does the note say?']), 0);
  expectValid(place.server);
  const [result] = last(place.server.requests[1]?.body);
  assert.equal(result?.tool_use_id, 'a');
  assert.match(JSON.stringify(result), /forty-two/);
});

test('three parallel calls come back in the order of the calls', async (context) => {
  const place = await makeServed(context, [
    message(
      call('slow', 'search', { pattern: 'x' }),
      call('b', 'read', { path: 'b.txt' }),
      call('c', 'read', { path: 'c.txt' }),
    ),
    done,
  ]);
  for (const name of ['b', 'c'])
    writeFileSync(join(place.workspace, `${name}.txt`), `content of ${name}\n`);
  expectCode(await runInProcess(place, ['-p', 'read']), 0);
  expectValid(place.server);
  const ids = last(place.server.requests[1]?.body).map((part) => part.tool_use_id);
  assert.deepEqual(ids, ['slow', 'b', 'c']);
});

test('a call with invalid JSON is not run, and the model reads what it wrote', async (context) => {
  const place = await makeServed(context, [
    message({ type: 'call', id: 'a', name: 'write', rawInput: '{"path": "x.txt", "content": ' }),
    done,
  ]);
  expectCode(await runInProcess(place, ['-p', 'write']), 0);
  expectValid(place.server);
  const answer = JSON.stringify(last(place.server.requests[1]?.body));
  assert.match(answer, /"is_error":true/);
  assert.match(answer, /x\.txt/);
});
