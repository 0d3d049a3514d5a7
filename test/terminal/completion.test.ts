import assert from 'node:assert/strict';
import { test } from 'node:test';
import { completed, ranked, stemAt } from '../../src/terminal/completion.js';

const stems: readonly (readonly [text: string, stem: string | null])[] = [
  ['/', 'command:'],
  ['/co', 'command:co'],
  ['/budget 5', null],
  ['/etc/hosts', null],
  ['see /co', null],
  ['@', 'file:'],
  ['see @src/m', 'file:src/m'],
  ['(@x', null],
  ['me@home', null],
  ['line\n@x', 'file:x'],
  ['@x ', null],
];

for (const [text, then] of stems) {
  test(`before the cursor in ${JSON.stringify(text)} stands ${then ?? 'nothing to complete'}`, () => {
    const stem = stemAt(text, text.length);
    assert.equal(stem === null ? null : `${stem.kind}:${stem.words}`, then);
  });
}

const rank = (words: string, ...texts: readonly string[]): readonly string[] =>
  ranked(
    words,
    texts.map((text) => ({ text, about: '' })),
  ).map(({ text }) => text);

test('the beginning of a file’s own name fits best, then its middle, then folders, then scattered letters', () => {
  assert.deepEqual(
    rank('main', 'main/x.ts', 'src/domain.ts', 'src/main.ts', 'my-ancient-inn.ts', 'other.ts'),
    ['src/main.ts', 'src/domain.ts', 'main/x.ts', 'my-ancient-inn.ts'],
  );
});

test('letters at the beginnings of words fit better than others', () => {
  assert.deepEqual(rank('lev', 'xlyeov.ts', 'line-editor-view.ts'), ['line-editor-view.ts', 'xlyeov.ts']);
});

test('without letters the order stays', () => {
  assert.deepEqual(rank('', 'b', 'a'), ['b', 'a']);
});

test('what is put there replaces the stem; a folder is gone on with', () => {
  const offer = (word: string) => ({
    stem: { kind: 'file' as const, start: 4, words: 'ma' },
    choices: [{ text: word, about: '' }],
    chosen: 0,
  });
  assert.deepEqual(completed('see @ma', 7, offer('main.ts')), { text: 'see @main.ts ', cursor: 13 });
  assert.deepEqual(completed('see @ma too', 7, offer('main.ts')), { text: 'see @main.ts too', cursor: 12 });
  assert.deepEqual(completed('see @ma', 7, offer('src/')), { text: 'see @src/', cursor: 9 });
});
