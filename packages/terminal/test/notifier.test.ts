import assert from 'node:assert/strict';
import { test } from 'node:test';
import { initialState } from '@pawl/agent/machine/machine';
import { defaultSettings } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import { fakeClock } from '../../../test/fake-clock.js';
import { Notifier } from '../src/notifier.js';
import { windowTitle } from '../src/paint.js';
import { makeSafe, type Safe } from '../src/safe-text.js';

// The title of the window, and calls for a user who looks elsewhere.

const FOCUS_IN = '\u001b[I';
const FOCUS_OUT = '\u001b[O';
const REPORTS = '\u001b[?1004;2$y';

const stage = (name = 'shop', environment: NodeJS.ProcessEnv = { TERM: 'xterm' }) => {
  const clock = fakeClock();
  const calls: string[] = [];
  const titles: string[] = [];
  const notifier = new Notifier({
    clock,
    environment,
    write: (text) => text.includes('\u0007') && void calls.push(text),
    setTitle: (title: Safe) => void titles.push(title),
  });
  const { session: empty } = initialState({
    ...defaultSettings,
    model: 'scripted/x',
    workspace: '/w',
  });
  let startedAt = clock.now();
  const state = (more: object): State =>
    ({ session: { ...empty, turn: { ...empty.turn, startedAt } }, ...more }) as unknown as State;
  const see = (more: object): void => notifier.see(state(more));
  notifier.start(name, state({ name: 'Ready' }));
  return {
    clock,
    calls,
    titles,
    notifier,
    state,
    begin(): void {
      startedAt = clock.now();
      see({ name: 'CallingLlm' });
    },
    ask: () => see({ name: 'ExecutingTools', calls: [{ status: 'awaitingApproval' }] }),
    answer: () => see({ name: 'ExecutingTools', calls: [{ status: 'running' }] }),
    end: (kind = 'done') => see({ name: 'WaitingForUserInput', reason: { kind } }),
  };
};

test('the title has the state, and changes with it alone', () => {
  const at = stage();
  at.begin();
  at.begin();
  at.ask();
  at.answer();
  at.end('error');
  assert.deepEqual(at.titles, [
    'ready · shop · pawl',
    'working · shop · pawl',
    'needs your answer · shop · pawl',
    'working · shop · pawl',
    'failed · shop · pawl',
  ]);
});

test('a question calls once, after five seconds without the focus', () => {
  const at = stage();
  at.notifier.receive(REPORTS);
  at.notifier.receive(FOCUS_OUT);
  at.begin();
  at.clock.advance(1_000);
  at.ask();
  at.clock.advance(3_999);
  assert.deepEqual(at.calls, []);
  at.clock.advance(1);
  assert.deepEqual(at.calls, ['\u0007\u001b]9;Pawl: needs your answer · shop\u0007']);
  at.clock.advance(600_000);
  assert.equal(at.calls.length, 1);
  at.answer();
  at.ask();
  assert.equal(at.calls.length, 2, 'the next question calls at once: the user is still away');
  assert.equal(at.clock.waiting(), 0);
});

test('who looks is not called; who leaves the question is', () => {
  const at = stage();
  at.notifier.receive(REPORTS);
  at.begin();
  at.ask();
  at.clock.advance(600_000);
  assert.deepEqual(at.calls, []);
  at.notifier.receive('\u001b[');
  at.notifier.receive('O');
  at.clock.advance(4_000);
  at.notifier.receive(FOCUS_IN);
  at.clock.advance(600_000);
  assert.deepEqual(at.calls, [], 'came back in time');
  at.answer();
  at.ask();
  at.notifier.receive(FOCUS_OUT);
  at.answer();
  at.clock.advance(600_000);
  assert.deepEqual(at.calls, [], 'answered elsewhere');
});

test('the end of a long turn calls; of a short or stopped one, or one that was seen, it does not', () => {
  const rows: readonly (readonly [number, string, string, number])[] = [
    [20_000, 'done', FOCUS_OUT, 1],
    [19_999, 'done', FOCUS_OUT, 0],
    [60_000, 'cancelled', FOCUS_OUT, 0],
    [60_000, 'error', FOCUS_OUT, 1],
    [60_000, 'done', FOCUS_IN, 0],
  ];
  for (const [tookMs, how, focus, called] of rows) {
    const at = stage();
    at.notifier.receive(REPORTS + focus);
    at.begin();
    at.clock.advance(tookMs);
    at.end(how);
    at.notifier.receive(FOCUS_OUT);
    at.clock.advance(60_000);
    assert.equal(at.calls.length, called, `${tookMs} ${how} ${JSON.stringify(focus)}`);
  }
});

test('without reports of the focus the keys tell who is there', () => {
  const at = stage();
  at.begin();
  at.clock.advance(20_000);
  at.notifier.receive('x');
  at.ask();
  at.clock.advance(20_000);
  at.notifier.receive('y');
  at.clock.advance(29_000);
  assert.deepEqual(at.calls, []);
  at.clock.advance(1_000);
  assert.equal(at.calls.length, 1);
});

test('an answer that a server wants calls too, and after the end nothing does', () => {
  const at = stage();
  at.notifier.receive(FOCUS_OUT);
  at.notifier.ask();
  at.clock.advance(5_000);
  assert.equal(at.calls.length, 1);
  at.notifier.stop();
  at.notifier.ask();
  at.begin();
  at.clock.advance(600_000);
  assert.equal(at.calls.length, 1);
  assert.equal(at.titles.length, 1);
});

test('no name of a folder controls the terminal', () => {
  const hostile = 'a\u0007\u001b]52;c;aGk=\u0007\u009b31m;b\u202e\u001b[31mred\nx';
  const environments = [{ TERM: 'xterm' }, { TERM: 'foot' }, { VTE_VERSION: '7000' }];
  for (const environment of environments) {
    const at = stage(hostile, environment);
    at.notifier.receive(FOCUS_OUT);
    at.notifier.ask();
    at.clock.advance(5_000);
    for (const text of [...at.calls, windowTitle(makeSafe(at.titles[0] ?? ''), environment)]) {
      const inner = /^\u0007?\u001b\](?:9;Pawl: |777;notify;Pawl;|2;)(.*)\u0007$/su.exec(text)?.[1];
      assert.ok(inner !== undefined && !/[\p{Cc}\u202e]/u.test(inner), JSON.stringify(text));
      if (text.startsWith('\u0007')) assert.ok(!inner.includes(';'), inner);
    }
  }
});

test('the console of Linux gets the bell alone', () => {
  const at = stage('shop', { TERM: 'linux' });
  at.notifier.receive(FOCUS_OUT);
  at.notifier.ask();
  at.clock.advance(5_000);
  assert.deepEqual(at.calls, ['\u0007']);
});

test('keys that look like a report, but are typed one by one, are none', () => {
  for (const [pauseMs, calls] of [
    [0, 1],
    [500, 0],
  ] as const) {
    const at = stage();
    at.begin();
    for (const key of ['\u001b', '[', 'O']) {
      at.clock.advance(pauseMs);
      at.notifier.receive(key);
    }
    at.ask();
    at.clock.advance(6_000);
    assert.equal(at.calls.length, calls, `${pauseMs}`);
  }
});

test('another session begins with its own title, and with no end of the one before', () => {
  const at = stage();
  at.notifier.receive(FOCUS_OUT);
  at.begin();
  at.clock.advance(60_000);
  at.notifier.stop();
  at.notifier.start('tools', at.state({ name: 'CallingLlm' }));
  at.end();
  assert.deepEqual(at.titles.slice(-2), ['working · tools · pawl', 'ready · tools · pawl']);
  assert.deepEqual(at.calls, []);
});
