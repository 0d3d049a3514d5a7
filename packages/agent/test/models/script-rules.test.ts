import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '../../src/machine/message.js';
import { type Script, scriptedModel } from '../../src/models/scripted-model.js';
import { ask, endingOf, said, user, wordFor } from './scripting.js';

const script: Script = {
  replies: [{ text: 'first' }, { text: 'second' }],
  rules: [
    {
      when: '^add (\\d+) to (?<what>\\w+)',
      text: '$1 more for $<what> ($&; $$2; $2; $9; $<none>)',
    },
    { when: 'broken', fail: { kind: 'overloaded' } },
    { when: 'silent' },
    { when: 'add', text: 'a later rule' },
  ],
};

const rows: readonly (readonly [string, readonly Message[], string])[] = [
  [
    'what groups caught is filled in',
    [user('add 12 to taxes now')],
    '12 more for taxes (add 12 to taxes; $2; taxes; ; )',
  ],
  ['the first rule that matches decides', [user('please add 12 to taxes')], 'a later rule'],
  ['a rule can fail', [user('broken')], 'overloaded'],
  ['a rule without text is an empty reply', [user('silent')], 'empty'],
  ['what no rule matches gets its reply', [user('hi')], 'first'],
  ['only the last message counts', [user('add 1 to x'), said('first'), user('hi')], 'second'],
  [
    'a place is found over answers of rules',
    [user('add 1 to x'), said('a later rule'), user('hi')],
    'first',
  ],
  [
    'it answers wherever the conversation stands',
    [user('hi'), said('second'), user('add')],
    'a later rule',
  ],
];

for (const [title, messages, word] of rows) {
  test(`rules: ${title}`, async () => {
    assert.equal(wordFor(await endingOf(scriptedModel(script), ask(messages))), word);
  });
}

test('a rule answers many requests at once, and the same one again and again', async () => {
  const model = scriptedModel(script);
  const prompts = Array.from({ length: 40 }, (_, index) => `add ${index % 7} to x${index}`);
  const words = await Promise.all(
    prompts.map(async (prompt) => wordFor(await endingOf(model, ask([user(prompt)])))),
  );
  for (const [index, word] of words.entries())
    assert.ok(word.startsWith(`${index % 7} more for x${index} `), word);
  assert.equal(wordFor(await endingOf(model, ask([user('hi')]))), 'first');
});
