import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { atEnd } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { launchPrompt, startSuccessor } from '../../src/detached/launch.js';
import { Stop } from '../../src/process/exit-codes.js';
import {
  type LiveRecord,
  listLive as listRecords,
  openLiveFolder,
  readRecord,
  storeRecord,
} from '../../src/sessions/live-records.js';
import { WORKER_WORD } from '../../src/settings/flags.js';
import {
  answerShown,
  killSession,
  listLive,
  liveFile,
  makeAsking,
  untilState,
} from './detached-stage.js';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, type Place, sessionOf } from './pawl.js';
import { openReady, openWindow } from './window.js';
import { call, done, message, text } from './wire-words.js';

/** `/detach`: a session leaves its terminal, and nothing of it is lost on the way. */

const ended = (place: Place): string => readFileSync(join(place.workspace, 'out.txt'), 'utf8');
const WAITS = 'echo begun >> out.txt; until [ -e go ]; do sleep 0.05; done; echo ended >> out.txt';
const ESCAPE = '\u001b';
const runs = message(call('c1', 'bash', { command: WAITS }));

/** The process of the session is gone after the test. */
const idOf = (context: TestContext, place: Place): string => {
  const id = sessionOf(place);
  atEnd(context, () => killSession(place, id));
  return id;
};

test('a session at rest leaves its terminal, and comes back with attach, where /detach only leaves', async (context) => {
  const place = await makeAsking(context, [done, message(text('The second answer.'))]);
  const window = await openReady(context, place);
  window.press('/detach\r');
  await window.sees('Nothing was asked yet');
  window.press('do it\r');
  await window.sees('Done.');
  const id = idOf(context, place);
  // what is typed behind it is not for the model
  window.press('/detach\rls -la\r');
  assert.equal(await window.ended, 0);
  await window.sees(`To come back: pawl attach ${id}`);
  await untilState(place, id, /runs: has answered/);
  assert.equal(place.server.requests.length, 1);
  const again = openWindow(context, place, { words: ['attach', id] });
  await again.sees('Done.');
  again.press('and now?\r');
  await again.sees('The second answer.');
  again.press('/detach\r');
  assert.equal(await again.ended, 0);
  await untilState(place, id, /runs: has answered/);
  expectCode(await runInProcess(place, ['stop', id]), 0);
  assert.deepEqual(await listLive(place), []);
});

test('a command that runs goes on through /detach, once, and a text that waits is sent after it', async (context) => {
  const place = await makeAsking(context, [runs, done]);
  const window = await openReady(context, place);
  window.press('do it\r');
  await window.sees(/yes, once/i);
  await window.sees(/y a s n · Escape/);
  window.press('y');
  await until('the command runs', () => existsSync(join(place.workspace, 'out.txt')));
  window.press('also the rest\r');
  await window.sees(/queued: /);
  window.press('/detach\r');
  assert.equal(await window.ended, 0);
  const id = idOf(context, place);
  await untilState(place, id, /runs: runs /);
  assert.equal(ended(place), 'begun\n');
  writeFileSync(join(place.workspace, 'go'), '');
  await untilState(place, id, /runs: has answered/);
  assert.equal(ended(place), 'begun\nended\n');
  const sent = JSON.stringify(place.server.requests.at(-1)?.body.messages);
  assert.match(sent, /also the rest/);
  assert.doesNotMatch(sent, /unknown|was killed|cancelled/);
  assert.equal(place.server.requests.length, 2);
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

test('while the model answers, /detach waits for the answer, and a question in it waits for any face', async (context) => {
  const words = text('I publish it now, and then I tell you about it. '.repeat(10));
  const asks = call('c1', 'bash', { command: 'echo published >> out.txt' });
  const slow = { type: 'message', parts: [words, asks], delayMs: 100 } as const;
  const place = await makeAsking(context, [slow, done]);
  const window = await openReady(context, place);
  window.press('publish it\r');
  await until('the request', () => place.server.requests.length === 1);
  window.press('/detach\r');
  assert.equal(await window.ended, 0);
  const id = idOf(context, place);
  await untilState(place, id, /runs: waits for your answer: echo published/);
  assert.equal(place.server.requests.length, 1);
  expectCode(await answerShown(place, id, 'yes'), 0);
  await untilState(place, id, /runs: has answered/);
  assert.equal(ended(place), 'published\n');
  assert.equal(place.server.requests.length, 2);
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

test('after a request that Escape ended without usage, /detach leaves, and what was set aside counts as spent', async (context) => {
  const place = await makeAsking(context, [{ type: 'nothing' }, done]);
  const window = await openReady(context, place, { words: ['--max-usd', '5'] });
  window.press('do it\r');
  await until('the request', () => place.server.requests.length === 1);
  window.press(ESCAPE);
  await window.sees(/stopped ·/);
  window.press('/detach\r');
  await window.sees('in two seconds: what the last request cost may still come');
  assert.equal(await window.ended, 0);
  assert.doesNotMatch(await window.text(), /once the model has answered/);
  const id = idOf(context, place);
  await untilState(place, id, /runs: /);
  const again = openWindow(context, place, { words: ['attach', id] });
  await again.sees(/the\s+most\s+that\s+it\s+can\s+be,\s+counts\s+as\s+spent/);
  again.press('/quit\r');
  assert.equal(await again.ended, 0);
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

test('a terminal that is killed while /detach waits has left; a process that can not start leaves nothing changed', async (context) => {
  const silent = { type: 'nothing' } as const;
  const place = await makeAsking(context, [silent, done]);
  const elsewhere = join(place.folder, 'elsewhere');
  mkdirSync(elsewhere, { mode: 0o700 });
  const folder = join(place.state, 'pawl', 'detached');
  const window = await openReady(context, place);
  window.press('do it\r');
  await until('the request', () => place.server.requests.length === 1);
  symlinkSync(elsewhere, folder);
  window.press('/detach\r');
  await window.sees(/not\s+a\s+folder/);
  assert.deepEqual(readdirSync(elsewhere), []);
  rmSync(folder);
  const id = idOf(context, place);
  window.press('/detach\r');
  await window.sees('leaves this window once the model has answered');
  // the process that waits is killed
  process.kill(
    JSON.parse(readFileSync(liveFile(place, id, 'json'), 'utf8')).process.pid,
    'SIGKILL',
  );
  await window.sees('the session stays here');
  await until('no record', () => !existsSync(liveFile(place, id, 'json')));
  window.press('/detach\r');
  await until('a record', () => existsSync(liveFile(place, id, 'json')));
  await window.sees(/leaves this window once[\s\S]*leaves this window once/);
  process.kill(window.pid, 'SIGKILL');
  await untilState(place, id, /runs: has answered/);
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

// A process of a detached session that neither speaks nor ends. The launcher is this process.

/** The worker writes its pid, and then does nothing for ever. */
const makeSilent = (context: TestContext): Place & { readonly pidFile: string } => {
  const place = makePlace(context);
  const [pidFile, preload] = ['worker.pid', 'silent.cjs'].map((name) =>
    join(place.folder, name),
  ) as [string, string]; // as many as there are names
  writeFileSync(
    preload,
    `if (process.argv.includes('${WORKER_WORD}')) {
      require('node:fs').writeFileSync(${JSON.stringify(pidFile)}, String(process.pid));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    }`,
  );
  const { TMPDIR: _, ...environment } = place.environment; // of one test only
  Object.assign(process.env, environment, { NODE_OPTIONS: `--require ${preload}` });
  return { ...place, pidFile };
};

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** Nothing is left of the start: no process, no log, no session. */
const expectNothing = async ({ pidFile, state }: ReturnType<typeof makeSilent>): Promise<void> => {
  // a slow machine may have killed it before its first line of code
  if (existsSync(pidFile)) {
    const pid = Number(readFileSync(pidFile, 'utf8'));
    await until('the end of the process', () => (isAlive(pid) ? undefined : true));
  }
  assert.deepEqual(await listRecords(), []);
  const logs = readdirSync(join(state, 'pawl', 'detached')).filter((name) => name.endsWith('.log'));
  assert.deepEqual(logs, []);
};

const LIMIT_MS = 2_000;

const isStop = (words: RegExp) => (error: unknown) => {
  assert.ok(error instanceof Stop, String(error));
  assert.match(error.message, words);
  return true;
};

test('a process that says nothing is killed, and the launcher says so', async (context) => {
  const place = makeSilent(context);
  await assert.rejects(
    launchPrompt({ workspace: place.workspace }, { text: 'look', typed: 'look' }, LIMIT_MS),
    isStop(
      /^The process of the session said nothing for 2 s and was killed before it had confirmed your input\. pawl sessions --live shows whether the session is there\.$/,
    ),
  );
  await expectNothing(place);
});

test('a process that says nothing takes over no session from a terminal, whose record stays', async (context) => {
  const place = makeSilent(context);
  const sessionId = '20261126-120000-abcdef';
  const record: LiveRecord = {
    ...{ version: 1, sessionId, workspace: place.workspace, cwd: place.workspace, title: 'it' },
    ...{ flags: {}, startedAtMs: 1, end: null },
    process: { pid: 1, started: '', bootId: 'an-earlier-boot', pids: '' },
    activity: { kind: 'resting', words: '', sinceMs: 1, questions: [], costUsd: 0, rounds: 1 },
  };
  openLiveFolder();
  await storeRecord(record);
  await assert.rejects(
    startSuccessor(sessionId, { workspace: place.workspace }, 'look', LIMIT_MS),
    isStop(/^its process said nothing for 2 s and was killed\.$/),
  );
  assert.deepEqual(await readRecord(sessionId), record);
  await expectNothing(place);
});
