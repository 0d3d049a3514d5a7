import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyOf } from '../../../test/kit/terminal/typing.js';
import type { Choice } from '../src/choices.js';
import { Composer } from '../src/composer.js';
import { safe } from '../src/safe-text.js';

/** The line with its history, search and completion. */

const commands: readonly Choice[] = [
  { text: 'help', about: 'this list' },
  { text: 'compact', about: 'make room' },
  { text: 'cost', about: 'tokens and money' },
  { text: 'budget', about: 'limits', runs: true },
];

const seat = (files: readonly string[] = []) => {
  const asked: { readonly words: string; readonly signal: AbortSignal; answer(): void }[] = [];
  let changes = 0;
  const completer = {
    commands,
    files: (words: string, signal: AbortSignal) =>
      new Promise<readonly Choice[]>((resolve) => {
        const answer = (): void =>
          resolve(
            files.filter((file) => file.includes(words)).map((text) => ({ text, about: '' })),
          );
        asked.push({ words, signal, answer });
      }),
  };
  const composer = new Composer(completer, () => {
    changes += 1;
  });
  const sent: string[] = [];
  const press = (...keys: readonly string[]): void => {
    for (const key of keys) {
      const done = composer.take(
        key.startsWith('paste ')
          ? { kind: 'paste', text: key.slice(6) }
          : { kind: 'key', key: keyOf(key) },
      );
      if (done.kind === 'submit') sent.push(`${done.mode} ${done.text}`);
    }
  };
  const rows = (): readonly string[] => composer.frame(40, 5, (row) => safe`*${row}`).rows;
  const settle = async (): Promise<void> => {
    for (const { answer } of asked) answer();
    await new Promise(setImmediate);
  };
  return { composer, press, sent, rows, settle, asked, changes: () => changes };
};

test('Enter sends and empties; Alt+Enter sends for later', () => {
  const at = seat();
  at.press("'one'", 'enter', "'two'", 'A-enter', 'enter');
  assert.deepEqual(at.sent, ['now one', 'later two', 'now ']);
  assert.ok(at.composer.isEmpty);
});

test('a text that was put aside comes back with Up', () => {
  const at = seat();
  at.press("'half a thought'");
  assert.equal(at.composer.putAside(), 'half a thought');
  assert.ok(at.composer.isEmpty);
  at.press('up');
  assert.equal(at.composer.text, 'half a thought');
});

test('Shift+Enter, Ctrl-J and a backslash before Enter make new lines', () => {
  const at = seat();
  at.press("'a'", 'S-enter', "'b'", 'C-j', "'c\\'", 'enter', "'d'", 'enter');
  assert.deepEqual(at.sent, ['now a\nb\nc\nd']);
});

test('a long paste is sent whole, and comes back whole', () => {
  const at = seat();
  const long = 'x\n'.repeat(20);
  at.press(`paste ${long}`);
  assert.deepEqual(at.rows(), ['> [paste #1 +21 lines]']);
  at.press('enter', 'up');
  assert.deepEqual(at.sent, [`now ${long}`]);
  assert.equal(at.composer.text, long);
});

test('Up and Down go through what was sent; the draft comes back', () => {
  const at = seat();
  at.composer.addEarlier(['old']);
  at.press("'one'", 'enter', "'draft'", 'up', 'up');
  assert.equal(at.composer.text, 'old');
  at.press('up');
  assert.equal(at.composer.text, 'old');
  at.press('down', 'down');
  assert.equal(at.composer.text, 'draft');
});

test('a draft that was left for an older text is there again when that is sent', () => {
  const at = seat();
  at.press("'one'", 'enter', "'draft'", 'up', 'enter');
  assert.deepEqual(at.sent, ['now one', 'now one']);
  assert.equal(at.composer.text, 'draft');
});

for (const [title, older, keys, edited] of [
  ['a key', 'one', ["'!'"], 'one!'],
  ['a paste', 'one', ['paste !'], 'one!'],
  ['a new line', 'one', ['S-enter'], 'one\n'],
  ['a completion', '/comp', ['tab', 'tab'], '/compact '],
] as const) {
  test(`a draft that was left for an older text comes back with Up after ${title}`, () => {
    const at = seat();
    at.composer.addEarlier([older]);
    at.press("'draft'", 'up', ...keys, 'C-home', 'up');
    assert.equal(at.composer.text, 'draft');
    at.press('down', 'enter');
    assert.deepEqual(at.sent, [`now ${edited}`]);
    at.press('up', 'C-home', 'up');
    assert.equal(at.composer.text, 'draft');
  });
}

test('a draft is kept when an older text is put aside, or replaced by texts that come back', () => {
  const at = seat();
  at.press("'one'", 'enter', "'draft'", 'up');
  at.composer.putAside();
  at.press('up', 'up');
  assert.equal(at.composer.text, 'draft');
  at.press('down', 'down', "'second'", 'up');
  at.composer.setText('queued');
  at.press('up');
  assert.equal(at.composer.text, 'second');
  at.press('down');
  assert.equal(at.composer.text, 'queued');
});

test('a long paste that was cut comes back after a send, also beside another one', () => {
  const at = seat();
  const [long, other] = ['x'.repeat(2_000), 'y'.repeat(3_000)];
  at.press(`paste ${long}`, 'C-u', "'hi'", 'enter', `paste ${other}`, 'C-y', 'enter');
  assert.deepEqual(at.sent, ['now hi', `now ${other}${long}`]);
});

test('a very long text that comes back is folded, and undo brings the line back', () => {
  const at = seat();
  at.press("'line'");
  at.composer.setText('x'.repeat(50_000));
  assert.deepEqual(at.rows(), ['> [paste #1 50000 characters]']);
  assert.equal(at.composer.text, 'x'.repeat(50_000));
  at.press('C-_');
  assert.equal(at.composer.text, 'line');
});

test('in a text of several lines Up moves first', () => {
  const at = seat();
  at.press("'old'", 'enter', "'a'", 'C-j', "'b'", 'up', "'x'");
  assert.equal(at.composer.text, 'ax\nb');
  at.press('up');
  assert.equal(at.composer.text, 'old');
});

test('earlier texts that come late stand before what was sent meanwhile', () => {
  const at = seat();
  at.press("'new'", 'enter', 'up');
  at.composer.addEarlier(['old']);
  assert.equal(at.composer.text, 'new');
  at.press('up');
  assert.equal(at.composer.text, 'old');
});

test('a search from an older text keeps the draft: Escape goes back to that text', () => {
  const at = seat();
  at.composer.addEarlier(['one', 'two']);
  at.press("'draft'", 'up', 'C-r', "'one'");
  at.composer.escape();
  assert.equal(at.composer.text, 'two');
  at.press('C-r', "'one'", 'enter');
  assert.deepEqual(at.sent, ['now one']);
  assert.equal(at.composer.text, 'draft');
});

test('Ctrl-R searches what was sent; Enter sends it, Escape brings the draft back', () => {
  const at = seat();
  at.composer.addEarlier(['fix the parser', 'run it', 'fix the lexer']);
  at.press("'draft'", 'C-r', "'fix'");
  assert.deepEqual(at.rows(), ['> fix the lexer', '  search: fix']);
  at.press('C-r');
  assert.equal(at.composer.text, 'fix the parser');
  at.press('C-r');
  assert.equal(at.composer.text, 'fix the parser');
  at.composer.escape();
  assert.equal(at.composer.text, 'draft');
  at.press('C-r', "'zzz👍🏽'", 'backspace');
  assert.deepEqual(at.rows(), ['> draft', '  search: zzz (nothing found)']);
  at.press('backspace', 'backspace', 'backspace', "'run'", 'enter');
  assert.deepEqual(at.sent, ['now run it']);
  assert.equal(at.composer.text, 'draft');
});

test('a slash lists the commands; Tab takes the chosen one', () => {
  const at = seat();
  at.press("'/'");
  assert.deepEqual(at.rows(), [
    '> /',
    '*› help     this list',
    '  compact  make room',
    '  cost     tokens and money',
    '  budget   limits',
  ]);
  at.press("'co'", 'down', 'tab');
  assert.equal(at.composer.text, '/compact ');
  assert.ok(!at.composer.isOpen);
});

test('Enter runs a chosen command that needs no more words', () => {
  const at = seat();
  at.press("'/bud'", 'enter', "'/bud'", 'tab', "'and 5'", 'enter');
  assert.deepEqual(at.sent, ['now /budget ', 'now /budget and 5']);
});

test('Enter takes a chosen command that is not typed yet, and sends one that is', () => {
  const at = seat();
  at.press("'/comp'", 'enter');
  assert.deepEqual(at.sent, []);
  assert.equal(at.composer.text, '/compact ');
  at.press('enter', "'/cost'", 'enter', "'/hlep'", 'enter');
  assert.deepEqual(at.sent, ['now /compact ', 'now /cost', 'now /hlep']);
});

test('Escape closes the list and leaves the text', () => {
  const at = seat();
  at.press("'/h'");
  assert.ok(at.composer.isOpen);
  at.composer.escape();
  assert.deepEqual(at.rows(), ['> /h']);
});

test('an @ lists files when they are there; arrows choose, Enter takes', async () => {
  const at = seat(['src/main.ts', 'src/map.ts', 'test/main.test.ts']);
  at.press("'see @ma'");
  assert.deepEqual(at.rows(), ['> see @ma']);
  await at.settle();
  assert.deepEqual(at.rows(), [
    '> see @ma',
    '*› src/main.ts',
    '  src/map.ts',
    '  test/main.test.ts',
  ]);
  assert.equal(at.changes(), 1);
  at.press('down', 'enter', "'and'");
  assert.equal(at.composer.text, 'see @src/map.ts and');
});

test('files that come when the text has gone on are not shown, and nobody looks for them any more', async () => {
  const at = seat(['src/main.ts']);
  at.press("'@ma'", "'x'");
  assert.ok(at.asked[0]?.signal.aborted);
  at.press('enter');
  assert.ok(at.asked[1]?.signal.aborted);
  await at.settle();
  assert.equal(at.changes(), 0);
  assert.deepEqual(at.sent, ['now @max']);
});

test('while files are looked for, the list has those of the earlier word that still match', async () => {
  const at = seat(['src/main.ts', 'src/map.ts']);
  at.press("'@ma'");
  await at.settle();
  at.press("'p'");
  assert.deepEqual(at.rows(), ['> @map', '*› src/map.ts']);
  at.press("'x'", 'enter');
  assert.deepEqual(at.sent, ['now @mapx']);
});

test('Enter before the files are there sends what is typed', () => {
  const at = seat(['src/main.ts']);
  at.press("'see @ma'", 'enter');
  assert.deepEqual(at.sent, ['now see @ma']);
});

test('a list of many shows six around the chosen one', async () => {
  const at = seat(Array.from({ length: 20 }, (_, index) => `f${index}.ts`));
  at.press("'@f'");
  await at.settle();
  assert.equal(at.rows().length, 7);
  at.press('up');
  assert.equal(at.rows().at(-1), '*› f19.ts');
});

test('pasted text opens no list', () => {
  const at = seat();
  at.press('paste /cost', 'enter');
  assert.deepEqual(at.sent, ['now /cost']);
});

for (const [title, typed, cursor, lines] of [
  ['into an empty line', '', [], ['@a.png ', '/w/a.png', '']],
  ['behind a word, with a blank between', 'see', [], ['see @a.png ', 'see/w/a.png', 'see']],
  [
    'between words, with one blank on each side',
    'see now',
    ['A-b'],
    ['see @a.png now', 'see /w/a.pngnow', 'see now'],
  ],
  [
    'before a blank that is there',
    'see now',
    ['A-b', 'left'],
    ['see @a.png now', 'see/w/a.png now', 'see now'],
  ],
] as const) {
  test(`a paste that is named goes ${title}; undo makes it what was pasted, then takes it away`, () => {
    const asked: string[] = [];
    const composer = new Composer(
      { commands, files: async () => [] },
      () => undefined,
      (pasted, before) => {
        asked.push(before);
        return pasted === '/w/a.png' ? '@a.png' : null;
      },
    );
    const press = (short: string) => composer.take({ kind: 'key', key: keyOf(short) });
    for (const letter of typed) press(`'${letter}'`);
    for (const key of cursor) press(key);
    composer.take({ kind: 'paste', text: '/w/a.png' });
    const seen = [composer.text];
    for (const key of ['C-_', 'C-_']) {
      press(key);
      seen.push(composer.text);
    }
    assert.deepEqual(seen, lines);
    assert.equal(typed.startsWith(asked[0] ?? 'nobody asked'), true);
    composer.setText('');
    composer.take({ kind: 'paste', text: 'any other' });
    assert.equal(composer.text, 'any other');
  });
}

test('a named paste stands beside a folded one: both are sent whole', () => {
  const composer = new Composer(
    { commands, files: async () => [] },
    () => undefined,
    (pasted) => (pasted === '/w/a.png' ? '@a.png' : null),
  );
  const long = Array.from({ length: 20 }, (_, line) => `line ${line}`).join('\n');
  composer.take({ kind: 'paste', text: long });
  composer.take({ kind: 'paste', text: '/w/a.png' });
  composer.take({ kind: 'paste', text: long });
  assert.equal(composer.text, `${long} @a.png ${long}`);
});

test('a path that is long enough to be folded is whole again after an undo', () => {
  const composer = new Composer(
    { commands, files: async () => [] },
    () => undefined,
    () => '@a.png',
  );
  const long = `/${'a'.repeat(2_000)}.png`;
  composer.take({ kind: 'paste', text: long });
  composer.take({ kind: 'key', key: keyOf('C-_') });
  assert.equal(composer.text, long);
});

test('a word that comes to an older text makes it the text at hand: Down does not leave it', () => {
  const at = seat();
  at.press("'old'", 'enter', 'up');
  at.composer.putWord('@a.png');
  at.press('down');
  assert.equal(at.composer.text, 'old @a.png ');
});

test('a word that comes late goes where the cursor stands, and one undo takes it away', () => {
  const at = seat();
  at.press("'see'", "' '", "'n'", 'left');
  at.composer.putWord('@a.png');
  assert.equal(at.composer.text, 'see @a.png n');
  at.press('C-_');
  assert.equal(at.composer.text, 'see n');
});

test('Ctrl-V asks for what the clipboard holds, and leaves the line as it is', () => {
  const at = seat();
  at.press("'see'");
  assert.deepEqual(at.composer.take({ kind: 'key', key: keyOf('C-v') }), { kind: 'picture' });
  assert.deepEqual(at.composer.take({ kind: 'key', key: keyOf('C-A-v') }), { kind: 'none' });
  assert.equal(at.composer.text, 'see');
});
