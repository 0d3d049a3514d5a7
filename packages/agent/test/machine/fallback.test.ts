import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { type SettingsPatch, settingsOf } from '../../../../test/kit/agent/settings.js';
import { type Walker, walk } from '../../../../test/kit/agent/walker.js';
import type { ModelErrorKind } from '../../src/machine/event.js';
import { initialState } from '../../src/machine/machine.js';

// The trace another-model-takes-over has the story; here is which failures lead to another model, and to which one.

const model = (id: string, more: object = {}) => ({
  model: id,
  windowTokens: 200_000,
  prices: { input: 1, output: 5, cacheRead: 0, cacheWrite: 0 },
  ...more,
});

const asked = (
  fallback: NonNullable<SettingsPatch['fallback']>,
  more: SettingsPatch = {},
): Walker => {
  const settings = { maxRetries: 0, hooks: 'never', fallback, ...more } as const;
  const walker = walk(initialState(settingsOf(settings)));
  walker.send(g.begin, g.input('hi'));
  return walker;
};
const current = (walker: Walker): string => walker.state().session.settings.model;
const passing = g.fails();

const kinds: readonly (readonly [
  kind: ModelErrorKind,
  retryable: boolean,
  falls: 'back' | 'not',
])[] = [
  ['rateLimited', true, 'back'],
  ['overloaded', true, 'back'],
  ['unreachable', true, 'back'],
  ['timeout', true, 'back'],
  ['quotaExhausted', false, 'back'],
  ['unreachable', false, 'not'], // a certificate, a proxy: to be repaired
  ['auth', false, 'not'],
  ['badRequest', false, 'not'],
  ['refused', false, 'not'],
  ['malformed', true, 'not'],
  ['contextOverflow', false, 'not'],
];
for (const [kind, retryable, falls] of kinds)
  test(`${kind}, ${retryable ? 'for now' : 'for good'}, falls ${falls}`, () => {
    const walker = asked([model('b/second')]);
    walker.send(g.fails({ kind, retryable }));
    assert.equal(current(walker), falls === 'back' ? 'b/second' : 'test/model');
    assert.equal(walker.state().name, falls === 'back' ? 'CallingLlm' : 'WaitingForUserInput');
  });

test('each model is asked once in a turn, and the list ends', () => {
  const [a, b] = [model('b/a'), model('b/b')];
  const walker = asked([a, model('test/model'), b, a, b]);
  const seen = [0, 1, 2].map(() => {
    walker.send(passing);
    return `${walker.state().name} ${current(walker)}`;
  });
  assert.deepEqual(seen, ['CallingLlm b/a', 'CallingLlm b/b', 'WaitingForUserInput b/b']);
});

test('what takes over brings its window and whether it can be aborted, and takes them away again', () => {
  const walker = asked([
    model('b/slow', { windowTokens: 9_000, cancelMode: 'drain' }),
    model('b/c'),
  ]);
  const shown = () => {
    const { windowTokens, cancelMode, primary } = walker.state().session.settings;
    return [current(walker), windowTokens, cancelMode, primary?.model];
  };
  const first = shown();
  walker.send(passing);
  assert.deepEqual(shown(), ['b/slow', 9_000, 'drain', 'test/model']);
  walker.send(passing);
  assert.deepEqual(shown(), ['b/c', 200_000, 'abort', 'test/model']);
  walker.send(g.says('yes'), g.input('and now?'));
  assert.deepEqual(shown(), first);
});

test('a conversation of nine tenths of a window fits, and no larger one', () => {
  for (const [windowTokens, name] of [
    [1_000, 'CallingLlm'],
    [999, 'WaitingForUserInput'],
  ] as const) {
    const walker = asked([model('b/second', { windowTokens })]);
    walker.send(g.wants(g.grep('1')), g.started('1'));
    const { session } = walker.state();
    // four characters count as a token
    const characters = 4 * (900 - session.contextTokens);
    walker.send(g.ended('1', 'ok', 'x'.repeat(characters)));
    assert.equal(walker.state().session.contextTokens, 900);
    walker.send(passing);
    assert.equal(walker.state().name, name);
  }
});

test('a turn that was cancelled, or that the stopping policy ends, falls back to nothing', () => {
  const drained = asked([model('b/second')], { cancelMode: 'drain' });
  drained.send(g.cancel, passing);
  const stopped = asked([model('b/second')], { userPolicy: 'ask' });
  stopped.send(g.policyStops());
  for (const walker of [drained, stopped])
    assert.deepEqual([walker.state().name, current(walker)], ['WaitingForUserInput', 'test/model']);
});

test('a model that the user chooses stays in the next turn', () => {
  const walker = asked([model('b/second')]);
  walker.send(passing, g.change({ model: 'c/mine' }), g.says('yes'), g.input('and now?'));
  assert.equal(current(walker), 'c/mine');
});
