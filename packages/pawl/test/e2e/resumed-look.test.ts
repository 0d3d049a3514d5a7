import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed, type Place, startPawl } from './pawl.js';
import { openReady, openWindow, type Window } from './window.js';
import { call, done, last, message, overloaded, text } from './wire-words.js';

/** What a session showed is shown again when it is resumed, line by line; and all of it can be had as a file. */

const REST = /(?:ready|stopped) ·[^\n]*\n─+\n>(?: Give a task[^\n]*)?\n/;
const ESCAPE = '\u001b';

/** The lines between the head of the session and the status. */
const conversationIn = async (window: Window): Promise<string> => {
  const lines = (await window.text()).split('\n').map((line) => line.trimEnd());
  const first = lines.findIndex((line) => line.startsWith('> '));
  const last = lines.findLastIndex((line) =>
    /^(?:ready|stopped|failed|limit reached)\b.* · /.test(line),
  );
  return lines.slice(first, last).join('\n').trimEnd();
};

const leave = async (window: Window): Promise<void> => {
  window.press('\u0004');
  assert.equal(await window.ended, 0);
};

const replies = [
  overloaded,
  message(
    { type: 'thinking', text: 'The file is missing. I should write it.', signature: 'sig' },
    text('I write it **now**:\n\n```ts\nexport const answer = 41;\n```\n'),
    call('a', 'write', { path: 'answer.ts', content: 'export const answer = 41;\n' }),
  ),
  message(
    call('b', 'edit', { path: 'answer.ts', edits: [{ oldText: '41', newText: '42' }] }),
    call('c', 'bash', { command: 'for n in 1 2 3 4 5 6 7 8 9; do echo "line $n"; done; exit 3' }),
  ),
  message(call('d', 'edit', { path: 'answer.ts', edits: [{ oldText: '42', newText: '43' }] })),
  message(call('e', 'bash', { command: 'until [ -e go ]; do sleep .1; done; echo looked' })),
  message(text('All is written.')),
  message(text('This one is stopped. '.repeat(200))),
] as const;

const work = async (window: Window, { workspace }: Place): Promise<void> => {
  window.press('write the answer\r');
  await window.sees(/\? Pawl asks: create answer\.ts[\s\S]*y a (?:p )?s n · /);
  window.press('s\r');
  await window.sees('line 9');
  await window.sees('export const answer = 43;'); // the first command has ended: the one that runs is the second
  await window.sees('running bash');
  window.press('be brief\r');
  await window.sees('queued: be brief');
  writeFileSync(join(workspace, 'go'), '');
  await window.sees('All is written.');
  await window.sees(REST);
};

for (const columns of chooseRows([70, 110])) {
  test(`a resumed session looks as it looked live, at ${columns} columns`, async (context) => {
    const slow = { ...replies[6], delayMs: 50 };
    const place = await makeServed(context, [...replies.slice(0, 6), slow]);
    const live = await openReady(context, place, { columns, rows: 40 });
    await work(live, place);
    live.press('and now a long one\r');
    await live.sees('This one is stopped.');
    live.press(ESCAPE);
    await live.sees(/stopped ·[^\n]*\n─+\n>(?: Give a task[^\n]*)?\n/);
    const shown = await conversationIn(live);
    for (const part of [
      '· thought: The file is missing.',
      'trying again',
      '· allowed',
      '> be brief',
      '✗ bash',
      '(cut off here)',
      '───',
    ])
      assert.ok(shown.includes(part), `${part} in\n${shown}`);
    await leave(live);

    const again = await openReady(context, place, { words: ['--continue'], columns, rows: 40 });
    await again.sees(/\(cut off here\)[\s\S]*(?:ready|stopped) ·/);
    assert.equal(await conversationIn(again), shown);
    await leave(again);
  });
}

test('a long session shows its last turns, and that there is more', async (context) => {
  const place = await makeServed(
    context,
    Array.from({ length: 6 }, (_, index) => message(text(`Answer ${index + 1}.`))),
  );
  expectCode(await runInProcess(place, ['-p', 'question 1']), 0);
  for (let turn = 2; turn <= 6; turn++)
    expectCode(await runInProcess(place, ['--continue', '-p', `question ${turn}`]), 0);
  const window = await openReady(context, place, { words: ['--continue'] });
  await window.sees('Answer 6.');
  const shown = await window.text();
  assert.match(
    shown,
    /… earlier turns are not shown; \/export FILE[\s\S]*> question 3[\s\S]*> question 6/,
  );
  assert.doesNotMatch(shown, /question 2/);
  await leave(window);
});

/** Kills the program while it waits for a reply, and opens the session again. */
const killed = async (context: TestContext): Promise<Place> => {
  const place = await makeServed(context, [{ type: 'nothing' }, done, done]);
  const running = startPawl(place, ['-p', 'first']);
  await until('the request', () => place.server.requests.length === 1);
  running.child.kill('SIGKILL');
  await running.ended;
  return place;
};

const SENT_AGAIN = /the program ended before the model answered: the request is sent again/;

test('after kill -9 it is said that the request is sent again; a session that lay at rest says nothing of the kind', async (context) => {
  const place = await killed(context);
  const first = await runInProcess(place, ['--continue', '-p', 'second']);
  expectCode(first, 0);
  assert.match(first.stderr, SENT_AGAIN);
  const third = await makeServed(context, [done, done]);
  expectCode(await runInProcess(third, ['-p', 'one']), 0);
  assert.doesNotMatch((await runInProcess(third, ['--continue', '-p', 'two'])).stderr, SENT_AGAIN);
});

test('a text that went back to the line before kill -9 is in it again', async (context) => {
  const tooLong = { type: 'error', status: 400, errorType: 'invalid_request_error' } as const;
  const place = await makeServed(context, [
    { ...tooLong, message: 'prompt is too long: 9 tokens > 8 maximum' },
    done,
  ]);
  const first = await openReady(context, place);
  first.press('all of Moby-Dick\r');
  await first.sees(/too long[\s\S]*> all of Moby-Dick\n─/);
  process.kill(first.pid, 'SIGKILL');
  await first.ended;
  const again = openWindow(context, place, { words: ['--continue'] });
  await again.sees(/too long[\s\S]*> all of Moby-Dick\n─/);
  again.press('?\r');
  await again.sees('Done.');
  assert.match(JSON.stringify(last(place.server.requests[1]?.body)), /all of Moby-Dick\?/);
  await leave(again);
});

test('/export writes what a compaction has summarised away, too', async (context) => {
  const place = await makeServed(context, [
    message(text('The first answer.')),
    message(text('The summary of it.')),
    message(text('The second answer.')),
  ]);
  const window = await openReady(context, place);
  window.press('the first question\r');
  await window.sees(/The first answer\.[\s\S]*ready ·/);
  window.press('/compact\r');
  await window.sees(/replaced by a summary[\s\S]*ready ·/);
  window.press('the second question\r');
  await window.sees(/The second answer\.[\s\S]*ready ·/);
  window.press('/export talk.md\r');
  await window.sees(/4 messages in/);
  const written = readFileSync(join(place.workspace, 'talk.md'), 'utf8');
  const order = [
    'the first question',
    'The first answer.',
    'The summary of it.',
    'the second question',
    'The second answer.',
  ];
  const places = order.map((part) => written.split(part).length === 2 && written.indexOf(part));
  assert.deepEqual(
    [...places].sort((one, other) => Number(one) - Number(other)),
    places,
    written,
  );
  assert.ok(!places.includes(false), written);
  await leave(window);
});

test('the list of /resume keeps date and id whole at 80 columns', async (context) => {
  const place = await makeServed(context, [done]);
  expectCode(await runInProcess(place, ['-p', `a question that is ${'very '.repeat(30)}long`]), 0);
  const window = await openReady(context, place, { columns: 80 });
  window.press('/resume\r');
  await window.sees('Enter selects');
  assert.match(
    await window.text(),
    /^› \d{4}-\d\d-\d\d \d\d:\d\d {2}a question[^\n]* {2}\d{8}-\d{6}-[0-9a-f]{8}$/m,
  );
});

test('the head of a session fits 80 columns, the id in one piece', async (context) => {
  const place = await makeServed(context, [done]);
  const folder = join(
    place.workspace,
    'a-folder-with-a-long-name',
    'and-another-one-that-is-longer-still',
    'deep',
  );
  mkdirSync(folder, { recursive: true });
  for (const columns of chooseRows([40, 60, 80])) {
    const window = await openReady(context, place, { words: ['--workspace', folder], columns });
    const head = (await window.text()).split('\n').slice(0, 4).join('\n');
    assert.match(head, /^pawl · anthropic\/\S+/);
    assert.match(head, /(?:^|session )\d{8}-\d{6}-[0-9a-f]{8}$/m);
    await leave(window);
  }
});
