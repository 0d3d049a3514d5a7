import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { countCases } from '../../../test/tier.js';
import { parseReply } from '../src/run/parse-reply.js';
import { digestTexts } from '../src/run/text-hash.js';

const ours = { finalForms: 'on', fences: 'ignored' } as const;
const seeds = { finalForms: 'on', fences: 'searched' } as const;
const blocksOf = (text: string): readonly string[] =>
  parseReply(text, ours).blocks.map(({ code }) => code);
const finalOf = (text: string, rules: typeof ours | typeof seeds = ours): string | null => {
  const { final } = parseReply(text, rules);
  if (final === null) return null;
  return final.kind === 'text' ? `text ${final.text}` : `variable ${final.name}`;
};

const programs: readonly (readonly [title: string, text: string, blocks: readonly string[]])[] = [
  ['one block', 'Look:\n```repl\nx = 1\n```\ndone', ['x = 1']],
  ['blocks in order', '```repl\na\n```\nthen\n```repl\nb\n```', ['a', 'b']],
  ['a block with attributes', '```repl title="x" {1,2}\na\n```', ['a']],
  ['a tag in braces', '```{repl}\na\n```\n```{.repl .numbers}\nb\n```', ['a', 'b']],
  ['a tag in capitals', '```REPL\na\n```', ['a']],
  ['white space around the tag', '```   repl  \na\n```', ['a']],
  [
    'other tags are no programs',
    '```js\na\n```\n```\nb\n```\n```replace\nc\n```\n```repl-session\nd\n```',
    [],
  ],
  ['tildes', '~~~repl\na\n```\nb\n~~~', ['a\n```\nb']],
  ['a longer fence holds a shorter one', '````repl\n```js\na\n```\n````', ['```js\na\n```']],
  ['an example in a longer fence is no program', '````md\n```repl\na\n```\n````', []],
  ['an example in tildes is no program', '~~~\n```repl\na\n```\n~~~', []],
  [
    'an indented block loses its indent',
    '1. So:\n   ```repl\n   if x:\n     y\n   ```',
    ['if x:\n  y'],
  ],
  ['tabs count as one', '\t```repl\n\ta\n\t```', ['a']],
  ['a line that is indented less keeps what it has', '  ```repl\n a\n   b\n  ```', ['a\n b']],
  ['the closing fence may be indented otherwise', '```repl\na\n    ```', ['a']],
  ['a longer closing fence closes', '```repl\na\n``````  ', ['a']],
  ['a fence with words does not close', '```repl\na\n``` b\n```', ['a\n``` b']],
  ['lines end as on Windows', 'Look:\r\n```repl\r\na\r\nb\r\n```\r\n', ['a\nb']],
  ['a block that is never closed', 'Look:\n```repl\na\nb', ['a\nb']],
  ['an empty block', '```repl\n```', ['']],
  ['backticks in a line are no fence', 'Use ```repl x``` here\n```repl x```\nand go on', []],
  ['two backticks are no fence', '``repl\na\n``', []],
  ['nothing', '', []],
];

for (const [title, text, blocks] of programs) {
  test(`programs of a reply: ${title}`, () => assert.deepEqual(blocksOf(text), blocks));
}

const tagged: readonly (readonly [
  tag: string,
  language: 'javascript' | 'python',
  blocks: number,
])[] = [
  ['javascript', 'javascript', 1],
  ['js', 'javascript', 1],
  ['JS title="x"', 'javascript', 1],
  ['{ts}', 'javascript', 1],
  ['typescript', 'javascript', 1],
  ['python', 'javascript', 0],
  ['json', 'javascript', 0],
  ['js-session', 'javascript', 0],
  ['', 'javascript', 0],
  ['python', 'python', 1],
  ['python3', 'python', 1],
  ['py', 'python', 1],
  ['js', 'python', 0],
];
for (const [tag, language, blocks] of tagged) {
  test(`a fence tagged "${tag}" in ${language} holds ${blocks} programs`, () => {
    const text = `\`\`\`${tag}\na\n\`\`\``;
    const count = (tags: 'language' | 'repl') =>
      parseReply(text, { ...ours, tags }, language).blocks.length;
    assert.equal(count('language'), blocks);
    assert.equal(count('repl'), 0);
  });
}

test('beside a program tagged repl, a fence with the tag of the language is an example', () => {
  const text = '```js\nexample\n```\n```repl\na\n```';
  const { blocks } = parseReply(text, { ...ours, tags: 'language' }, 'javascript');
  assert.deepEqual(blocks, [{ code: 'a', closed: 'yes' }]);
});

test('a block that is never closed says so', () => {
  const { blocks } = parseReply('```repl\na\n```\n```repl\nb', ours);
  assert.deepEqual(
    blocks.map(({ closed }) => closed),
    ['yes', 'no'],
  );
});

const finals: readonly (readonly [title: string, text: string, final: string | null])[] = [
  ['alone', 'FINAL(42)', 'text 42'],
  ['after words', 'So it is.\n\nFINAL(42)\n', 'text 42'],
  ['indented', '  \tFINAL(42)', 'text 42'],
  ['not in the middle of a line', 'I say FINAL(42)', null],
  ['not as a part of a word', 'FINALLY(42)\nFINAL_(43)', null],
  ['balanced parentheses', 'FINAL(f(x) and (y))', 'text f(x) and (y)'],
  ['over several lines', 'FINAL(one\ntwo\n)\nmore', 'text one\ntwo'],
  ['parentheses in quotes', 'FINAL(say ")" and \'(\')', 'text say ")" and \'(\''],
  ['a parenthesis after a backslash', 'FINAL(a \\) b)', 'text a \\) b'],
  ['a quote after a backslash', 'FINAL("a \\" ) b")', 'text "a \\" ) b"'],
  ['an apostrophe is no quote', "FINAL(it's (very) simple)", "text it's (very) simple"],
  ['a quote that is never closed is none', 'FINAL(5" screen)\n', 'text 5" screen'],
  ['the last of several', 'FINAL(1)\nFINAL(2)', 'text 2'],
  ['the last that is whole', 'FINAL(1)\nFINAL(2', 'text 1'],
  ['not closed at all', 'FINAL(1', null],
  ['empty', 'FINAL()', 'text '],
  ['a variable', 'FINAL_VAR(result)', 'variable result'],
  ['a variable in quotes', 'FINAL_VAR( "result" )', 'variable result'],
  ['a variable counts before a text', 'FINAL_VAR(x)\nFINAL(2)', 'variable x'],
  ['in a fenced example it is none', '```\nFINAL(1)\n```', null],
  ['in a program it is none', '```repl\nFINAL(1)\n```', null],
  ['after a fenced example it is one', '```\nFINAL(1)\n```\nFINAL(2)', 'text 2'],
  ['between two examples it is one', '```\na\n```\nFINAL(2)\n~~~\nFINAL(3)\n~~~', 'text 2'],
  ['its own fence belongs to it', 'FINAL(see\n```\ncode()\n```\n)', 'text see\n```\ncode()\n```'],
];

for (const [title, text, final] of finals) {
  test(`the answer of a reply: ${title}`, () => assert.equal(finalOf(text), final));
}

test('the seed finds its answer in examples, too', () => {
  assert.equal(finalOf('```\nFINAL(1)\n```', seeds), 'text 1');
});

test('where the forms are off there is no answer', () => {
  assert.equal(parseReply('FINAL(1)', { finalForms: 'off', fences: 'ignored' }).final, null);
});

const line = fc.string().map((text) => text.replace(/[\r\n`~]/g, '.'));
const lines = fc.array(line, { maxLength: 4 });
const piece = fc.record({
  mark: fc.constantFrom('```', '````', '~~~', '~~~~~'),
  tag: fc.constantFrom('repl', 'repl x=1', 'js', '', 'replica'),
  indent: fc.constantFrom('', '  ', '\t'),
  ending: fc.constantFrom('\n', '\r\n'),
  code: lines,
  words: lines,
});

test('blocks are found unchanged in any surrounding text', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
      const text = pieces
        .map(({ mark, tag, indent, ending, code, words }) =>
          [
            ...words,
            `${indent}${mark}${tag}`,
            ...code.map((one) => `${indent}${one}`),
            `${indent}${mark}`,
            '',
          ].join(ending),
        )
        .join('');
      const expected = pieces
        .filter(({ tag }) => tag.startsWith('repl') && tag !== 'replica')
        .map(({ code }) => code.join('\n'));
      assert.deepEqual(blocksOf(text), expected);
    }),
  );
});

const balanced: fc.Arbitrary<string> = fc.letrec<{ text: string }>((tie) => ({
  text: fc.oneof(
    { maxDepth: 4 },
    fc.stringMatching(/^[a-z0-9 ,.]{0,8}$/),
    fc.tuple(tie('text'), tie('text')).map(([one, other]) => `${one}(${other})`),
    fc.stringMatching(/^[a-z() ]{0,8}$/).map((quoted) => ` "${quoted}" `),
    fc.constantFrom(' \\) ', ' \\( ', ' \\" '),
  ),
})).text;

test('a balanced answer is found whole, whatever follows', () => {
  fc.assert(
    fc.property(balanced, line, (answer, after) => {
      const { final } = parseReply(`So:\nFINAL(${answer})\n> ${after}`, ours);
      assert.deepEqual(final, { kind: 'text', text: answer.trim() });
    }),
  );
});

test('no reply is too odd to be read', () => {
  const odd = fc.array(
    fc.constantFrom(
      '```',
      '~~~~',
      'repl',
      '\n',
      '\r\n',
      'FINAL(',
      'FINAL_VAR(',
      ')',
      '"',
      "'",
      '\\',
      ' ',
      'x',
    ),
  );
  fc.assert(
    fc.property(odd, (parts) => {
      const { blocks } = parseReply(parts.join(''), ours);
      assert.ok(blocks.length <= parts.length);
    }),
    { numRuns: countCases(500) },
  );
});

/** A megabyte of what would take hours if it were looked at again from each line. */
const hostile: readonly (readonly [title: string, unit: string])[] = [
  ['answers that are never closed', 'FINAL(\n'],
  ['answers and variables in turn', 'FINAL("\nFINAL_VAR(\'\n'],
  ['parentheses', '('],
  ['openings and quotes', 'FINAL((("\n'],
  ['fences of one line', '```repl\n'],
  ['fences of growing length', '`'],
  ['tildes and backticks', '~~~\n```repl\n'],
  ['backslashes', '\\'],
  ['white space', ' '],
  ['returns', '\r'],
  ['line ends', '\n'],
];
for (const [title, unit] of hostile) {
  test(`a megabyte of ${title} is read in one pass`, () => {
    const text = unit.repeat(Math.ceil(1_000_000 / unit.length));
    for (const rules of [ours, seeds]) parseReply(`FINAL(\n${text}`, rules);
  });
}

test('a digest tells lists of texts apart', () => {
  const texts = fc.array(fc.string({ maxLength: 6 }), { maxLength: 4 });
  fc.assert(
    fc.property(texts, texts, (one, other) => {
      assert.equal(
        digestTexts(one) === digestTexts(other),
        JSON.stringify(one) === JSON.stringify(other),
      );
    }),
    { numRuns: countCases(2_000) },
  );
  for (const [one, other] of [
    [['ab'], ['a', 'b']],
    [[], ['']],
    [[''], ['', '']],
    [
      ['a', ''],
      ['', 'a'],
    ],
  ] as const) {
    assert.notEqual(digestTexts(one), digestTexts(other), JSON.stringify([one, other]));
  }
});

test('no two of 200,000 short texts have the same digest', () => {
  const seen = new Set<string>();
  for (let count = 0; count < 200_000; count++)
    seen.add(digestTexts([`prompt ${count}`]).split('-')[0] ?? '');
  assert.equal(seen.size, 200_000);
});
