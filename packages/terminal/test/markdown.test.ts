import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createBlocks, loadMarkdown, renderMarkdown } from '../src/markdown.js';
import { countColumns, type Look } from '../src/paint.js';

const bare: Look = { colour: 'no', columns: 40 };
const coloured: Look = { colour: 'yes', columns: 40 };
const render = (text: string, look: Look = bare, finished = true): readonly string[] =>
  renderMarkdown(look, text, look.columns, finished);

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
  assert.equal(render(text, coloured, false)[0], '  const a = 1;');
});

test('fences are not shown: code is set in, whatever stands around it', () => {
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['```ts\na\n\n  b\n```', ['  a', '', '    b']],
    ['~~~\na\n~~~', ['  a']],
    ['````md\n```\nnested\n```\n````', ['  ```', '  nested', '  ```']],
    ['```\nnot closed', ['  not closed']],
    ['```ts', ['']],
    ['- item\n\n  ```\n  a\n  ```\n', ['- item', '', '    a']],
    [`\`\`\`\n${'x'.repeat(50)}\n\`\`\``, [`  ${'x'.repeat(38)}`, `    ${'x'.repeat(12)}`]],
  ];
  for (const [text, shown] of rows) assert.deepEqual(render(text), shown);
  // control: what is no fence stays
  assert.deepEqual(render('a ``` b'), ['a ``` b']);
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
      for (const row of renderMarkdown(coloured, text, columns, true))
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
