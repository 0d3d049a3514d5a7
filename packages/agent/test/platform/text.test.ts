import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { codeFence, cut, firstCharacters, groupDigits } from '../../src/platform/text.js';

test('digits are grouped as the platform groups them', () => {
  const counts = [0, 7, 12, 999, 1_000, 12_345, 999_999, 1_000_000, Number.MAX_SAFE_INTEGER];
  for (const count of counts.flatMap((one) => [one, -one || 0])) {
    assert.equal(groupDigits(count), count.toLocaleString('en-US'));
  }
});

test('no source asks the platform to group digits', () => {
  const files = readdirSync('packages', { recursive: true, encoding: 'utf8' }).filter((file) =>
    /^[^/]+\/src\/.*\.ts$/.test(file),
  );
  const asking = files.filter((file) =>
    readFileSync(path.join('packages', file), 'utf8').includes('toLocaleString('),
  );
  assert.deepEqual(asking, []);
});

test('a fence is longer than any run of backticks, however many there are', () => {
  assert.equal(codeFence('a```b'), '````\na```b\n````');
  assert.ok(codeFence('` '.repeat(200_000)).startsWith('```\n'));
});

test('a cut text ends with a whole character, and is no longer than it may be', () => {
  const characters = [
    'a',
    'e\u0301',
    '\u{1f980}',
    '\u{1f44d}\u{1f3fd}',
    '\u{1f469}\u200d\u{1f4bb}',
    '\u2764\ufe0f',
  ];
  for (const character of characters) {
    const text = character.repeat(10);
    for (let most = 0; most <= text.length; most++) {
      const first = firstCharacters(text, most);
      assert.equal(first, character.repeat(Math.floor(most / character.length)));
      assert.ok(cut(text, most).length <= Math.max(1, most));
    }
    assert.equal(cut(text, text.length), text);
    assert.equal(cut(text, text.length - 1), `${firstCharacters(text, text.length - 2)}…`);
  }
});

test('a character with endless accents is cut all the same, between code points', () => {
  assert.equal(firstCharacters(`a${'\u0301'.repeat(100)}`, 50), `a${'\u0301'.repeat(49)}`);
  const flags = '\u{1f3fb}'.repeat(100);
  assert.equal(firstCharacters(flags, 51), '\u{1f3fb}'.repeat(25));
});
