import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job, Jobs } from '../../src/ports/tool.js';
import { createRedactor } from '../../src/secrets/redactor.js';
import { redactJobs, redactOutcome } from '../../src/session/result-text.js';

const KEY = 'ghp_0123456789abcdefghij0123456789ABCDEF';
const redactor = createRedactor([{ name: 'KEY', value: KEY }]);

test('a secret in the text, the change or the summary of an outcome is replaced, and said', () => {
  for (const part of ['text', 'diff', 'summary'] as const) {
    const whole = { status: 'ok', text: 'done', diff: '+ a', summary: 'short' } as const;
    const outcome = redactOutcome(redactor, { ...whole, [part]: `it is ${KEY}` });
    assert.ok(!JSON.stringify(outcome).includes(KEY), part);
    assert.match(outcome[part] ?? '', /^it is \[secret:\$KEY\]/);
    assert.match(outcome.text, /\n.*\$KEY/, 'a note says it');
  }
});

test('the output of a job is read without secrets, in whatever way the job is found', () => {
  const job: Job = {
    jobId: 'job-1',
    command: 'env',
    status: () => 'running',
    output: () => `KEY=${KEY}`,
    kill: () => Promise.resolve(),
  };
  const jobs: Jobs = {
    add: () => job,
    restore: () => undefined,
    get: () => job,
    list: () => [job],
  };
  const clean = redactJobs(redactor, jobs);
  for (const found of [clean.add(() => job), clean.get('job-1'), ...clean.list()])
    assert.equal(found?.output(), 'KEY=[secret:$KEY]');
  assert.equal(clean.list().length, 1);
});
