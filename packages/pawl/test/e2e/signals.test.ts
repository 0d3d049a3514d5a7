import assert from 'node:assert/strict';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import type { ServerReply } from '../../../../test/servers/anthropic.js';
import { chooseRows, testDeep } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import {
  expectCode,
  expectValid,
  makeServed,
  type Place,
  readRecords,
  sessionOf,
  start,
  startPawl,
  uniqueSleep,
} from './pawl.js';
import { openReady } from './window.js';
import { call, done, last, message, overloaded, text } from './wire-words.js';

/** Signals, headless: the turn is cancelled, nothing is left running, the conversation stays valid, the next prompt works. */

const slowReply: ServerReply = {
  type: 'message',
  parts: [text('A long answer, told slowly. '.repeat(40))],
  delayMs: 40,
};

/** A command with a grandchild in the background; `mark` is in the command lines of all of them. */
const family = (mark: string): string => `(sleep ${mark} & sleep ${mark}) & sleep ${mark}`;

const SIGHUP_BIT = 1n;

/** Whether the program has set its own answers to signals: of SIGHUP Node has none. */
const listens = (pid: number | undefined): boolean => {
  const caught = /^SigCgt:\s*(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0';
  return (BigInt(`0x${caught}`) & SIGHUP_BIT) !== 0n;
};

const journalOf = (place: Place): string =>
  readFileSync(join(place.state, 'pawl', 'sessions', `${sessionOf(place)}.jsonl`), 'utf8');

const hasOpen = (pid: number | undefined, file: string): boolean =>
  readdirSync(`/proc/${pid}/fd`).some((name) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${name}`) === file;
    } catch {
      return false; // it was closed since the folder was read
    }
  });

const signals = [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGQUIT', 143],
] as const;
for (const [signal, code] of chooseRows(signals, ([, one]) => String(one))) {
  test(`${signal} before there is a session ends at once with ${code} and without a word`, async (context) => {
    const place = await makeServed(context, []);
    const running = startPawl(place, ['-p', '-'], null);
    await until('it listens', () => listens(running.child.pid));
    running.child.kill(signal);
    const ended = await running.ended;
    expectCode(ended, code);
    assert.equal(ended.stderr + ended.stdout, '');
  });

  test(`${signal} while a session opens ends it with ${code} before anything is sent`, async (context) => {
    const place = await makeServed(context, [done]);
    const script = join(place.folder, 'script.json');
    await start(place, 'mkfifo', [script]).ended;
    const running = startPawl(place, ['-p', 'x', '--json', '--model', `scripted/${script}`]);
    const writing = openSync(script, 'r+');
    await until(
      'it reads the script',
      () => listens(running.child.pid) && hasOpen(running.child.pid, script),
    );
    running.child.kill(signal);
    writeSync(writing, '{"replies":[{"text":"Never asked for."}]}');
    closeSync(writing);
    const ended = await running.ended;
    expectCode(ended, code);
    assert.equal(ended.stderr, '');
    const records = readRecords(ended.stdout);
    assert.deepEqual(
      records.map(({ type }) => type),
      ['session', 'result'],
    );
  });
}

const expectNextPrompt = async (
  place: Place & { readonly server: { readonly requests: readonly unknown[] } },
) => {
  const before = place.server.requests.length;
  const ended = await runInProcess(place, ['--continue', '-p', 'and now?']);
  expectCode(ended, 0);
  assert.equal(ended.stdout, 'Done.\n');
  assert.equal(place.server.requests.length, before + 1);
};

test('SIGINT during a reply cancels the turn; the next prompt works', async (context) => {
  const place = await makeServed(context, [slowReply, done]);
  const running = startPawl(place, ['-p', 'tell me', '--json']);
  await until('text', () => running.stdout().includes('"type":"text"'));
  running.child.kill('SIGINT');
  const ended = await running.ended;
  expectCode(ended, 130);
  assert.match(ended.stdout, /"reason":"cancelled","exit":130/);
  await expectNextPrompt(place);
  expectValid(place.server);
  assert.match(
    JSON.stringify(place.server.requests.at(-1)?.body.messages),
    /interrupted by the user/,
  );
});

/** A command that runs with its grandchildren. */
const startFamily = async (context: TestContext, ...flags: readonly string[]) => {
  const mark = uniqueSleep(context);
  const place = await makeServed(context, [
    message(call('a', 'bash', { command: family(mark) })),
    done,
  ]);
  const running = startPawl(place, ['-p', 'run', ...flags]);
  await until('the family', () => processesWith(`sleep ${mark}`).length >= 3);
  return { mark, place, running };
};

test('SIGINT during a command ends it with its grandchildren', async (context) => {
  const { mark, place, running } = await startFamily(context);
  running.child.kill('SIGINT');
  expectCode(await running.ended, 130);
  await until('nothing of it runs', () => processesWith(`sleep ${mark}`).length === 0);
  await expectNextPrompt(place);
  expectValid(place.server);
  assert.match(JSON.stringify(last(place.server.requests.at(-1)?.body)), /tool_result/);
});

testDeep('SIGQUIT during a command ends it with its grandchildren', async (context) => {
  const { mark, place, running } = await startFamily(context);
  running.child.kill('SIGQUIT');
  expectCode(await running.ended, 143);
  await until('nothing of it runs', () => processesWith(`sleep ${mark}`).length === 0);
  await expectNextPrompt(place);
});

test('SIGUSR1 opens no debugger', async (context) => {
  const place = await makeServed(context, [slowReply, done]);
  const running = startPawl(place, ['-p', 'tell me', '--json']);
  await until('text', () => running.stdout().includes('"type":"text"'));
  running.child.kill('SIGUSR1');
  const ended = await running.ended;
  expectCode(ended, 0);
  assert.doesNotMatch(ended.stderr, /Debugger listening/);
});

test('SIGINT during a retry wait cancels at once', async (context) => {
  const place = await makeServed(context, [
    { ...overloaded, headers: { 'retry-after': '50' } } as ServerReply,
    done,
  ]);
  const running = startPawl(place, ['-p', 'go', '--json']);
  await until('the wait', () => running.stdout().includes('"type":"retry"'));
  running.child.kill('SIGINT');
  expectCode(await running.ended, 130);
  await expectNextPrompt(place);
  expectValid(place.server);
});

test('SIGINT twice ends hard, and leaves no process', async (context) => {
  const mark = uniqueSleep(context);
  const command = `trap '' INT TERM; sleep ${mark}; sleep ${mark}`;
  const place = await makeServed(context, [message(call('a', 'bash', { command })), done]);
  const running = startPawl(place, ['-p', 'run']);
  await until('the command', () => processesWith(`sleep ${mark}`).length > 0);
  running.child.kill('SIGINT');
  await until('the first one is known', () => journalOf(place).includes('"type":"CancelTurn"'));
  running.child.kill('SIGINT');
  expectCode(await running.ended, 130);
  await until('no process', () => processesWith(mark).length === 0);
  await expectNextPrompt(place);
  expectValid(place.server);
});

test('SIGTERM shuts down: 143, nothing left, and it can be continued', async (context) => {
  const { mark, place, running } = await startFamily(context, '--json');
  running.child.kill('SIGTERM');
  const ended = await running.ended;
  expectCode(ended, 143);
  assert.match(ended.stdout, /"reason":"terminated","exit":143/);
  assert.match(ended.stdout, /"The session was ended by SIGTERM\."/);
  await until('nothing of it runs', () => processesWith(`sleep ${mark}`).length === 0);
  await expectNextPrompt(place);
  expectValid(place.server);
});

/** A command that users type themselves (`!command`) is theirs, as in a terminal: it ends with Pawl. */

test('!command ends when Pawl is killed, with its children, also if it ignores every request to end', async (context) => {
  const mark = uniqueSleep(context);
  const window = await openReady(context, await makeServed(context, []));
  window.press(`!trap "" TERM HUP INT; sleep ${mark} & sleep ${mark}; echo late\r`);
  await until(
    'both sleep',
    () => processesWith(mark).filter((line) => line.startsWith('sleep')).length === 2,
  );
  process.kill(window.pid, 'SIGKILL');
  await until('nothing of it runs', () => processesWith(mark).length === 0);
});

/** Writes a file of the user's settings. */
const configure = (place: Place, file: string, content: string): void => {
  const whole = join(place.home, '.config', 'pawl', file);
  mkdirSync(dirname(whole), { recursive: true });
  writeFileSync(whole, content);
};

test('SIGINT while the prompt is prepared ends with 130, and nothing is sent', async (context) => {
  const place = await makeServed(context, [done]);
  const mark = join(place.folder, 'runs');
  configure(
    place,
    'extensions/slow.mjs',
    `import { writeFileSync } from 'node:fs';
    export default () => ({ commands: [{ name: 'slow', description: 'slow', run: async () => {
      writeFileSync(${JSON.stringify(mark)}, '');
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      return 'text';
    } }] });`,
  );
  const running = startPawl(place, ['-p', '/slow', '--json']);
  await until('the command of the extension', () => existsSync(mark));
  running.child.kill('SIGINT');
  const ended = await running.ended;
  expectCode(ended, 130);
  assert.match(ended.stdout, /"reason":"cancelled","exit":130/);
  assert.equal(place.server.requests.length, 0);
});

test('SIGTERM while the session closes after its answer loses nothing', async (context) => {
  const place = await makeServed(context, [done]);
  const mark = join(place.folder, 'ends');
  const command = `touch ${mark}; sleep 1`;
  configure(
    place,
    'config.toml',
    `[hook.slow]\non = "session-end"\ncommand = '${command}'\nsandbox = "off"\n`,
  );
  const running = startPawl(place, ['-p', 'go']);
  await until('the hook', () => existsSync(mark));
  running.child.kill('SIGTERM');
  const ended = await running.ended;
  expectCode(ended, 0);
  assert.equal(ended.stdout, 'Done.\n');
  assert.match(journalOf(place), /"type":"ShutdownRequested"/);
});

test('SIGTERM during the second question of a schema leaves the session its limits', async (context) => {
  const place = await makeServed(context, [message(text('none')), slowReply]);
  writeFileSync(join(place.workspace, 'schema.json'), '{"type":"object"}');
  const words = ['-p', 'go', '--json-schema', 'schema.json', '--max-rounds', '9', '--json'];
  const running = startPawl(place, words);
  await until('the second reply', () => running.stdout().includes('told slowly'));
  running.child.kill('SIGTERM');
  expectCode(await running.ended, 143);
  const rounds = [...journalOf(place).matchAll(/"rounds":(\d+)/g)].map(([, count]) => count);
  assert.deepEqual([rounds.includes('8'), rounds.at(-1)], [true, '9']);
});
