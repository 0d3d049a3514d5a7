import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JudgedCall } from '../../src/agent/call.js';
import type { Event } from '../../src/agent/event.js';
import { initialState, step } from '../../src/agent/machine.js';
import { defaultSettings, presetRules } from '../../src/agent/settings.js';
import type { State } from '../../src/agent/state.js';
import type { Answer } from '../../src/cli/approval.js';
import { Desk, type DeskWishes } from '../../src/cli/desk.js';
import { Composer } from '../../src/terminal/composer.js';
import type { LiveArea } from '../../src/terminal/live-area.js';
import { fakeClock } from '../../src/testing/clock.js';
import { keyOf } from '../terminal/typing.js';

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
  let drawn: readonly string[] = [];
  let state: State = initialState(settings);
  const area: LiveArea = {
    print: (text) => void printed.push(text),
    draw: (frame) => {
      drawn = (typeof frame === 'function' ? frame() : frame).rows;
    },
    clear: () => undefined,
  };
  const wishes: DeskWishes = {
    say: (text, mode) => void asked.push(`${mode} ${text}`),
    cancel: () => void asked.push('cancel'),
    answer: (_batchId, _callId, given) => void answers.push(given),
    command: (wish) => void asked.push(wish.kind === 'shell' ? `!${wish.command}` : wish.name),
    stopShell: () => false,
    takenBack: (texts) => texts,
    paste: () => undefined,
    editLast: () => void asked.push('edit last'),
    foresee: () => null,
    suspend: () => void asked.push('suspend'),
    end: (how) => void asked.push(`end ${how}`),
  };
  const composer = new Composer({ commands: [], files: async () => [] }, () => undefined);
  const look = { colour: 'no', columns: 80 } as const;
  const desk = new Desk({ area, look, clock, composer, rows: () => 24 }, wishes, state);
  const happens = (event: Event): void => {
    const next = step(state, event);
    state = next.state;
    desk.see({ seq: 1, event, ...next } as Parameters<Desk['see']>[0]); // the machine's own step
  };
  const press = (...keys: readonly string[]): void => {
    for (const key of keys) desk.take({ kind: 'key', key: keyOf(key) });
  };
  const type = (text: string): void => {
    for (const letter of text) press(letter === '\r' ? 'enter' : `'${letter}'`);
  };
  /** The last rows: what the keys are for. */
  const line = (): string => drawn.slice(drawn.findLastIndex((row) => /^[>?] /.test(row))).join('\n');
  return { clock, asked, answers, printed, desk, happens, press, type, line, drawn: () => drawn.join('\n') };
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
  assert.equal(at.line(), '> ');
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
  assert.equal(at.line(), '> half a sentence y');
  at.clock.advance(400);
  at.type('n\r');
  assert.equal(at.answers[0]?.answer.kind, 'deny');
  assert.equal(at.line(), '> half a sentence y');
});

test('what is no answer leaves the question, and what was typed', () => {
  const at = seat();
  question(at);
  at.clock.advance(400);
  at.type('well\r');
  assert.deepEqual(at.answers, []);
  assert.match(at.drawn(), /\? well$/);
});

test('a short word that is no answer does not spoil the next one', () => {
  const at = seat();
  question(at);
  at.clock.advance(400);
  at.type('x\r');
  assert.match(at.printed.at(-1) ?? '', /'x' is no answer: y once/);
  at.type('y\r');
  assert.deepEqual(at.answers, [{ answer: { kind: 'allow' }, scope: 'once' }]);
});

test('a cancelled turn takes its question away and gives what waited back', () => {
  const at = seat();
  at.type('draft');
  question(at);
  at.happens({ type: 'UserInput', at: at.clock.now(), text: 'waits', mode: 'steer' });
  at.clock.advance(400);
  at.happens({ type: 'CancelTurn', at: at.clock.now() });
  assert.equal(at.line(), '> waits\n  draft');
});

test('an interrupt cancels what runs; two within two seconds end', () => {
  const at = seat();
  question(at);
  at.desk.interrupt();
  at.clock.advance(2_100);
  at.desk.interrupt();
  at.clock.advance(1_900);
  at.desk.interrupt();
  assert.deepEqual(at.asked, ['cancel', 'cancel', 'end hard']);
});

test('an interrupt at rest clears the line; the end key only works on an empty one', () => {
  const at = seat();
  at.type('some');
  at.press('C-d');
  at.desk.interrupt();
  assert.equal(at.line(), '> ');
  at.press('C-d');
  assert.deepEqual(at.asked, ['end clean']);
});

test('an unknown command is explained; it leaves the line, and Up brings it back', () => {
  const at = seat();
  at.type('/halp\r');
  assert.match(at.printed.join(''), /There is no \/halp\. Did you mean \/help\?[\s\S]*Up brings/);
  assert.equal(at.line(), '> ');
  at.type('/cost\r');
  assert.deepEqual(at.asked, ['cost']);
  at.press('up', 'up');
  assert.equal(at.line(), '> /halp');
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
  assert.equal(at.printed.at(-1)?.trim(), '✗ touch x · refused by user: use a copy');
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
  at.press('C-z');
  assert.deepEqual(at.asked, ['suspend']);
  assert.equal(at.line(), '> half a');
});

test('an answer that was being typed when its question went away comes back into the line', () => {
  const at = seat();
  at.type('draft');
  question(at);
  at.clock.advance(400);
  at.type('n use pnpm');
  at.happens({ type: 'CancelTurn', at: at.clock.now() });
  assert.equal(at.line(), '> draft\n  n use pnpm');
});

test('what is allowed for longer is said, with the way back', () => {
  const at = seat();
  question(at);
  at.clock.advance(400);
  at.type('a\r');
  assert.equal(at.printed.at(-1), '· allowed (/permissions takes it back): touch x');
  assert.equal(at.answers[0]?.scope, 'shape');
});

test('Escape twice at rest edits the last input; twice while it works only cancels, and slowly does nothing', () => {
  const at = seat();
  at.press('escape');
  at.clock.advance(1_000);
  at.press('escape');
  assert.deepEqual(at.asked, []);
  at.press('escape');
  assert.deepEqual(at.asked, ['edit last']);
  question(at);
  at.press('escape', 'escape');
  assert.deepEqual(at.asked, ['edit last', 'cancel', 'cancel']);
});

test('a list takes the keys until one is chosen or it is left', async () => {
  const at = seat();
  at.type('draft');
  const choices = ['apple', 'pear'].map((text) => ({ text, about: '' }));
  const chosen = at.desk.pick('Fruit:', choices);
  at.press('down', 'enter');
  assert.equal(await chosen, 1);
  const left = at.desk.pick('Fruit:', choices);
  at.press('escape');
  assert.equal(await left, null);
  assert.equal(at.line(), '> draft');
});

test('a command of the user’s own, and what it is called by', () => {
  const at = seat();
  at.type('!ls -l\r');
  at.type('/model\r');
  assert.deepEqual(at.asked, ['!ls -l', 'model']);
});

test('a question that may be answered stands on the screen: a list that would cover it is closed', async () => {
  const at = seat();
  const left = at.desk.pick('Fruit:', [{ text: 'apple', about: '' }]);
  question(at);
  at.press('down');
  at.clock.advance(400);
  assert.equal(await left, null);
  assert.match(at.drawn(), /y once/);
});
