import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planEdits, type TextEdit } from '../../src/tools/edit/plan-edits.js';

/** Edits that are refused: never a guess, and the words from which a model can do it right. */

const edit = (oldText: string, newText: string): TextEdit => ({ oldText, newText });
const lines = (...all: readonly string[]): string => all.map((line) => `${line}\n`).join('');

const INNER = lines('class A {', '  run() {', '    if (a) {', '      b();', '    }', '  }', '}');
const TABS = lines('class A {', '\trun() {', '\t\tif (a) {', '\t\t\tb();', '\t\t}', '\t}', '}');

type Refusal = {
  readonly title: string;
  readonly file: string;
  readonly edits: readonly TextEdit[];
  readonly says: readonly (string | RegExp)[];
};

const LISTING = /^\d+\t/m;

const refusals: readonly Refusal[] = [
  {
    title:
      'one wrong character is never overlooked; the line, both words and the lines there are named',
    file: INNER,
    edits: [edit(lines('    if (a) {', '      d();', '    }'), 'x')],
    says: [
      'The nearest place is lines 3-5:',
      '\n4\t      b();\n',
      'line 4, column 7: the file has `b`, oldText has `d`',
    ],
  },
  {
    title: 'a line left out',
    file: INNER,
    edits: [edit(lines('  run() {', '      b();', '    }'), 'x')],
    says: [
      'The nearest place is lines 2-5:',
      'line 3 of the file: oldText does not have `if (a) {`',
    ],
  },
  {
    title: 'a line too many',
    file: INNER,
    edits: [edit(lines('    if (a) {', '      x();', '      b();'), 'x')],
    says: ['before line 4 oldText has `x();`, which is not there in the file'],
  },
  {
    title: 'lines that keep no depth to one another: the first difference is in blanks',
    file: TABS,
    edits: [edit(lines('  run() {', '  if (a) {', '      b();'), 'x')],
    says: ['line 2: the file has a tab at its beginning, oldText has 2 blanks'],
  },
  {
    title: 'a text that begins within a line: the first difference is in the blanks of another one',
    file: lines('x = run() {', '\tif (a) {', '\tb();'),
    edits: [edit(lines('run() {', '  if (a) {', '      b();'), 'x')],
    says: ['line 2: the file has a tab at its beginning, oldText has 2 blanks'],
  },
  {
    title: 'every place of an ambiguous text, with the lines around it',
    file: lines('a', 'x', 'b', 'x', 'c', 'x', 'd'),
    edits: [edit('x', 'y')],
    says: [
      'more than once (lines 2, 4, 6)',
      'set replaceAll',
      '1\ta\n2\tx\n3\tb',
      '5\tc\n6\tx\n7\td',
    ],
  },
  {
    title: 'two places under one step end the search, though a later step could not find more',
    file: lines('  a();', '  b();', '    a();', '    b();'),
    edits: [edit('\ta();\n\tb();', 'x')],
    says: [
      'more than once (lines 1, 3)',
      'if differences in white space and the like are overlooked',
    ],
  },
  {
    title: 'a quote that differs in two places under the same step',
    file: lines("a('x');", 'b', "a('x');"),
    edits: [edit('a(\u2018x\u2019);', 'x')],
    says: ['(lines 1, 3)'],
  },
  {
    title: 'line numbers in some lines of the new text only',
    file: INNER,
    edits: [edit('4\t      b();', '4\t      b();\n      c();')],
    says: ['newText can be read in two ways', LISTING],
  },
  {
    title: 'half a character that stands in the new text as an escape',
    file: lines('a("\u00e9");'),
    edits: [edit('a(\\"\\u00e9\\");', 'a(\\"\\ud83d\\");')],
    says: ['edits[0].newText has half a character'],
  },
  {
    title: 'escaped line breaks in the new text that may belong into a string',
    file: INNER,
    edits: [edit('    if (a) {\\n      b();', '    if (a) {\\n      b("x\\n");')],
    says: ['newText can be read in two ways', LISTING],
  },
  {
    title: 'a marker in the new text alone',
    file: INNER,
    edits: [
      edit('  run() {\n    if (a) {', '  go() {\n    // ... existing code ...\n    if (a) {'),
    ],
    says: ['oldText has no such marker', LISTING],
  },
  {
    title: 'more markers in the new text than in the old one',
    file: INNER,
    edits: [edit('class A {\n// ...\n}\n', 'class B {\n// ...\nx\n// ...\n}\n')],
    says: ['has 2 markers for left out lines between its parts, and oldText has 1', LISTING],
  },
  {
    title: 'a new text that ends with a marker, in place of two parts',
    file: INNER,
    edits: [edit('class A {\n// ...\n}\n// ...\n', 'class B {\n// ...\n')],
    says: ['has 0 markers for left out lines between its parts, and oldText has 1', LISTING],
  },
  {
    title: 'markers between parts that stand in more than one order',
    file: lines('a {', '  x', '}', 'b {', '}'),
    edits: [edit('a {\n// ...\n}', 'c')],
    says: ['more than once (lines 3, 5)', 'It begins at line 1:\n1\ta {\n2\t  x'],
  },
  {
    title: 'a part of a marked text that stands behind more places than are looked at',
    file: lines(...Array.from({ length: 1_000 }, () => '}'), 'a {', '  x', '}', '}'),
    edits: [edit('a {\n// ...\n}\n', 'c')],
    says: ['can be read in more than one way', 'It begins at line 1001:'],
  },
  {
    title: 'the beginning of a line that stands elsewhere with typographic quotes too',
    file: lines('  a(\u2018x\u2019, 1)', 'b; a(\u2018x\u2019, 2)'),
    edits: [edit("    a('x',", "    c('x',")],
    says: ['is not in the file'],
  },
  {
    title: 'parts of a marked text in another order than in the file',
    file: INNER,
    edits: [edit('    }\n// ...\nclass A {', 'c')],
    says: [/The nearest place is line/, LISTING],
  },
  {
    title: 'the new text with an indentation that fits neither way',
    file: lines('  a'),
    edits: [edit('    a', 'b')],
    says: ['the indentation of newText fits neither way', '1\t  a'],
  },
  {
    title: 'a new text at the margin where the file is left of the old text',
    file: lines('a', 'b'),
    edits: [edit('    a\n    b', 'if (c)\n    a\n    b')],
    says: ['the indentation of newText fits neither way', '1\ta\n2\tb'],
  },
  {
    title: 'a new text whose first line is at the margin, and the file is left of the old text',
    file: lines('  a', '  b'),
    edits: [edit('    a\n    b', 'x\n    a\n    b')],
    says: ['the indentation of newText fits neither way'],
  },
  {
    title: 'a new text whose last line is at the margin, and the file is left of the old text',
    file: lines('  a', '  b'),
    edits: [edit('    a\n    b', '    a\n    c\nb')],
    says: ['the indentation of newText fits neither way'],
  },
  {
    title: 'four blanks a level for two, in two places',
    file: lines('  a', '    b', '  a', '    b'),
    edits: [edit('    a\n        b', 'z')],
    says: ['more than once (lines 1, 3)'],
  },
  {
    title: 'one level of four blanks for two, which a line that was left out has, too',
    file: lines('a', '  b', 'c'),
    edits: [edit('a\n    b\nc', 'z')],
    says: [/line 2: the file has 2 blanks/, LISTING],
  },
  {
    title: 'four blanks a level for two, and a new line between two levels',
    file: lines('  a', '    b'),
    edits: [edit('    a\n        b', '    a\n       b')],
    says: ['the indentation of newText fits neither way'],
  },
  {
    title: 'a first line that alone is deeper, in two places',
    file: lines('  x', '    y', ' x', '    y'),
    edits: [edit('      x\n    y', 'z')],
    says: ['more than once (lines 1, 3)'],
  },
  {
    title: 'a first line that alone is deeper, and a new text that begins elsewhere',
    file: lines('  x', '    y'),
    edits: [edit('      x\n    y', '        z\n    y')],
    says: ['the indentation of newText fits neither way'],
  },
  {
    title: 'the beginning of a line, indented by more, in two places',
    file: lines('  run(one);', '  run(two);'),
    edits: [edit('    run(', '    walk(')],
    says: ['more than once (lines 1, 2)'],
  },
  {
    title: 'the beginning of a line, indented by more, that ends within a word',
    file: lines('  return oneMore;'),
    edits: [edit('    return one', '    return 1')],
    says: ['edits[0].oldText is not in the file'],
  },
  {
    title: 'the beginning of a line, indented by more, of which the new text has the end',
    file: lines('  run(one);'),
    edits: [edit('    run(one)', '    run(two);')],
    says: ['ends within a line, whose end newText has, too', '1\t  run(one);'],
  },
  {
    title: 'a text that resembles nothing',
    file: lines('one', 'two'),
    edits: [edit('%%%', 'x')],
    says: ['Nothing in the file resembles it. The file begins like this:\n1\tone\n2\ttwo'],
  },
  {
    title: 'a text in an empty file',
    file: '',
    edits: [edit('x', 'y')],
    says: ['The file is empty.'],
  },
  {
    title: 'an empty old text in a file that is not empty',
    file: lines('one', 'two'),
    edits: [edit('', 'y')],
    says: ['oldText is empty', '1\tone\n2\ttwo'],
  },
  {
    title: 'half a character, in the old text and in the new one',
    file: lines('a \u{1f600} b'),
    edits: [edit('a \ud83d', 'x'), edit('a', '\ud83d')],
    says: ['edits[0].oldText is not in the file', 'edits[1].newText has half a character'],
  },
  {
    title: 'the beginning of a line, indented by more, which is the beginning of two',
    file: lines('a(1);', 'a(2);'),
    edits: [edit('  a(', '  b(')],
    says: ['edits[0].oldText is in the file more than once (lines 1, 2)'],
  },
  {
    title: 'the beginning of a line, indented by more, that stands elsewhere in a line, too',
    file: lines('a(1);', 'x = a(2);'),
    edits: [edit('  a(', '  b(')],
    says: ['edits[0].oldText is not in the file'],
  },
  {
    title: 'every edit that does not fit',
    file: INNER,
    edits: [edit('b();', 'c();'), edit('runs() {', 'x'), edit('if (aa) {', 'x')],
    says: [
      'edits[1].oldText is not in the file. The nearest place is line 2',
      'edits[2].oldText is not in the file',
    ],
  },
  {
    title: 'an edit that was made before',
    file: INNER,
    edits: [edit('      before();\n', '    if (a) {\n      b();\n')],
    says: ['Its newText is already there (lines 3-4).'],
  },
];

for (const { title, file, edits, says } of refusals) {
  test(`edit refused: ${title}`, () => {
    const planned = planEdits(file, edits);
    assert.equal(planned.kind, 'refused', planned.kind === 'planned' ? planned.text : '');
    for (const words of says) {
      if (typeof words === 'string')
        assert.ok(planned.why.includes(words), `${words}\n---\n${planned.why}`);
      else assert.match(planned.why, words);
    }
  });
}

test('edit refused: no refusal shows a part of a word that may be a secret', () => {
  const secret = `key-${'0123456789abcdef'.repeat(6)}`;
  const around = ' x'.repeat(150);
  const file = lines(
    '# settings',
    `TOKEN = "${secret}"`,
    `url: 'a.example/${secret}'`,
    `${around} ${secret} ${around}`,
  );
  const attempts = [
    'TOKEN = "key-0123456789abcdeX"\n',
    `TOKEN = "${secret}X"\n`,
    "url: 'b.example/key'",
    `${around} kez`,
    '# settings\nTOKENS',
    '# settings\nurl',
    `# settings\n${around}`,
  ];
  for (const attempt of attempts) {
    const planned = planEdits(file, [edit(attempt, 'new')]);
    assert.equal(planned.kind, 'refused', attempt);
    const rest = planned.why.replaceAll(secret, '').replaceAll(attempt, '');
    assert.doesNotMatch(rest, /0123456789abcdef|abcdef0123/, planned.why);
  }
  const control = planEdits(file, [edit('# settingz', 'new')]);
  assert.ok(
    control.kind === 'refused' && control.why.includes('`settings`'),
    'ordinary words are shown',
  );
});

test('edit refused: work is bounded, whatever the file and the text hold', () => {
  const size = 20_000;
  const hostile: readonly (readonly [file: string, oldText: string])[] = [
    ['a\n'.repeat(size), `${'  a\n'.repeat(size / 5)}b`],
    ['  a\na\n'.repeat(size), 'a\n'.repeat(size / 4) + '  a\n'.repeat(9)],
    ['a'.repeat(20 * size), `${'a'.repeat(size / 4)}b${'a'.repeat(size / 4)}`],
    [' '.repeat(20 * size), `${'\t'.repeat(1_000)}x`],
    ['\\n'.repeat(20 * size), `${'\\n'.repeat(1_000)}x`],
    ['{\n}\n'.repeat(size), '{\n// ...\n}\n// ...\n{\n// ...\n}\n'],
    [
      '1\ta\n'.repeat(size),
      Array.from({ length: size / 4 }, (_, index) => `${index}\tb`).join('\n'),
    ],
  ];
  for (const [file, oldText] of hostile) {
    const planned = planEdits(file, [edit(oldText, 'x')]);
    assert.equal(planned.kind, 'refused');
    assert.ok(planned.why.length < 20_000 && LISTING.test(planned.why), planned.why.slice(0, 500));
  }
});
