import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planEdits, type TextEdit } from '../../src/tools/edit/plan-edits.js';

/** The steps in which an edit is matched: what each tolerates, what it makes of the new text, and what it refuses. */

type Row = {
  readonly title: string;
  readonly file: string;
  readonly edit: TextEdit;
  readonly becomes: string;
};

const edit = (oldText: string, newText: string): TextEdit => ({ oldText, newText });
const lines = (...all: readonly string[]): string => all.map((line) => `${line}\n`).join('');

const INNER = lines('class A {', '  run() {', '    if (a) {', '      b();', '    }', '  }', '}');
const TABS = lines('class A {', '\trun() {', '\t\tif (a) {', '\t\t\tb();', '\t\t}', '\t}', '}');
const CURLY = lines('# Say', '', 'Don\u2019t say \u201cno\u201d \u2013 ever.', 'Plain.');

const rows: readonly Row[] = [
  {
    title: 'plain quotes of which the file has typographic ones after a plain one: new quotes stay',
    file: "say('x'); // it\u2019s\n",
    edit: edit("say('x'); // it's\n", "say('x', 'y'); // is it's\n"),
    becomes: "say('x', 'y'); // is it\u2019s\n",
  },
  {
    title:
      'plain quotes of which the file has typographic ones before a plain one: new quotes stay',
    file: "// it\u2019s\nsay('x');\n",
    edit: edit("// it's\nsay('x');\n", "// is it's\nsay('x', 'y');\n"),
    becomes: "// is it\u2019s\nsay('x', 'y');\n",
  },
  {
    title: 'indented otherwise, and only an empty line is left',
    file: INNER,
    edit: edit(lines('      if (a) {', '        b();', '      }'), '\n'),
    becomes: INNER.replace('    if (a) {\n      b();\n    }\n', '\n'),
  },
  {
    title:
      'typographic quotes that the file does not have: quotes of the other kind are plain, too',
    file: "say 'x' - or not\n",
    edit: edit('say \u2018x\u2019 - or not', 'say \u201cy\u201d - or not'),
    becomes: 'say "y" - or not\n',
  },
  {
    title: 'indented by two more: the new text is indented as the file is',
    file: INNER,
    edit: edit(
      lines('      if (a) {', '        b();', '      }'),
      lines('      if (a) {', '        c();', '        d();', '      }'),
    ),
    becomes: INNER.replace('      b();\n', '      c();\n      d();\n'),
  },
  {
    title: 'indented by two more in the old text only: the new text stays as it is',
    file: INNER,
    edit: edit(
      lines('      if (a) {', '        b();', '      }'),
      lines('    if (a) {', '      c();', '    }'),
    ),
    becomes: INNER.replace('b()', 'c()'),
  },
  {
    title: 'indented by two more: lines at the margin between the others stay there',
    file: INNER,
    edit: edit(
      lines('      if (a) {', '        b();', '      }'),
      lines('      if (a) {', '#if X', '        c();', '#endif', '      }'),
    ),
    becomes: INNER.replace('      b();\n', '#if X\n      c();\n#endif\n'),
  },
  {
    title: 'only the first line indented by more, and it changes',
    file: INNER,
    edit: edit('      if (a) {\n      b();\n    }', '      if (c) {\n      d();\n    }'),
    becomes: INNER.replace('if (a)', 'if (c)').replace('b()', 'd()'),
  },
  {
    title: 'only the first line indented by more, and others like it come before it',
    file: INNER,
    edit: edit(
      lines('          if (a) {', '      b();', '    }'),
      lines('          // why', '          if (c) {', '      b();', '    }'),
    ),
    becomes: INNER.replace('if (a)', '// why\n    if (c)'),
  },
  {
    title: 'only the first line indented by more, and the new text is indented as the file is',
    file: INNER,
    edit: edit(
      lines('        if (a) {', '      b();', '    }'),
      lines('    if (c) {', '      b();', '    }'),
    ),
    becomes: INNER.replace('if (a)', 'if (c)'),
  },
  {
    title: 'only the first line indented by more, and another line is as deep',
    file: lines('  {', '    a: [', '      {'),
    edit: edit('      {\n    a: [\n      {', '      {\n    b: [\n      {'),
    becomes: lines('  {', '    b: [', '      {'),
  },
  {
    title: 'only the first line indented by more, and there is a place where all lines are',
    file: lines('f {', '    x', '    y', '}', 'g {', '  x', '    y', '}'),
    edit: edit('      x\n      y', '      x\n      z'),
    becomes: lines('f {', '    x', '    z', '}', 'g {', '  x', '    y', '}'),
  },
  {
    title: 'the beginning of a line, indented by more',
    file: lines('f() {', '  return one + two;', '}'),
    edit: edit('        return one', '        const x = 1;\n        return x'),
    becomes: lines('f() {', '  const x = 1;', '  return x + two;', '}'),
  },
  {
    title: 'indented by more, with tabs, and the last line ends in the middle',
    file: lines('f() {', '\ta();', '\treturn one + two;', '}'),
    edit: edit('\t\t\ta();\n\t\t\treturn one', '\t\t\tb();\n\t\t\treturn 1'),
    becomes: lines('f() {', '\tb();', '\treturn 1 + two;', '}'),
  },
  {
    title: 'the beginning of a line, indented by more, with typographic quotes',
    file: lines('f() {', "  say('no', 1);", '}'),
    edit: edit('    say(\u2018no\u2019,', '    say(\u2018yes\u2019,'),
    becomes: lines('f() {', "  say('yes', 1);", '}'),
  },
  {
    title: 'four blanks a level for two: new lines get two, too, also deeper ones',
    file: INNER,
    edit: edit(
      lines('    run() {', '        if (a) {', '            b();', '        }'),
      lines(
        '    run() {',
        '        if (c) {',
        '            if (d) {',
        `${' '.repeat(16)}b();`,
        '            }',
        '        }',
      ),
    ),
    becomes: INNER.replace(
      'if (a) {\n      b();',
      'if (c) {\n      if (d) {\n        b();\n      }',
    ),
  },
  {
    title: 'two blanks a level for four, and the new text is indented as the file is',
    file: lines('def f():', '    if a:', '        b()', 'c()'),
    edit: edit('def f():\n  if a:\n    b()\n', 'def f():\n    if a:\n        d()\n'),
    becomes: lines('def f():', '    if a:', '        d()', 'c()'),
  },
  {
    title: 'four blanks a level for two, and there is a place of the same shape',
    file: lines('  a', '    b', '    a', '        b'),
    edit: edit('        a\n            b', '        c\n            b'),
    becomes: lines('  a', '    b', '    c', '        b'),
  },
  {
    title: 'dedented to the margin',
    file: INNER,
    edit: edit('if (a) {\n  b();\n}', 'if (a && x) {\n  b();\n  if (y) {\n    c();\n  }\n}'),
    becomes: INNER.replace('if (a) {', 'if (a && x) {').replace(
      'b();\n',
      'b();\n      if (y) {\n        c();\n      }\n',
    ),
  },
  {
    title: 'dedented by as much as the new text nests deeper',
    file: lines('def f():', '  a()', '', '  b()'),
    edit: edit('a()\n\nb()', 'if x:\n  a()\n\n  b()'),
    becomes: lines('def f():', '  if x:', '    a()', '', '    b()'),
  },
  {
    title: 'blanks for tabs',
    file: TABS,
    edit: edit(
      lines('    if (a) {', '      b();', '    }'),
      lines('    if (a) {', '      for (;;) {', '        b();', '      }', '    }'),
    ),
    becomes: TABS.replace('\t\t\tb();\n', '\t\t\tfor (;;) {\n\t\t\t\tb();\n\t\t\t}\n'),
  },
  {
    title: 'tabs for blanks',
    file: INNER,
    edit: edit(
      lines('\trun() {', '\t\tif (a) {', '\t\t\tb();'),
      lines('\trun() {', '\t\tif (a) {', '\t\t\tif (c) {', '\t\t\t\tb();', '\t\t\t}'),
    ),
    becomes: INNER.replace('      b();\n', '      if (c) {\n        b();\n      }\n'),
  },
  {
    title: 'tabs and blanks mixed in the old text',
    file: INNER,
    edit: edit(
      lines('    if (a) {', '\t\t\tb();', '    }'),
      lines('    if (a) {', '\t\t\tc();', '    }'),
    ),
    becomes: INNER.replace('b()', 'c()'),
  },
  {
    title: 'the first line from behind its indentation, the others indented otherwise',
    file: TABS,
    edit: edit('if (a) {\n      b();\n    }', 'if (a) {\n      c();\n    }'),
    becomes: TABS.replace('b()', 'c()'),
  },
  {
    title: 'typographic characters in both texts, plain ones in the file',
    file: lines('say(\'no\') - "x";', 'next'),
    edit: edit(
      'say(\u2018no\u2019) \u2013 \u201cx\u201d;',
      'say(\u2018yes\u2019) \u2013 \u201cy\u201d;',
    ),
    becomes: lines('say(\'yes\') - "y";', 'next'),
  },
  {
    title: 'typographic characters in the file, plain ones in both texts: unchanged ones stay',
    file: CURLY,
    edit: edit(`Don't say "no" - ever.\nPlain.`, `Don't say "no" - never.\nPlain.`),
    becomes: CURLY.replace('ever', 'never'),
  },
  {
    title: 'no-break blanks',
    file: lines('a b c'),
    edit: edit('a\u00a0b c', 'a\u00a0d c'),
    becomes: lines('a d c'),
  },
  {
    title: 'line numbers as read shows them, copied into both texts',
    file: INNER,
    edit: edit(
      '3\t    if (a) {\n4\t      b();\n5\t    }',
      '3\t    if (a) {\n4\t      c();\n5\t    }',
    ),
    becomes: INNER.replace('b()', 'c()'),
  },
  {
    title: 'line numbers in the old text only, with an arrow',
    file: INNER,
    edit: edit('     4\u2192      b();', '      c();'),
    becomes: INNER.replace('b()', 'c()'),
  },
  {
    title: 'one more level of escapes in both texts',
    file: lines('a("x");', 'b("y\\n");', 'c();'),
    edit: edit('a(\\"x\\");\\nb(\\"y\\\\n\\");', 'a(\\"z\\");\\nb(\\"y\\\\n\\");'),
    becomes: lines('a("z");', 'b("y\\n");', 'c();'),
  },
  {
    title: 'an escape that says no number stays as it is',
    file: lines('a("\u00e9");'),
    edit: edit('a(\\"\\u00e9\\");', 'a(\\"\\u00e9 \\u{1F600} C:\\users\\");'),
    becomes: lines('a("\u00e9 \\u{1F600} C:\\users");'),
  },
  {
    title: 'a marker alone in the new text: the lines between those of the old one go',
    file: INNER,
    edit: edit('// ...\n      b();\n// ...', '// ...'),
    becomes: INNER.replace('      b();\n', ''),
  },
  {
    title: 'line breaks escaped twice in the old text only',
    file: INNER,
    edit: edit('    if (a) {\\n      b();\\n    }', '    if (a) {\n      c();\n    }'),
    becomes: INNER.replace('b()', 'c()'),
  },
  {
    title: 'markers in both texts: what they stand for stays',
    file: INNER,
    edit: edit(
      'class A {\n  // ... existing code ...\n    }\n  }',
      'class B {\n  // ... existing code ...\n    }\n    c();\n  }',
    ),
    becomes: INNER.replace('class A', 'class B').replace('    }\n  }', '    }\n    c();\n  }'),
  },
  ...[
    '# ...',
    '/* ... existing code ... */',
    '<!-- ... -->',
    '\u2026 existing code \u2026',
    '// \u2026',
    '...',
  ].map((marker) => ({
    title: `the marker ${marker}`,
    file: INNER,
    edit: edit(`class A {\n${marker}\n}\n`, `class B {\n${marker}\n}\n`),
    becomes: INNER.replace('class A', 'class B'),
  })),
  {
    title: 'a marker in the old text only: the whole is replaced',
    file: INNER,
    edit: edit('class A {\n  // ...\n}\n', 'class A {}\n'),
    becomes: 'class A {}\n',
  },
  {
    title: 'a marker that stands in the file is text',
    file: lines('a', '// ...', 'b'),
    edit: edit('a\n// ...\nb', 'a\n// ...\nc'),
    becomes: lines('a', '// ...', 'c'),
  },
  {
    title: 'indentation, quotes and trailing blanks at once',
    file: INNER.replace('b();', "b('x');"),
    edit: edit(
      lines('if (a) {  ', '  b(\u2018x\u2019);  ', '} '),
      lines('if (a) {  ', '  b(\u2018y\u2019);  ', '} '),
    ),
    becomes: INNER.replace('b();', "b('y');"),
  },
  {
    title: 'CRLF, line numbers and tabs at once',
    file: INNER.replaceAll('\n', '\r\n'),
    edit: edit('4\t\t\t\tb();\n5\t\t\t}', '4\t\t\t\tc();\n5\t\t\t}'),
    becomes: INNER.replace('b()', 'c()').replaceAll('\n', '\r\n'),
  },
  {
    title: 'a file without a line break at its end keeps none',
    file: 'a\nb',
    edit: edit('b\n', 'c\n'),
    becomes: 'a\nc',
  },
  { title: 'an empty file', file: '', edit: edit('', 'new\n'), becomes: 'new\n' },
  {
    title: 'patterns and dollars mean themselves',
    file: 'a.*(b)\n',
    edit: edit('.*(b)', '$& $1'),
    becomes: 'a$& $1\n',
  },
];

for (const { title, file, edit: one, becomes } of rows) {
  test(`edit steps: ${title}`, () => {
    const planned = planEdits(file, [one]);
    assert.equal(planned.kind, 'planned', planned.kind === 'refused' ? planned.why : '');
    assert.equal(planned.text, becomes);
  });
}
