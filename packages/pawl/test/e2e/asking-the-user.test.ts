import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { WireBody } from '../../../../test/servers/anthropic.js';
import { until } from '../../../../test/until.js';
import { answerShown, detach, makeAsking, untilState } from './detached-stage.js';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed, sessionOf } from './pawl.js';
import { openReady, openWindow } from './window.js';
import { call, done, last, message } from './wire-words.js';

/** Questions of the model to the user, and plans that the user accepts, in every place where somebody answers. */

const question = (id = 'q') =>
  message(call(id, 'ask_user', { question: 'Which parser?', choices: ['by hand', 'a library'] }));
const steps = ['write a.txt', 'test it'];
const plan = (id = 'p') => message(call(id, 'propose_plan', { title: 'A parser', steps }));
const write = message(call('w', 'write', { path: 'a.txt', content: 'one\n' }));
const named = (body: WireBody | undefined): readonly string[] =>
  ((body as { readonly tools?: readonly { readonly name: string }[] })?.tools ?? []).map(
    ({ name }) => name,
  );
const resultIn = (body: WireBody | undefined): string => JSON.stringify(last(body));

/** What was pressed before it and what is typed after it may not come as one text. */
const WORDS_ASKED = 'Escape takes it back';

test('a question is answered by a number, in words, or by Escape, and the turn goes on', async (context) => {
  const place = await makeServed(context, [question(), question('r'), question('s'), done]);
  const window = await openReady(context, place);
  window.press('make it\r');
  await window.sees(/│ Which parser\?[\s\S]*1 {2}by hand[\s\S]*2 {2}a library[\s\S]*1 2 t n/);
  await window.sees('Escape declines');
  window.press('2');
  await until('request 2', () => place.server.requests.length === 2);
  await window.sees(/✓ a library[\s\S]*│ Which parser\?[\s\S]*1 2 t n · Escape declines/);
  window.press('t');
  await window.sees(WORDS_ASKED);
  window.press('neither\r');
  await until('request 3', () => place.server.requests.length === 3);
  await window.sees(/✓ neither[\s\S]*│ Which parser\?[\s\S]*1 2 t n · Escape declines/);
  window.press('\u001b');
  await window.sees('Done.');
  const bodies = place.server.requests.map(({ body }) => body);
  assert.match(resultIn(bodies[1]), /The user answered: a library/);
  assert.match(resultIn(bodies[2]), /The user answered: neither/);
  assert.match(resultIn(bodies[3]), /the user declined to answer\. Decide yourself/);
  assert.ok(named(bodies[0]).includes('ask_user'));
  assert.ok(!named(bodies[0]).includes('propose_plan'));
  window.press('/quit\r');
  assert.equal(await window.ended, 0);
});

test('a question that waited when the program died is asked again; without a user the model decides', async (context) => {
  const place = await makeServed(context, [question(), question('r'), done, done]);
  const first = await openReady(context, place);
  first.press('make it\r');
  await first.sees(/1 2 t n/);
  process.kill(first.pid, 'SIGKILL');
  await first.ended;
  const next = openWindow(context, place, { words: ['--continue'] });
  await next.sees(/│ Which parser\?[\s\S]*1 2 t n · Escape/);
  next.press('1');
  await until('request 2', () => place.server.requests.length === 2);
  assert.match(resultIn(place.server.requests[1]?.body), /The user answered: by hand/);
  const journal = join(place.state, 'pawl', 'sessions', `${sessionOf(place)}.jsonl`);
  const replies = () => readFileSync(journal, 'utf8').split('"LlmCompleted"').length - 1;
  await until('the second question', () => replies() === 2);
  process.kill(next.pid, 'SIGKILL');
  await next.ended;
  expectCode(await runInProcess(place, ['--resume', sessionOf(place), '-p', 'go on']), 0);
  assert.match(
    JSON.stringify(place.server.requests[2]?.body.messages),
    /nobody is there to ask\. Decide yourself, and say in your answer what you assumed/,
  );
});

test('a plan that is accepted becomes the list, and the preset of before goes on', async (context) => {
  const place = await makeServed(context, [plan(), plan('p2'), write, done]);
  const window = await openReady(context, place, {
    words: ['--preset', 'auto', '--sandbox', 'off'],
  });
  window.press('/preset plan\r');
  await window.sees(/plan \(Shift/);
  window.press('make it\r');
  await window.sees(/│ A parser\s+│ 1\. write a\.txt[\s\S]*a yes goes on in preset auto/);
  await window.sees(/y e n/);
  window.press('n');
  await window.sees(WORDS_ASKED);
  window.press('smaller\r');
  await until('request 2', () => place.server.requests.length === 2);
  await window.sees(/y e n · Escape stops/);
  window.press('y');
  await window.sees('Done.');
  const bodies = place.server.requests.map(({ body }) => body);
  assert.ok(named(bodies[0]).includes('propose_plan'));
  assert.match(resultIn(bodies[1]), /the user sent the plan back: smaller/);
  assert.match(
    resultIn(bodies[2]),
    /0 of 2 done\\n\[ \] write a\.txt\\n\[ \] test it\\n\\nThe user accepted this plan/,
  );
  assert.equal(readFileSync(join(place.workspace, 'a.txt'), 'utf8'), 'one\n');
  window.press('/quit\r');
  assert.equal(await window.ended, 0);
});

test('a plan is changed in the line, and what was typed is accepted', async (context) => {
  const place = await makeServed(context, [plan(), write, done]);
  const window = await openReady(context, place, { words: ['--preset', 'plan'] });
  window.press('make it\r');
  await window.sees(/goes on in preset careful/);
  await window.sees(/y e n/);
  window.press('e');
  await window.sees(WORDS_ASKED);
  window.press(' twice\r');
  await window.sees(
    /0 of 2 done$\s+\[ \] write a\.txt\s+\[ \] test it twice[\s\S]*\? Pawl asks: create a\.txt/m,
  );
  await window.sees(/y s n · Escape|y a s n/);
  window.press('y');
  await window.sees('Done.');
  const bodies = place.server.requests.map(({ body }) => body);
  assert.match(resultIn(bodies[1]), /\[ \] test it twice/);
  // the preset plan reaches no host, careful asks about one
  assert.deepEqual(
    [0, 1].map((at) => named(bodies[at]).includes('fetch')),
    [false, true],
  );
  await window.sees(/careful \(Shift/);
  window.press('/quit\r');
  assert.equal(await window.ended, 0);
});

test('without a user nothing is asked, and a plan is the answer', async (context) => {
  const place = await makeServed(context, [message({ type: 'text', text: '1. write a.txt' })]);
  const ended = await runInProcess(place, ['--preset', 'plan', '-p', 'plan it']);
  expectCode(ended, 0);
  assert.match(ended.stdout, /1\. write a\.txt/);
  const [first] = place.server.requests.map(({ body }) => named(body));
  assert.ok(first !== undefined && first.length > 0);
  assert.deepEqual(
    first.filter((name) => name === 'ask_user' || name === 'propose_plan'),
    [],
  );
});

test('pawl answer answers a question in words, and accepts a plan', async (context) => {
  const replies = [question(), question('r'), question('s'), plan(), done];
  const place = await makeAsking(context, replies, { PAWL_PRESET: 'plan' });
  const id = await detach(context, place, ['make it']);
  await untilState(place, id, /waits for your answer: Which parser\?/);
  expectCode(await answerShown(place, id, '2'), 0);
  await until('request 2', () => place.server.requests.length === 2);
  await untilState(place, id, /waits for your answer: Which parser\?/);
  const said = await answerShown(place, id, 'neither of', 'them');
  expectCode(said, 0);
  assert.equal(said.stderr, 'Answered: Which parser? neither of them\n');
  await until('request 3', () => place.server.requests.length === 3);
  const window = openWindow(context, place, { words: ['attach', id] });
  await window.sees(/1 2 t n · Escape/);
  window.press('t');
  await window.sees(WORDS_ASKED);
  window.press('from a window\r');
  await window.sees(/y e n/);
  window.press('\u0004');
  await window.ended;
  await untilState(place, id, /waits for your answer: A parser/);
  const words = await answerShown(place, id, 'nice');
  expectCode(words, 2);
  expectCode(await answerShown(place, id, 'yes'), 0);
  await untilState(place, id, /runs: has answered/);
  const bodies = place.server.requests.map(({ body }) => body);
  assert.match(resultIn(bodies[1]), /The user answered: a library/);
  assert.match(resultIn(bodies[2]), /The user answered: neither of them/);
  assert.match(resultIn(bodies[3]), /The user answered: from a window/);
  assert.match(resultIn(bodies[4]), /The user accepted this plan/);
  expectCode(await runInProcess(place, ['stop', id]), 0);
});
