import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { atEnd } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import {
  expectCode,
  makePlace,
  type Place,
  type Running,
  startPawl,
  uniqueSleep,
} from '../e2e/pawl.js';
import { splitLines } from './split-lines.js';
import { StrictClient } from './strict-client.js';

/** The real program over its stdin and stdout. */

type Driven = { readonly client: StrictClient; readonly running: Running };

const startAgent = (context: TestContext, place: Place, ...flags: readonly string[]): Driven => {
  const running = startPawl(place, ['acp', '--model', 'scripted/script.json', ...flags], null);
  atEnd(context, () => running.child.kill('SIGKILL')); // if the test has failed
  const { stdin, stdout } = running.child;
  assert.ok(stdin !== null && stdout !== null);
  const client = new StrictClient({
    write: (text) => void stdin.write(text),
    listen(take) {
      const split = splitLines(take);
      stdout.on('data', (text: string) => split(text));
    },
  });
  return { client, running };
};

const makeScripted = (context: TestContext, replies: readonly object[]): Place => {
  const place = makePlace(context);
  writeFileSync(path.join(place.workspace, 'script.json'), JSON.stringify({ replies }));
  return place;
};

/** A command with a child and a grandchild that sleep. */
const sleeping = (seconds: string) => ({
  tool: 'bash',
  input: { command: `(sleep ${seconds} & sleep ${seconds} & wait) & echo started; wait` },
});

const untilSleeping = (
  client: StrictClient,
  sessionId: string,
  mark: string,
  times: number,
): Promise<true> =>
  until(`the command sleeps ${mark}`, () => {
    const started = client
      .updatesOf(sessionId, 'tool_call_update')
      .filter(({ status }) => status === 'in_progress');
    return started.length >= times && processesWith(`sleep ${mark}`).length >= 2;
  });

test('a cancelled command ends with its processes; so does the program when the editor goes away', async (context) => {
  const mark = uniqueSleep(context);
  const place = makeScripted(context, [{ calls: [sleeping(mark)] }, { calls: [sleeping(mark)] }]);
  const { client, running } = startAgent(context, place, '--preset', 'auto');
  await client.initialize();
  const { sessionId } = await client.newSession(place.workspace);
  const first = client.prompt(sessionId, 'sleep');
  await untilSleeping(client, sessionId, mark, 1);
  client.notify('session/cancel', { sessionId });
  assert.equal(await first, 'cancelled');
  assert.deepEqual(processesWith(`sleep ${mark}`), []);
  assert.equal(client.updatesOf(sessionId, 'tool_call_update').at(-1)?.status, 'failed');
  const second = client.prompt(sessionId, 'sleep again').catch(() => 'never answered');
  await untilSleeping(client, sessionId, mark, 2);
  running.child.stdin?.end();
  expectCode(await running.ended, 0);
  await until('its processes end', () => processesWith(`sleep ${mark}`).length === 0);
  assert.equal(running.stderr(), '');
  client.expectNoFault();
  void second;
});

test('an agent that is killed loses nothing: the next one loads the session and goes on', async (context) => {
  const mark = uniqueSleep(context);
  const place = makeScripted(context, [
    { text: 'I wait.', calls: [sleeping(mark)] },
    { text: 'Recovered.' },
  ]);
  const one = startAgent(context, place, '--preset', 'auto');
  await one.client.initialize();
  const { sessionId } = await one.client.newSession(place.workspace);
  void one.client.prompt(sessionId, 'wait').catch(() => undefined);
  await untilSleeping(one.client, sessionId, mark, 1);
  one.running.child.kill('SIGKILL');
  await one.running.ended;
  one.client.expectNoFault();
  const two = startAgent(context, place, '--preset', 'auto');
  await two.client.initialize();
  await two.client.request('session/load', { sessionId, cwd: place.workspace, mcpServers: [] });
  assert.equal(two.client.textOf(sessionId, 'user_message_chunk'), 'wait');
  assert.match(
    two.client.textOf(sessionId),
    /I wait\..*the program ended while tools were running/s,
  );
  two.client.notify('session/cancel', { sessionId });
  await until('the command ends', () => processesWith(`sleep ${mark}`).length === 0);
  assert.equal(await two.client.prompt(sessionId, 'go on'), 'end_turn');
  assert.match(two.client.textOf(sessionId), /Recovered\.$/);
  two.running.child.stdin?.end();
  expectCode(await two.running.ended, 0);
  two.client.expectNoFault();
});

test('lines that are no messages are answered, and a message that is too large ends the program with words', async (context) => {
  const place = makeScripted(context, [{ text: 'Hi.' }]);
  const { client, running } = startAgent(context, place);
  await assert.rejects(client.request('session/new', { cwd: place.workspace, mcpServers: [] }), {
    code: -32600,
  });
  await client.initialize();
  client.writeRaw('no json\n[]\n"text"\n\n{"jsonrpc":"2.0","id":{},"method":"x"}\n{"half":\n');
  await client.until('five answers', () => client.unaddressed.length === 5);
  assert.deepEqual(
    client.unaddressed.map(({ code }) => code).sort(),
    [-32600, -32600, -32600, -32700, -32700],
  );
  const { sessionId } = await client.newSession(place.workspace);
  assert.equal(await client.prompt(sessionId, 'hello'), 'end_turn');
  client.writeRaw('x'.repeat(33 * 1024 * 1024));
  const ended = await running.ended;
  expectCode(ended, 65);
  assert.match(ended.stderr, /^pawl: the editor sent a message that is too large/);
  client.expectNoFault();
});

test('a client that vanishes ends the program, and a signal does so with its code', async (context) => {
  const place = makeScripted(context, [{ text: 'Hi.' }]);
  const gone = startAgent(context, place);
  await gone.client.initialize();
  const { sessionId } = await gone.client.newSession(place.workspace);
  assert.equal(await gone.client.prompt(sessionId, 'hello'), 'end_turn');
  gone.running.child.stdout?.destroy();
  gone.running.child.stdin?.destroy();
  expectCode(await gone.running.ended, 0);
  const stopped = startAgent(context, place);
  await stopped.client.initialize();
  await stopped.client.request('session/load', { sessionId, cwd: place.workspace, mcpServers: [] });
  stopped.running.child.kill('SIGTERM');
  expectCode(await stopped.running.ended, 143);
  const lock = path.join(place.state, 'pawl', 'sessions', `${sessionId}.lock`);
  assert.ok(!existsSync(lock), 'the session is closed');
});
