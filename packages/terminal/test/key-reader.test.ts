import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type KeyReaderState,
  newKeyReader,
  type Pressed,
  readKeys,
  readSilence,
} from '../src/keys.js';

/** What terminals write, and the keys that are meant. */

const E = '\u001b';

/** A press in a few signs: `C-` control, `A-` alt, `S-` shift, typed text in quotes. */
const sign = (pressed: Pressed): string => {
  if (pressed.kind === 'paste') return `paste ${JSON.stringify(pressed.text)}`;
  const { name, text, control, alt, shift } = pressed.key;
  if (text !== '') return JSON.stringify(text);
  return `${control ? 'C-' : ''}${alt ? 'A-' : ''}${shift ? 'S-' : ''}${name}`;
};

const read = (
  ...pieces: readonly string[]
): { readonly signs: readonly string[]; readonly reading: KeyReaderState } => {
  let reading = newKeyReader;
  const signs: string[] = [];
  for (const piece of pieces) {
    const next = piece === 'silence' ? readSilence(reading) : readKeys(reading, piece);
    reading = next.reading;
    signs.push(...next.presses.map(sign));
  }
  return { signs, reading };
};

const rows: readonly (readonly [
  title: string,
  pieces: readonly string[],
  signs: readonly string[],
])[] = [
  ['text', ['hello'], ['"hello"']],
  ['wide text', ['日本🎉'], ['"日本🎉"']],
  ['Enter', ['\r'], ['enter']],
  ['Ctrl-J', ['\n'], ['C-j']],
  ['Ctrl-C, Ctrl-D, Ctrl-Z', ['\u0003\u0004\u001a'], ['C-c', 'C-d', 'C-z']],
  ['Ctrl-_', ['\u001f'], ['C-_']],
  ['backspace, both kinds', ['\u007f\b'], ['backspace', 'backspace']],
  ['Tab and Shift+Tab', [`\t${E}[Z`], ['tab', 'S-tab']],
  ['arrows', [`${E}[A${E}OB${E}[C${E}OD`], ['up', 'down', 'right', 'left']],
  ['arrows with Ctrl and Alt', [`${E}[1;5C${E}[1;3D`], ['C-right', 'A-left']],
  ['Alt with an arrow, as rxvt writes it', [`${E}${E}[D`], ['A-left']],
  ['Home, End, Delete', [`${E}[H${E}[4~${E}[3~`], ['home', 'end', 'delete']],
  ['Alt+Enter', [`${E}\r`], ['A-enter']],
  ['Alt+Backspace', [`${E}\u007f`], ['A-backspace']],
  ['Alt and a letter', [`${E}b${E}B`], ['A-b', 'A-S-b']],
  ['Escape alone', [E, 'silence'], ['escape']],
  ['Escape twice', [E, 'silence', E, 'silence'], ['escape', 'escape']],
  ['Escape twice at once', [E + E, 'silence'], ['escape', 'escape']],
  ['a sequence in pieces', [E, '[', '1;', '5C'], ['C-right']],
  ['Kitty: Shift+Enter', [`${E}[13;2u`], ['S-enter']],
  ['Kitty: Alt+Enter', [`${E}[13;3u`], ['A-enter']],
  ['Kitty: Escape', [`${E}[27u`], ['escape']],
  ['Kitty: Ctrl-C', [`${E}[99;5u`], ['C-c']],
  ['Kitty: a letter, with its release', [`${E}[97;1:1u${E}[97;1:3u`], ['"a"']],
  ['Kitty: a shifted sign', [`${E}[49:33;2u`], ['"!"']],
  ['Kitty: number pad', [`${E}[57400u${E}[57414u`], ['"1"', 'enter']],
  ['Kitty: a modifier alone', [`${E}[57441;2u`], []],
  ['modifyOtherKeys: Shift+Enter', [`${E}[27;2;13~`], ['S-enter']],
  ['modifyOtherKeys: Ctrl-Enter', [`${E}[27;5;13~`], ['C-enter']],
  ['F3 is no report of the cursor', [`${E}[1;2R${E}[12;5R`], ['S-f3']],
  ['a mouse', [`${E}[<35;20;5m`, 'a'], ['"a"']],
  ['focus', [`${E}[I${E}[O`, 'a'], ['"a"']],
  ['device attributes', [`${E}[?62;22c`, 'a'], ['"a"']],
  ['a key of the Linux console', [`${E}[[A`, 'a'], ['"a"']],
  ['a colour that was asked for', [`${E}]11;rgb:ffff/ffff/ffff${E}\\a`], ['"a"']],
  ['a colour, ended by BEL', [`${E}]11;rgb:0/0/0\u0007a`], ['"a"']],
  [
    'a colour in pieces, with silence between',
    [`${E}]11;rgb:ff`, 'silence', 'ff/ff', 'silence', '\u0007a'],
    ['"a"'],
  ],
  ['a reply that breaks off counts no key as its own', [`${E}]11;rgb:ff`, '\u0003'], ['C-c']],
  ['a terminal that says its name', [`${E}P>|kitty 0.3${E}\\`], []],
  ['Alt and a bracket, then text', [`${E}]`, 'silence', 'text'], ['"text"']],
  ['a sequence that nobody knows', [`${E}[99;99;99z`, 'a'], ['"a"']],
  ['a paste', [`${E}[200~a\r\nb${E}[201~c`], ['paste "a\\r\\nb"', '"c"']],
  ['a paste in pieces', [`x${E}[20`, `0~a${E}`, '[20', '1~'], ['"x"', 'paste "a"']],
  [
    'a paste whose line ends, tabs and characters come as keys',
    [`${E}[200~one${E}[13;1u${E}[9utwo ${E}[228;1u${E}[201~`],
    ['paste "one\\n\\ttwo ä"'],
  ],
  [
    'a sequence in a paste that writes nothing goes whole',
    [`${E}[200~a${E}[A${E}[31mb${E}[201~`],
    ['paste "ab"'],
  ],
  [
    'an ESC alone in a paste goes',
    [`${E}[200~a${E}[201~`, `${E}[200~${E}${E}[201~`],
    ['paste "a"', 'paste ""'],
  ],
  ['C1 controls', ['\u009b\u0085a'], ['"a"']],
];

for (const [title, pieces, signs] of rows) {
  test(`keys: ${title}`, () => {
    assert.deepEqual(read(...pieces).signs, signs);
  });
}

test('however the bytes are cut, the same keys arrive', () => {
  const whole = fc.array(
    fc.constantFrom(
      'ab',
      '\r',
      `${E}[1;5C`,
      `${E}]11;x${E}\\`,
      `${E}[200~p\n${E}[201~`,
      `${E}[13;2u`,
    ),
    {
      minLength: 1,
      maxLength: 8,
    },
  );
  const join = (signs: readonly string[]): string => signs.join(' ').replaceAll('" "', '');
  fc.assert(
    fc.property(whole, fc.infiniteStream(fc.integer({ min: 1, max: 5 })), (parts, sizes) => {
      const text = parts.join('');
      const pieces: string[] = [];
      let at = 0;
      for (const size of sizes) {
        if (at >= text.length) break;
        pieces.push(text.slice(at, at + size));
        at += size;
      }
      assert.equal(join(read(...pieces).signs), join(read(text).signs));
    }),
  );
});

test('a reply that never ends is not kept for ever', () => {
  const { reading, signs } = read(`${E}]52;`, 'x'.repeat(100_000));
  assert.deepEqual(signs, []);
  assert.ok(reading.pending.length < 70_000);
  assert.deepEqual(readKeys(reading, '\u0007a').presses.map(sign), ['"a"']);
});
