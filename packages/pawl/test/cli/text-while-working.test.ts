import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event } from '@pawl/agent/machine/event';
import { ShellOutputs } from '../../src/interactive/run-sessions.js';

import { question, stageView } from './interactive-stage.js';

/** A call that needs no approval runs, and its result is posted before the text that is typed while it runs. */
const typedWhileItRuns = (order: 'result first' | 'text first') => {
  const at = stageView();
  const time = at.clock.now();
  question(at);
  at.happens({
    type: 'ApprovalAnswered',
    at: time,
    batchId: 'batch-1',
    callId: 'a',
    answer: { kind: 'allow' },
    scope: 'once',
  });
  at.happens({ type: 'ToolStarted', at: time, batchId: 'batch-1', callId: 'a' });
  at.printed.length = 0;
  at.type('be brief\r');
  const outcome = { status: 'failed', text: 'the output' } as const;
  const events: readonly Event[] = [
    { type: 'ToolCompleted', at: time, batchId: 'batch-1', callId: 'a', outcome },
    { type: 'UserInput', at: time, text: 'be brief', mode: 'steer' },
  ];
  for (const event of order === 'text first' ? events.toReversed() : events) at.happens(event);
  return at.printed.join('\n');
};

test('a text stands before or after the output of a command as the journal has them, as it does when resumed', () => {
  assert.match(typedWhileItRuns('result first'), /the output[\s\S]*> be brief/);
  assert.match(typedWhileItRuns('text first'), /> be brief[\s\S]*the output/);
});

test('a text that is sent at rest is printed at once, and once', () => {
  const at = stageView();
  at.type('fix it\r');
  assert.equal(at.printed.filter((text) => text.includes('fix it')).length, 1);
  at.happens({ type: 'UserInput', at: at.clock.now(), text: 'fix it', mode: 'steer' });
  assert.equal(at.printed.filter((text) => text.includes('fix it')).length, 1);
});

test('the output of a command is sent once, with the next text', () => {
  const shellOutputs = new ShellOutputs();
  assert.equal(shellOutputs.attach('hi'), 'hi');
  shellOutputs.add({ command: 'ls', output: 'a\nb\n' });
  shellOutputs.add({ command: 'pwd', output: '/w' });
  assert.equal(
    shellOutputs.attach('see?'),
    'I ran this command myself:\n$ ls\na\nb\n\nI ran this command myself:\n$ pwd\n/w\n\nsee?',
  );
  assert.equal(shellOutputs.attach('again'), 'again');
});

test('a text that comes back comes as it was typed; what was run goes out with the next one', () => {
  const shellOutputs = new ShellOutputs();
  shellOutputs.add({ command: 'ls', output: 'a' });
  const sent = shellOutputs.attach('see?');
  shellOutputs.add({ command: 'pwd', output: '/w' });
  assert.equal(shellOutputs.detach(sent), 'see?');
  assert.match(shellOutputs.attach('now'), /\$ ls\na\n[\s\S]*\$ pwd\n\/w\n\nnow$/);
  assert.equal(shellOutputs.detach('another'), 'another');
});

test('two equal texts come back as they were typed, each', () => {
  const shellOutputs = new ShellOutputs();
  const sent = shellOutputs.attach('/review', '/review\n\nThe text of the skill.');
  assert.equal(shellOutputs.attach('/review', '/review\n\nThe text of the skill.'), sent);
  assert.equal(shellOutputs.detach(sent), '/review');
  assert.equal(shellOutputs.detach(sent), '/review');
});

test('head and tail of a long output are sent', () => {
  const shellOutputs = new ShellOutputs();
  shellOutputs.add({ command: 'yes', output: `begin\n${'y\n'.repeat(50_000)}end` });
  const sent = shellOutputs.attach('x');
  assert.ok(sent.length < 11_000);
  assert.match(sent, /begin\n[\s\S]*bytes left out[\s\S]*end\n/);
});
