import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { serverScript } from '../../../../test/kit/mcp/test-servers.js';
import { chooseRows, testDeep } from '../../../../test/tier.js';
import { answerShown, detach, killSession, makeAsking, untilState } from './detached-stage.js';
import { runInProcess } from './in-process.js';
import { expectCode } from './pawl.js';
import { openWindow, type Window } from './window.js';
import { call, done, message, text } from './wire-words.js';

/** What attached windows show: all of it, as the session's own terminal, whatever others do. */

const asks = message(
  text('I **publish** it:\n\n- one\n- two'),
  call('c1', 'bash', { command: 'echo published | tee -a out.txt' }),
);
const published = message(text('It is published.\n\n```sh\necho published\n```\n\nThat is all.'));

/** From the prompt to the end of the screen, status and settings too, without times and the place's name. */
const frameOf = async (window: Window): Promise<string> => {
  const shown = await window.text();
  const at = shown.lastIndexOf('> publish it');
  assert.ok(at >= 0, shown);
  return shown
    .slice(at)
    .replaceAll(/\d+(?:\.\d+)? ?(?:ms|s)\b/g, 'TIME')
    .replaceAll(' · TIME for your answers', '') // said of longer waits alone
    .replaceAll(/pawl-e2e-\w+/g, 'PLACE')
    .replaceAll(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/g, '·')
    .trimEnd();
};

const sizes = [
  [80, 24],
  [120, 40],
] as const;
for (const [columns, rows] of chooseRows(sizes))
  test(`an attached window shows what the own terminal of the session shows, at ${columns}x${rows}`, async (context) => {
    const own = await makeAsking(context, [asks, published]);
    const terminal = openWindow(context, own, { columns, rows });
    await terminal.sees(/ready/);
    terminal.press('publish it\r');
    await terminal.sees(/y a s n · Escape/);
    const place = await makeAsking(context, [asks, published, done]);
    const id = await detach(context, place, ['publish it']);
    await untilState(place, id, /waits for your answer/);
    const live = openWindow(context, place, { words: ['attach', id], columns, rows });
    await live.sees(/y a s n · Escape/);
    const question = await frameOf(terminal);
    assert.match(question, /tee -a out\.txt[\s\S]*y a s n/);
    assert.equal(await frameOf(live), question);
    terminal.press('y');
    live.press('y');
    for (const window of [terminal, live]) await window.sees(/That is all\.[\s\S]*ready/);
    const late = openWindow(context, place, { words: ['attach', id], columns, rows });
    await late.sees(/That is all\.[\s\S]*ready/);
    const answered = await frameOf(terminal);
    assert.match(answered, /careful[^\n]*context \d+%$/);
    assert.equal(await frameOf(live), answered);
    assert.equal(await frameOf(late), answered);
    expectCode(await runInProcess(place, ['stop', id]), 0);
  });

testDeep(
  'a burst of 1,000 pieces comes whole, also when one window is killed and one is resized in it',
  async (context) => {
    const count = 1_000;
    // words of nine letters; a list, so that each has a line of its own at any width
    const words = Array.from(
      { length: count },
      (_, index) => `- piece${String(index).padStart(4, '0')}\n`,
    );
    const place = await makeAsking(context, [
      asks,
      { type: 'message', parts: [text(words.join(''))], delayMs: 1 },
    ]);
    const id = await detach(context, place, ['publish it']);
    await untilState(place, id, /waits for your answer/);
    const [stays, killed, resized] = [0, 1, 2].map(() =>
      openWindow(context, place, { words: ['attach', id], rows: 40 }),
    );
    assert.ok(stays !== undefined && killed !== undefined && resized !== undefined);
    for (const window of [stays, killed, resized]) await window.sees(/y a s n · Escape/);
    expectCode(await answerShown(place, id, 'yes'), 0);
    await killed.sees('piece0100');
    process.kill(killed.pid, 'SIGKILL');
    await resized.resize(70, 24);
    await untilState(place, id, /runs: has answered/);
    for (const window of [stays, resized]) {
      await window.sees(new RegExp(`piece0${count - 1}[\\s\\S]*ready`)); // all is printed by then
      const shown = [...(await window.text()).matchAll(/piece(\d{4})/g)].map(([, at]) =>
        Number(at),
      );
      assert.deepEqual(
        shown,
        Array.from({ length: count }, (_, index) => index),
      );
    }
    stays.press('/quit\r');
    assert.equal(await stays.ended, 0);
    expectCode(await runInProcess(place, ['stop', id]), 0);
  },
);

test('a window says that a stopped process has confirmed nothing, and asks again', async (context) => {
  const place = await makeAsking(context, [done, asks]);
  const id = await detach(context, place, ['begin']);
  const { pid } = await untilState(place, id, /runs: has answered/);
  assert.ok(pid !== null);
  const window = openWindow(context, place, { words: ['attach', id], rows: 40 });
  await window.sees(/Done\.[\s\S]*ready/);
  window.press('publish it\r');
  await window.sees(/y a s n · Escape/);
  process.kill(pid, 'SIGSTOP');
  window.press('y');
  await window.sees(/Not confirmed: The process[\s\S]*tee -a out\.txt[\s\S]*y a s n · Escape/);
  window.press('\u001b');
  await window.sees(/(Not confirmed: The process[\s\S]*){2}/);
  killSession(place, id);
  assert.equal(await window.ended, 69);
  await window.sees(/The process of \S+ ended\./);
  assert.doesNotMatch(await window.text(), /stays open/);
});

test('an attached window shows the MCP servers of the session, and connects them again', async (context) => {
  const script = serverScript(
    context,
    `server.registerTool('greet', { inputSchema: schema({}) }, async () => ({ content: [] }));`,
  );
  const place = await makeAsking(context, [asks, done]);
  const folder = join(place.home, '.config', 'pawl');
  mkdirSync(folder, { recursive: true });
  const command = `command = ${JSON.stringify(process.execPath)}\nargs = [${JSON.stringify(script)}]`;
  writeFileSync(join(folder, 'config.toml'), `[mcp.servers.local]\n${command}\n`);
  const id = await detach(context, place, ['publish it']);
  await untilState(place, id, /waits for your answer/);
  expectCode(await runInProcess(place, ['answer', id, 'no']), 0);
  await untilState(place, id, /has answered/);
  const window = openWindow(context, place, { words: ['attach', id] });
  await window.sees('Done.');
  window.press('/mcp\r');
  await window.sees(/local.*connected/);
  window.press('/mcp local\r');
  await window.sees(/^ +greet/m);
  window.press('/mcp connect\r');
  await window.sees(/local.*connected[\s\S]*local.*connected[\s\S]*local.*connected/);
  window.press('/mcp nowhere\r');
  await window.sees(/There is no MCP server nowhere\. There are local\./);
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

/** Asks three times in one call, and tells what it was answered. */
const ASKING = `const ask = (mcpReq, message, properties, required) => mcpReq.elicitInput(
  { mode: 'form', message, requestedSchema: { type: 'object', properties, required } }, { timeout: 600_000 });
server.registerTool('ask', { inputSchema: schema() }, async (_input, { mcpReq }) => {
  const answers = [
    await ask(mcpReq, 'Your name?', { name: { type: 'string' } }, ['name']),
    await ask(mcpReq, 'Publish it?', { sure: { type: 'boolean' } }, ['sure']),
    await ask(mcpReq, 'Anything else?', { more: { type: 'string' } }),
  ];
  const told = answers.map(({ action, content }) => JSON.stringify([action, content ?? null]));
  return { content: [{ type: 'text', text: told.join(' ') }] };
});`;

const makeAskedByServer = async (context: TestContext, limit = '') => {
  const place = await makeAsking(context, [message(call('c1', 'mcp__local__ask', {})), done]);
  const folder = join(place.home, '.config', 'pawl');
  mkdirSync(folder, { recursive: true });
  const words = JSON.stringify([serverScript(context, ASKING)]);
  const server = `[mcp.servers.local]\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${words}\nrequired = true\n`;
  writeFileSync(join(folder, 'config.toml'), `${limit}[rules.mcp]\nallow = ["local"]\n${server}`);
  return place;
};

const toldToModel = (place: Awaited<ReturnType<typeof makeAsking>>): string =>
  JSON.stringify(place.server.requests[1]?.body).replaceAll('\\', '');

test("a server's question waits for its user, who answers it once from any window or command", async (context) => {
  const place = await makeAskedByServer(context);
  const id = await detach(context, place, ['publish it']);
  await untilState(place, id, /waits for your answer to local: Your name\?/);
  const unclear = await answerShown(place, id, 'yes');
  expectCode(unclear, 2);
  assert.match(
    unclear.stderr,
    /local asks for name\. It is written as: pawl answer \S+ CODE VALUE/,
  );
  // what is meant for a call is no value for a server
  const late = await runInProcess(place, ['answer', id, 'c1', 'no', 'not now']);
  expectCode(late, 65);
  assert.match(late.stderr, /Only a question that you have read is answered/);
  expectCode(await runInProcess(place, ['answer', id, 'no', 'not now']), 2);
  await untilState(place, id, /waits for your answer to local: Your name\?/);
  const [one, other] = [0, 1].map(() => openWindow(context, place, { words: ['attach', id] }));
  assert.ok(one !== undefined && other !== undefined);
  for (const window of [one, other]) await window.sees('The MCP server local asks:');
  one.press('y\r');
  await one.sees('for local, not the agent: name');
  one.press('Ada\r');
  await other.sees('answered elsewhere');
  await untilState(place, id, /waits for your answer to local: Publish it\?/);
  const answered = await answerShown(place, id, 'yes');
  expectCode(answered, 0);
  assert.match(answered.stderr, /^Answered: local: Publish it\?/);
  for (const window of [one, other]) await window.sees('Anything else?');
  // who leaves, or dies, declines nothing
  process.kill(one.pid, 'SIGKILL');
  other.press('/detach\r');
  assert.equal(await other.ended, 0);
  await untilState(place, id, /waits for your answer to local: Anything else\?/);
  expectCode(await runInProcess(place, ['answer', id, 'no']), 0);
  await untilState(place, id, /has answered/);
  assert.match(
    toldToModel(place),
    /\["accept",\{"name":"Ada"\}\] \["accept",\{"sure":true\}\] \["decline",null\]/,
  );
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

testDeep(
  "a server's question that nobody answers ends with the user's time limit for answers",
  async (context) => {
    const place = await makeAskedByServer(context, 'answer_minutes = 0.02\n');
    const id = await detach(context, place, ['publish it']);
    await untilState(place, id, /has answered/);
    assert.match(toldToModel(place), /\["cancel",null\] \["cancel",null\] \["cancel",null\]/);
    expectCode(await runInProcess(place, ['stop', id]), 0);
  },
);
