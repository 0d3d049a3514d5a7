import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { clearPart, createBlocks } from '../src/markdown.js';

const cut = (
  pieces: readonly string[],
): { readonly blocks: readonly string[]; readonly rest: string } => {
  const blocks = createBlocks();
  const ended = pieces.flatMap((piece) => blocks.add(piece));
  return { blocks: ended, rest: blocks.rest() };
};

const rows: readonly (readonly [string, string, readonly string[], string])[] = [
  ['a paragraph without its end is not finished', 'one\ntwo', [], 'one\ntwo'],
  ['a paragraph ends with an empty line', 'one\ntwo\n\nthree', ['one\ntwo\n\n'], 'three'],
  ['a heading ends with its line', '# one\ntwo', ['# one\n'], 'two'],
  ['a heading ends a paragraph', 'one\n## two\nthree', ['one\n', '## two\n'], 'three'],
  ['a rule ends with its line', '---\none', ['---\n'], 'one'],
  ['a fence keeps empty lines', '```ts\na\n\nb\n', [], '```ts\na\n\nb\n'],
  ['a fence ends with its fence', '```ts\na\n\n# b\n```\nc', ['```ts\na\n\n# b\n```\n'], 'c'],
  ['a shorter fence ends none', '````\n```\n````\nc', ['````\n```\n````\n'], 'c'],
  ['a fence of another sign ends none', '~~~\n```\n~~~\nc', ['~~~\n```\n~~~\n'], 'c'],
  ['a fence with a word ends none', '```\n```ts\n```\nc', ['```\n```ts\n```\n'], 'c'],
  ['a fence ends a paragraph', 'one\n```\n', ['one\n'], '```\n'],
  ['code by its indent keeps empty lines', '    a\n\n\n    b\nc\n', ['    a\n\n\n    b\n'], 'c\n'],
  ['items of a list stay together', '- one\n- two\n\n- three\n', [], '- one\n- two\n\n- three\n'],
  ['a list ends before other text', '- one\n\ntwo', [], '- one\n\ntwo'],
  ['a list ends before a line of other text', '- one\n\ntwo\n', ['- one\n\n'], 'two\n'],
  [
    'a line that is indented belongs to the item',
    '- one\n\n  two\n\nthree\n',
    ['- one\n\n  two\n\n'],
    'three\n',
  ],
  ['a line right after an item belongs to it', '- one\ntwo\n', [], '- one\ntwo\n'],
  [
    'a fence in an item belongs to the list',
    '- one\n  ```\n\nx\n  ```\n- two\n',
    [],
    '- one\n  ```\n\nx\n  ```\n- two\n',
  ],
  [
    'a list right below a text keeps what is indented under it',
    'do\n1. one\n\n    ```\n    a\n    ```\nend\n\nthree\n',
    ['do\n1. one\n\n    ```\n    a\n    ```\nend\n\n'],
    'three\n',
  ],
  ['a heading ends a list', '1. one\n# two\nthree', ['1. one\n', '# two\n'], 'three'],
  ['a table ends with an empty line', '|a|\n|-|\n|b|\n\nc', ['|a|\n|-|\n|b|\n\n'], 'c'],
  ['a rule ends a list', '- one\n***\ntwo', ['- one\n', '***\n'], 'two'],
];

for (const [title, text, blocks, rest] of rows) {
  test(`${title}: ${JSON.stringify(text)}`, () => {
    assert.deepEqual(cut([text]), { blocks, rest });
    assert.deepEqual(cut([...text]), { blocks, rest });
  });
}

const anyLine = fc.constantFrom(
  'a',
  '',
  '- b',
  '  c',
  '```',
  '~~~~',
  '# d',
  '1. e',
  '|f|',
  '---',
  '> g',
  '    h',
);
const anyText = fc.array(anyLine, { maxLength: 20 }).map((lines) => lines.join('\n'));

test('nothing is lost or changed, and it does not matter in which pieces the text comes', () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 1, max: 9 }), (text, size) => {
      const whole = cut([text]);
      assert.equal(whole.blocks.join('') + whole.rest, text);
      const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
        text.slice(at * size, (at + 1) * size),
      );
      assert.deepEqual(cut(pieces), whole);
    }),
  );
});

test('a block that was taken starts anew', () => {
  const blocks = createBlocks();
  blocks.add('```\nunfinished');
  assert.equal(blocks.take(), '```\nunfinished');
  assert.deepEqual(blocks.add('one\n\ntwo'), ['one\n\n']);
  assert.equal(blocks.rest(), 'two');
});

const unclear: readonly (readonly [string, string])[] = [
  ['text\n``', 'text'],
  ['text\n-', 'text'],
  ['text\n==', 'text'],
  ['a\n| b | c', 'a'],
  ['#', ''],
  ['12', ''],
  ['costs 12', 'costs 12'],
  ['a - b', 'a - b'],
  ['```', '```'],
  ['- item', '- item'],
];

for (const [text, clear] of unclear) {
  test(`of ${JSON.stringify(text)} one sees ${JSON.stringify(clear)} while it comes`, () => {
    assert.equal(clearPart(text), clear);
  });
}
