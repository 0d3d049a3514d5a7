import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event } from '@pawl/agent/machine/event';

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
