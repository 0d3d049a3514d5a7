import assert from 'node:assert/strict';
import { test } from 'node:test';
import { coloursOf } from '../../../scripts/pictures/cells.js';
import { newKeyReader, readKeys } from '../src/keys.js';
import {
  type Background,
  backdropCode,
  backgroundIn,
  detectLook,
  type Look,
  paint,
  type Style,
  styleCode,
  watchBackground,
} from '../src/paint.js';
import { safe } from '../src/safe-text.js';

const environments: readonly (readonly [NodeJS.ProcessEnv, Background])[] = [
  [{}, 'unknown'],
  [{ COLORFGBG: '15;0' }, 'dark'],
  [{ COLORFGBG: '0;15' }, 'light'],
  [{ COLORFGBG: '0;default;7' }, 'light'],
  [{ COLORFGBG: 'default;default' }, 'unknown'],
];

for (const [environment, then] of environments) {
  test(`with ${JSON.stringify(environment)} the background is ${then}`, () => {
    assert.equal(backgroundIn(environment), then);
  });
}

const replies: readonly (readonly [string, readonly string[], Background])[] = [
  ['white', ['\u001b]11;rgb:ffff/ffff/ffff\u0007'], 'light'],
  ['black, in two digits', ['\u001b]11;rgb:00/00/00\u001b\\'], 'dark'],
  ['solarized light', ['\u001b]11;rgb:fdfd/f6f6/e3e3\u0007'], 'light'],
  ['blue is dark for the eye', ['\u001b]11;rgba:0000/0000/ffff/ffff\u0007'], 'dark'],
  ['in pieces, between keys', ['abc\u001b]1', '1;rgb:ffff/ff', 'ff/ff', 'ff\u001b\\def'], 'light'],
  ['cut in the last number', ['\u001b]11;rgb:7070/7070/f', '000\u0007'], 'dark'],
  ['none', ['abc', '\u001b[A'], 'unknown'],
  ['one that is no colour', ['\u001b]11;what\u0007'], 'unknown'],
];

for (const [title, typed, then] of replies) {
  test(`the reply ${title} means ${then}, and nothing of it is taken for typed text`, () => {
    const written: string[] = [];
    const watch = watchBackground({}, (text) => written.push(text));
    watch.ask();
    let reading = newKeyReader;
    let keys = '';
    for (const text of typed) {
      watch.read(text);
      const read = readKeys(reading, text);
      reading = read.reading;
      for (const pressed of read.presses) if (pressed.kind === 'key') keys += pressed.key.text;
    }
    assert.equal(watch.known(), then);
    assert.equal(written.length, 1);
    assert.match(keys, /^(?:abc)?(?:def)?$/);
  });
}

test('a known background is not asked for', () => {
  const watch = watchBackground({ COLORFGBG: '0;15' }, () => assert.fail('it asked'));
  watch.ask();
  assert.equal(watch.known(), 'light');
});

test('a background that becomes known late applies from then on', () => {
  const watch = watchBackground({}, () => undefined);
  const look: Look = {
    colour: 'yes',
    columns: 80,
    get background() {
      return watch.known();
    },
  };
  assert.equal(paint(look, 'green', safe`x`), '\u001b[32mx\u001b[39m');
  watch.read('\u001b]11;rgb:ff/ff/ff\u0007');
  assert.equal(paint(look, 'green', safe`x`), '\u001b[38;5;28mx\u001b[39m');
});

const wishes: readonly (readonly [boolean, NodeJS.ProcessEnv, 'yes' | 'no'])[] = [
  [true, {}, 'yes'],
  [false, {}, 'no'],
  [true, { NO_COLOR: '1' }, 'no'],
  [true, { NO_COLOR: '' }, 'yes'],
  [false, { FORCE_COLOR: '1' }, 'yes'],
  [true, { FORCE_COLOR: '0' }, 'no'],
  [true, { NO_COLOR: '1', FORCE_COLOR: '1' }, 'yes'],
  [true, { TERM: 'dumb', FORCE_COLOR: '1' }, 'no'],
  [true, { PAWL_PLAIN: '1', FORCE_COLOR: '1' }, 'no'],
  [true, { PAWL_PLAIN: '0' }, 'yes'],
];

for (const [isTTY, environment, then] of wishes) {
  test(`${isTTY ? 'a terminal' : 'a pipe'} with ${JSON.stringify(environment)}: colours ${then}`, () => {
    const stream = { isTTY, columns: 80 } as NodeJS.WriteStream; // all that is looked at
    assert.equal(detectLook(stream, environment).colour, then);
  });
}

test('the width is that of the window now', () => {
  const stream = { isTTY: true, columns: 80 };
  const look = detectLook(stream as NodeJS.WriteStream, {}); // all that is looked at
  stream.columns = 40;
  assert.equal(look.columns, 40);
});

test('dim text is readable on white, and on black where the background is unknown', () => {
  const level = (part: number): number => {
    const share = part / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  /** The contrast of a grey of the 256 colours with white and with black (WCAG 2). */
  const contrasts = (code: string): readonly [number, number] => {
    const grey = level(8 + 10 * (Number(code.split(';').at(-1)) - 232));
    return [1.05 / (grey + 0.05), (grey + 0.05) / 0.05];
  };
  const [onWhite] = contrasts(styleCode('dim', 'light'));
  assert.ok(onWhite >= 4.5, `${onWhite}`);
  for (const contrast of contrasts(styleCode('dim', 'unknown')))
    assert.ok(contrast >= 4.5, `${contrast}`);
});

/** The colour of a code as the pictures of screens draw it: of a usual terminal. */
const colourIn = (code: string) => {
  const [first = 0, form, ...parts] = code.split(';').map(Number);
  if (form === 2) return `rgb(${parts.join(',')})`;
  if (form === 5) return parts[0] ?? 0;
  return first >= 90 ? first - 82 : first - 30;
};

const luminance = (colour: string): number => {
  const parts = colour.startsWith('#')
    ? [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16))
    : (colour.match(/\d+/g) ?? []).map(Number);
  const [red = 0, green = 0, blue = 0] = parts.map((part) =>
    part <= 10.3 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};

const contrast = (
  style: Style | null,
  theme: 'dark' | 'light',
  depth: 'indexed' | 'true',
  back: 'added' | 'removed' | 'addedWord' | 'removedWord',
): number => {
  const cell = {
    foreground: style === null ? null : colourIn(styleCode(style, theme, depth)),
    background: colourIn(backdropCode(back, theme, depth) ?? ''),
    inverse: false,
  };
  const drawn = coloursOf(cell, theme);
  const [high = 0, low = 0] = [luminance(drawn.front), luminance(drawn.back)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
};

// Words that changed have the colour of text; signs and code have their own.
for (const theme of ['dark', 'light'] as const)
  for (const depth of ['indexed', 'true'] as const)
    test(`text on the rows of a change is readable: ${theme}, ${depth}`, () => {
      for (const back of ['added', 'removed'] as const)
        for (const style of [
          'red',
          'green',
          'yellow',
          'keyword',
          'string',
          'number',
          null,
        ] as const) {
          const isOther =
            (style === 'red' && back === 'added') || (style === 'green' && back === 'removed');
          const found = contrast(style, theme, depth, back);
          const least = theme === 'dark' && depth === 'true' ? 4.5 : 3;
          if (!isOther) assert.ok(found >= least, `${style} on ${back}: ${found.toFixed(2)}`);
        }
      for (const back of ['addedWord', 'removedWord'] as const)
        assert.ok(contrast(null, theme, depth, back) >= 3, back);
    });
