import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Trajectory } from '@pawl/inspector/atif-trajectory';
import { trajectoryFaults } from '../../../../test/kit/atif/trajectory-faults.js';
import { makePng } from '../../../../test/servers/sample-pictures.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed, type Place, sessionOf, startPawl } from './pawl.js';
import { call, done, message, overloaded, text } from './wire-words.js';

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
  assert.match(two.stderr, /Name one file: --atif b\.json or a\.pawl/);
  const missing = await runInProcess(place, ['export', id, '--atif', 'no/such/run.json']);
  expectCode(missing, 74);
  assert.match(missing.stderr, /no\/such/);
  const unknown = await runInProcess(place, ['export', 'nobody', '--atif', 'x.json']);
  expectCode(unknown, 65);
});
