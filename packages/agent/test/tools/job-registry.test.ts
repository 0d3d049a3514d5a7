import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { until } from '../../../../test/until.js';
import { createJobs, type Job } from '../../src/ports/tool.js';
import { makePlace } from './context.js';

test('jobs: a job is listed, shown and killed with all its processes', async (t) => {
  const place = await makePlace(t);
  const started = await place.run('bash', {
    command: 'echo up; setsid sleep 1000 & sleep 1000',
    background: true,
  });
  assert.equal(started.status, 'ok');
  assert.match(started.text, /^Started job-1 in the background/);
  await until('its output is there', () => place.jobs.get('job-1')?.output() === 'up');
  const listed = await place.run('bash', { jobAction: 'list' });
  assert.equal(listed.text, 'job-1: running: echo up; setsid sleep 1000 & sleep 1000');
  const shown = await place.run('bash', { jobAction: 'show', jobId: 'job-1' });
  assert.match(shown.text, /^up\n\[job-1: running: /);
  const killed = await place.run('bash', { jobAction: 'kill', jobId: 'job-1' });
  assert.match(killed.text, /^up\n\[job-1: ended by SIGKILL/);
  await until('nothing of it runs', () => processesWith(place.callId).length === 0);
});

test('jobs: a job outlives the call that started it and ends with the session', async (t) => {
  const place = await makePlace(t);
  const signal = new AbortController();
  await place.run(
    'bash',
    { command: 'sleep 1000', background: true },
    { signal: signal.signal, force: signal.signal },
  );
  signal.abort('cancelled');
  assert.equal(place.jobs.get('job-1')?.status(), 'running');
  assert.ok(processesWith(place.callId).length > 0); // the command, and the guard that ends it with Pawl
  await place.jobs.get('job-1')?.kill();
  await until('nothing of it runs', () => processesWith(place.callId).length === 0);
});

test('jobs: a job that ends at once is reported as it ended', async (t) => {
  const place = await makePlace(t);
  const outcome = await place.run('bash', { command: 'echo broken; exit 4', background: true });
  // On a slow machine it may have been reported as started; what it ended with is known all the same.
  await until('it has ended', () => place.jobs.get('job-1')?.status() !== 'running');
  assert.match(place.jobs.get('job-1')?.status() ?? '', /^exit code 4/);
  assert.match(outcome.text, /^broken\n\[exit code 4|^Started job-1/);
});

test('jobs: a call that was cancelled before starts no job', async (t) => {
  const place = await makePlace(t);
  const command = { command: 'sleep 1000', background: true };
  const outcome = await place.run('bash', command, { signal: AbortSignal.abort('cancelled') });
  assert.deepEqual([outcome.status, outcome.ran, place.jobs.list()], ['cancelled', 'no', []]);
});

test('jobs: files that git could not write are looked for when the job has ended', async (t) => {
  const looks: (string | undefined)[] = [];
  const look = async (): Promise<null> => {
    looks.push(place.jobs.get('job-1')?.status());
    return null;
  };
  const protectedGitFiles = { find: async () => [], beforeCommand: async () => look };
  const place = await makePlace(t, process.env, 'workspace', { protectedGitFiles });
  const command = 'until [ -e go ]; do sleep 0.02; done; git add .';
  const started = await place.run('bash', { command, background: true });
  assert.match(started.text, /^Started job-1/);
  assert.deepEqual(looks, []);
  writeFileSync(place.path('go'), '');
  await until('the job has ended', () => looks.length > 0);
  assert.match(looks[0] ?? '', /^exit code/);
});

test('a look for files that git could not write costs no outcome if it fails', async (t) => {
  const look = async (): Promise<null> => {
    throw new Error('the disk is full');
  };
  const protectedGitFiles = { find: async () => [], beforeCommand: async () => look };
  const place = await makePlace(t, process.env, 'workspace', { protectedGitFiles });
  for (const background of [false, true]) {
    const { status, text } = await place.run('bash', {
      command: 'echo did; git add . || true',
      background,
    });
    assert.equal(status, 'ok', text);
    assert.match(text, /did/);
  }
});

test('jobs: an unknown job is a failure that names those that exist', async (t) => {
  const place = await makePlace(t);
  const outcome = await place.run('bash', { jobAction: 'kill', jobId: 'job-9' });
  assert.equal(outcome.status, 'failed');
  assert.equal(outcome.text, 'There is no job job-9. There are no jobs.');
});

test('jobs: a number names a job, and a wrong one lists those that there are', async (t) => {
  const place = await makePlace(t);
  await place.run('bash', { command: 'sleep 1000', background: true });
  for (const jobId of [1, '1', 'job-1', 'Job 1', '#1']) {
    const shown = await place.run('bash', { jobAction: 'show', jobId, command: '' });
    assert.match(shown.text, /\[job-1: running: sleep 1000\]/, String(jobId));
  }
  const wrong = await place.run('bash', { jobAction: 'show', jobId: 7 });
  assert.equal(wrong.text, 'There is no job job-7. job-1: running: sleep 1000');
});

test('jobs: a new job gets a new id, whatever ids the jobs of an earlier process have', () => {
  const jobs = createJobs();
  const makeJob = (jobId: string): Job => ({
    jobId,
    command: '',
    status: () => '',
    output: () => '',
    kill: async () => undefined,
  });
  for (const jobId of ['job-2', 'a', '9', 'job-', 'job-1e9']) jobs.restore(makeJob(jobId));
  assert.deepEqual([jobs.add(makeJob).jobId, jobs.add(makeJob).jobId], ['job-3', 'job-4']);
});
