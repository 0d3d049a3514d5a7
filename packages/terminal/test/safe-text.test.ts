import assert from 'node:assert/strict';
import test from 'node:test';
import { watchCpu } from '../../../test/cpu-watch.js';
import {
  cutSafe,
  escapeInJson,
  joinSafe,
  keepStyles,
  makeSafe,
  type Safe,
  safe,
  styleSafe,
} from '../src/safe-text.js';
import { inLocale, writeError, writeOut, writeWindow } from '../src/write.js';

test('controls, invisible and reordering characters become marks that say which', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['\u001b]0;title\u0007', '␛]0;title␇'],
    ['\u0000\u007f', '␀␡'],
    ['a\rb\r\nc', 'a␍b\nc'],
    ['\u009b31m', '⟨U+009B⟩31m'],
    ['a\u202egpj.exe', 'a⟨U+202E⟩gpj.exe'],
    ['\u200e\u200f\u061c\u2066\u2069', '⟨U+200E⟩⟨U+200F⟩⟨U+061C⟩⟨U+2066⟩⟨U+2069⟩'],
    ['x\u200by\ufeffz\u00ad', 'x⟨U+200B⟩y⟨U+FEFF⟩z⟨U+00AD⟩'],
    ['a\u200db\u200cc\ufe0fd', 'a⟨U+200D⟩b⟨U+200C⟩c⟨U+FE0F⟩d'],
    ['1\u2028 2\u2029', '1⟨U+2028⟩ 2⟨U+2029⟩'],
    ['\u{e0041}\u{e007f}\u{e0100}', '⟨U+E0041⟩⟨U+E007F⟩⟨U+E0100⟩'],
    ['\ud800x\udc00', '⟨U+D800⟩x⟨U+DC00⟩'],
    ['\ue000\u{f0000}\uffff\ufff9', '⟨U+E000⟩⟨U+F0000⟩⟨U+FFFF⟩⟨U+FFF9⟩'],
    ['\u3164\uffa0\u115f\u1160\u180e\u034f', '⟨U+3164⟩⟨U+FFA0⟩⟨U+115F⟩⟨U+1160⟩⟨U+180E⟩⟨U+034F⟩'],
    ['❤\ufe0f\ufe0f', '❤\ufe0f⟨U+FE0F⟩'],
    ['1\ufe0f2', '1⟨U+FE0F⟩2'],
  ];
  for (const [foreign, shown] of cases) assert.equal(makeSafe(foreign), shown);
});

test('invisible characters stay where a script or an emoji needs them', () => {
  const texts = [
    'plain\n\ttext, Zürich 東京 العربية עברית',
    '👩‍👩‍👧 👩🏽‍🚀 ❤️‍🔥 🏳️‍🌈 🏴‍☠️ 1️⃣ ☎︎',
    '🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} plays',
    'می\u200cخواهم', // Persian
    'क्\u200dष ශ්\u200dරී', // Hindi, Sinhala
    '葛\u{e0100} 邉\u{e0101}',
  ];
  for (const text of texts) assert.equal(makeSafe(text), text);
});

test('time is linear, also for text that is nothing but marks', () => {
  for (const sign of ['\u001b', '\u{e0041}', '\u200d', '\u{1f3f4}\u{e0067}', '\ufe0f']) {
    const spentMs = watchCpu();
    makeSafe(sign.repeat(200_000));
    assert.ok(spentMs() < 2_000, `${JSON.stringify(sign)} is slow`);
  }
});

test('JSON shows the same characters as escapes, and is the same value', () => {
  const value = { text: '\u009b2J \u202e \u{e0041} 👩‍🚀 \u2028 \u007f ü' };
  const json = escapeInJson(JSON.stringify(value));
  assert.match(json, /^[ -~ü👩🚀]*$/u);
  assert.ok(
    json.includes('\\u009b') && json.includes('\\u202e') && json.includes('\\udb40\\udc41'),
  );
  assert.deepEqual(JSON.parse(json), value);
});

test('printed text keeps styles; any other control sequence gets a mark', () => {
  const red = styleSafe(safe`stop`, '31', '39');
  assert.equal(keepStyles(red), '\u001b[31mstop\u001b[39m');
  assert.equal(
    keepStyles(`${red}\u001b[2J\u001b]52;c;eA==\u0007\u202e\r`),
    `${red}␛[2J␛]52;c;eA==␇⟨U+202E⟩␍`,
  );
  assert.equal(styleSafe(safe`x`, '2J\u001b[3', '0'), 'x');
});

test('only safe text can be printed', () => {
  const model: string = '\u001b[2J';
  const title: Safe = makeSafe(model);
  const rows: readonly Safe[] = [
    safe`a ${title} ${3}`,
    title.slice(1).padEnd(9),
    joinSafe([title], safe`\n`),
  ];
  assert.equal(rows[0], 'a ␛[2J 3');
  assert.deepEqual(
    cutSafe(title, (text) => [text.slice(0, 2), text.slice(2)]),
    ['␛[', '2J'],
  );
  const never = (): void => {
    // @ts-expect-error a plain string
    writeOut(model);
    // @ts-expect-error a literal: safe`…` says that it is ours
    writeError('done');
    // @ts-expect-error a template of plain strings
    writeOut(`${title}`);
    // @ts-expect-error a sum
    writeWindow(title + title);
    // @ts-expect-error a foreign part
    writeOut(safe`said: ${model}`);
    // @ts-expect-error a method that may bring in anything
    writeOut(title.replace('a', model));
    // @ts-expect-error padded with something foreign
    writeOut(title.padEnd(9, model));
    // @ts-expect-error joined by something foreign
    writeOut([title, title].join(model));
  };
  assert.equal(typeof never, 'function');
});

test('a terminal without UTF-8 gets Pawl’s signs in ASCII, column for column', () => {
  const signs = safe`⠋ thinking · 2s ─── ✓ bash … ↓ 3 more │ ┆ › ▸`;
  const shown = inLocale(signs, { LANG: 'C' });
  assert.equal(shown, '* thinking - 2s --- + bash ~ v 3 more | : > >');
  assert.equal(shown.length, signs.length);
  assert.equal(inLocale(makeSafe('日本 \u202e'), { LC_ALL: 'POSIX' }), '日本 ⟨U+202E⟩');
  for (const environment of [{ LANG: 'C.UTF-8' }, { LANG: 'de_DE.utf8' }, {}])
    assert.equal(inLocale(signs, environment), signs);
});
