import assert from 'node:assert/strict';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { WireBody } from '../../../../test/servers/anthropic.js';
import { testDeep } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { makeRepository } from './after-tools.js';
import { processesOf } from './command-processes.js';
import { killed, resumed, touch, untilItRuns } from './interrupted-command.js';
import { expectCode, startPawl } from './pawl.js';
import { call, done, last, message, text } from './wire-words.js';

/**
 * Auto-commit after a kill in the middle of a batch: the whole batch is committed or nothing of it, and every file that
 * is left is named with the true reason.
 */

type Ground = Awaited<ReturnType<typeof makeRepository>>;

/** The first call wrote `one.txt`, the second one runs, and Pawl is killed. Nothing of a test's own is seen by git. */
const killInBatch = async (context: TestContext, command: string): Promise<Ground> => {
  const waiting = `echo first; touch runs; until [ -e go ]; do sleep 0.1; done; ${command}`;
  const batch = message(
    call('w', 'write', { path: 'one.txt', content: 'of the agent\n' }),
    call('b', 'bash', { command: waiting }),
  );
  const reply = (body: WireBody) => {
    if (/Write the message of one git commit/.test(JSON.stringify(body)))
      return message(text('feat: both'));
    return body.messages.length === 1 ? batch : done;
  };
  const place = await makeRepository(context, reply);
  writeFileSync(join(place.workspace, '.git', 'info', 'exclude'), 'runs\ngo\n');
  const running = startPawl(place, ['-p', 'work', '--auto-commit']);
  await untilItRuns(place, running);
  await killed(running);
  return place;
};

const letItEnd = async (place: Ground): Promise<void> => {
  touch(place, 'go');
  await until('the command has ended', () => processesOf(place).length === 0);
};

const resultsIn = ({ server }: Ground): string => JSON.stringify(last(server.requests[1]?.body));

test('auto-commit after a kill: files of a batch whose command changed nothing are committed', async (context) => {
  const place = await killInBatch(context, 'true');
  await letItEnd(place);
  const ended = await resumed(place, '--auto-commit');
  expectCode(ended, 0);
  assert.equal(place.git('status', '--porcelain'), '', ended.stderr);
  assert.equal(place.git('show', '--format=%s', '--name-only', 'HEAD'), 'feat: both\n\none.txt\n');
});

test('auto-commit after a kill: a command that still runs is waited for, and the batch is one commit', async (context) => {
  const place = await killInBatch(context, 'echo x > two.txt');
  const running = startPawl(place, ['--continue', '-p', 'and now?', '--auto-commit', '--json']);
  await until('it is resumed', () => /"toolProgress".*first/.test(running.stdout()));
  touch(place, 'go');
  const ended = await running.ended;
  expectCode(ended, 0);
  assert.equal(place.git('status', '--porcelain'), '', ended.stderr);
  assert.equal(
    place.git('show', '--format=%s', '--name-only', 'HEAD'),
    'feat: both\n\none.txt\ntwo.txt\n',
  );
});

test('auto-commit after a kill: no part of a batch is committed, and each file is named with the reason', async (context) => {
  const place = await killInBatch(context, 'echo x > two.txt; echo x >> a.ts');
  await letItEnd(place);
  const ended = await resumed(place, '--auto-commit');
  expectCode(ended, 0);
  assert.equal(place.git('log', '--format=%s'), 'first\n');
  const words =
    /Not committed: one\.txt, a\.ts, two\.txt: Pawl was killed or closed while a call of the agent ran/;
  assert.match(ended.stderr, words);
  assert.match(resultsIn(place), words);
  assert.doesNotMatch(ended.stderr, /could not be read/);
});

testDeep(
  'auto-commit after a kill: without its record no part of a batch is committed either',
  async (context) => {
    const place = await killInBatch(context, 'echo x > two.txt');
    const sessions = join(place.state, 'pawl', 'sessions');
    const records = readdirSync(sessions).filter((name) => name.endsWith('.commits'));
    assert.equal(records.length, 1);
    for (const name of records) rmSync(join(sessions, name));
    await letItEnd(place);
    const ended = await resumed(place, '--auto-commit');
    expectCode(ended, 0);
    assert.equal(place.git('log', '--format=%s'), 'first\n');
    assert.match(
      ended.stderr,
      /Not committed: one\.txt, two\.txt: Pawl was killed between the calls of the agent/,
    );
  },
);
