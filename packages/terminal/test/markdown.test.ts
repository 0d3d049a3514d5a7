import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createBlocks, loadMarkdown, renderMarkdown } from '../src/markdown.js';
import { countColumns, type Look } from '../src/paint.js';

const bare: Look = { colour: 'no', columns: 40 };
const coloured: Look = { colour: 'yes', columns: 40 };
const render = (
  text: string,
  look: Look = bare,
  form: Parameters<typeof renderMarkdown>[3] = 'rows',
): readonly string[] => renderMarkdown(look, text, look.columns, form);

test('it can be loaded twice', async () => {
  await Promise.all([loadMarkdown(), loadMarkdown()]);
  assert.deepEqual(render('**a** b'), ['a b']);
});

test('without colours there is no escape at all', () => {
  const text =
    '# h\n\n**b** *i* `c` ~~d~~ [l](http://x.y) <http://a.b>\n\n> q\n\n- i\n\n```ts\nconst a = 1;\n```\n\n---\n\n|t|\n|-|\n|u|\n';
  assert.doesNotMatch(render(text).join('\n'), /\u001b/);
});

test('where a link leads can be seen', () => {
  assert.deepEqual(render('[here](http://x.y/z)'), ['here (http://x.y/z)']);
});

test('escapes of others come to nothing', () => {
  assert.deepEqual(render('a\u001b[2Jb\u001b]0;t\u0007'), ['a␛[2Jb␛]0;t␇']);
});

test('code is coloured in a finished block, and only there', () => {
  const text = '```ts\nconst a = 1;\n```';
  assert.match(
    render(text, coloured)[0] ?? '',
    /\u001b\[35mconst\u001b\[39m a = \u001b\[33m1\u001b\[39m;/,
  );
  assert.equal(render(text, coloured, 'streaming')[0], 'const a = 1;');
});

const LONG = 'x'.repeat(50);
const ADDRESS = `https://example.com/${'a/'.repeat(20)}`;

/** Of each text: its rows, and where it differs its printed lines. */
const shapes: readonly (readonly [string, readonly string[], (readonly string[])?])[] = [
  // code without its fences, and nothing before it
  ['```ts\na\n\n  b\n```', ['a', '', '  b']],
  ['~~~\na\n~~~', ['a']],
  ['````md\n```\nnested\n```\n````', ['```', 'nested', '```']],
  ['```\nnot closed', ['not closed']],
  ['```ts', ['']],
  ['```\n\ta \n```', ['    a ']],
  ['    a\n\n\n    b', ['a', '', '', 'b']],
  ['- one\n\n  ```\n  a\n  ```\n- two', ['- one', '', 'a', '', '- two']],
  ['1. ```\n   a\n   ```', ['1.', 'a']],
  ['> q\n>\n> ```\n> a\n> ```\n>\n> r', ['│ q', '│', 'a', '│', '│ r']],
  [`\`\`\`\n${LONG}\n\`\`\``, ['x'.repeat(40), 'x'.repeat(10)], [LONG]],
  // control: what is no fence stays
  ['a ``` b', ['a ``` b']],
  // words
  [
    `see ${ADDRESS} and go`,
    ['see', ADDRESS.slice(0, 40), ADDRESS.slice(40), 'and go'],
    ['see', ADDRESS, 'and go'],
  ],
  [
    `- [l](${ADDRESS})`,
    ['- l', `  (${ADDRESS.slice(0, 37)}`, `  ${ADDRESS.slice(37)})`],
    ['- l', `  (${ADDRESS})`],
  ],
  [
    'in a few words of prose `npm run build --all` does',
    ['in a few words of prose', 'npm run build --all does'],
  ],
  ['日本'.repeat(12), ['日本'.repeat(10), '日本'.repeat(2)]],
  ['a\n\n- b\n  - c\n\nd:\n- e', ['a', '', '- b', '  - c', '', 'd:', '- e']],
  ['![a](http://b.c)', ['a (http://b.c)']],
  ['[a]: http://b.c', ['[a]: http://b.c']],
  ['~5 to ~9, ~~struck~~', ['~5 to ~9, struck']],
  // tables
  [
    '|a|b|c|\n|-|--:|:-:|\n|d|1.00|e|\n|f|12.50|ghi|',
    ['a │     b │  c', '──┼───────┼────', 'd │  1.00 │  e', 'f │ 12.50 │ ghi'],
  ],
  [
    '|a|b|\n|-|-|\n|one two three four five six seven|eight|',
    [
      'a                                │ b',
      '─────────────────────────────────┼──────',
      'one two three four five six      │ eight',
      'seven                            │',
    ],
  ],
  [
    `|a|b|\n|-|-|\n|c|${ADDRESS}|\n|d|e|`,
    ['a: c', 'b:', `  ${ADDRESS.slice(0, 38)}`, `  ${ADDRESS.slice(38)}`, '', 'a: d', 'b: e'],
    ['a: c', 'b:', `  ${ADDRESS}`, '', 'a: d', 'b: e'],
  ],
];

for (const [text, rows, printed = rows] of shapes)
  test(`how ${JSON.stringify(text)} looks`, () => {
    assert.deepEqual(render(text), rows);
    assert.deepEqual(render(text, bare, 'printed'), printed);
  });

test('rows end without spaces', () => {
  for (const row of render('# head\n\ntext **bold**\n\n- item\n', coloured))
    assert.doesNotMatch(row, / (?:\u001b\[[\d;]*m)*$/);
});

const anyPiece = fc.constantFrom(
  'word ',
  '日本語',
  'a'.repeat(30),
  '\n',
  '\n\n',
  '- ',
  '```ts\n',
  '```\n',
  '| a | b |\n',
  '|---|---|\n',
  '> ',
  '**',
  '`',
  '# ',
  '1. ',
  '\t',
);

test('no row is wider than it may be, whatever the text', () => {
  const anyText = fc.array(anyPiece, { maxLength: 30 }).map((pieces) => pieces.join(''));
  fc.assert(
    fc.property(anyText, fc.integer({ min: 12, max: 60 }), (text, columns) => {
      for (const row of renderMarkdown(coloured, text, columns, 'rows'))
        assert.ok(countColumns(row) <= columns, row);
    }),
  );
});

test('block by block it looks as the whole does', () => {
  const text =
    '# Head\n\nA paragraph\nof two lines.\n\n- one\n- two\n  1. three\n\n```ts\nconst a = 1;\n\nconst b = 2;\n```\n\n| a | b |\n|---|---|\n| c | d |\n\n> quote\n\nThe end.\n';
  const blocks = createBlocks();
  const pieces = [...blocks.add(text), blocks.take()]
    .map((block) => render(block))
    .filter((block) => block.length > 0);
  assert.deepEqual(
    pieces.flatMap((block, index) => (index === 0 ? block : ['', ...block])),
    render(text),
  );
});
