import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Replies } from '../../../../test/servers/anthropic.js';
import { until } from '../../../../test/until.js';
import { expectValid, makeServed, sessionOf } from './pawl.js';
import { openReady, openWindow } from './window.js';
import { call, done, message, text } from './wire-words.js';

/**
 * A whole working session in a real terminal, as a person has it; what the screen shows in the end is compared with a
 * golden frame. `UPDATE=1` writes the frames anew; read the diff.
 */

const FOLDER = join(import.meta.dirname, 'frames');
const ESCAPE = '\u001b';
const CONTROL_D = '\u0004';

const replies: Replies = [
  message(
    text('I write the file **now**:\n\n```ts\nexport const answer = 42;\n```\n'),
    call('a', 'write', { path: 'answer.ts', content: 'export const answer = 42;\n' }),
  ),
  message(call('b', 'bash', { command: 'until [ -e go ]; do sleep .1; done' })),
  {
    type: 'message',
    parts: [text('It is written, and I was brief. '), text('A line that goes on. '.repeat(60))],
    delayMs: 50,
  },
  message(text('You asked for another one: here.')),
  message(text('The user wanted answer.ts; it is written.')),
  message(text('The second model speaks.')),
  done,
];

/** What differs from run to run, made the same: names of folders and sessions, times, how far a stream had come. */
const steady = (shown: string): string =>
  shown
    .replace(/^\S+ · session \d{8}-\d{6}-[0-9a-f]{8}$/gm, '(folder) · session (session)')
    .replace(/\d{8}-\d{6}-[0-9a-f]{8}/g, '(session)')
    .replace(/\d+\.\d s?(?=\])/g, 'N s')
    .replace(/ · [\dm.]+s for your answers/g, '')
    .replace(/\b(?:\d+m)?\d+(?:\.\d)?s\b/g, 'N.Ns')
    .replace(/(It is written, and I was brief\.)[\s\S]*?(?=\n· |\n\n· )/g, '$1 (as far as it came)')
    .replace(/[ \t]+$/gm, '');

const compare = (name: string, shown: string): void => {
  const file = join(FOLDER, name);
  if (process.env.UPDATE === '1') {
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(file, `${shown}\n`);
  }
  assert.equal(`${shown}\n`, readFileSync(file, 'utf8'));
};

const REST = /(?:ready|stopped) ·[^\n]*\n─+\n>(?: Give a task[^\n]*)?\n/;

const work = async (context: TestContext, columns: number): Promise<void> => {
  const place = await makeServed(context, replies);
  const window = await openReady(context, place, { columns, rows: 40 });
  window.press('write the answer\r');
  await window.sees(
    /\? Pawl asks: create answer\.ts[\s\S]*\+ export const answer[\s\S]*y a (p )?s n · /,
  );
  compare(`question.${columns}.txt`, steady(await window.text()));
  window.press('y\r');
  await window.sees('running bash');
  // While it works: one text for the next results, one for after the turn.
  window.press('be brief\r');
  await window.sees('queued: be brief');
  window.press(`another one${ESCAPE}\r`);
  await window.sees('queued: another one');
  writeFileSync(join(place.workspace, 'go'), '');
  await window.sees('A line that goes on.');
  window.press(ESCAPE);
  await window.seesLine('> another one');
  // The cancelled request's usage comes late. If the next turn had begun, its line would count it.
  const journal = join(place.state, 'pawl', 'sessions', `${sessionOf(place)}.jsonl`);
  await until('the late usage', () => readFileSync(journal, 'utf8').includes('"UsageReported"'));
  window.press('\r');
  await window.sees(/here\.\n[\s\S]*\n─+\n>(?: Give a task[^\n]*)?\n/);
  await window.sees(REST);
  window.press('/compact keep the answer\r');
  await window.sees(/were replaced by a summary/);
  await window.sees(REST);
  window.press('/model anthropic/claude-opus-5\r');
  await window.sees('The next call goes to');
  window.press('and you?\r');
  await window.sees('The second model speaks.');
  await window.sees(REST);
  window.press('/quit\r');
  assert.equal(await window.ended, 0);
  compare(`work.${columns}.txt`, steady(await window.text()));

  const again = openWindow(context, place, { words: ['--continue'], columns, rows: 40 });
  await again.sees('The second model speaks.');
  await again.sees(/ready ·[^\n]*\n─+\n>(?: Give a task[^\n]*)?\n/);
  again.press('go on\r');
  await again.sees('Done.');
  await again.sees(REST);
  again.press(CONTROL_D);
  assert.equal(await again.ended, 0);
  compare(`continued.${columns}.txt`, steady(await again.text()));

  expectValid(place.server);
  sessionOf(place);
  const bodies = place.server.requests.map(({ body }) => JSON.stringify(body.messages));
  assert.match(bodies[2] ?? '', /tool_result[\s\S]*be brief/);
  assert.doesNotMatch(bodies[2] ?? '', /another one/);
  assert.match(bodies[3] ?? '', /another one/);
  assert.equal(
    readFileSync(join(place.workspace, 'answer.ts'), 'utf8'),
    'export const answer = 42;\n',
  );
};

for (const columns of [60, 100]) {
  test(`a working session at ${columns} columns: prompt, approvals, queue, steer, cancel, /compact, /model, quit, --continue`, (context) =>
    work(context, columns));
}
