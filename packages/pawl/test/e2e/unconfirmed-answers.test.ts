import assert from 'node:assert/strict';
import { readFileSync, renameSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { atEnd } from '../../../../test/temporary-folder.js';
import {
  answerShown,
  detach,
  killSession,
  liveFile,
  makeAsking,
  untilState,
} from './detached-stage.js';
import { expectCode, type Place, runPawl } from './pawl.js';
import { call, done, message } from './wire-words.js';

/** Commands about a detached session whose process ends, or starts, in the same moment. */

const asks = message(call('c1', 'bash', { command: 'echo published >> out.txt' }));

/**
 * Stands between the session's socket and its clients. At the first input it kills the process of
 * the session, `after` or `before` that has the input, and answers nothing.
 */
const killAtInput = async (
  context: TestContext,
  { place, id, when }: { place: Place; id: string; when: 'before' | 'after' },
): Promise<void> => {
  const socket = liveFile(place, id, 'sock');
  const behind = `${socket}.real`;
  renameSync(socket, behind);
  const clients = new Set<Socket>();
  const die = (): void => {
    proxy.close();
    killSession(place, id);
    for (const client of clients) client.destroy();
  };
  const proxy = createServer((client) => {
    clients.add(client);
    const process = connect(behind);
    let isInput = false;
    client.on('data', (bytes) => {
      isInput ||= /^POST \S+\/inputs /.test(bytes.toString('latin1'));
      if (isInput && when === 'before') die();
      else process.write(bytes);
    });
    process.on('data', (bytes) => (isInput ? die() : client.write(bytes)));
    for (const [one, other] of [
      [client, process],
      [process, client],
    ] as const)
      one.on('error', () => undefined).on('close', () => other.end());
  });
  await new Promise<void>((resolve) => proxy.listen(socket, resolve));
  atEnd(context, () => proxy.close());
};

const cases = [
  { when: 'after', code: 0, says: /^Allowed: .*\nIts process ended then: pawl attach / },
  {
    when: 'before',
    code: 65,
    says: /ended before it had confirmed the answer\. It was not taken\./,
  },
] as const;

for (const { when, code, says } of cases)
  test(`an answer whose process dies ${when} it is in the journal is told as the journal has it`, async (context) => {
    const place = await makeAsking(context, [asks, done]);
    const id = await detach(context, place, ['publish it']);
    await untilState(place, id, /runs: waits for your answer/);
    await killAtInput(context, { place, id, when });
    const answered = await answerShown(place, id, 'yes');
    expectCode(answered, code);
    assert.match(answered.stderr, says);
    expectCode(await runPawl(place, ['resume', id]), 0);
    const goesOn = when === 'after' ? /runs: has answered/ : /runs: waits for your answer/;
    await untilState(place, id, goesOn);
    if (when === 'after')
      assert.equal(readFileSync(join(place.workspace, 'out.txt'), 'utf8'), 'published\n');
  });

test('of commands that bring a session back at once each says that it runs', async (context) => {
  const place = await makeAsking(context, [asks, done]);
  const id = await detach(context, place, ['publish it']);
  await untilState(place, id, /runs: waits for your answer/);
  killSession(place, id);
  await untilState(place, id, /died/);
  const all = await Promise.all([0, 1, 2].map(() => runPawl(place, ['resume', '--all'])));
  for (const ended of all) {
    expectCode(ended, 0);
    assert.doesNotMatch(ended.stderr, /take-over/);
  }
  assert.equal(all.filter(({ stdout }) => stdout === `${id}\n`).length, 1);
  await untilState(place, id, /runs: waits for your answer/);
});
