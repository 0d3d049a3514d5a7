import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ANSWER,
  begin,
  goOn,
  inProgram,
  inSubcall,
  interruptible,
  nothingIsLeft,
  prepareAsk,
  startAsk,
  untilIn,
} from './asking.js';
import { expectCode, makePlace, runPawl, sessionOf, startPawl } from './pawl.js';

/** Runs that stand down for a signal or a closed pipe, and runs beside each other. */

test('SIGINT lets a run stand down with 130, and it goes on later', async (context) => {
  const { place, running } = await begin(context);
  await untilIn(place, running, inSubcall);
  running.child.kill('SIGINT');
  const ended = await running.ended;
  expectCode(ended, 130);
  assert.equal(ended.stdout, '');
  assert.match(ended.stderr, new RegExp(`to continue: pawl ask --resume ${sessionOf(place)}`));
  await nothingIsLeft(place);
  await goOn(place);
});

test('a second SIGINT ends at once, SIGTERM ends with 143; no process is left, and the run goes on later', async (context) => {
  const { place, running } = await begin(context);
  await untilIn(place, running, inSubcall);
  running.child.kill('SIGINT');
  running.child.kill('SIGINT');
  expectCode(await running.ended, 130);
  await nothingIsLeft(place);
  const again = startPawl(place, ['ask', '--continue']);
  await untilIn(place, again, inProgram);
  again.child.kill('SIGTERM');
  expectCode(await again.ended, 143);
  await nothingIsLeft(place);
  await goOn(place);
});

test('a run is open in one process at a time', async (context) => {
  const { place, running } = await begin(context);
  await untilIn(place, running, inSubcall);
  const second = await runPawl(place, ['ask', '--continue']);
  expectCode(second, 75);
  assert.match(second.stderr, /open in process/);
  expectCode(await running.ended, 0);
});

test('two runs at once come to their answers, and each goes on as its own', async (context) => {
  const place = makePlace(context);
  const words = prepareAsk(place, interruptible('javascript'));
  const ended = await Promise.all([startAsk(place, words).ended, startAsk(place, words).ended]);
  for (const each of ended) {
    expectCode(each, 0);
    assert.equal(each.stdout, `${ANSWER}\n`);
  }
});

test('if the reader of stdout leaves, the run stops and can be resumed', async (context) => {
  const place = makePlace(context);
  const words = prepareAsk(place, interruptible('javascript'));
  const running = startAsk(place, words, '--json');
  await untilIn(place, running, inSubcall);
  running.child.stdout?.destroy();
  assert.equal((await running.ended).code, 141);
  await nothingIsLeft(place);
  await goOn(place);
});
