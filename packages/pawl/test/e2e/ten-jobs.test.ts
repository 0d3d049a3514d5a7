import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeServed } from './pawl.js';
import { openReady, openWindow } from './window.js';
import { call, done, message } from './wire-words.js';

/** The table of ten jobs in docs/use/terminal.md: its keys are pressed, and do what it says. */

const page = readFileSync(join(import.meta.dirname, '../../../../docs/use/terminal.md'), 'utf8');
const [, table = ''] = /\n## Ten jobs and their keys\n([\s\S]*?)\nThe same jobs /.exec(page) ?? [];
const rows = [...table.matchAll(/^\| ([^|]+) \| ([^|]+) \| (\d+) \|/gm)].map(
  ([, job = '', keys = '', count = '']) => ({ job, keys, count: Number(count) }),
);

const BYTES: Readonly<Record<string, string>> = {
  'Shift+Tab': '\u001b[Z',
  'Alt+P': '\u001bp',
  'Alt+R': '\u001br',
  Enter: '\r',
  Escape: '\u001b',
  Tab: '\t',
};

/** The keys of a row as the terminal sends them, and how many they are. */
const keysOf = (job: string): readonly string[] => {
  const row = rows.find((one) => one.job.startsWith(job));
  assert.ok(row !== undefined, job);
  const keys = [...row.keys.matchAll(/`([^`]+)`/g)].flatMap(([, key = '']) =>
    BYTES[key] === undefined ? key.split('') : [BYTES[key]],
  );
  assert.equal(keys.length, row.count, `${job}: ${row.keys}`);
  return keys;
};

test('each key of the ten jobs does what the table says', async (context) => {
  assert.equal(rows.length, 10);
  const edit = call('b', 'write', { path: 'new.txt', content: 'fresh\n' });
  const place = await makeServed(context, [
    message(call('a', 'bash', { command: 'wc notes.txt' })),
    done,
    message(edit),
    done,
    message(call('c', 'bash', { command: 'sleep 600' })),
  ]);
  writeFileSync(join(place.workspace, 'notes.txt'), 'one\n');
  execFileSync('git', ['init', '-q'], { cwd: place.workspace });
  const words = ['--sandbox', 'off', '--preset', 'careful'];
  const window = await openReady(context, place, { words, rows: 50 });
  const press = (job: string): void => {
    for (const key of keysOf(job)) window.press(key);
  };
  window.press('count\r');
  await window.sees('y a p s P n · ');
  press('a rule for ever');
  await window.sees(/config\.toml:\d+: allow = \["wc"\]/);
  await window.sees('Done.');
  press('change the mode');
  await window.sees(/^ *auto\b/m);
  window.press('write it\r');
  await window.sees(/1 \+ fresh[\s\S]*Done\.[\s\S]*ready · /);
  press('see a diff');
  await window.sees(/new\.txt new · \+1 −0/);
  press('see the cost');
  await window.sees(/cache read/);
  press('switch the model');
  await window.sees(/› /);
  window.press('\u001b');
  await window.sees(/To change it: \/model/);
  const [at = '', letter = '', tab = ''] = keysOf('attach a file');
  window.press(at + letter);
  await window.sees(/^› new\.txt/m);
  window.press(tab);
  await window.seesLine('> @new.txt');
  window.press('\u0015');
  await window.seesLine('>');
  const [once = '', twice = '', both = ''] = keysOf('undo');
  window.press(once + twice);
  await window.sees(/^› .*write it/m);
  window.press(both);
  await window.sees(/taken back: [\s\S]*new\.txt/);
  window.press('\u0015wait\r');
  await window.sees(/running bash/);
  window.press('and then');
  press('queue');
  await window.sees(/1 queued: and then/);
  press('interrupt');
  await window.sees(/stopped · /);
  window.press('\u0015/quit\r');
  assert.equal(await window.ended, 0);
  const [list = '', first = ''] = keysOf('resume').slice('pawl\r'.length);
  const next = await openReady(context, place, {});
  await next.sees(/last here: "count", .* Alt\+R or \/resume/);
  next.press(list);
  await next.sees(/Go on with:\s+› .*count/);
  next.press(first);
  await next.sees(/> count/);
  const sessions = openWindow(context, place, { words: ['sessions'], columns: 150 });
  await sessions.sees(/^\S+ {2}\d{4}-\d\d-\d\d \d\d:\d\d {2}\w+ +<\$0\.01 {2}.*count$/m);
});
