import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed } from './pawl.js';
import { call, done, message } from './wire-words.js';

test('a protected file that is moved while a command runs: the user hears of it on stderr', async (t) => {
  const made = message(call('a', 'bash', { command: 'echo mine > .envrc' }));
  const place = await makeServed(t, [made, done]);
  const ended = await runInProcess(place, ['-p', 'work']);
  expectCode(ended, 0);
  const told =
    /the sandbox: \.envrc is protected .* was moved to (\S+)\. If you made it, move it back/;
  const [, moved = ''] = told.exec(ended.stderr) ?? [];
  assert.equal(readFileSync(moved, 'utf8'), 'mine\n', ended.stderr);
  assert.ok(!existsSync(path.join(place.workspace, '.envrc')));
});

test('control: nothing is said of a file without protection', async (t) => {
  const made = message(call('a', 'bash', { command: 'echo mine > notes.txt' }));
  const place = await makeServed(t, [made, done]);
  const ended = await runInProcess(place, ['-p', 'work']);
  expectCode(ended, 0);
  assert.doesNotMatch(ended.stderr, /the sandbox:/);
  assert.ok(existsSync(path.join(place.workspace, 'notes.txt')));
});
