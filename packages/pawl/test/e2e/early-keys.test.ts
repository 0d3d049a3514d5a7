import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { type Pressed, readKeyboard } from '@pawl/terminal/keys';
import type { Frame } from '@pawl/terminal/live-area';
import { hearEarlyKeys } from '../../src/interactive/early-keys.js';
import { detach, liveFile, makeAsking, untilState } from './detached-stage.js';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed } from './pawl.js';
import { openWindow } from './window.js';
import { call, done, message } from './wire-words.js';

/** Somebody hears the keyboard while Pawl starts, and a process that does not answer is named. */

test('while a program hangs at the start, typed text is shown, the program is named, and Ctrl-C ends', async (context) => {
  const place = await makeServed(context, [done]);
  const programs = join(place.folder, 'programs');
  mkdirSync(programs);
  writeFileSync(join(programs, 'bwrap'), '#!/bin/sh\nexec sleep 1000\n');
  chmodSync(join(programs, 'bwrap'), 0o755);
  const PATH = `${programs}${delimiter}${place.environment.PATH}`;
  const XDG_CACHE_HOME = join(place.folder, 'new-cache'); // without an earlier answer of bwrap
  const environment = { ...place.environment, PATH, XDG_CACHE_HOME, PAWL_SANDBOX: 'workspace' };
  const window = openWindow(context, { ...place, environment });
  await window.sees(/starting/);
  window.press('hello\u007fp');
  await window.sees(/> hellp/);
  await window.sees(/starting: waits for bwrap \(Ctrl-C ends it\)/);
  window.press('\u0003');
  assert.equal(await window.ended, 130);
});

test('after a question at the start what is typed is shown and kept, and each Ctrl-C ends', async () => {
  const input = Object.assign(new PassThrough(), { setRawMode: () => undefined });
  const terminal = input as unknown as NodeJS.ReadStream; // all that is used of it
  const write = async (text: string): Promise<void> => {
    input.write(text);
    await new Promise(setImmediate);
  };
  const taken: string[] = [];
  const read = async (text: string): Promise<void> => {
    const take = (pressed: Pressed) => taken.push(pressed.kind === 'key' ? pressed.key.text : '');
    const stop = readKeyboard(terminal, { take, receive: () => undefined });
    await write(text);
    stop();
  };
  let rows: readonly string[] = [];
  let left = 0;
  const draw = (frame: Frame | (() => Frame)): void => {
    rows = (typeof frame === 'function' ? frame() : frame).rows;
  };
  const area = { print: () => undefined, draw, clear: () => undefined };
  const hear = () =>
    hearEarlyKeys(terminal, { area, size: () => ({ columns: 80, rows: 24 }) }, () => {
      left += 1;
    });
  await read('o');
  const early = hear();
  await write('fix 34 tests');
  assert.deepEqual([rows.at(-1), left], ['> fix 34 tests', 0]);
  early.end();
  await read('');
  assert.deepEqual(taken, ['o', 'fix 34 tests']);
  for (const interrupt of ['\u0003', 'x\u001b[99;5u']) {
    const keys = hear();
    await write(interrupt);
    keys.end();
    await read('');
  }
  assert.equal(left, 2);
});

test('a stopped process of a detached session is named at once, by each command, and can be killed', async (context) => {
  const place = await makeAsking(context, [message(call('a', 'bash', { command: 'true' })), done]);
  const id = await detach(context, place, ['go']);
  await untilState(place, id, /waits for your answer/);
  const held = await runInProcess(place, ['-p', 'more', '--resume', id]);
  expectCode(held, 75);
  assert.match(held.stderr, new RegExp(`runs detached.*pawl attach ${id}.*pawl stop ${id}`));
  const { pid } = JSON.parse(readFileSync(liveFile(place, id, 'json'), 'utf8')).process;
  process.kill(pid, 'SIGSTOP');
  // lines in a window break between words
  const stopped = new RegExp(`is stopped by a signal: kill -CONT ${pid} lets it go\\s+on`);
  await untilState(place, id, stopped);
  for (const words of [
    ['stop', id],
    ['answer', id],
  ]) {
    const refused = await runInProcess(place, words);
    expectCode(refused, 75);
    assert.match(refused.stderr, stopped);
    assert.match(refused.stderr, new RegExp(`pawl stop ${id} --kill`));
  }
  const window = openWindow(context, place, { words: ['attach', id] });
  await window.sees(stopped);
  assert.equal(await window.ended, 75);
  expectCode(await runInProcess(place, ['stop', id, '--kill']), 0);
  await untilState(place, id, /^died/);
  expectCode(await runInProcess(place, ['resume', id]), 0);
  await untilState(place, id, /waits for your answer/);
});
