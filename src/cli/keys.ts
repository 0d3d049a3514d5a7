import { createInterface, emitKeypressEvents } from 'node:readline';
import type { Key } from './line-editor.js';

/** What the user does at the keyboard. */
export type Typed =
  | { readonly kind: 'key'; readonly key: Key }
  | { readonly kind: 'paste'; readonly text: string }
  | { readonly kind: 'enter' }
  /** Alt+Enter: for after the turn. */
  | { readonly kind: 'later' }
  | { readonly kind: 'escape' }
  | { readonly kind: 'interrupt' }
  | { readonly kind: 'suspend' }
  | { readonly kind: 'end' };

type Pressed = {
  readonly name?: string;
  readonly ctrl?: boolean;
  readonly meta?: boolean;
  readonly sequence?: string;
};

/** How long a lone Escape waits for the rest of a sequence. */
const ESCAPE_MS = 60;

const translate = (text: string | undefined, pressed: Pressed): Typed => {
  const name = pressed.name ?? '';
  if (pressed.ctrl && name === 'c') return { kind: 'interrupt' };
  if (pressed.ctrl && name === 'z') return { kind: 'suspend' };
  if (pressed.ctrl && name === 'd') return { kind: 'end' };
  if (name === 'escape') return { kind: 'escape' };
  if (name === 'return' || name === 'enter') return pressed.meta ? { kind: 'later' } : enterOf(name);
  return {
    kind: 'key',
    key: { name, text: text ?? '', control: pressed.ctrl ?? false, alt: pressed.meta ?? false },
  };
};

/** Ctrl-J arrives as `enter`, the Enter key as `return`: the first makes a new line in the text. */
const enterOf = (name: string): Typed =>
  name === 'return'
    ? { kind: 'enter' }
    : { kind: 'key', key: { name: 'j', text: '', control: true, alt: false } };

/** Reads keys from a terminal in raw mode until the returned function puts it back. Bracketed pastes arrive whole. */
export const readKeys = (input: NodeJS.ReadStream, take: (typed: Typed) => void): (() => void) => {
  let paste: string | null = null;
  const press = (text: string | undefined, pressed: Pressed): void => {
    if (pressed.name === 'paste-start') paste = '';
    else if (pressed.name === 'paste-end') {
      const whole = paste ?? '';
      paste = null;
      take({ kind: 'paste', text: whole });
    } else if (paste !== null) paste += pressed.sequence ?? text ?? '';
    else take(translate(text, pressed));
  };
  const timing = { escapeCodeTimeout: ESCAPE_MS };
  // Node reads nothing but `escapeCodeTimeout` of the interface; its type asks for a whole one.
  emitKeypressEvents(input, timing as unknown as Parameters<typeof emitKeypressEvents>[1]);
  input.setRawMode(true);
  input.on('keypress', press);
  input.resume();
  return () => {
    input.off('keypress', press);
    input.setRawMode(false);
    input.pause();
  };
};

const CLEAR: Typed = { kind: 'key', key: { name: 'u', text: '', control: true, alt: false } };

/** For a terminal that can't be read key by key: each line is a paste into an empty line, and an Enter. */
export const readLines = (input: NodeJS.ReadStream, take: (typed: Typed) => void): (() => void) => {
  const lines = createInterface({ input, terminal: false });
  lines.on('line', (text) => {
    take(CLEAR); // what stands there from before can't be seen
    take({ kind: 'paste', text });
    take({ kind: 'enter' });
  });
  lines.on('close', () => take({ kind: 'end' }));
  return () => lines.close();
};
