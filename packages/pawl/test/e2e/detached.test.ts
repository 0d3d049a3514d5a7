import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { atEnd } from '../../../../test/temporary-folder.js';
import { isDeep, testDeep } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import type { WaitingCall } from '../../src/detached/waiting-questions.js';
import { storedJournals } from '../../src/sessions/stored-sessions.js';
import {
  answerShown,
  detach,
  killSession,
  listLive,
  liveFile,
  makeAsking,
  untilListed,
  untilState,
} from './detached-stage.js';
import { runInProcess } from './in-process.js';
import {
  bin,
  expectCode,
  type Place,
  runPawl,
  sessionOf,
  start,
  startPawl,
  uniqueSleep,
} from './pawl.js';
import { openWindow, type Window } from './window.js';
import { call, done, message, text } from './wire-words.js';

/** Sessions in processes of their own: started, listed, looked at, answered, ended, brought back. */

const asks = message(call('c1', 'bash', { command: 'echo published >> out.txt' }));
const published = (place: Place): string => readFileSync(join(place.workspace, 'out.txt'), 'utf8');

test('a detached session waits for an answer, which lands once, goes on, and is ended in order', async (context) => {
  const place = await makeAsking(context, [asks, done]);
  const id = await detach(context, place, ['publish it']);
  assert.equal(id, sessionOf(place));
  const row = await untilState(place, id, /runs: waits for your answer: echo published/);
  assert.equal(row.questions.length, 1);
  // in a terminal each line fits
  const window = openWindow(context, place, { words: ['sessions', '--live'], columns: 70 });
  assert.equal(await window.ended, 0);
  const [first = '', second = ''] = (await window.text()).split('\n');
  assert.match(first, new RegExp(`^${id}  waits for your answer: echo published`));
  assert.match(second, /^ {5}publish it {2}\S+ {2}1 round {2}since [\d.]+m?s {2}…\S*\/work$/);
  expectCode(await runInProcess(place, ['answer', id, 'yes']), 65);
  const answered = await answerShown(place, id, 'yes');
  expectCode(answered, 0);
  assert.equal(answered.stderr, 'Allowed: echo published >> out.txt\n');
  await untilState(place, id, /runs: has answered/);
  assert.equal(published(place), 'published\n');
  const [listed] = await listLive(place);
  assert.ok(process.kill(listed?.pid ?? 0, 0), 'its process is named');
  expectCode(await runInProcess(place, ['answer', id, 'yes']), 65);
  // Each line of the log is one of its own, below the reply too.
  const log = await runInProcess(place, ['logs', id]);
  assert.match(log.stdout, /^> publish it\n[\s\S]*\nDone\.\n$/);
  expectCode(await runInProcess(place, ['stop', id]), 0);
  assert.match((await runInProcess(place, ['stop', id])).stderr, /or was ended by pawl stop/);
  assert.deepEqual(await listLive(place), []);
  assert.match((await runInProcess(place, ['show', id])).stdout, /publish it/);
});

testDeep(
  'a session that another process ended in order while a command ran is not listed as died, however much the command had printed',
  async (context) => {
    const mark = uniqueSleep(context);
    const prints = call('c2', 'bash', { command: `seq 1 9000; sleep ${mark}` });
    const place = await makeAsking(context, [asks, message(prints), done]);
    const id = await detach(context, place, ['publish it']);
    await untilState(place, id, /waits for your answer/);
    killSession(place, id);
    await untilState(place, id, /died/);
    const resumed = startPawl(place, ['-p', 'print', '--resume', id, '--preset', 'full']);
    const sleeps = (line: string): boolean => line === `sleep ${mark}`; // all is printed by then
    await until('the command runs', () => processesWith(mark).some(sleeps));
    resumed.child.kill('SIGTERM');
    expectCode(await resumed.ended, 143);
    const entries = readFileSync(join(place.state, 'pawl', 'sessions', `${id}.jsonl`), 'utf8');
    const afterEnd = entries.length - entries.lastIndexOf('"type":"ShutdownRequested"');
    assert.ok(afterEnd > 16_000, 'control: the output is in the journal after the end');
    assert.deepEqual(await listLive(place), []);
  },
);

test('a question that nobody answers within the limit is refused, with the reason', async (context) => {
  const place = await makeAsking(context, [asks, done], { PAWL_ANSWER_MINUTES: '0.01' });
  const id = await detach(context, place, ['publish it']);
  await untilState(place, id, /runs: has answered/);
  assert.equal(existsSync(join(place.workspace, 'out.txt')), false);
  assert.match(
    (await runInProcess(place, ['show', id])).stdout,
    /nobody answered within 0\.01 minutes/,
  );
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

test('a terminal shows a session of another process, answers, types, leaves it running, and comes back', async (context) => {
  const place = await makeAsking(context, [
    asks,
    message(text('It is published.')),
    message(text('The second answer.')),
  ]);
  const id = await detach(context, place, ['publish it']);
  await untilState(place, id, /waits for your answer/);
  const [first, second] = [0, 1].map(() => openWindow(context, place, { words: ['attach', id] }));
  assert.ok(first !== undefined && second !== undefined);
  for (const window of [first, second]) {
    await window.sees('publish it');
    await window.sees(/echo published/);
    await window.sees(/yes, once/i);
  }
  await first.sees(/y a s n · Escape/); // it takes keys
  first.press('y');
  for (const window of [first, second]) await window.sees('It is published.');
  assert.equal(published(place), 'published\n');
  second.press('and now?\r');
  for (const window of [first, second]) {
    await window.sees('and now?');
    await window.sees('The second answer.');
  }
  first.press('/quit\r');
  assert.equal(await first.ended, 0);
  await first.sees(/The session stays open/);
  process.kill(second.pid, 'SIGKILL');
  await untilState(place, id, /runs: has answered/);
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

test('a session whose process was killed is told, and brought back by resume and by attach, also after a restart', async (context) => {
  const place = await makeAsking(context, [asks, done]);
  const id = await detach(context, place, ['publish it']);
  await untilState(place, id, /waits for your answer/);
  killSession(place, id);
  await untilState(place, id, /died: died .*pawl attach brings it back/);
  expectCode(await runInProcess(place, ['answer', id, 'yes']), 65);
  const all = await runInProcess(place, ['resume', '--all']);
  expectCode(all, 0);
  assert.equal(all.stdout, `${id}\n`);
  await untilState(place, id, /runs: waits for your answer/);
  // another boot: the same process number may belong to anybody
  killSession(place, id);
  const file = liveFile(place, id, 'json');
  const record = JSON.parse(readFileSync(file, 'utf8'));
  record.process = { ...record.process, pid: process.pid, bootId: 'an-earlier-boot' };
  writeFileSync(file, JSON.stringify(record));
  await untilState(place, id, /died: died/);
  const window = openWindow(context, place, { words: ['attach'] });
  await window.sees(/yes, once/i);
  expectCode(await runInProcess(place, ['answer', id, 'no', 'not', 'today']), 0);
  await window.sees('Done.');
  assert.ok(!existsSync(join(place.workspace, 'out.txt')));
  expectCode(await runInProcess(place, ['stop', id]), 0);
  assert.equal(await window.ended, 0);
  await window.sees(`To continue: pawl --resume ${id}`);
  assert.doesNotMatch(await window.text(), /stays open/);
});

const journalPath = (place: Place, id: string): string =>
  join(place.state, 'pawl', 'sessions', `${id}.jsonl`);

test('a session that is brought back has the rights and limits that its user has set since', async (context) => {
  const place = await makeAsking(context, [done]);
  const typed = [
    '--preset',
    'auto',
    '--max-usd',
    '10',
    '--max-tokens',
    '90000',
    '--no-auto-commit',
  ];
  const id = await detach(context, place, ['look', ...typed]);
  await untilState(place, id, /runs: has answered/);
  const { flags } = JSON.parse(readFileSync(liveFile(place, id, 'json'), 'utf8'));
  assert.deepEqual([flags.preset, flags.autoCommit], ['auto', false]);
  const window = openWindow(context, place, { words: ['attach', id] });
  await window.sees('Done.');
  window.press('/preset plan\r');
  await window.sees('The preset is now plan');
  window.press('/budget 3\r');
  const isLimited = (): boolean => readFileSync(journalPath(place, id), 'utf8').includes('"usd":3');
  await until('the limit', isLimited);
  killSession(place, id);
  await untilState(place, id, /died/);
  expectCode(await runInProcess(place, ['resume', id]), 0);
  const { settings } = (await storedJournals(join(place.state, 'pawl')).peek(id)).state.session;
  const { preset, limits } = settings;
  assert.deepEqual([preset, limits.usd, limits.tokens], ['plan', 3, 90_000]);
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

test('a start that fails loses no earlier detached session, and a deleted one is not listed', async (context) => {
  const place = await makeAsking(context, [asks]);
  const id = await detach(context, place, ['publish it']);
  await untilState(place, id, /waits for your answer/);
  killSession(place, id);
  await untilState(place, id, /died/);
  rmSync(liveFile(place, id, 'token'));
  mkdirSync(liveFile(place, id, 'token')); // no token can be written
  assert.notEqual((await runInProcess(place, ['resume', id])).code, 0);
  await untilState(place, id, /failed: [\s\S]*pawl attach brings it back/);
  rmSync(liveFile(place, id, 'token'), { recursive: true });
  expectCode(await runInProcess(place, ['resume', id]), 0);
  await untilState(place, id, /runs: waits for your answer/);
  killSession(place, id);
  await untilState(place, id, /died/);
  // text in a journal that only looks like its end
  const input = { type: 'ShutdownRequested' };
  appendFileSync(journalPath(place, id), `${JSON.stringify({ seq: 99, event: { input } })}\n`);
  const [row] = await listLive(place);
  assert.equal(row?.status, 'died');
  const record = JSON.parse(readFileSync(liveFile(place, id, 'json'), 'utf8'));
  const end = { kind: 'failed', words: 'no key', atMs: 0 };
  writeFileSync(liveFile(place, id, 'json'), JSON.stringify({ ...record, end }));
  rmSync(journalPath(place, id));
  assert.deepEqual(await listLive(place), []);
  assert.ok(!existsSync(liveFile(place, id, 'json')));
});

/** Makes the workspace a repository with one commit. */
const makeRepository = async (place: Place): Promise<void> => {
  const git = (...words: readonly string[]) =>
    start(place, 'git', ['-c', 'user.name=T', '-c', 'user.email=t@t', ...words]).ended;
  await git('init', '--quiet');
  await git('commit', '--quiet', '--allow-empty', '-m', 'first');
};

const folderOf = async (place: Place, id: string): Promise<string> =>
  (await listLive(place)).find(({ sessionId }) => sessionId === id)?.workspace ?? '';

test('a second session in a folder gets a worktree, unless it is told otherwise', async (context) => {
  const place = await makeAsking(context, [asks, asks, asks]);
  await makeRepository(place);
  const first = await detach(context, place, ['one']);
  const second = await detach(context, place, ['two']);
  const third = await detach(context, place, ['three', '--same-folder']);
  assert.equal(await folderOf(place, first), place.workspace);
  assert.equal(await folderOf(place, third), place.workspace);
  const worktree = await folderOf(place, second);
  assert.match(worktree, /\/worktrees\/work-\w+$/);
  assert.ok(existsSync(join(worktree, '.git')));
});

test('the worktree of a session goes with it if nothing in it would be lost, and is kept otherwise', async (context) => {
  const place = await makeAsking(context, [asks, asks, asks, done, done, done, done]);
  await makeRepository(place);
  const first = await detach(context, place, ['one']);
  await untilState(place, first, /waits for your answer/);
  const clean = await detach(context, place, ['two']);
  await untilState(place, clean, /waits for your answer/);
  const changed = await detach(context, place, ['three']);
  await untilState(place, changed, /waits for your answer/);
  const [cleanFolder, changedFolder] = [
    await folderOf(place, clean),
    await folderOf(place, changed),
  ];
  // its process is started again before it ends: the worktree is still known as its own
  killSession(place, clean);
  await untilState(place, clean, /died/);
  expectCode(await runInProcess(place, ['resume', clean]), 0);
  const stopped = await runInProcess(place, ['stop', clean]);
  expectCode(stopped, 0);
  assert.ok(!existsSync(cleanFolder));
  assert.match(stopped.stderr, /held nothing that the repository lacks, and was removed/);
  const again = ['-p', 'again', '--resume', clean, '--workspace', place.workspace];
  expectCode(await runInProcess(place, again), 0);
  expectCode(await answerShown(place, changed, 'yes'), 0);
  await untilState(place, changed, /runs: has answered/);
  killSession(place, changed);
  await untilState(place, changed, /died/);
  await detach(context, place, ['more', '--resume', changed]);
  await untilState(place, changed, /runs: has answered/);
  // and where another process has ended it in order
  killSession(place, changed);
  await untilState(place, changed, /died/);
  expectCode(await runInProcess(place, ['-p', 'more', '--resume', changed]), 0);
  await untilState(place, changed, /closed: was ended/);
  const kept = await runInProcess(place, ['stop', changed]);
  expectCode(kept, 0);
  assert.match(kept.stderr, /is kept: not committed: out\.txt\. To remove it .*: git -C /);
  assert.equal(readFileSync(join(changedFolder, 'out.txt'), 'utf8'), 'published\n');
  // as the words say it
  const [, command = ''] = /(git -C .*)/.exec(kept.stderr) ?? [];
  expectCode(await start(place, 'sh', ['-c', command]).ended, 0);
  assert.ok(!existsSync(changedFolder));
});

test('stop says of a session that dies meanwhile that it was not ended, and keeps its worktree', async (context) => {
  const sleep = uniqueSleep(context);
  const stubborn = message(
    call('c1', 'bash', { command: `trap '' TERM; sleep ${sleep}; sleep ${sleep}` }),
  );
  const place = await makeAsking(context, [asks, stubborn]);
  await makeRepository(place);
  await untilState(place, await detach(context, place, ['one']), /waits for your answer/);
  const id = await detach(context, place, ['two', '--preset', 'auto']);
  await untilState(place, id, /runs: runs /);
  const worktree = await folderOf(place, id);
  const stopping = runPawl(place, ['stop', id]);
  const journal = journalPath(place, id);
  await until('a cancel', () => readFileSync(journal, 'utf8').includes('CancelTurn'));
  killSession(place, id);
  const stopped = await stopping;
  expectCode(stopped, 69);
  assert.match(stopped.stderr, /a command that ran may still run\. The session died/);
  await untilState(place, id, /^died/);
  const forgotten = await runInProcess(place, ['stop', id]);
  expectCode(forgotten, 0);
  assert.match(
    forgotten.stderr,
    /A command that ran may still run\. .*[\s\S]*is kept: a command that ran may still run in it/,
  );
  assert.ok(existsSync(worktree));
});

testDeep('a start that fails leaves no worktree', async (context) => {
  const place = await makeAsking(context, [asks]);
  await makeRepository(place);
  await detach(context, place, ['one']);
  const keyless = { ...place, environment: { ...place.environment, ANTHROPIC_API_KEY: '' } };
  const refused = await runInProcess(keyless, ['-p', 'two', '--detach']);
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /works in a worktree of its own/);
  assert.deepEqual(readdirSync(join(place.home, '.local', 'share', 'pawl', 'worktrees')), []);
});

test('nobody else can put a folder, a socket or a token in the place of ours', async (context) => {
  const place = await makeAsking(context, [asks, asks]);
  const folder = join(place.state, 'pawl', 'detached');
  mkdirSync(join(place.state, 'pawl'), { mode: 0o700 });
  mkdirSync(join(place.folder, 'elsewhere'), { mode: 0o700 });
  symlinkSync(join(place.folder, 'elsewhere'), folder);
  const refused = await runInProcess(place, ['-p', 'publish it', '--detach']);
  expectCode(refused, 78);
  assert.match(refused.stderr, /not a folder/);
  assert.deepEqual(readdirSync(join(place.folder, 'elsewhere')), []);
  rmSync(folder);
  mkdirSync(folder, { mode: 0o777 });
  // a folder that others may use
  chmodSync(folder, 0o770);
  expectCode(await runInProcess(place, ['-p', 'publish it', '--detach']), 78);
  rmSync(folder, { recursive: true });
  const id = await detach(context, place, ['publish it']);
  await untilState(place, id, /waits for your answer/);
  writeFileSync(liveFile(place, id, 'token'), 'guessed-guessed-guessed');
  const wrong = await runInProcess(place, ['answer', id, 'yes']);
  assert.notEqual(wrong.code, 0);
  assert.match(wrong.stderr, /token is missing or wrong/);
});

testDeep(
  'a full disk leaves no session, or one that goes on when there is room again',
  async (context) => {
    const place = await makeAsking(context, () => asks);
    // all processes end with the namespace
    const user = process.getuid?.() === 0 ? [] : ['--map-root-user'];
    const namespace = [...user, '--mount', '--pid', '--fork', '--mount-proc', '--kill-child'];
    const script = `mount -t tmpfs -o size=$SIZE,mode=700 none "$0" && "$@" -p 'publish it' --detach
    code=$?
    if [ $code = 0 ]; then
      mount -o remount,size=8m "$0"
      until "$@" sessions --live --json | grep 'waits for your answer'; do
        "$@" resume --all >&2
      done
    else
      while grep -qs [_]_detached /proc/[0-9]*/cmdline; do sleep 0.02; done
      "$@" sessions --live --json
    fi
    exit $code`;
    const startOn = async (kilobytes: number): Promise<boolean> => {
      const environment = { ...place.environment, SIZE: `${kilobytes}k` };
      const words = [...namespace, 'sh', '-c', script, place.state, process.execPath, bin];
      const ended = await start({ ...place, environment }, 'unshare', words).ended;
      if (ended.code === 0) {
        assert.match(ended.stdout, /^(\S+)\n\{"sessionId":"\1","status":"runs"/);
        return true;
      }
      expectCode(ended, 74);
      assert.match(ended.stderr, /Cannot write \S+: ENOSPC.* The disk is full: free some space/);
      assert.equal(ended.stdout, '');
      return false;
    };
    let kilobytes = 8;
    while (!(await startOn(kilobytes))) kilobytes += 8;
    assert.ok(kilobytes > 8);
  },
);

/** Connects to a socket, and says what came of it. */
const CONNECT = `require('node:net').connect(process.argv[1])
  .once('connect', () => { console.log('connected'); process.exit(); })
  .once('error', ({ code }) => console.log(code));`;

test('another user of the machine reaches no socket and no token, and the owner does', async (context) => {
  if (process.geteuid?.() !== 0) return context.diagnostic('needs root to act as another user');
  const place = await makeAsking(context, [asks]);
  const id = await detach(context, place, ['publish it']);
  await untilState(place, id, /waits for your answer/);
  const [socket, token] = [liveFile(place, id, 'sock'), liveFile(place, id, 'token')];
  const folder = join(place.state, 'pawl', 'detached');
  const connect = async (path: string, user: readonly string[]): Promise<string> =>
    (await start(place, 'setpriv', [...user, process.execPath, '-e', CONNECT, path]).ended).stdout;
  const stranger = ['--reuid=54321', '--regid=54321', '--clear-groups'];
  // only the folder itself is in the way
  for (const open of [place.folder, place.state, join(place.state, 'pawl')]) chmodSync(open, 0o755);
  const shared = join(place.folder, 'shared.sock');
  const server = createServer((one) => one.destroy()).listen(shared);
  context.after(() => server.close());
  await once(server, 'listening');
  chmodSync(shared, 0o777);
  assert.equal(await connect(shared, stranger), 'connected\n', 'a stranger can reach a socket');
  assert.equal(await connect(socket, []), 'connected\n', 'the owner reaches this one');
  assert.equal(await connect(socket, stranger), 'EACCES\n');
  for (const path of [token, folder]) {
    const read = await start(place, 'setpriv', [...stranger, 'ls', '-l', path]).ended;
    assert.match(read.stderr, /Permission denied/);
  }
  chmodSync(folder, 0o755);
  assert.equal(await connect(socket, stranger), 'EACCES\n', 'nor in an open folder');
  assert.match((await start(place, 'setpriv', [...stranger, 'cat', token]).ended).stderr, /denied/);
  chmodSync(folder, 0o700);
  for (const path of [socket, token, folder]) {
    chownSync(path, 54_321, 54_321);
    const refused = await runInProcess(place, ['answer', id, 'yes']);
    expectCode(refused, 78);
    assert.match(refused.stderr, /not yours alone|belongs to another user/);
    chownSync(path, 0, 0);
  }
  expectCode(await runInProcess(place, ['answer', id, 'no']), 0);
});

testDeep('what is planted in the folder gets no token and no session', async (context) => {
  const place = await makeAsking(context, () => asks);
  const id = await detach(context, place, ['publish it']);
  await untilState(place, id, /waits for your answer/);
  killSession(place, id);
  await untilState(place, id, /died/);
  const record = JSON.parse(readFileSync(liveFile(place, id, 'json'), 'utf8'));
  const unknown = '20200101-000000-0badcafe';
  const plant = (name: string, text: string) => writeFileSync(liveFile(place, name, 'json'), text);
  plant(unknown, JSON.stringify({ ...record, sessionId: unknown }));
  plant('20200101-000000-other', JSON.stringify(record));
  plant('20200101-000000-torn', '{"version":1,');
  let said = '';
  const impostor = createServer((one) => one.on('data', (bytes) => (said += bytes)));
  impostor.listen(join(place.folder, 'impostor.sock'));
  context.after(() => impostor.close());
  await once(impostor, 'listening');
  rmSync(liveFile(place, id, 'sock'));
  symlinkSync(join(place.folder, 'impostor.sock'), liveFile(place, id, 'sock'));
  assert.deepEqual(
    (await listLive(place)).map(({ sessionId }) => sessionId),
    [id],
  );
  for (const words of [
    ['answer', id, 'yes'],
    ['stop', id],
  ]) {
    const refused = await runInProcess(place, words);
    expectCode(refused, 78);
    assert.match(refused.stderr, /not yours alone, so it is not used: .*Remove it/);
  }
  assert.equal(said, '');
  rmSync(liveFile(place, id, 'sock'));
  expectCode(await runInProcess(place, ['resume', '--all']), 0);
  await untilState(place, id, /runs: waits for your answer/);
});

/** Kills the process of a session as soon as it would listen on its socket. */
const KILLED_BEFORE = `const { Server } = require('node:net');
const { listen } = Server.prototype;
Server.prototype.listen = function (...words) {
  if (JSON.stringify(words).includes('.sock')) process.kill(process.pid, 'SIGKILL');
  return listen.apply(this, words);
};`;

testDeep(
  'a process that is killed before it listens leaves nothing unsaid, and no session lost',
  async (context) => {
    const place = await makeAsking(context, () => asks);
    const preload = join(place.folder, 'killed-before.cjs');
    writeFileSync(preload, KILLED_BEFORE);
    const environment = { ...place.environment, NODE_OPTIONS: `--require ${preload}` };
    const killed = { ...place, environment };
    const first = await runPawl(killed, ['-p', 'publish it', '--detach']);
    expectCode(first, 70);
    assert.equal(first.stdout, '');
    assert.match(first.stderr, /ended before it had confirmed your input\. pawl sessions --live/);
    const [row] = await listLive(place);
    assert.match(row?.status ?? '', /died/);
    assert.equal(row?.pid, null);
    // nothing was asked in it
    expectCode(await runInProcess(place, ['resume', '--all']), 0);
    assert.deepEqual(await listLive(place), []);
    const id = await detach(context, place, ['publish it']);
    await untilState(place, id, /waits for your answer/);
    killSession(place, id);
    await untilState(place, id, /died/);
    const again = await runPawl(killed, ['resume', id]);
    assert.notEqual(again.code, 0);
    assert.match(again.stderr, /can't go on: The process of the session ended before/);
    await untilState(place, id, /died/);
    expectCode(await runInProcess(place, ['resume', '--all']), 0);
    await untilState(place, id, /runs: waits for your answer/);
  },
);

testDeep('a state folder whose path is too long for a socket serves as well', async (context) => {
  const short = await makeAsking(context, [asks, done]);
  const state = join(short.state, 'a'.repeat(100), 'b'.repeat(100));
  mkdirSync(state, { recursive: true });
  const environment = { ...short.environment, XDG_STATE_HOME: state };
  const place = { ...short, state, environment };
  const id = await detach(context, place, ['publish it']);
  assert.ok(liveFile(place, id, 'sock').length > 108);
  await untilState(place, id, /runs: waits for your answer/);
  expectCode(await answerShown(place, id, 'yes'), 0);
  await untilState(place, id, /runs: has answered/);
  expectCode(await runInProcess(place, ['stop', id]), 0);
  assert.deepEqual(readdirSync(join(state, 'pawl', 'detached')), []);
});

testDeep(
  'a launcher that is killed leaves a whole session or none, and two starts of one session are one',
  async (context) => {
    const place = await makeAsking(
      context,
      Array.from({ length: 40 }, () => asks),
    );
    const launchers = Array.from({ length: 6 }, () =>
      startPawl(place, ['-p', 'publish it', '--detach', '--same-folder']),
    );
    for (const [index, { child }] of launchers.entries())
      setTimeout(() => child.kill('SIGKILL'), 150 + index * 150);
    await Promise.all(launchers.map(({ ended }) => ended));
    // each process that was started comes to its question, or was never told what to do
    const rows = await untilListed(
      place,
      'no session that starts',
      (all) => all.every(({ state }) => /waits for your answer/.test(state)) && all,
    );
    // A process that a killed launcher started last may be listed only later.
    atEnd(context, () => {
      for (const name of readdirSync(join(place.state, 'pawl', 'detached')))
        if (name.endsWith('.json')) killSession(place, name.slice(0, -'.json'.length));
    });
    const id =
      rows[0]?.sessionId ?? (await detach(context, place, ['publish it', '--same-folder']));
    await untilState(place, id, /waits for your answer/);
    killSession(place, id);
    await untilState(place, id, /died/);
    const starts = [0, 1].map(() => runPawl(place, ['resume', id]));
    const codes = (await Promise.all(starts)).map(({ code }) => code);
    assert.ok(codes.includes(0), String(codes));
    await untilState(place, id, /runs: waits for your answer/);
    atEnd(context, () => killSession(place, id));
    // a launcher that was killed in its first moments may leave a log; the list removes an old one
    const folder = join(place.state, 'pawl', 'detached');
    const startLogs = () => readdirSync(folder).filter((name) => name.startsWith('start-'));
    writeFileSync(join(folder, 'start-old.log'), '');
    writeFileSync(join(folder, 'start-new.log'), '');
    const hourAgo = Date.now() / 1_000 - 3_600;
    for (const name of startLogs())
      if (name !== 'start-new.log') utimesSync(join(folder, name), hourAgo, hourAgo);
    await listLive(place);
    assert.deepEqual(startLogs(), ['start-new.log']);
  },
);

type Face = {
  readonly name: string;
  /** Answers yes, or no with its name as the reason. Resolves with what it was told. */
  answer(question: WaitingCall): Promise<'sent' | { won: boolean; words: string }>;
};

const commandFace = (place: Place, id: string): Face => ({
  name: 'command',
  async answer({ code }) {
    const ended = await runPawl(place, ['answer', id, code, 'no', 'command']);
    return { won: ended.code === 0, words: ended.stderr };
  },
});

/** Pages of one inspector, each with a reason of its own. */
const inspectorFaces = async (
  context: TestContext,
  place: Place,
  id: string,
): Promise<readonly Face[]> => {
  const inspector = startPawl(place, ['inspect'], null);
  context.after(() => inspector.child.kill('SIGKILL'));
  const address = await until('the address', () => /http:\S+/.exec(inspector.stdout())?.[0]);
  return ['inspector', 'page'].map((name) => ({
    name,
    async answer({ batchId, callId, code }) {
      const answer = { kind: 'deny', reason: name };
      const response = await fetch(`${address}live/${id}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: new URL(address).origin },
        body: JSON.stringify({ batchId, callId, code, answer }),
      });
      return { won: response.ok, words: await response.text() };
    },
  }));
};

/** Presses at the question that it shows: it is told on its screen. */
const windowFace = (window: Window, name: string, keys: string): Face => ({
  name,
  async answer() {
    window.press(keys);
    return 'sent';
  },
});

type Landed = { readonly callId: string; readonly answer: { kind: string; reason?: string } };

/** All answers in the journal. */
const landedIn = (place: Place, id: string): readonly Landed[] =>
  readFileSync(join(place.state, 'pawl', 'sessions', `${id}.jsonl`), 'utf8')
    .split('\n')
    .filter((line) => line.includes('"ApprovalAnswered"'))
    .map((line) => JSON.parse(line).event);

/** All faces answer at once. Resolves with the name of the one whose answer is in the journal. */
const race = async (
  faces: readonly Face[],
  { place, id, question }: { place: Place; id: string; question: WaitingCall },
): Promise<string> => {
  const told = await Promise.all(
    faces.map(async (face) => ({ name: face.name, told: await face.answer(question) })),
  );
  const all = await until(`an answer to ${question.callId}`, () => {
    const landed = landedIn(place, id).filter(({ callId }) => callId === question.callId);
    return landed.length > 0 && landed;
  });
  assert.equal(all.length, 1, JSON.stringify(all));
  const answer = all[0]?.answer;
  const winner = answer?.kind === 'allow' ? 'yes' : String(answer?.reason);
  for (const { name, told: what } of told) {
    if (what === 'sent') continue;
    assert.equal(what.won, name === winner, `${name}: ${what.words}, but ${winner} has landed`);
    if (name === 'command' && what.won) assert.match(what.words, /^Refused: /);
    if (!what.won) assert.match(what.words, /was answered before/);
  }
  return winner;
};

test('of answers to one question from all faces exactly one lands', async (context) => {
  const count = isDeep ? 100 : 10;
  const calls = Array.from({ length: count }, (_, index) =>
    call(`c${index}`, 'bash', { command: `echo number${index} >> out.txt` }),
  );
  const place = await makeAsking(context, [message(...calls), done]);
  const id = await detach(context, place, ['publish all']);
  const { questions } = await untilState(place, id, /waits for your answer/);
  assert.equal(questions.length, count);
  const pages = await inspectorFaces(context, place, id);
  const command = commandFace(place, id);
  const windows = [0, 1].map(() => openWindow(context, place, { words: ['attach', id] }));
  const keys = ['y', 'nwindow\r'];
  const names = ['yes', 'window'];
  const winners: string[] = [];
  for (const [index, question] of questions.entries()) {
    // windows, and a process for each answer, are dear: all faces race each tenth time
    const all = index % 10 === 0;
    const shown = new RegExp(`│ echo number${index} >>(?:(?!│ echo)[^])*y a s n`);
    if (all) for (const window of windows) await window.sees(shown);
    const pressed = windows.map((window, at) =>
      windowFace(window, names[at] ?? '', keys[at] ?? ''),
    );
    const faces = all ? [...pressed, command, ...pages] : pages;
    const first = all ? (index / 10) % faces.length : index % faces.length;
    winners.push(
      await race([...faces.slice(first), ...faces.slice(0, first)], { place, id, question }),
    );
  }
  context.diagnostic(winners.join(' '));
  await untilState(place, id, /runs: has answered/);
  // a window is told of each answer that is not its own
  for (const [at, window] of windows.entries()) {
    await window.sees(/ready/);
    const lost = winners.filter((name) => name !== names[at]);
    const told = [...(await window.text()).matchAll(/decided elsewhere: (?:no, )?(\w+)/g)];
    assert.deepEqual(
      told.map(([, name]) => name),
      lost,
    );
  }
  const allowed = winners.flatMap((name, index) => (name === 'yes' ? [`number${index}`] : []));
  const ran = existsSync(join(place.workspace, 'out.txt'))
    ? published(place).trim().split('\n')
    : [];
  assert.deepEqual(ran.toSorted(), allowed.toSorted());
  expectCode(await runInProcess(place, ['stop', id]), 0);
});
