import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ShellOutputs } from '../../src/interactive/run-sessions.js';

import { question, stageView } from './interactive-stage.js';

/** A call runs, a text is typed, and then this happens. */
const typedWhileItRuns = (next: 'the call ends' | 'the turn is cancelled') => {
  const at = stageView();
  const time = at.clock.now();
  const batch = { batchId: 'batch-1', callId: 'a', at: time } as const;
  question(at);
  at.happens({
    type: 'ApprovalAnswered',
    ...batch,
    answer: { kind: 'allow' },
    scope: 'once',
  });
  at.happens({ type: 'ToolStarted', ...batch });
  at.printed.length = 0;
  at.type('be brief\r');
  at.happens({ type: 'UserInput', at: time, text: 'be brief', mode: 'steer' });
  const queued = at.drawn();
  if (next === 'the turn is cancelled') at.happens({ type: 'CancelTurn', at: time });
  const outcome = { status: 'failed', text: 'the output' } as const;
  at.happens({ type: 'ToolCompleted', ...batch, outcome });
  return { queued, printed: at.printed.join('\n'), after: at.drawn() };
};

test('a text waits above the status, and is printed once it is sent, below the output', () => {
  const { queued, printed, after } = typedWhileItRuns('the call ends');
  assert.match(queued, /\nqueued: be brief\n.*running/);
  assert.match(printed, /the output[\s\S]*> be brief/);
  assert.doesNotMatch(after, /queued/);
});

test('a text that is taken back is never printed, and stands in the line again', () => {
  const { queued, printed, after } = typedWhileItRuns('the turn is cancelled');
  assert.match(queued, /\nqueued: be brief\n/);
  assert.doesNotMatch(printed, /be brief/);
  assert.match(after, /\n> be brief/);
  assert.doesNotMatch(after, /queued/);
});

test('a text that is sent at rest is printed at once, and once', () => {
  const at = stageView();
  at.type('fix it\r');
  assert.equal(at.printed.filter((text) => text.includes('fix it')).length, 1);
  at.happens({ type: 'UserInput', at: at.clock.now(), text: 'fix it', mode: 'steer' });
  assert.equal(at.printed.filter((text) => text.includes('fix it')).length, 1);
});

test('while the session leaves, an empty line says nothing, and a refused one comes back with why', () => {
  const at = stageView('yes');
  at.view.setLeaving(true);
  at.type('\r');
  assert.deepEqual(at.printed, []);
  at.type('/nosuch\r');
  assert.match(at.printed.join('\n'), /nosuch[\s\S]*not sent: \/nosuch/);
  assert.equal(at.printed.length, 2);
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
