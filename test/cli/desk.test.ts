import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JudgedCall } from '../../src/agent/call.js';
import type { Event } from '../../src/agent/event.js';
import { initialState, step } from '../../src/agent/machine.js';
import { defaultSettings, presetRules } from '../../src/agent/settings.js';
import type { State } from '../../src/agent/state.js';
import type { Answer } from '../../src/cli/approval.js';
import { Desk } from '../../src/cli/desk.js';
import type { LiveArea } from '../../src/cli/live-area.js';
import { fakeClock } from '../../src/testing/clock.js';

/** The desk with a clock that stands still; the machine behind it is the real one. */

const settings = {
  ...defaultSettings,
  model: 'scripted/x',
  workspace: '/w',
  hooks: 'never' as const,
  queueOnCancel: 'restore' as const,
  rules: presetRules.careful,
};

const call: JudgedCall = {
  callId: 'a',
  tool: 'touch',
  input: {},
  verdict: { kind: 'ok' },
  traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 1_000 },
  facts: { argv: [], paths: ['/w/x'], hosts: [], shape: '/w/x' },
};

const seat = () => {
  const clock = fakeClock();
  const asked: string[] = [];
  const answers: Answer[] = [];
  const printed: string[] = [];
  let drawn = '';
  let state: State = initialState(settings);
  const area: LiveArea = {
    print: (text) => void printed.push(text),
    stream: (text) => void printed.push(text),
    endStream: () => undefined,
    draw: (_status, prompt, text) => {
      drawn = prompt + text;
    },
    clear: () => undefined,
  };
  const wishes = {
    say: (text: string, mode: string) => void asked.push(`${mode} ${text}`),
    cancel: () => void asked.push('cancel'),
    answer: (_batchId: string, _callId: string, given: Answer) => void answers.push(given),
    command: ({ kind }: { kind: string }) => void asked.push(kind),
    suspend: () => void asked.push('suspend'),
    end: (how: string) => void asked.push(`end ${how}`),
  };
  const desk = new Desk(area, { colour: 'no', columns: 80 }, clock, wishes, state);
  const happens = (event: Event): void => {
    const next = step(state, event);
    state = next.state;
    desk.see({ seq: 1, event, ...next } as Parameters<Desk['see']>[0]); // the machine's own step
  };
  const type = (text: string): void => {
    for (const letter of text) {
      if (letter === '\r') desk.take({ kind: 'enter' });
      else desk.take({ kind: 'key', key: { name: letter, text: letter, control: false, alt: false } });
    }
  };
  return { clock, asked, answers, printed, desk, happens, type, drawn: () => drawn };
};

const question = (at: ReturnType<typeof seat>): void => {
  const time = at.clock.now();
  at.happens({ type: 'UserInput', at: time, text: 'go', mode: 'steer' });
  at.happens({
    type: 'LlmCompleted',
    at: time,
    requestId: 'req-1',
    message: {
      role: 'assistant',
      model: 'scripted/x',
      cut: false,
      parts: [{ type: 'call', callId: 'a', tool: 'touch', input: {} }],
    },
    calls: [call],
    stopReason: 'toolUse',
    usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, costUsd: 0 },
  });
};

test('Enter sends the line once, and empties it', () => {
  const at = seat();
  at.type('fix it\r\r');
  assert.deepEqual(at.asked, ['steer fix it']);
  assert.equal(at.drawn(), '> ');
});

test('a question that was on the screen for a quiet moment takes the answer', () => {
  const at = seat();
  question(at);
  at.clock.advance(400);
  assert.match(at.drawn(), /y once/);
  at.type('y\r');
  assert.deepEqual(at.answers, [{ answer: { kind: 'allow' }, scope: 'once' }]);
});

test('keys pressed right when the question comes go into the line, and send it as a message', () => {
  const at = seat();
  question(at);
  at.type('y\r');
  assert.deepEqual(at.answers, []);
  assert.deepEqual(at.asked, ['steer y']);
});

test('whoever goes on typing is not interrupted by a question until the keyboard is quiet', () => {
  const at = seat();
  at.type('half a sent');
  question(at);
  for (const letter of 'ence y') {
    at.clock.advance(200);
    at.type(letter);
  }
  assert.equal(at.drawn(), '> half a sentence y');
  at.clock.advance(400);
  at.type('n\r');
  assert.equal(at.answers[0]?.answer.kind, 'deny');
  assert.equal(at.drawn(), '> half a sentence y');
});

test('what is no answer leaves the question, and what was typed', () => {
  const at = seat();
  question(at);
  at.clock.advance(400);
  at.type('well\r');
  assert.deepEqual(at.answers, []);
  assert.match(at.drawn(), /\? well$/);
});

test('a cancelled turn takes its question away and gives what waited back', () => {
  const at = seat();
  at.type('draft');
  question(at);
  at.happens({ type: 'UserInput', at: at.clock.now(), text: 'waits', mode: 'steer' });
  at.clock.advance(400);
  at.happens({ type: 'CancelTurn', at: at.clock.now() });
  assert.equal(at.drawn(), '> waits\ndraft');
});

test('an interrupt cancels what runs; two within two seconds end', () => {
  const at = seat();
  question(at);
  at.desk.take({ kind: 'interrupt' });
  at.clock.advance(2_100);
  at.desk.take({ kind: 'interrupt' });
  at.clock.advance(1_900);
  at.desk.take({ kind: 'interrupt' });
  assert.deepEqual(at.asked, ['cancel', 'cancel', 'end hard']);
});

test('an interrupt at rest clears the line; the end key only works on an empty one', () => {
  const at = seat();
  at.type('some');
  at.desk.take({ kind: 'end' });
  at.desk.take({ kind: 'interrupt' });
  assert.equal(at.drawn(), '> ');
  at.desk.take({ kind: 'end' });
  assert.deepEqual(at.asked, ['end clean']);
});

test('an unknown command is explained; it leaves the line, and Up brings it back', () => {
  const at = seat();
  at.type('/halp\r');
  assert.match(at.printed.join(''), /There is no \/halp\. Did you mean \/help\?.*\n.*Up brings/);
  assert.equal(at.drawn(), '> ');
  at.type('/cost\r');
  assert.deepEqual(at.asked, ['cost']);
  for (const name of ['up', 'up'])
    at.desk.take({ kind: 'key', key: { name, text: '', control: false, alt: false } });
  assert.equal(at.drawn(), '> /halp');
});

test('a refusal is seen as one, with its reason', () => {
  const at = seat();
  question(at);
  at.clock.advance(400);
  at.type('n use a copy\r');
  const [given] = at.answers;
  assert.ok(given !== undefined);
  at.happens({
    type: 'ApprovalAnswered',
    at: at.clock.now(),
    batchId: 'batch-1',
    callId: 'a',
    ...given,
  });
  assert.equal(at.printed.at(-1), '✗ touch x · refused by user: use a copy');
});

test('a command that cannot be followed now says why', () => {
  const at = seat();
  question(at);
  at.happens({ type: 'CompactRequested', at: at.clock.now() });
  assert.equal(at.printed.at(-1), '  not now: a turn is running');
});

test('Ctrl-Z gives the terminal back, whatever is in the line', () => {
  const at = seat();
  at.type('half a');
  at.desk.take({ kind: 'suspend' });
  assert.deepEqual(at.asked, ['suspend']);
  assert.equal(at.drawn(), '> half a');
});
