import { type Key, type Modifiers, NO_MODIFIERS, namedKey, textKey } from './key.js';

const FINALS: Readonly<Record<string, string>> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  H: 'home',
  F: 'end',
  M: 'enter',
  P: 'f1',
  Q: 'f2',
  R: 'f3',
  S: 'f4',
};
const NUMBERS: Readonly<Record<number, string>> = {
  1: 'home',
  2: 'insert',
  3: 'delete',
  4: 'end',
  5: 'pageup',
  6: 'pagedown',
  7: 'home',
  8: 'end',
  13: 'enter',
};
const CODES: Readonly<Record<number, string>> = {
  9: 'tab',
  10: 'enter',
  13: 'enter',
  27: 'escape',
  127: 'backspace',
  8: 'backspace',
  57414: 'enter',
  57417: 'left',
  57418: 'right',
  57419: 'up',
  57420: 'down',
  57421: 'pageup',
  57422: 'pagedown',
  57423: 'home',
  57424: 'end',
  57426: 'delete',
};
/** Characters of the number pad, in the order of their codes from 57399. */
const PAD = '0123456789./*-+';
const PAD_FIRST = 57_399;
/** Codes of keys without a character. */
const isPrivate = (code: number): boolean => code >= 57_344 && code <= 63_743;

/** The mask is the bits of shift, alt and control, plus one. Super and hyper belong to the window system. */
const modifiersOf = (mask: number): Modifiers => ({
  shift: ((mask - 1) & 1) !== 0,
  alt: ((mask - 1) & 2) !== 0,
  control: ((mask - 1) & 4) !== 0,
});

const RELEASED = 3;

const characterOf = (code: number): string =>
  code >= 32 && code !== 127 && !(code >= 128 && code < 160) && code <= 0x10ffff
    ? String.fromCodePoint(code)
    : '';

const keyOfCode = (code: number, shifted: number, modifiers: Modifiers): Key | null => {
  const name = CODES[code];
  if (name !== undefined) return namedKey(name, modifiers);
  const pad = PAD[code - PAD_FIRST];
  if (pad !== undefined) return textKey(pad);
  const character = isPrivate(code) ? '' : characterOf(code);
  if (character === '') return null;
  if (modifiers.control || modifiers.alt) return namedKey(character.toLowerCase(), modifiers);
  return textKey(modifiers.shift ? characterOf(shifted) || character.toUpperCase() : character);
};

/** Kitty's `CSI code:shifted:base ; modifiers:event ; text u`. */
const keyOfKitty = (fields: readonly string[]): Key | null => {
  const [code = 0, shifted = 0] = (fields[0] ?? '').split(':').map(Number);
  const [mask = 1, happened = 1] = (fields[1] ?? '').split(':').map((part) => Number(part || 1));
  return happened === RELEASED ? null : keyOfCode(code, shifted, modifiersOf(mask));
};

/** The key of a control sequence (`CSI parameters final`); null for replies, mouse and focus events. */
export const keyOfSequence = (parameters: string, final: string): Key | null => {
  const fields = parameters.split(';');
  if (/[^\d:;]/.test(parameters)) return null;
  if (final === 'u') return keyOfKitty(fields);
  const [mask = 1, happened = 1] = (fields[1] ?? '').split(':').map((part) => Number(part || 1));
  if (happened === RELEASED) return null;
  const modifiers = modifiersOf(mask);
  if (final === '~') {
    if (fields[0] === '27') return keyOfCode(Number(fields[2]), 0, modifiers);
    const name = NUMBERS[Number(fields[0])];
    return name === undefined ? null : namedKey(name, modifiers);
  }
  if (final === 'Z') return namedKey('tab', { ...modifiers, shift: true });
  // `CSI row ; column R` reports the cursor, `CSI 1 ; modifiers R` is F3.
  if (final === 'R' && fields[0] !== '1') return null;
  const name = FINALS[final];
  return name === undefined ? null : namedKey(name, modifiers);
};

/** The key of a control character. */
export const keyOfControl = (character: string, alt: boolean): Key | null => {
  const code = character.charCodeAt(0);
  if (code === 13) return namedKey('enter', { ...NO_MODIFIERS, alt });
  if (code === 9) return namedKey('tab', { ...NO_MODIFIERS, alt });
  if (code === 27) return namedKey('escape');
  if (code === 127 || code === 8) return namedKey('backspace', { ...NO_MODIFIERS, alt });
  if (code === 10 && alt) return namedKey('enter', { ...NO_MODIFIERS, alt });
  if (code > 31) return null;
  return namedKey(String.fromCharCode(code + 64).toLowerCase(), { control: true, alt, shift: false });
};
