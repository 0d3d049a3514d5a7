import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { chooseRows, isDeep } from '../../../../test/tier.js';
import {
  ANSWER,
  beforeAnything,
  begin,
  betweenPrograms,
  count,
  eventsIn,
  goOn,
  inProgram,
  inSubcall,
  interruptible,
  nothingIsLeft,
  paidTwice,
  prepareAsk,
  startAsk,
  untilIn,
} from './asking.js';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, sessionOf, startPawl } from './pawl.js';

/** Runs that are killed: they go on to the same answer, and what was answered is not paid again. */

const rows = [
  ['quickjs', 'before anything has come back', beforeAnything],
  ['quickjs', 'between two programs', betweenPrograms],
  ['quickjs', 'in a sub-call, after another', inSubcall],
  ['quickjs', 'in a program that works', inProgram],
  ['python', 'in a sub-call, after another', inSubcall],
  ['python', 'in a program that works', inProgram],
] as const;

// of each moment one life after another below
const tried = isDeep ? rows : chooseRows(rows.filter(([environment]) => environment === 'quickjs'));
for (const [environment, when, is] of tried) {
  test(`${environment}: killed ${when}, a run goes on to the same answer, and nothing is paid twice`, async (context) => {
    const { place, running } = await begin(context, { environment, isLong: is === inProgram });
    await untilIn(place, running, is);
    running.child.kill('SIGKILL');
    assert.equal((await running.ended).code, null);
    await nothingIsLeft(place);
    await goOn(place);
  });
}

test('killed again and again, it still comes to the same answer', async (context) => {
  const { place, running } = await begin(context, { isLong: true });
  let life = running;
  const moments = [beforeAnything, inSubcall, inProgram, betweenPrograms];
  for (const is of moments) {
    await untilIn(place, life, is);
    life.child.kill('SIGKILL');
    await life.ended;
    life = startPawl(place, ['ask', '--continue', '--verbose']);
  }
  const ended = await life.ended;
  expectCode(ended, 0);
  assert.equal(ended.stdout, `${ANSWER}\n`);
  assert.match(ended.stderr, /2 finished programs run again/);
  const events = eventsIn(place, sessionOf(place));
  assert.deepEqual(paidTwice(events), []);
  assert.equal(count(events, 'Resumed'), moments.length);
});

test('an input that changed since is refused, and the run goes on once it is as it was', async (context) => {
  const { place, running } = await begin(context);
  await untilIn(place, running, inSubcall);
  running.child.kill('SIGKILL');
  await running.ended;
  const input = join(place.workspace, 'input.txt');
  writeFileSync(input, 'abd');
  const refused = await runInProcess(place, ['ask', '--continue']);
  expectCode(refused, 65);
  assert.match(refused.stderr, /input\.txt has changed since the run began/);
  writeFileSync(input, 'abc');
  await goOn(place);
});

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
  const { place, running } = await begin(context, { isLong: true });
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
  const second = await runInProcess(place, ['ask', '--continue']);
  expectCode(second, 75);
  assert.match(second.stderr, /open in process/);
  expectCode(await running.ended, 0);
});

test('two runs at once come to their answers, and each goes on as its own', async (context) => {
  const place = makePlace(context);
  const words = prepareAsk(place, interruptible('quickjs'));
  const ended = await Promise.all([startAsk(place, words).ended, startAsk(place, words).ended]);
  for (const each of ended) {
    expectCode(each, 0);
    assert.equal(each.stdout, `${ANSWER}\n`);
  }
});

test('if the reader of stdout leaves, the run stops and can be resumed', async (context) => {
  const place = makePlace(context);
  const words = prepareAsk(place, interruptible('quickjs'));
  const running = startAsk(place, words, '--json');
  await untilIn(place, running, inSubcall);
  running.child.stdout?.destroy();
  assert.equal((await running.ended).code, 141);
  await nothingIsLeft(place);
  await goOn(place);
});
