import assert from 'node:assert/strict';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { attempt } from '@pawl/agent/platform/attempt';
import { atEnd } from '../../../../test/temporary-folder.js';
import { chooseRows, isDeep } from '../../../../test/tier.js';
import { startPatience } from '../../../../test/until.js';
import { LiveClient } from '../../src/detached/live-client.js';
import type { WaitingCall } from '../../src/detached/waiting-questions.js';
import {
  answerShown,
  detach,
  killSession,
  liveFile,
  makeAsking,
  untilState,
} from './detached-stage.js';
import { runInProcess } from './in-process.js';
import { type Ended, expectCode, type Place, runPawl } from './pawl.js';
import { openWindow } from './window.js';
import { call, done, message } from './wire-words.js';

/** `pawl answer` answers the question that it has shown, and no other one. */

const RUNS = 'echo ran >> out.txt';
const LONG = `echo ${'x'.repeat(150)} > log.txt`;
const bash = (command: string, id = 'c1') => message(call(id, 'bash', { command }));
const asks = (id: string, ...choices: readonly string[]) =>
  message(call(id, 'ask_user', { question: 'Which one?', choices }));

const answer = (place: Place, id: string, ...words: readonly string[]): Promise<Ended> =>
  runInProcess(place, ['answer', id, ...words]);

/** The questions that wait, as a script reads them. */
const readShown = async (place: Place, id: string): Promise<readonly WaitingCall[]> => {
  const { stdout } = await answer(place, id, '--json');
  return stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
};

/** The question that waits, once it is none of those before. */
const nextShown = async (
  place: Place,
  id: string,
  before: readonly string[],
): Promise<WaitingCall> => {
  const isOver = startPatience();
  for (;;) {
    const [first] = await readShown(place, id);
    if (first !== undefined && !before.includes(first.code)) return first;
    if (isOver()) {
      const rows = await runInProcess(place, ['sessions', '--live', '--json']);
      assert.fail(`no other question than ${before.join(' ')}: ${rows.stdout}`);
    }
    await delay(60);
  }
};

const ran = (place: Place): string =>
  existsSync(join(place.workspace, 'out.txt'))
    ? readFileSync(join(place.workspace, 'out.txt'), 'utf8')
    : '';

/** Sends an answer to the waiting call by its ids, as a program that reaches the socket could. */
const sendDirectly = (place: Place, id: string, shown: WaitingCall, code: string) => {
  process.env.XDG_STATE_HOME = place.environment.XDG_STATE_HOME;
  return attempt(() => new LiveClient(id).answer({ ...shown, code }, { kind: 'allow' }));
};

const otherDigit = (code: string): string => `${code.startsWith('0') ? '1' : '0'}${code.slice(1)}`;

/** Answers that do not carry the code of what waits. `others`: codes of other questions. */
const strangeAnswers = (
  { code, callId, batchId }: WaitingCall,
  others: readonly string[],
): readonly (readonly string[])[] => [
  ...others.flatMap((other) => ['yes', 'no', '1', 'always'].map((word) => [other, word])),
  ...[otherDigit(code), code.slice(1), `${code}0`, callId, batchId].map((word) => [word, 'yes']),
  ['yes'],
  ['yes', code],
  ['1'],
];

test('of answers to questions that changed, were cut, or were decided elsewhere, none counts', async (context) => {
  const commands = ['echo harmless > log.txt', RUNS, RUNS, LONG, `${LONG}; ${RUNS}`];
  const replies = [
    ...commands.map((command, index) => bash(command, `c${index}`)),
    asks('q1', 'a', 'b'),
    asks('q2', 'b', 'a'),
    bash(RUNS, 'c9'),
  ];
  const place = await makeAsking(context, [bash(RUNS), ...replies, done]);
  const other = await detach(context, place, ['publish it']);
  const foreign = (await nextShown(place, other, [])).code;
  const id = await detach(context, place, ['publish it', '--same-folder']);
  const before: string[] = [];
  let sent = 0;
  for (const [index] of replies.entries()) {
    const shown = await nextShown(place, id, before);
    const others = [...before, foreign];
    const strange = strangeAnswers(shown, others);
    for (const words of chooseRows(strange, ([, word]) => `${index} ${word?.length}`)) {
      const refused = await answer(place, id, ...words);
      assert.equal(refused.code, 65, `${index}: ${words.join(' ')}: ${refused.stderr}`);
      // what waits is shown, so that it can be answered next
      assert.match(refused.stdout, new RegExp(`pawl answer ${id} ${shown.code}`));
      sent += 1;
    }
    for (const code of chooseRows(others, () => String(index))) {
      const refused = await sendDirectly(place, id, shown, code);
      assert.match(refused.kind === 'fault' ? refused.fault.message : '', /another one than you/);
      sent += 1;
    }
    assert.deepEqual(
      (await readShown(place, id)).map(({ code }) => code),
      [shown.code],
      'it waits as before',
    );
    assert.equal(ran(place), '', 'nothing ran');
    before.push(shown.code);
    // another window decides; the last one is the control
    const last = index === replies.length - 1;
    const decided = await answer(place, id, shown.code, last ? 'yes' : 'no');
    expectCode(decided, 0);
    assert.match(decided.stderr, last ? /^Allowed: echo ran/ : /^Refused: /);
  }
  context.diagnostic(`${sent} answers`);
  assert.ok(sent >= (isDeep ? 100 : 30));
  assert.equal(new Set(before).size, replies.length);
  await untilState(place, id, /runs: has answered/);
  assert.equal(ran(place), 'ran\n', 'control: the right code allows');
  for (const code of before) expectCode(await answer(place, id, code, 'yes'), 65);
  // its turn was cancelled, then it was ended
  process.env.XDG_STATE_HOME = place.environment.XDG_STATE_HOME;
  const fault = new Error('it can not be drawn');
  const reading = new LiveClient(other).events(0, () => {
    throw fault;
  });
  await assert.rejects(reading, fault, 'a fault of who sees events is no fault of the program');
  await new LiveClient(other).send({ type: 'CancelTurn' });
  await untilState(place, other, /runs: (?!waits for your answer)/);
  expectCode(await answer(place, other, foreign, 'yes'), 65);
  for (const one of [id, other]) expectCode(await runInProcess(place, ['stop', one]), 0);
  expectCode(await answer(place, other, foreign, 'yes'), 65);
  assert.equal(ran(place), 'ran\n');
});

test('an answer that is sent again with its id is told what it was told first; one with another id came second', async (context) => {
  const place = await makeAsking(context, [bash(RUNS), done]);
  const id = await detach(context, place, ['publish it']);
  const { batchId, callId, code } = await nextShown(place, id, []);
  process.env.XDG_STATE_HOME = place.environment.XDG_STATE_HOME;
  const client = new LiveClient(id);
  const send = (clientRequestId: string) => {
    const event = { type: 'ApprovalAnswered', batchId, callId, answer: { kind: 'allow' } };
    const input = { ...event, scope: 'once', clientRequestId, code };
    return attempt(() => client.ask('POST', '/inputs', input));
  };
  const first = await send('one');
  assert.equal(first.kind, 'done');
  assert.deepEqual(await send('one'), first);
  const second = await send('two');
  assert.match(second.kind === 'fault' ? second.fault.message : '', /was answered before/);
  await untilState(place, id, /runs: has answered/);
  assert.equal(ran(place), 'ran\n');
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

test('a code outlives the process of its session only with the question that it is of', async (context) => {
  const read = message(call('c0', 'read', { path: 'a.txt' }));
  const write = message(call('c1', 'write', { path: 'a.txt', content: 'new\n' }));
  const place = await makeAsking(context, [read, write, bash(RUNS, 'c2'), done]);
  const file = join(place.workspace, 'a.txt');
  writeFileSync(file, 'harmless\n');
  const id = await detach(context, place, ['write it']);
  const bringBack = async (): Promise<void> => {
    killSession(place, id);
    await untilState(place, id, /died/);
    writeFileSync(file, 'work of a day\n');
    expectCode(await runInProcess(place, ['resume', id]), 0);
  };
  const shown = await nextShown(place, id, []);
  assert.match(shown.text, /harmless/);
  await bringBack();
  const command = await nextShown(place, id, [shown.code]);
  assert.equal((await sendDirectly(place, id, shown, shown.code)).kind, 'fault');
  expectCode(await answer(place, id, shown.code, 'yes'), 65);
  assert.equal(readFileSync(file, 'utf8'), 'work of a day\n');
  await bringBack();
  await untilState(place, id, /runs: waits for your answer/);
  expectCode(await answer(place, id, command.code, 'yes'), 0);
  await untilState(place, id, /runs: has answered/);
  assert.equal(ran(place), 'ran\n', 'control: the same question with the same content');
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

/** A command whose end is far behind what a list shows, with a character that nobody sees. */
const hidden = `npm run build -- ${'a'.repeat(3_000)}\u202e; ${RUNS}`;

const askHidden = async (context: TestContext) => {
  const place = await makeAsking(context, [bash(hidden), done]);
  const id = await detach(context, place, ['publish it']);
  await untilState(place, id, /waits for your answer/);
  return { place, id };
};

test('a question is printed to its end with its code, and a list that cuts it says where it is whole', async (context) => {
  const { place, id } = await askHidden(context);
  const shown = await answer(place, id);
  expectCode(shown, 0);
  const whole = shown.stdout.replaceAll(/\n[│┆] /g, '');
  assert.ok(whole.includes(`${'a'.repeat(3_000)}⟨U+202E⟩; ${RUNS}`), shown.stdout);
  assert.match(shown.stdout, /^Pawl asks: run this command\n[\s\S]*\n {2}reason: /);
  const [{ code = '', text = '' } = {}] = await readShown(place, id);
  assert.ok(text.includes(RUNS));
  assert.match(
    shown.stdout,
    new RegExp(`\nTo answer: pawl answer ${id} ${code} yes\\|no "reason"\n$`),
  );
  const listed = await runInProcess(place, ['sessions', '--live']);
  assert.doesNotMatch(listed.stdout, /echo ran/, 'control: it is cut');
  assert.match(listed.stdout, new RegExp(`To read all of it and answer: pawl answer ${id}\n`));
  const rows = await runInProcess(place, ['sessions', '--live', '--json']);
  assert.deepEqual(
    JSON.parse(rows.stdout).questions.map((one: WaitingCall) => [one.code, one.text]),
    [[code, text]],
  );
  const refused = await answer(place, id, 'no', 'not', 'today');
  expectCode(refused, 0);
  assert.match(refused.stderr, /^Refused: npm run build/);
  await untilState(place, id, /runs: has answered/);
  expectCode(await answer(place, id), 65);
  expectCode(await answer(place, id, 'no'), 65);
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

test('in a terminal it asks below the question, and what was typed before it asked is no answer', async (context) => {
  const { place, id } = await askHidden(context);
  const early = openWindow(context, place, { words: ['answer', id, 'yes'] });
  early.press('yes\n');
  await early.sees(/echo ran >> out\.txt[\s\S]*Your answer/);
  early.press('\n');
  assert.equal(await early.ended, 0);
  assert.equal((await readShown(place, id)).length, 1, 'it still waits');
  const window = openWindow(context, place, { words: ['answer', id] });
  await window.sees(/echo ran >> out\.txt[\s\S]*Your answer/);
  window.press('yes\n');
  await window.sees(/Allowed: npm run build/);
  assert.equal(await window.ended, 0);
  await untilState(place, id, /runs: has answered/);
  assert.equal(ran(place), 'ran\n');
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

/** Commands about a detached session whose process ends, or starts, in the same moment. */

const publishes = message(call('c1', 'bash', { command: 'echo published >> out.txt' }));

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
    // one more: the process may have sent its next request before it dies
    const place = await makeAsking(context, [publishes, done, done]);
    const id = await detach(context, place, ['publish it']);
    await untilState(place, id, /runs: waits for your answer/);
    await killAtInput(context, { place, id, when });
    const answered = await answerShown(place, id, 'yes');
    expectCode(answered, code);
    assert.match(answered.stderr, says);
    expectCode(await runInProcess(place, ['resume', id]), 0);
    const goesOn = when === 'after' ? /runs: has answered/ : /runs: waits for your answer/;
    await untilState(place, id, goesOn);
    if (when === 'after')
      assert.equal(readFileSync(join(place.workspace, 'out.txt'), 'utf8'), 'published\n');
  });

test('of commands that bring a session back at once each says that it runs', async (context) => {
  const place = await makeAsking(context, [publishes, done]);
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
