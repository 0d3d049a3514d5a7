import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeServed } from './pawl.js';
import { openReady } from './window.js';
import { call, done, message } from './wire-words.js';

/** What `/diff` shows, and whose changes it says these are. */

test('/diff shows what has changed since HEAD, new files too', async (context) => {
  const place = await makeServed(context, []);
  const git = (...words: readonly string[]): void =>
    void execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], {
      cwd: place.workspace,
      env: { ...place.environment, GIT_CONFIG_GLOBAL: '/dev/null' },
    });
  git('init', '-q');
  writeFileSync(join(place.workspace, 'old.txt'), 'before\n');
  git('add', '.');
  git('commit', '-qm', 'one');
  const window = await openReady(context, place);
  window.press('/diff\r');
  await window.sees(/Nothing differs from HEAD \([0-9a-f]{7}\)\./);
  writeFileSync(join(place.workspace, 'old.txt'), 'after\n');
  writeFileSync(join(place.workspace, 'new.txt'), 'fresh\n');
  window.press('/diff\r');
  await window.sees(
    /2 files differ from HEAD \([0-9a-f]{7}\), whoever changed them\n {2}old\.txt \+1 −1\n {4}1 - before\n {4}1 \+ after\n {2}new\.txt new · \+1 −0\n {4}1 \+ fresh/,
  );
});

test('/diff session shows what edits and writes of this session wrote, and which of it was changed since', async (context) => {
  const place = await makeServed(context, [
    message(
      call('a', 'write', { path: 'kept.txt', content: 'mine\n' }),
      call('b', 'write', { path: 'changed.txt', content: 'first\n' }),
      call('c', 'bash', { command: 'echo made > by-command.txt' }),
    ),
    message(call('d', 'edit', { path: 'kept.txt', edits: [{ oldText: 'mine', newText: 'ours' }] })),
    done,
  ]);
  execFileSync('git', ['init', '-q'], { cwd: place.workspace });
  const window = await openReady(context, place, { words: ['--preset', 'auto'], rows: 60 });
  window.press('/diff session\r');
  await window.sees(/no edit of this session has changed a file/);
  window.press('one\r');
  await window.sees('Done.');
  writeFileSync(join(place.workspace, 'changed.txt'), 'second\n');
  writeFileSync(join(place.workspace, 'by-hand.txt'), 'hand\n');
  window.press('/diff session\r');
  await window.sees(
    /edits of this session in order, without changes by commands\n[\s\S]*has changed since this session wrote it/,
  );
  const shown = (await window.text()).split('without changes by commands').at(-1) ?? '';
  assert.match(shown, /1 \+ mine\n[\s\S]*1 \+ first\n[\s\S]*1 - mine\n {4}1 \+ ours\n/);
  assert.match(shown, /changed\.txt has changed since this session wrote it/);
  assert.doesNotMatch(shown, /kept\.txt is not|second|by-hand|by-command/);
  window.press('/diff yesterday\r');
  await window.sees('only /diff and /diff session.');
});

test('/diff without a repository shows what the session wrote', async (context) => {
  const place = await makeServed(context, [
    message(call('a', 'write', { path: 'x.txt', content: 'hello\n' })),
    done,
  ]);
  const window = await openReady(context, place, { words: ['--preset', 'auto'] });
  window.press('one\r');
  await window.sees('Done.');
  window.press('/diff\r');
  await window.sees(/There is no git repository here: edits of this session[\s\S]*1 \+ hello/);
});
