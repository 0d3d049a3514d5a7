import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ShellOutputs } from '../../src/interactive/run-sessions.js';

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
