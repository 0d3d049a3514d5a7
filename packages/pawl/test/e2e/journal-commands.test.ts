import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path, { join } from 'node:path';
import { test } from 'node:test';
import type { Trajectory } from '@pawl/inspector/atif-trajectory';
import { trajectoryFaults } from '../../../../test/kit/atif/trajectory-faults.js';
import { STORY, storeTrace } from '../../../../test/kit/inspector/stored-session.js';
import { makePng } from '../../../../test/servers/sample-pictures.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import {
  bin,
  expectCode,
  makePlace,
  makeServed,
  type Place,
  readRecords,
  sessionOf,
  start,
  startPawl,
} from './pawl.js';
import { call, done, message, overloaded, text } from './wire-words.js';

/** Commands that check, carry and find sessions. */

const MODEL = ['--model', 'scripted/script.json'];

const worked = async (context: Parameters<typeof makePlace>[0]) => {
  const place = makePlace(context);
  writeFileSync(
    join(place.workspace, 'script.json'),
    JSON.stringify({ replies: [{ text: 'one' }, { text: 'two' }] }),
  );
  expectCode(await runInProcess(place, [...MODEL, '-p', 'first']), 0);
  const id = sessionOf(place);
  return { place, id, journal: join(place.state, 'pawl', 'sessions', `${id}.jsonl`) };
};

test('verify says that all is good, and names file, line and byte where it is not', async (context) => {
  const { place, id, journal } = await worked(context);
  const good = await runInProcess(place, ['verify', id]);
  expectCode(good, 0);
  assert.match(good.stdout, /all good \(\d+ entries, \d+ state hash(es)?, \d+ blobs?\)/);
  assert.doesNotMatch(good.stdout, /may be missing/);
  const mark = journal.replace('.jsonl', '.mark');
  const marked = readFileSync(mark);
  writeFileSync(mark, 'damaged');
  const unmarked = await runInProcess(place, ['verify', id]);
  expectCode(unmarked, 0);
  assert.match(unmarked.stdout, /all lines are good .*may be missing: no good mark/);
  writeFileSync(mark, marked);
  const bytes = readFileSync(journal);
  const begin = bytes.indexOf(0x0a) + 1;
  const changed = Buffer.from(bytes);
  changed[begin + 20] = (changed[begin + 20] ?? 0) ^ 1;
  const copy = join(place.folder, 'copy.jsonl');
  writeFileSync(copy, changed);
  const bad = await runInProcess(place, ['verify', copy]);
  expectCode(bad, 65);
  assert.ok(
    bad.stderr.includes(`${copy}: line 2, which begins at byte ${begin}: its checksum`),
    bad.stderr,
  );
  truncateSync(journal, begin);
  const cut = await runInProcess(place, ['verify', id]);
  expectCode(cut, 65);
  assert.match(cut.stderr, /line 2, .*the file was cut: entries 1 to \d+ stood/);
});

test('verify does not call a journal whole whose end nothing proves', async (context) => {
  const { place, id, journal } = await worked(context);
  const bytes = readFileSync(journal);
  const cut = join(place.folder, 'cut.jsonl');
  writeFileSync(cut, bytes.subarray(0, bytes.lastIndexOf(0x0a, bytes.length - 2) + 1));
  const copied = await runInProcess(place, ['verify', cut]);
  expectCode(copied, 0);
  assert.match(copied.stdout, /all lines are good .*Lines at the end may be missing/);
  assert.doesNotMatch(copied.stdout, /all good/);
  rmSync(journal.replace(/jsonl$/, 'mark'));
  assert.match(
    (await runInProcess(place, ['verify', id])).stdout,
    /Lines at the end may be missing/,
  );
  const exported = (await runInProcess(place, ['export', id])).stdout.trim();
  assert.match((await runInProcess(place, ['verify', exported])).stdout, /all good/); // its size is part of it
});

for (const { what, change, says } of [
  {
    what: 'a byte order mark',
    change: (text: string) => `\ufeff${text}`,
    says: /a byte order mark before it/,
  },
  {
    what: 'CR LF',
    change: (text: string) => text.replaceAll('\n', '\r\n'),
    says: /its line ends to CR LF/,
  },
])
  test(`a journal that another program has given ${what} is refused with that reason`, async (context) => {
    const { place, journal } = await worked(context);
    const copy = join(place.folder, 'copy.jsonl');
    writeFileSync(copy, change(readFileSync(journal, 'utf8')));
    const refused = await runInProcess(place, ['verify', copy]);
    expectCode(refused, 65);
    assert.match(refused.stderr, says);
  });

test('a session is exported, imported elsewhere and gone on with there; an import replaces nothing', async (context) => {
  const { place, id } = await worked(context);
  const exported = await runInProcess(place, ['export', id]);
  expectCode(exported, 0);
  const file = exported.stdout.trim();
  assert.equal(file, join(place.workspace, `${id}.pawl`));
  assert.match(exported.stderr, /in clear text/);
  const refused = await runInProcess(place, ['import', file]);
  expectCode(refused, 65);
  assert.match(refused.stderr, /is here already/);
  const other: Place = {
    ...place,
    state: join(place.folder, 'other'),
    environment: { ...place.environment, XDG_STATE_HOME: join(place.folder, 'other') },
  };
  const imported = await runInProcess(other, ['import', file]);
  expectCode(imported, 0);
  assert.equal(imported.stdout.trim(), id);
  assert.match(imported.stderr, /nothing was performed/);
  const again = await runInProcess(other, [...MODEL, '--resume', id, '-p', 'second']);
  expectCode(again, 0);
  assert.match(again.stdout, /two/);
});

for (const [title, header] of [
  ['empty', ''],
  ['damaged', '{"version":1,"sess'],
] as const) {
  test(`--continue never skips a session whose header is ${title}`, async (context) => {
    const { place, id, journal } = await worked(context);
    const newer = journal.replace(id, '20991231-000000-aaaaaaaa');
    writeFileSync(newer, header);
    writeFileSync(newer.replace('.jsonl', '.owner'), 'a code: it was created here\n');
    for (const words of [
      ['--continue', '-p', 'x', ...MODEL],
      ['ask', '--continue'],
    ]) {
      const refused = await runInProcess(place, words);
      expectCode(refused, 65);
      assert.match(refused.stderr, /session 20991231-000000-aaaaaaaa .*backup.*move it away/);
    }
    utimesSync(newer, 1, 1);
    expectCode(await runInProcess(place, ['--continue', '-p', 'control', ...MODEL]), 0);
  });
}

test('a session is deleted with --yes, by the beginning of its id; without a terminal nobody is asked', async (context) => {
  const { place, id, journal } = await worked(context);
  const refused = await runInProcess(place, ['sessions', 'delete', id]);
  expectCode(refused, 2);
  assert.match(refused.stderr, new RegExp(`pawl sessions delete ${id} --yes`));
  assert.ok(existsSync(journal));
  const deleted = await runInProcess(place, ['sessions', 'delete', id.slice(0, -2), '--yes']);
  expectCode(deleted, 0);
  assert.equal(deleted.stderr, `Deleted: ${id}.\n`);
  assert.deepEqual(readdirSync(join(place.state, 'pawl', 'sessions')), []);
  expectCode(await runInProcess(place, ['sessions', 'remove', id]), 2);
});

test('without an id it is the last session of this folder', async (context) => {
  const { place, id } = await worked(context);
  for (const words of [['show'], ['verify'], ['replay'], ['export'], ['logs']]) {
    const ran = await runInProcess(place, words);
    expectCode(ran, 0);
    assert.ok(ran.stderr.includes(`The last session of this folder: ${id}\n`), words.join(' '));
  }
  assert.ok(existsSync(join(place.workspace, `${id}.pawl`)));
  const other = join(place.folder, 'other');
  mkdirSync(other);
  const none = await runInProcess({ ...place, workspace: other }, ['show']);
  expectCode(none, 65);
  assert.match(none.stderr, /No session was run in this folder\. Name one by its id/);
});

/** `pawl inspect` and `pawl export --html`, started as a user does. */

test('pawl inspect serves the session until it is interrupted', async (context) => {
  const place = makePlace(context);
  await storeTrace(path.join(place.state, 'pawl'), 'story', STORY);
  const running = start(place, process.execPath, [bin, 'inspect', 'sto']);
  while (!running.stdout().includes('\n'))
    await once(running.child.stdout ?? running.child, 'data');
  const address = running.stdout().trim();
  assert.match(address, /^http:\/\/127\.0\.0\.1:\d+\/[\w-]{32}\/session\/story$/);
  const page = await fetch(address);
  assert.match(await page.text(), /<title>Pawl<\/title>/);
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, /^default-src 'none'; script-src 'sha256-/);
  assert.doesNotMatch(policy, /unsafe|\*/);
  assert.equal((await fetch(address.replace(/\/[\w-]{32}\//, '/wrong/'))).status, 403);
  running.child.kill('SIGINT');
  expectCode(await running.ended, 0);
});

test('pawl export --html writes one file with the session and without secrets', async (context) => {
  const place = makePlace(context, { DEPLOY_TOKEN: 'hx7-Qw91-kkTz-08aa' });
  const trace = '> Start\n> UserInput "use hx7-Qw91-kkTz-08aa"\n> LlmCompleted req-1 says "done"\n';
  await storeTrace(path.join(place.state, 'pawl'), 'story', trace);
  const file = path.join(place.workspace, 'story.html');
  const words = [bin, 'export', 'story', '--html', file];
  const ended = await start(place, process.execPath, words).ended;
  expectCode(ended, 0);
  assert.equal(ended.stdout.trim(), file);
  const html = readFileSync(file, 'utf8');
  assert.ok(!html.includes('hx7-Qw91'), 'the secret is in the file');
  assert.ok(html.includes('use [secret:$DEPLOY_TOKEN]'));
  assert.match(html, /connect-src 'none'/);
  const again = await start(place, process.execPath, words).ended;
  expectCode(again, 65);
  assert.match(again.stderr, /story\.html is there already and stays as it is/);
  assert.equal(readFileSync(file, 'utf8'), html);
  const missing = path.join(place.workspace, 'missing', 'story.html');
  const elsewhere = [bin, 'export', 'story', '--html', missing];
  const refused = await start(place, process.execPath, elsewhere).ended;
  expectCode(refused, 74);
  assert.match(refused.stderr, /Can't write .*Nothing was exported\. Name another file/);
  const half = path.join(place.workspace, 'half.html');
  const full = ['-c', 'ulimit -f 8; exec "$@"', 'sh', process.execPath, bin, 'export', 'story'];
  const cut = await start(place, '/bin/sh', [...full, '--html', half]).ended;
  expectCode(cut, 74);
  assert.equal(existsSync(half), false, 'of a file that did not fit nothing is left');
  const unknown = await start(place, process.execPath, [bin, 'inspect', 'nothing']).ended;
  expectCode(unknown, 65);
  assert.match(unknown.stderr, /No session 'nothing'/);
});

/** `pawl export ID --atif`: trajectories of real sessions. */

const read = (file: string): Trajectory => {
  const trajectory = JSON.parse(readFileSync(file, 'utf8'));
  assert.deepEqual(trajectoryFaults(trajectory), []);
  return trajectory;
};

const exportTo = async (place: Place, id: string, name = 'run.json'): Promise<Trajectory> => {
  const file = join(place.folder, name);
  const ended = await runInProcess(place, ['export', id, '--atif', file]);
  expectCode(ended, 0);
  assert.equal(ended.stdout, `${file}\n`);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  return read(file);
};

const usage = {
  input_tokens: 950_000,
  output_tokens: 5,
  cache_read_input_tokens: 1_000,
  cache_creation_input_tokens: 20,
};

test('pictures lie beside the file; on stdout they are left out, and nothing is replaced that is there', async (context) => {
  const place = await makeServed(context, [
    message(call('c1', 'read', { path: 'shot.png' })),
    done,
  ]);
  const shot = makePng(1);
  writeFileSync(join(place.workspace, 'shot.png'), shot);
  expectCode(await runInProcess(place, ['-p', 'look at @shot.png']), 0);
  const id = sessionOf(place);
  const { steps } = await exportTo(place, id);
  const asked = steps.find(({ source }) => source === 'user')?.message;
  const shown = steps.find(({ observation }) => observation !== undefined)?.observation?.results[0];
  for (const content of [asked, shown?.content]) {
    assert.ok(Array.isArray(content));
    const picture = content.find(({ type }) => type === 'image');
    assert.equal(picture?.source.media_type, 'image/png');
    assert.deepEqual(readFileSync(join(place.folder, picture?.source.path)), shot);
  }
  assert.deepEqual(readdirSync(join(place.folder, 'run-pictures')).length, 1);

  const piped = await runInProcess(place, ['export', id, '--atif', '-']);
  expectCode(piped, 0);
  const whole = JSON.parse(piped.stdout);
  assert.deepEqual(trajectoryFaults(whole), []);
  assert.doesNotMatch(piped.stdout, /"type":"image"/);
  assert.match(piped.stdout, /image\/png [0-9a-f]{64}: not exported/);

  const again = await runInProcess(place, ['export', id, '--atif', join(place.folder, 'run.json')]);
  expectCode(again, 65);
  assert.match(again.stderr, /run\.json is there already and stays as it is/);
  rmSync(join(place.folder, 'run.json'));
  const beside = await runInProcess(place, [
    'export',
    id,
    '--atif',
    join(place.folder, 'run.json'),
  ]);
  expectCode(beside, 65);
  assert.match(beside.stderr, /run-pictures is there already/);
  assert.equal(existsSync(join(place.folder, 'run.json')), false);
});

test('a compaction is a step of the system, and its usage is in the final metrics', async (context) => {
  const place = await makeServed(context, [
    { type: 'message', parts: [text('First.')], usage },
    message(text('The summary.')),
    message(text('Second.')),
  ]);
  expectCode(await runInProcess(place, ['-p', 'one']), 0);
  expectCode(await runInProcess(place, ['--continue', '-p', 'two']), 0);
  const { steps, final_metrics: totals, extra } = await exportTo(place, sessionOf(place));
  assert.deepEqual(
    steps.slice(1).map(({ source, message: words }) => [source, words]),
    [
      ['user', 'one'],
      ['agent', 'First.'],
      ['system', 'The summary.'],
      ['user', 'two'],
      ['agent', 'Second.'],
    ],
  );
  assert.equal(totals.total_prompt_tokens, 951_020 + 10 + 10);
  assert.equal(totals.total_cached_tokens, 1_000);
  assert.ok(totals.total_cost_usd !== undefined && totals.total_cost_usd > 0);
  assert.ok(Array.isArray(extra.resumes) && extra.resumes.length === 1);
});

test('a task that a crash cut off lies in the trajectory of its session, and keys are replaced', async (context) => {
  const secret = 'sk-a-very-secret-key-4711';
  const place = await makeServed(
    context,
    [
      overloaded,
      message(call('task-1', 'task', { purpose: 'read', prompt: 'What does note.txt say?' })),
      message(call('read-1', 'read', { path: 'note.txt' })),
      { type: 'nothing' },
      message(text('It says forty-two.')),
      done,
    ],
    { SERVICE_API_KEY: secret },
  );
  writeFileSync(join(place.workspace, 'note.txt'), 'forty-two\n');
  const running = startPawl(place, ['--tasks', '-p', `find out with ${secret}`]);
  await until('the second request of the task', () => place.server.requests.length === 4);
  running.child.kill('SIGKILL');
  await running.ended;
  const listed = (await runInProcess(place, ['sessions', '--json'])).stdout.trim().split('\n');
  const sessions = listed.map((line) => JSON.parse(line));
  const id = sessions.find(({ startedBy }) => startedBy === undefined)?.sessionId;

  const open = await exportTo(place, id, 'open.json');
  assert.equal(open.subagent_trajectories?.length, 1);
  expectCode(await runInProcess(place, ['--continue', '-p', 'go on']), 0);
  const whole = await exportTo(place, id);
  const step = whole.steps.find(({ tool_calls: calls }) => calls !== undefined);
  const [result] = step?.observation?.results ?? [];
  const [task] = whole.subagent_trajectories ?? [];
  assert.match(String(result?.content), /It says forty-two/);
  assert.deepEqual(result?.subagent_trajectory_ref, [
    { trajectory_id: task?.trajectory_id, session_id: id },
  ]);
  assert.equal(task?.session_id, id);
  assert.equal(step?.llm_call_count, 2);
  assert.match(JSON.stringify(step?.extra), /overloaded/);
  assert.match(JSON.stringify(whole.extra), /crashed/);
  assert.doesNotMatch(JSON.stringify(whole), new RegExp(secret));

  const forked = (await runInProcess(place, ['fork', id, '--at', '3'])).stdout.trim();
  const fork = await exportTo(place, forked.split('\n').at(-1) ?? '', 'fork.json');
  assert.deepEqual(fork.extra.forked_from, { session_id: id, seq: 3 });
});

test('what has no trajectory is refused in words', async (context) => {
  const place = await makeServed(context, [done]);
  expectCode(await runInProcess(place, ['-p', 'hello']), 0);
  const id = sessionOf(place);
  const two = await runInProcess(place, ['export', id, 'a.pawl', '--atif', 'b.json']);
  expectCode(two, 2);
  assert.match(two.stderr, /Name one file to write: b\.json or a\.pawl/);
  const missing = await runInProcess(place, ['export', id, '--atif', 'no/such/run.json']);
  expectCode(missing, 74);
  assert.match(missing.stderr, /no\/such/);
  const unknown = await runInProcess(place, ['export', 'nobody', '--atif', 'x.json']);
  expectCode(unknown, 65);
});

/** A session that no longer writes to its own journal stops with exit code 74, and says what happened. */

const OWN_MODEL = ['--model', 'scripted/script.json', '--sandbox', 'off', '--hooks', 'never'];

/** The model runs one command in a shell outside of the sandbox, then says that it is done. */
const makeScripted = (
  context: Parameters<typeof makePlace>[0],
  command: string,
  where: (place: Place) => string = ({ workspace }) => workspace,
): Place => {
  const place = makePlace(context);
  const calls = [{ tool: 'bash', input: { command: `cd '${where(place)}' && ${command}` } }];
  writeFileSync(
    join(place.workspace, 'script.json'),
    // a session that was taken over may end its turn before it reads the next prompt
    JSON.stringify({
      replies: [{ calls }, ...Array.from({ length: 3 }, () => ({ text: 'Done.' }))],
    }),
  );
  return place;
};

const inSessions = (context: Parameters<typeof makePlace>[0], command: string): Place =>
  makeScripted(context, `J=$(echo *.jsonl) && ${command}`, ({ state }) =>
    join(state, 'pawl', 'sessions'),
  );

const changes: readonly (readonly [title: string, command: string, says: RegExp])[] = [
  ['removed', 'rm $J', /was removed while/],
  ['moved', 'mv $J $J.old', /was moved to \S+\.old while/],
  ['replaced', 'cp $J copy && mv copy $J', /was replaced by another file/],
  ['cut at a line end', 'head -n 2 $J > copy && cat copy > $J', /was cut shorter/],
  ['appended to', 'echo "{}" >> $J', /was appended to by another program/],
  ['removed with its folder', 'rm -r ../sessions', /was removed with its folder/],
  ['made read-only', 'chmod a-w $J', /was made read-only/],
];

for (const [title, command, says] of changes) {
  test(`a journal that is ${title} during a turn: exit 74 and a copy to go on with`, async (context) => {
    const place = inSessions(context, command);
    const ended = await runInProcess(place, ['-p', 'go', '--json', ...OWN_MODEL]);
    expectCode(ended, 74);
    assert.match(ended.stderr, says);
    const result = readRecords(ended.stdout).at(-1);
    assert.ok(result?.type === 'result' && result.exit === 74 && result.reason === 'foreignChange');
    assert.deepEqual(readdirSync(join(place.state, 'pawl', 'rescued')).length, 1);
  });
}

test('control: a turn whose journal is left alone ends with 0', async (context) => {
  const place = inSessions(context, 'cat $J > /dev/null');
  expectCode(await runInProcess(place, ['-p', 'go', ...OWN_MODEL]), 0);
});

test('a session that is open elsewhere is refused, and can be taken over; the other process stops with 74', async (context) => {
  const place = makeScripted(context, 'touch begun; until test -e release; do sleep 0.05; done');
  const first = startPawl(place, ['-p', 'go', ...OWN_MODEL]);
  await until('the command', () => readdirSync(place.workspace).includes('begun'));
  const id = sessionOf(place);
  const refused = await runInProcess(place, ['--resume', id, '-p', 'more', ...OWN_MODEL]);
  expectCode(refused, 75);
  assert.match(
    refused.stderr,
    /is open in process \d+ on .* since \d{4}-\d\d-\d\d \d\d:\d\d\. .*pawl starts a new one.*--take-over/,
  );
  const second = startPawl(place, [
    '--resume',
    id,
    '--take-over',
    '-p',
    'more',
    '--json',
    ...OWN_MODEL,
  ]);
  await until('the take-over', () => second.stdout().includes('"type":"session"'));
  writeFileSync(join(place.workspace, 'release'), '');
  const [stopped, taken] = await Promise.all([first.ended, second.ended]);
  expectCode(stopped, 74);
  assert.match(stopped.stderr, /was taken over by/);
  expectCode(taken, 0);
  const result = readRecords(taken.stdout).find((record) => record.type === 'toolResult');
  assert.equal(result?.status, 'ok', 'it waited for the command of the other process');
  expectCode(await runInProcess(place, ['replay', id]), 0);
});

test('--take-over without a session to go on with is wrong usage', async (context) => {
  const place = makeScripted(context, 'true');
  expectCode(await runInProcess(place, ['-p', 'go', '--take-over', ...OWN_MODEL]), 2);
});
