import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Asides } from '../../src/cli/asides.js';

test('what was run goes out with the next text, once', () => {
  const asides = new Asides();
  assert.equal(asides.attach('hi'), 'hi');
  asides.add({ command: 'ls', output: 'a\nb\n' });
  asides.add({ command: 'pwd', output: '/w' });
  assert.equal(
    asides.attach('see?'),
    'I ran this command myself:\n$ ls\na\nb\n\nI ran this command myself:\n$ pwd\n/w\n\nsee?',
  );
  assert.equal(asides.attach('again'), 'again');
});

test('a text that comes back comes as it was typed; what was run goes out with the next one', () => {
  const asides = new Asides();
  asides.add({ command: 'ls', output: 'a' });
  const sent = asides.attach('see?');
  asides.add({ command: 'pwd', output: '/w' });
  assert.equal(asides.detach(sent), 'see?');
  assert.match(asides.attach('now'), /\$ ls\na\n[\s\S]*\$ pwd\n\/w\n\nnow$/);
  assert.equal(asides.detach('another'), 'another');
});

test('of a long output head and tail go out', () => {
  const asides = new Asides();
  asides.add({ command: 'yes', output: `begin\n${'y\n'.repeat(50_000)}end` });
  const sent = asides.attach('x');
  assert.ok(sent.length < 11_000);
  assert.match(sent, /begin\n[\s\S]*bytes left out[\s\S]*end\n/);
});
