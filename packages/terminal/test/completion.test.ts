import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyCompletion, isTyped, rankChoices, stemAt } from '../src/choices.js';

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
  ['see @"', 'quoted file:'],
  ['see @"my fi', 'quoted file:my fi'],
  ['@"a@b c', 'quoted file:a@b c'],
  ['@"my file.ts"', null],
  ['@"my file.ts" and @so', 'file:so'],
  ['me@"home', null],
  ['@"a\nb', null],
  ['@a"b', 'file:a"b'],
];

for (const [text, then] of stems) {
  test(`before the cursor in ${JSON.stringify(text)} stands ${then ?? 'nothing to complete'}`, () => {
    const stem = stemAt(text, text.length);
    const shown =
      stem === null ? null : `${stem.quoted ? 'quoted ' : ''}${stem.kind}:${stem.words}`;
    assert.equal(shown, then);
  });
}

const rank = (words: string, ...texts: readonly string[]): readonly string[] =>
  rankChoices(
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
  assert.deepEqual(rank('lev', 'xlyeov.ts', 'line-editor-view.ts'), [
    'line-editor-view.ts',
    'xlyeov.ts',
  ]);
});

test('without letters the order stays', () => {
  assert.deepEqual(rank('', 'b', 'a'), ['b', 'a']);
});

/** `|` is the cursor. */
const puts: readonly (readonly [title: string, before: string, word: string, after: string])[] = [
  ['a file is followed by a blank', 'see @ma|', 'main.ts', 'see @main.ts |'],
  ['but not by two', 'see @ma| too', 'main.ts', 'see @main.ts| too'],
  ['a folder is gone on with', 'see @ma|', 'src/', 'see @src/|'],
  ['a path with blanks is quoted', 'see @no|', 'my notes.txt', 'see @"my notes.txt" |'],
  ['in the middle of a text too', 'see @no| too', 'my notes.txt', 'see @"my notes.txt"| too'],
  ['a folder with blanks is gone on with inside its quotes', '@do|', 'my docs/', '@"my docs/|"'],
  [
    'what is inside quotes is replaced with them',
    '@"my docs/a|" too',
    'my docs/a b.ts',
    '@"my docs/a b.ts"| too',
  ],
  ['a folder inside a folder', '@"my docs/|"', 'my docs/more of it/', '@"my docs/more of it/|"'],
  ['a quote that was typed is closed', 'see @"ma|', 'main.ts', 'see @"main.ts" |'],
  ['a path that holds a quote stands as it is', '@a|', 'a "b".ts', '@a "b".ts |'],
  ['a tab is a blank', '@a|', 'a\tb.ts', '@"a\tb.ts" |'],
  ['a command is never quoted', '/bu|', 'budget', '/budget |'],
];

const offerAt = (marked: string, word: string) => {
  const cursor = marked.indexOf('|');
  const text = marked.replace('|', '');
  const stem = stemAt(text, cursor);
  assert.ok(stem);
  return { text, cursor, offer: { stem, choices: [{ text: word, about: '' }], chosen: 0 } };
};

for (const [title, before, word, after] of puts) {
  test(`completing: ${title}`, () => {
    const { text, cursor, offer } = offerAt(before, word);
    const put = applyCompletion(text, cursor, offer);
    assert.equal(`${put.text.slice(0, put.cursor)}|${put.text.slice(put.cursor)}`, after);
  });
}

for (const [marked, word, said] of [
  ['see @main.ts|', 'main.ts', true],
  ['see @main|', 'main.ts', false],
  ['see @"my docs/|"', 'my docs/', true],
  ['see @"my notes.txt|"', 'my notes.txt', true],
  ['see @"my notes|"', 'my notes.txt', false],
] as const) {
  test(`the text ${marked} ${said ? 'says' : 'does not yet say'} ${word}`, () => {
    const { text, cursor, offer } = offerAt(marked, word);
    assert.equal(isTyped(text, cursor, offer), said);
  });
}
