import { type Key, NO_MODIFIERS, namedKey, type Pressed, textKey } from './key.js';
import { keyOfControl, keyOfSequence } from './key-codes.js';

/**
 * Turns the bytes of a terminal into keys.
 *
 * 1. A sequence that is no key (a reply, a mouse event, an unknown sequence) is dropped whole, even if it arrives in
 *    pieces. No part of it becomes typed text.
 * 2. Text is never dropped. A control character inside a sequence ends the sequence and is a key itself.
 * 3. A paste arrives as one, however the terminal divided it.
 */
export type KeyReaderState = {
  /** The start of an incomplete sequence. */
  readonly pending: string;
  /** The received part of a paste; null outside of one. */
  readonly paste: string | null;
};

export const newKeyReader: KeyReaderState = { pending: '', paste: null };

const ESCAPE = '\u001b';
const PASTE_START = '\u001b[200~';
const PASTE_END = '\u001b[201~';
/** Limit for a sequence that never ends. */
const PENDING_MAX = 65_536;

type Token = {
  readonly kind: 'done';
  readonly length: number;
  readonly key: Key | null;
};
type Found = Token | { readonly kind: 'incomplete' };

const done = (length: number, key: Key | null): Token => ({ kind: 'done', length, key });
const INCOMPLETE: Found = { kind: 'incomplete' };

const withAlt = (key: Key | null): Key | null => (key === null ? null : { ...key, alt: true });

const controlSequence = (text: string): Found => {
  const linux = /^\u001b\[\[([A-E])/.exec(text);
  if (linux !== null) return done(linux[0].length, null);
  if (/^\u001b\[\[?$/.test(text)) return INCOMPLETE;
  const whole = /^\u001b\[([0-?]*)[ -/]*([@-~])/.exec(text);
  if (whole !== null) return done(whole[0].length, keyOfSequence(whole[1] ?? '', whole[2] ?? ''));
  const begun = /^\u001b\[[0-?]*[ -/]*/.exec(text)?.[0] ?? '';
  return begun.length === text.length ? INCOMPLETE : done(begun.length, null);
};

/** `ESC O final`: keys of the number pad, and arrows in application mode. */
const shiftedSequence = (text: string): Found => {
  const whole = /^\u001bO(\d*)([A-Za-z])/.exec(text);
  if (whole !== null) return done(whole[0].length, keyOfSequence(`1;${whole[1] || 1}`, whole[2] ?? ''));
  return /^\u001bO\d*$/.test(text) ? INCOMPLETE : done(2, namedKey('o', { ...NO_MODIFIERS, alt: true }));
};

/** A string (OSC, DCS, SOS, PM, APC) up to its terminator. Any other control character ends it too. */
const stringSequence = (text: string): Found => {
  const end = text.slice(2).search(/[\u0000-\u001f\u009c]/);
  if (end < 0) return INCOMPLETE;
  const at = end + 2;
  if (text[at] !== ESCAPE) return done(text[at] === '\u0007' || text[at] === '\u009c' ? at + 1 : at, null);
  if (text.length === at + 1) return INCOMPLETE;
  return done(text[at + 1] === '\\' ? at + 2 : at, null);
};

const escapeSequence = (text: string): Found => {
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
  if (second < ' ' || second === '\u007f') return done(2, keyOfControl(second, true));
  const [letter = second] = text.slice(1);
  const shift = letter !== letter.toLowerCase();
  return done(1 + letter.length, namedKey(letter.toLowerCase(), { control: false, alt: true, shift }));
};

const nextToken = (text: string): Found => {
  const typed = /^[^\u0000-\u001f\u007f-\u009f]+/.exec(text)?.[0];
  if (typed !== undefined) return done(typed.length, textKey(typed));
  const [first = ''] = text;
  return first === ESCAPE ? escapeSequence(text) : done(1, keyOfControl(first, false));
};

export type KeysRead = { readonly reading: KeyReaderState; readonly presses: readonly Pressed[] };

const readPaste = (paste: string): { readonly text: string; readonly rest: string } | null => {
  const end = paste.indexOf(PASTE_END);
  return end < 0 ? null : { text: paste.slice(0, end), rest: paste.slice(end + PASTE_END.length) };
};

/** Reads the keys in `text`, the continuation of the earlier input. */
export const readKeys = (before: KeyReaderState, text: string): KeysRead => {
  const presses: Pressed[] = [];
  let paste = before.paste;
  let rest = before.pending + text;
  while (rest !== '' || paste !== null) {
    if (paste !== null) {
      const read = readPaste(paste + rest);
      if (read === null) return { reading: { pending: '', paste: paste + rest }, presses };
      presses.push({ kind: 'paste', text: read.text });
      paste = null;
      rest = read.rest;
    } else if (rest.startsWith(PASTE_START)) {
      paste = '';
      rest = rest.slice(PASTE_START.length);
    } else {
      const found = nextToken(rest);
      if (found.kind === 'incomplete') break;
      if (found.key !== null) presses.push({ kind: 'key', key: found.key });
      rest = rest.slice(found.length);
    }
  }
  const pending = rest.length > PENDING_MAX ? rest.slice(0, 2) : rest;
  return { reading: { pending, paste }, presses };
};

/** Called after a short silence. A lone ESC was the Escape key; a longer sequence waits for its rest. */
export const readSilence = (before: KeyReaderState): KeysRead => {
  const { pending, paste } = before;
  if (pending === ESCAPE)
    return { reading: newKeyReader, presses: [{ kind: 'key', key: namedKey('escape') }] };
  // Alt with a character that also starts sequences. It is no key of ours.
  return pending.length === 2
    ? { reading: { pending: '', paste }, presses: [] }
    : { reading: before, presses: [] };
};
