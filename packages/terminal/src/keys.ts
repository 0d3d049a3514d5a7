/**
 * Keys. From top to bottom: what a key is; `readKeyboard`, which reads keys from a terminal, and
 * `readLines`, which reads lines from any other input; `readKeys`, which divides bytes into keys;
 * and the key of one control sequence.
 */

import { createInterface } from 'node:readline';
import { StringDecoder } from 'node:string_decoder';

/** A key, independent of the terminal's encoding. */
export type Key = {
  /**
   * A lower-case character, or a name such as `enter`, `escape`, `backspace`, `up`, `pageup`, `f1`;
   * empty for text.
   */
  readonly name: string;
  /** Text that the key types; empty for other keys. */
  readonly text: string;
  readonly control: boolean;
  readonly alt: boolean;
  readonly shift: boolean;
};

/** Input from the keyboard: one key, or a whole paste. */
export type Pressed =
  | { readonly kind: 'key'; readonly key: Key }
  | { readonly kind: 'paste'; readonly text: string };

type Modifiers = Pick<Key, 'control' | 'alt' | 'shift'>;

const NO_MODIFIERS: Modifiers = { control: false, alt: false, shift: false };

const namedKey = (name: string, modifiers: Modifiers = NO_MODIFIERS): Key => ({
  name,
  text: '',
  ...modifiers,
});

const textKey = (text: string): Key => ({ name: '', text, ...NO_MODIFIERS });

/** How long to wait after a lone ESC for the rest of a sequence. */
export const ESCAPE_MS = 60;

type KeyboardHandlers = {
  take(pressed: Pressed): void;
  /** The raw input, before keys are read. It includes the terminal's replies. */
  receive(text: string): void;
};

/**
 * Reads keys from a terminal in raw mode until the returned function is called. A paste arrives as
 * one.
 */
export const readKeyboard = (
  input: NodeJS.ReadStream,
  { take, receive }: KeyboardHandlers,
): (() => void) => {
  let reading = newKeyReader;
  let timer: NodeJS.Timeout | null = null;
  const pressKeys = ({ reading: next, presses }: KeysRead): void => {
    reading = next;
    for (const pressed of presses) take(pressed);
  };
  // An encoding of `input` would outlive this reader: later ones get bytes as well.
  const decoder = new StringDecoder('utf8');
  const readBytes = (bytes: Buffer): void => {
    const text = decoder.write(bytes);
    if (timer !== null) clearTimeout(timer);
    timer = null;
    receive(text);
    pressKeys(readKeys(reading, text));
    if (reading.pending !== '')
      timer = setTimeout(() => pressKeys(readSilence(reading)), ESCAPE_MS);
  };
  input.setRawMode(true);
  input.on('data', readBytes);
  input.resume();
  return () => {
    if (timer !== null) clearTimeout(timer);
    input.off('data', readBytes);
    input.pause();
  };
};

const pressedKey = (name: string, control: boolean): Pressed => ({
  kind: 'key',
  key: namedKey(name, { ...NO_MODIFIERS, control }),
});

/**
 * For input without single keys: each line becomes a paste into an empty input line, then Enter.
 * The end of the input becomes Ctrl-D on an empty line.
 */
export const readLines = (
  input: NodeJS.ReadStream,
  { take }: Pick<KeyboardHandlers, 'take'>,
): (() => void) => {
  const lines = createInterface({ input, terminal: false });
  // the user can't see older text in the line
  const emptyLine = (): void => take(pressedKey('u', true));
  lines.on('line', (text) => {
    emptyLine();
    take({ kind: 'paste', text });
    take(pressedKey('enter', false));
  });
  lines.on('close', () => {
    emptyLine();
    take(pressedKey('d', true));
  });
  return () => lines.close();
};

// ---- Bytes to keys ----

/**
 * How far `readKeys` has read the bytes of a terminal.
 *
 * 1. A sequence that is no key (a reply, a mouse event, an unknown sequence) is dropped whole, even
 *    if it arrives in pieces. No part of it becomes typed text.
 * 2. Text is never dropped. A control character inside a sequence ends the sequence and is a key
 *    itself.
 * 3. A paste arrives as one, however the terminal divided it.
 */
export type KeyReaderState = {
  /** The start of an incomplete sequence. */
  readonly pending: string;
  /** The received part of a paste; null outside of one. */
  readonly paste: PastedPart | null;
};

/** `tail`: the last characters of `text`, which may be the start of its end. */
type PastedPart = { readonly text: string; readonly tail: string };

const NOTHING_PASTED: PastedPart = { text: '', tail: '' };

export const newKeyReader: KeyReaderState = { pending: '', paste: null };

/** `reading`: to be given back with the next text. */
type KeysRead = { readonly reading: KeyReaderState; readonly presses: readonly Pressed[] };

/** Reads the keys in `text`, the continuation of the earlier input. */
export const readKeys = (before: KeyReaderState, text: string): KeysRead => {
  const presses: Pressed[] = [];
  let paste = before.paste;
  let rest = before.pending + text;
  while (rest !== '' || paste !== null) {
    if (paste !== null) {
      const read = readPaste(paste, rest);
      if ('tail' in read) return { reading: { pending: '', paste: read }, presses };
      presses.push({ kind: 'paste', text: read.text });
      paste = null;
      rest = read.rest;
    } else if (rest.startsWith(PASTE_START)) {
      paste = NOTHING_PASTED;
      rest = rest.slice(PASTE_START.length);
    } else {
      const token = nextToken(rest);
      if (token.kind === 'incomplete') break;
      if (token.key !== null) presses.push({ kind: 'key', key: token.key });
      rest = rest.slice(token.length);
    }
  }
  // Of a sequence that never ends only the start is kept, so that its end is still dropped.
  const pending = rest.length > PENDING_MAX ? rest.slice(0, 2) : rest;
  return { reading: { pending, paste }, presses };
};

/**
 * Called after a short silence. A lone ESC was the Escape key; a longer sequence waits for its
 * rest.
 */
export const readSilence = (before: KeyReaderState): KeysRead => {
  const { pending, paste } = before;
  if (pending === ESCAPE)
    return { reading: newKeyReader, presses: [{ kind: 'key', key: namedKey('escape') }] };
  // Alt with a character that also starts sequences, such as `[`. Pawl has no such key.
  return pending.length === 2
    ? { reading: { pending: '', paste }, presses: [] }
    : { reading: before, presses: [] };
};

/**
 * The whole paste and what follows it, or the part so far. Only what is new is searched: a search
 * of the whole part for each piece would take quadratic time.
 */
const readPaste = (
  { text, tail }: PastedPart,
  more: string,
): { readonly text: string; readonly rest: string } | PastedPart => {
  const searched = tail + more;
  const at = searched.indexOf(PASTE_END);
  if (at < 0) return { text: text + more, tail: searched.slice(1 - PASTE_END.length) };
  const rest = searched.slice(at + PASTE_END.length);
  const whole = text + more;
  return { text: pastedText(whole.slice(0, text.length - tail.length + at)), rest };
};

/** Some terminals paste keys as sequences: those that write are read, others dropped whole. */
const pastedText = (paste: string): string => {
  let text = '';
  let rest = paste;
  for (let at = rest.indexOf(ESCAPE); at >= 0; at = rest.indexOf(ESCAPE)) {
    text += rest.slice(0, at);
    const token = nextToken(rest.slice(at));
    if (token.kind === 'done') text += writtenBy(token.key);
    rest = rest.slice(at + (token.kind === 'done' ? token.length : 1));
  }
  return text + rest;
};

const writtenBy = (key: Key | null): string => {
  if (key === null || key.control || key.alt) return '';
  if (key.name === 'enter') return '\n';
  return key.name === 'tab' ? '\t' : key.text;
};

const ESCAPE = '\u001b';
const PASTE_START = '\u001b[200~';
const PASTE_END = '\u001b[201~';
/** Limit for a sequence that never ends. */
const PENDING_MAX = 65_536;

/** The first key or sequence of a text. `key`: null for a sequence that is no key. */
type Token = {
  readonly kind: 'done';
  readonly length: number;
  readonly key: Key | null;
};

type TokenResult = Token | { readonly kind: 'incomplete' };

const done = (length: number, key: Key | null): Token => ({ kind: 'done', length, key });

const INCOMPLETE: TokenResult = { kind: 'incomplete' };

/** The first key or sequence of a text, which is not empty. */
const nextToken = (text: string): TokenResult => {
  const typed = /^[^\u0000-\u001f\u007f-\u009f]+/.exec(text)?.[0];
  if (typed !== undefined) return done(typed.length, textKey(typed));
  const [first = ''] = text;
  return first === ESCAPE ? escapeSequence(text) : done(1, readControl(first, false));
};

/** ESC alone, with a character (Alt), before a whole sequence (Alt), or as the start of one. */
const escapeSequence = (text: string): TokenResult => {
  const second = text[1];
  if (second === undefined) return INCOMPLETE;
  if (second === '[') return controlSequence(text);
  if (second === 'O') return shiftedSequence(text);
  if (']PX^_'.includes(second)) return stringSequence(text);
  if (second === ESCAPE) {
    if (text[2] !== '[' && text[2] !== 'O') return done(1, namedKey('escape'));
    const inner = text[2] === '[' ? controlSequence(text.slice(1)) : shiftedSequence(text.slice(1));
    return inner.kind === 'incomplete' ? inner : done(inner.length + 1, withAlt(inner.key));
  }
  if (second < ' ' || second === '\u007f') return done(2, readControl(second, true));
  const [letter = second] = text.slice(1);
  const shift = letter !== letter.toLowerCase();
  return done(
    1 + letter.length,
    namedKey(letter.toLowerCase(), { control: false, alt: true, shift }),
  );
};

/** `CSI … final`, such as `ESC [ A`: arrows, function keys, Kitty's keys, and replies. */
const controlSequence = (text: string): TokenResult => {
  // the first function keys of Linux' console: Pawl uses none of them
  const linux = /^\u001b\[\[([A-E])/.exec(text);
  if (linux !== null) return done(linux[0].length, null);
  if (/^\u001b\[\[?$/.test(text)) return INCOMPLETE;
  const whole = /^\u001b\[([0-?]*)[ -/]*([@-~])/.exec(text);
  if (whole !== null) return done(whole[0].length, readSequence(whole[1] ?? '', whole[2] ?? ''));
  const start = /^\u001b\[[0-?]*[ -/]*/.exec(text)?.[0] ?? '';
  return start.length === text.length ? INCOMPLETE : done(start.length, null);
};

/** `ESC O modifiers final`: keys of the number pad, and arrows in application mode. */
const shiftedSequence = (text: string): TokenResult => {
  const whole = /^\u001bO(\d*)([A-Za-z])/.exec(text);
  if (whole !== null)
    return done(whole[0].length, readSequence(`1;${whole[1] || 1}`, whole[2] ?? ''));
  return /^\u001bO\d*$/.test(text)
    ? INCOMPLETE
    : done(2, namedKey('o', { ...NO_MODIFIERS, alt: true }));
};

/**
 * A string (OSC, DCS, SOS, PM, APC) up to its terminator. Any other control character ends it too.
 */
const stringSequence = (text: string): TokenResult => {
  const end = text.slice(2).search(/[\u0000-\u001f\u009c]/);
  if (end < 0) return INCOMPLETE;
  const at = end + 2;
  if (text[at] !== ESCAPE)
    return done(text[at] === '\u0007' || text[at] === '\u009c' ? at + 1 : at, null);
  if (text.length === at + 1) return INCOMPLETE;
  return done(text[at + 1] === '\\' ? at + 2 : at, null);
};

const withAlt = (key: Key | null): Key | null => (key === null ? null : { ...key, alt: true });

// ---- The key of one control sequence ----

/** Names of keys by the last letter of their sequence. */
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
/** By the number before `~`. */
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
/** By the code of a key in the Kitty keyboard protocol. */
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

/**
 * The mask is the bits of shift, alt and control, plus one. Super and hyper belong to the window
 * system.
 */
const readModifiers = (mask: number): Modifiers => ({
  shift: ((mask - 1) & 1) !== 0,
  alt: ((mask - 1) & 2) !== 0,
  control: ((mask - 1) & 4) !== 0,
});

const readCharacter = (code: number): string =>
  code >= 32 && code !== 127 && !(code >= 128 && code < 160) && code <= 0x10ffff
    ? String.fromCodePoint(code)
    : '';

/** The key of a Unicode code point, or of one of the codes above. `shifted`: with Shift, or 0. */
const readKeyCode = (code: number, shifted: number, modifiers: Modifiers): Key | null => {
  const name = CODES[code];
  if (name !== undefined) return namedKey(name, modifiers);
  const pad = PAD[code - PAD_FIRST];
  if (pad !== undefined) return textKey(pad);
  const isPrivate = code >= 57_344 && code <= 63_743; // keys without a character
  const character = isPrivate ? '' : readCharacter(code);
  if (character === '') return null;
  if (modifiers.control || modifiers.alt) return namedKey(character.toLowerCase(), modifiers);
  return textKey(modifiers.shift ? readCharacter(shifted) || character.toUpperCase() : character);
};

/** Kitty's event of a key that is let go. */
const RELEASED = 3;

/** Kitty's `CSI code:shifted:base ; modifiers:event ; text u`. */
const readKittyKey = (fields: readonly string[]): Key | null => {
  const [code = 0, shifted = 0] = (fields[0] ?? '').split(':').map(Number);
  const [mask = 1, happened = 1] = (fields[1] ?? '').split(':').map((part) => Number(part || 1));
  return happened === RELEASED ? null : readKeyCode(code, shifted, readModifiers(mask));
};

/**
 * The key of a control sequence (`CSI parameters final`); null for replies, mouse and focus events.
 */
const readSequence = (parameters: string, final: string): Key | null => {
  const fields = parameters.split(';');
  if (/[^\d:;]/.test(parameters)) return null;
  if (final === 'u') return readKittyKey(fields);
  const [mask = 1, happened = 1] = (fields[1] ?? '').split(':').map((part) => Number(part || 1));
  if (happened === RELEASED) return null;
  const modifiers = readModifiers(mask);
  if (final === '~') {
    // xterm's `CSI 27 ; modifiers ; code ~`
    if (fields[0] === '27') return readKeyCode(Number(fields[2]), 0, modifiers);
    const name = NUMBERS[Number(fields[0])];
    return name === undefined ? null : namedKey(name, modifiers);
  }
  // Shift+Tab has a sequence of its own.
  if (final === 'Z') return namedKey('tab', { ...modifiers, shift: true });
  // `CSI row ; column R` reports the cursor, `CSI 1 ; modifiers R` is F3.
  if (final === 'R' && fields[0] !== '1') return null;
  const name = FINALS[final];
  return name === undefined ? null : namedKey(name, modifiers);
};

/** The key of a control character. */
const readControl = (character: string, alt: boolean): Key | null => {
  const code = character.charCodeAt(0);
  if (code === 13) return namedKey('enter', { ...NO_MODIFIERS, alt });
  if (code === 9) return namedKey('tab', { ...NO_MODIFIERS, alt });
  if (code === 27) return namedKey('escape');
  if (code === 127 || code === 8) return namedKey('backspace', { ...NO_MODIFIERS, alt });
  // Alt+Enter on terminals that send LF. A lone LF is Ctrl-J.
  if (code === 10 && alt) return namedKey('enter', { ...NO_MODIFIERS, alt });
  if (code > 31) return null;
  return namedKey(String.fromCharCode(code + 64).toLowerCase(), {
    control: true,
    alt,
    shift: false,
  });
};
