import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../../../../test/fake-clock.js';
import { createJoiner } from '../../src/platform/clock.js';

const joinInto = () => {
  const clock = fakeClock();
  const out: string[] = [];
  const joiner = createJoiner(clock, (key, text) => out.push(`${key}:${text}`));
  return { clock, out, joiner };
};

test('the first piece goes out at once, what follows within 40 ms goes out together', () => {
  const { clock, out, joiner } = joinInto();
  joiner.add('text', 'a');
  joiner.add('text', 'b');
  joiner.add('text', 'c');
  assert.deepEqual(out, ['text:a']);
  clock.advance(40);
  assert.deepEqual(out, ['text:a', 'text:bc']);
});

test('a thousand pieces in a second are at most 26 events', () => {
  const { clock, out, joiner } = joinInto();
  for (let piece = 0; piece < 1_000; piece++) {
    joiner.add('text', 'x');
    clock.advance(1);
  }
  joiner.flush();
  assert.ok(out.length <= 26, `${out.length}`);
  assert.equal(out.join('').replaceAll('text:', '').length, 1_000);
});

test('kinds are joined apart, in the order of their first piece', () => {
  const { out, joiner } = joinInto();
  joiner.add('reasoning', 'r');
  joiner.add('text', 'a');
  joiner.add('reasoning', 's');
  joiner.add('text', 'b');
  joiner.flush();
  assert.deepEqual(out, ['reasoning:r', 'text:ab', 'reasoning:s']);
});

test('nothing comes and no timer is left after flush or drop', () => {
  for (const end of ['flush', 'drop'] as const) {
    const { clock, out, joiner } = joinInto();
    joiner.add('text', 'a');
    joiner.add('text', 'b');
    joiner[end]();
    assert.equal(clock.waiting(), 0);
    assert.deepEqual(out, end === 'flush' ? ['text:a', 'text:b'] : ['text:a']);
  }
});

test('no timer runs while nothing is streamed', () => {
  const { clock, joiner } = joinInto();
  joiner.add('text', 'a');
  clock.advance(80);
  assert.equal(clock.waiting(), 0);
});
